"""Streams over real connections: at once and uncompressed, slow readers, readers that leave, a Company that stops."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from anyio.lowlevel import checkpoint
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware.gzip import GZipMiddleware

from papaver.adapters.asgi import ASGIApp, CompanyEndpoint
from papaver.adapters.fastapi import Poppy as FastAPIPoppy
from papaver.adapters.starlette import CompanyRoute
from papaver.adapters.starlette import Poppy as StarlettePoppy
from papaver.company.app import Company
from papaver.ports.company import Slice
from papaver.testing.company import CompanyBench, company_bench
from papaver.web.sse import KEEP_ALIVE
from tests.house.sockets import Reader, listening, reading

pytestmark = pytest.mark.anyio

RETRY = b"retry: 1000\n\n"
BUFFER = 8192


async def started(bench: CompanyBench) -> tuple[str, str]:
    """A conversation with nothing left to do, and the cursor at its end."""
    conversation = (await bench.start()).json["conversation_id"]
    return conversation, (await bench.read(conversation)).json["cursor"]


async def text_of(reader: Reader) -> str:
    event = await reader.event()
    assert event is not None, "the stream has ended"
    return json.loads(event.data)["message"]["text"]


def bare(shop: Company) -> ASGIApp:
    return CompanyEndpoint(shop)


def in_starlette(shop: Company) -> ASGIApp:
    app = Starlette()
    StarlettePoppy(app, shop)
    app.add_middleware(GZipMiddleware, minimum_size=1)
    return app


def in_fastapi(shop: Company) -> ASGIApp:
    app = FastAPI()
    app.add_middleware(GZipMiddleware, minimum_size=1)
    FastAPIPoppy(app, shop)
    return app


def behind_middleware(shop: Company) -> ASGIApp:
    app = Starlette(routes=[CompanyRoute(shop)])
    app.add_middleware(GZipMiddleware, minimum_size=1)
    return app


@pytest.mark.requirement("8.6-01", "papaver-129")
@pytest.mark.parametrize("mounted", [bare, in_starlette, in_fastapi, behind_middleware])
async def test_b61_a_stream_is_not_compressed_and_each_event_arrives_at_once(
    mounted: Callable[[Company], ASGIApp],
) -> None:
    """Also in an app that compresses whatever it can, and by the app's own route behind that middleware."""
    async with company_bench(turns=False) as bench, listening(mounted(bench.company)) as port:
        conversation, cursor = await started(bench)
        accepts: dict[str, Any] = {"accept_encoding": "gzip, br, deflate"}
        async with reading(bench, port, conversation, f"cursor={cursor}", **accepts) as reader:
            assert reader.status == 200
            assert reader.headers.first("content-type") == "text/event-stream"
            assert "content-encoding" not in reader.headers
            assert await reader.chunk() == RETRY
            for text in ("one", "two"):
                await bench.say(conversation, text)
                assert await text_of(reader) == text


async def test_a_reader_that_leaves_is_noticed() -> None:
    """Nothing is held for nobody."""
    async with company_bench(turns=False) as bench, listening(CompanyEndpoint(bench.company)) as port:
        conversation, cursor = await started(bench)
        async with reading(bench, port, conversation, f"cursor={cursor}") as reader:
            assert await reader.chunk() == RETRY
            assert bench.company.held == 1
        await bench.held(0)


async def test_a_company_that_stops_ends_a_hundred_streams_in_order() -> None:
    """Each has the end of its body, so that its reader knows that nothing is missing."""
    async with (
        company_bench(turns=False, held_per_user=100) as bench,
        listening(CompanyEndpoint(bench.company)) as port,
    ):
        conversation, cursor = await started(bench)

        async def read() -> tuple[bytes, bool]:
            async with reading(bench, port, conversation, f"cursor={cursor}") as reader:
                assert await reader.chunk() == RETRY
                return await reader.chunk(), reader.ended

        readers = [asyncio.create_task(read()) for _ in range(100)]
        await bench.held(100)
        bench.company.stop()
        assert await asyncio.gather(*readers) == [(b"", True)] * 100
        assert bench.company.held == 0


@pytest.mark.requirement("papaver-131")
@pytest.mark.parametrize("ends", ["stalled", "stopped"])
async def test_c86_a_reader_that_takes_nothing_costs_little_and_is_closed(ends: str) -> None:
    """Pages are read as they are taken. Another reader of the same conversation is not held up by it."""
    limits: dict[str, Any] = {"stream_stalled": 1 if ends == "stalled" else 600, "stream_keep_alive": 1}
    async with company_bench(turns=False, requests_per_user=1000, **limits) as bench:
        conversation, cursor = await started(bench)
        for number in range(60):
            await bench.say(conversation, f"{number} ".ljust(60_000, "x"))
        pages = await counted(bench)
        async with (
            listening(CompanyEndpoint(bench.company), send_buffer=BUFFER) as port,
            reading(bench, port, conversation, f"cursor={cursor}", receive_buffer=BUFFER) as slow,
        ):
            while not pages:
                await checkpoint()
            async with reading(bench, port, conversation, f"cursor={cursor}") as quick:
                for number in range(60):
                    assert (await text_of(quick)).startswith(f"{number} ")
                pages.clear()
                assert await quick.chunk() == KEEP_ALIVE
                assert len(pages) <= 2, "of the slow one nothing more is read"
            if ends == "stopped":
                bench.company.stop()
            await bench.held(0)
            left = await slow.rest()
            assert len(left) < 600_000, "what was on its way, of 3.6 MB"
            assert not left.endswith(b"0\r\n\r\n"), "the reader sees that the body has no end"


async def counted(bench: CompanyBench) -> list[int]:
    """From now on: how many events each read of the log returned."""
    pages: list[int] = []
    tables: Any = await bench.company.store.tables(bench.company.id)
    read = tables.log.read

    async def counting(*arguments: object, **options: object) -> Slice | None:
        found = await read(*arguments, **options)
        pages.append(len(found.events) if found else 0)
        return found

    tables.log.read = counting
    return pages
