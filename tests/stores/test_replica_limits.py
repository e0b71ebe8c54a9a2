"""Two replicas of a Company at one limit: through PostgreSQL and Redis, by requests from outside."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from papaver.stores.postgres import PostgresStore
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.keys import AgentKeys
from tests.stores.postgres import DSN
from tests.stores.redis_server import URL

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres", "redis")]
NOBODY = "redis://127.0.0.1:1"


@asynccontextmanager
async def replicas(schema: str, redis: str) -> AsyncGenerator[tuple[CompanyBench, CompanyBench]]:
    agent = AgentKeys()

    def replica() -> PostgresStore:
        return PostgresStore(DSN, schema=schema, redis=redis, connections=3, timeout=5)

    async with (
        company_bench(store=replica(), turns=False, requests_per_user=10, agent=agent) as one,
        company_bench(store=replica(), turns=False, requests_per_user=10, agent=agent) as two,
    ):
        sweeping = [bench.company.start_sweeping() for bench in (one, two)]
        try:
            yield one, two
        finally:
            for task in sweeping:
                task.cancel()
            await asyncio.wait(sweeping)


async def second(bench: CompanyBench) -> None:
    """One second goes by, and what is due in it is done."""
    await bench.sleepers(2)
    bench.clock.advance(1)
    await bench.sleepers(2)


async def statuses(bench: CompanyBench, conversation: str, times: int) -> list[int]:
    return [(await bench.read(conversation)).status for _ in range(times)]


@pytest.mark.requirement("papaver-125")
async def test_what_one_replica_let_through_counts_at_the_other(schema: str) -> None:
    """A second later; whoever has asked one of them too often is refused by both."""
    async with replicas(schema, URL) as (one, two):
        conversation = (await one.start()).json["conversation_id"]
        assert await statuses(one, conversation, 5) == [200] * 5
        assert await statuses(two, conversation, 6) == [200] * 6
        await second(one)
        await second(two)
        refused = await two.read(conversation)
        assert (refused.status, refused.error) == (429, "rate_limited")
        assert await statuses(one, conversation, 1) == [200]
        await second(one)
        assert await statuses(one, conversation, 1) == [429]


@pytest.mark.requirement("papaver-125")
async def test_without_redis_each_replica_has_the_limit_for_itself(schema: str) -> None:
    """Nobody waits for it."""
    async with replicas(schema, NOBODY) as (one, two):
        conversation = (await one.start()).json["conversation_id"]
        assert await statuses(one, conversation, 5) == [200] * 5
        await second(one)
        assert await statuses(two, conversation, 11) == [*[200] * 10, 429]
        await second(two)
        assert await statuses(one, conversation, 5) == [*[200] * 4, 429]
