"""Streams at one replica of what another one writes and records, over PostgreSQL and Redis (8.6)."""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from papaver.company.turn import Turn
from papaver.stores.postgres import PostgresStore
from papaver.testing.company import CompanyBench, company_bench
from tests.stores.postgres import DSN, query
from tests.stores.redis_server import URL as REDIS

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres", "redis")]


@asynccontextmanager
async def replicas(handler: Any) -> AsyncGenerator[tuple[CompanyBench, CompanyBench]]:
    """One that runs the turns, and one that does not."""
    schema = f"streams_{secrets.token_hex(6)}"
    stores = [PostgresStore(DSN, redis=REDIS, schema=schema) for _ in range(2)]
    try:
        async with (
            company_bench(handler=handler, store=stores[0]) as here,
            company_bench(handler=handler, store=stores[1], turns=False) as there,
        ):
            yield here, there
    finally:
        await query(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


@pytest.mark.requirement("8.6-04", "8.6-09", "ca-57")
async def test_c19_a_text_is_streamed_at_another_replica_than_writes_it() -> None:
    """Its pieces in order, then the message that they make, and the state; no event is missing or comes twice."""
    pieces = [f"{number} " for number in range(30)]

    shown = asyncio.Event()

    async def answer(turn: Turn) -> None:
        await turn.write(pieces[0])
        await shown.wait()
        for piece in pieces[1:]:
            await turn.write(piece)

    async with replicas(answer) as (here, there):
        shown.set()
        conversation = (await here.start()).json["conversation_id"]
        cursor = (await here.idle(conversation)).json["cursor"]
        async with await there.stream(conversation, f"cursor={cursor}") as stream:
            assert await stream.chunk()
            shown.clear()
            await here.say(conversation)
            found: list[tuple[str, Any]] = []
            while not found or found[-1][1].get("status") != "idle":
                event = await stream.event()
                assert event is not None
                found.append((event.event, json.loads(event.data)))
                if event.event == "text-delta":
                    shown.set()
        events = [data for kind, data in found if kind == "message"]
        assert [event["type"] for event in events] == ["message", "state", "message", "state"]
        reply = events[2]["message"]
        assert reply["text"] == "".join(pieces)
        texts = [data["text"] for kind, data in found if kind == "text-delta"]
        assert {data["message_id"] for kind, data in found if kind == "text-delta"} == {reply["id"]}
        assert reply["text"].startswith("".join(texts)), "what came in time, from the beginning and without a gap"
        assert events == (await here.read(conversation, f"cursor={cursor}")).json["events"]
