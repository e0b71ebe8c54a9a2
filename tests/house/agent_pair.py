"""A Personal Agent in front of the Company of `company_bench`, in one process.

Requests go through the real httpx2 client, its auth and its guards; only the sockets below are missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from papaver.adapters.httpx2.personal_agent import PersonalAgent
from papaver.company.incoming import Incoming
from papaver.ports.system import FetchPolicy
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.keys import AgentKeys
from papaver.web.messages import Headers, Response, Stream
from papaver.web.urls import read_url
from tests.house.agent_ports import MemoryVault
from tests.house.agent_scripted import agent_at
from tests.house.agent_world import CLIENT_ID, Keys

__all__ = ["BenchNetwork", "paired"]


class BenchNetwork(httpx2.AsyncBaseTransport):
    """The way to a Company of `company_bench`, for documents and for requests. `log` is what arrived."""

    def __init__(self, bench: CompanyBench) -> None:
        self._bench = bench
        self.log: list[tuple[str, str, int]] = []

    async def fetch(self, url: str, policy: FetchPolicy, headers: Headers = Headers()) -> Response:
        """The port Fetcher."""
        parts = read_url(url)
        found = await self._bench.fetch(parts.path, host=parts.host)
        if found is None:
            return Response(404, url=url)
        return Response(found.status, found.headers, found.response.body, url)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The transport below an httpx2 client."""
        body = await request.aread()

        async def read(limit: int) -> bytes:
            return body

        async def gone() -> None:
            await asyncio.Event().wait()

        response = await self._bench.company.handle(
            Incoming(
                request.method,
                request.url.path,
                request.url.query.decode(),
                request.url.host,
                Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw),
                "192.0.2.7",
                read,
                gone,
            )
        )
        assert response is not None
        self.log.append((request.method, str(request.url), response.status))
        if isinstance(response, Stream):
            return httpx2.Response(response.status, headers=list(response.headers), stream=_Streamed(response))
        return httpx2.Response(response.status, headers=list(response.headers), content=response.body)


class _Streamed(httpx2.AsyncByteStream):
    """A Company's stream as a client reads it."""

    def __init__(self, stream: Stream) -> None:
        self._chunks = stream.chunks

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in self._chunks:
            yield chunk

    async def aclose(self) -> None:
        await self._chunks.aclose()


@asynccontextmanager
async def paired(**options: Any) -> AsyncGenerator[tuple[PersonalAgent, CompanyBench, BenchNetwork, MemoryVault]]:
    """A Personal Agent and a Company that echoes, or the one in `options`."""
    keys = AgentKeys(CLIENT_ID)
    async with company_bench(agent=keys, **options) as bench:
        network, vault = BenchNetwork(bench), MemoryVault()
        async with agent_at(network, vault, Keys(keys.identity), clock=bench.clock) as agent:
            yield agent, bench, network, vault
