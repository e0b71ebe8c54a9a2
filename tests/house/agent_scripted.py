"""A Personal Agent in front of a Company that a test scripts: the real httpx2 client, its auth and its guards."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2

from papaver.adapters.httpx2.personal_agent import PersonalAgent
from papaver.ports.system import FetchPolicy
from papaver.testing.clock import SeededIds
from papaver.testing.keys import NOW
from papaver.web.messages import Headers, Request, Response
from tests.house.agent_ports import MemoryVault, PassingClock
from tests.house.agent_world import CLIENT_ID, Keys, ScriptedCompany

__all__ = ["Scripted", "agent_at", "scripted"]


def agent_at(network: Any, vault: MemoryVault, keys: Any, **options: Any) -> PersonalAgent:
    """A Personal Agent whose network is `network`, both for documents and for requests."""
    used: dict[str, Any] = {
        "fetcher": network,
        "transport": network,
        "clock": PassingClock(NOW),
        "ids": SeededIds("agent"),
        **options,
    }
    return PersonalAgent(CLIENT_ID, keys=keys, vault=vault, **used)


class Scripted(httpx2.AsyncBaseTransport):
    """The way to a ScriptedCompany. `elsewhere` answers what is not its conversation endpoint."""

    def __init__(self, company: ScriptedCompany, clock: PassingClock) -> None:
        self.company = company
        self.clock = clock
        self.elsewhere: dict[str, httpx2.Response] = {}
        self.hops: list[httpx2.Request] = []

    async def fetch(self, url: str, policy: FetchPolicy, headers: Headers = Headers()) -> Response:
        """The port Fetcher."""
        return self.company.serve(url)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """The transport below an httpx2 client."""
        self.hops.append(request)
        url = str(request.url)
        if url in self.elsewhere:
            return self.elsewhere[url]
        headers = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw)
        response = self.company.take(Request(request.method, url, headers, await request.aread()), self.clock.now())
        return httpx2.Response(response.status, headers=list(response.headers), content=response.body)


@asynccontextmanager
async def scripted(
    company: ScriptedCompany | None = None, vault: MemoryVault | None = None, **options: Any
) -> AsyncGenerator[tuple[PersonalAgent, Scripted]]:
    """A Personal Agent and a Company that does what the test says."""
    network = Scripted(company or ScriptedCompany(), PassingClock(NOW))
    async with agent_at(network, vault or MemoryVault(), Keys(), clock=network.clock, **options) as agent:
        yield agent, network
