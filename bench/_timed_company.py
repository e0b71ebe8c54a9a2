"""A Company that notes when it does what: `python -m bench._timed_company STORE REDIS DOCUMENTS MODE`, on a free port.

STORE is a DSN with `#SCHEMA` behind it or a file, REDIS may be empty. MODE `turns` runs turns, `reads` leaves that to
another process. Beside the Company it has three routes for the raw way: `/held` answers when a wake-up comes, `/wake`
sends one, and `/notes` has the newest time of each moment (seconds of the clock that all processes share). A wake-up is
an event in the process, or what REDIS or NOTIFY brings from the other.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.agent import DOMAIN
from bench.server import LIMITS, serve
from papaver.adapters.asgi import CompanyEndpoint
from papaver.adapters.running import running
from papaver.company import Company, Turn
from papaver.stores import crash
from papaver.stores.postgres import PostgresStore, log_round
from papaver.stores.sqlite import SqliteStore, writer
from papaver.testing.company import Documents

__all__: list[str] = []

PAUSE = 0.05
"""Seconds that the handler takes, so that a reader waits already when it is done."""
NOTES: dict[str, float] = {}


def note(moment: str) -> None:
    NOTES[moment] = time.perf_counter()


class Raw:
    """A wake-up by itself, to whoever is held at `/held`."""

    def __init__(self) -> None:
        self._held: set[asyncio.Event] = set()
        self.send: Callable[[], Awaitable[object]] = self._at_once

    async def _at_once(self) -> None:
        self.heard()

    def heard(self, *_: object) -> None:
        for event in self._held:
            event.set()

    async def held(self, _: Request) -> JSONResponse:
        event = asyncio.Event()
        self._held.add(event)
        await event.wait()
        self._held.discard(event)
        return JSONResponse({"events": [], "cursor": "evt_1", "has_more": False, "status": "idle"})

    async def wake(self, _: Request) -> JSONResponse:
        note("raw")
        await self.send()
        return JSONResponse({})


@asynccontextmanager
async def connected(raw: Raw, dsn: str, redis: str, schema: str) -> AsyncGenerator[None]:
    """Its wake-ups come from the other process, through the same service as the Company's."""
    if redis:
        client: Any = importlib.import_module("redis.asyncio").Redis.from_url(redis, protocol=2)
        async with client.pubsub() as heard:
            await heard.subscribe(f"{schema}-raw")
            listening = asyncio.create_task(listened(heard, raw))
            raw.send = lambda: client.publish(f"{schema}-raw", b"x")
            yield
            listening.cancel()
        await client.aclose()
    elif dsn:
        postgres = importlib.import_module("asyncpg")
        sender, listener = await postgres.connect(dsn), await postgres.connect(dsn)
        await listener.add_listener(f"{schema}_raw", raw.heard)
        raw.send = lambda: sender.fetchval("SELECT pg_notify($1, 'x')", f"{schema}_raw")
        yield
        sender.terminate()
        listener.terminate()
    else:
        yield


async def listened(heard: Any, raw: Raw) -> None:
    async for _ in heard.listen():
        raw.heard()


async def notes(_: Request) -> JSONResponse:
    return JSONResponse(NOTES)


def main(place: str, redis: str, documents: str, mode: str) -> None:
    # The store notes the moment after each COMMIT, before anybody is told: there is a name for it.
    replaced = (crash, "WATCHED", True), (log_round, "crash_point", note), (writer, "crash_point", note)
    for module, name, value in replaced:
        setattr(module, name, value)
    dsn, _, schema = place.partition("#")
    store = PostgresStore(dsn, redis=redis or None, schema=schema) if schema else SqliteStore(place)
    company = Company(domain=DOMAIN, name="Bench", base_url=f"https://{DOMAIN}/poppy", store=store, limits=LIMITS)

    @company.conversation
    async def echo(turn: Turn) -> str:
        note("called")
        await asyncio.sleep(PAUSE)
        note("done")
        return f"You said: {turn.text}"

    published = Documents()
    published.bodies = {url: body.encode() for url, body in json.loads(Path(documents).read_text()).items()}
    raw = Raw()

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with (
            running(company, fetcher=published, turns=mode == "turns"),
            connected(raw, dsn if schema else "", redis, schema),
        ):
            yield

    routes = [Route("/held", raw.held), Route("/wake", raw.wake), Route("/notes", notes)]
    serve(uvicorn.Config(CompanyEndpoint(company, otherwise=Starlette(routes=routes, lifespan=lifespan))))


if __name__ == "__main__":
    main(*sys.argv[1:])
