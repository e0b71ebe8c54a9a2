"""`wake_ups`: what one hint to another process costs through Redis and through NOTIFY, and what a replay key costs.

All of it raw, in one process, one after the other: the way to the servers and back, without anything of ours but the
relay. `value` is Redis to NOTIFY; the rest says what a question to Redis would save, or not, beside an INSERT that is
made anyway.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import secrets
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

from bench.harness import report
from bench.in_postgres import dsn, schema_place
from papaver.stores.redis import RedisRelay

REDIS = os.environ.get("PAPAVER_REDIS_URL") or "redis://127.0.0.1:6379"
CALLS, ROUNDS, KEYS = 100, 41, 32

Arm = Callable[[], Awaitable[object]]


async def measured(arms: dict[str, Arm]) -> dict[str, float]:
    """Median microseconds of one call, the arms in turn and from both ends alternately."""
    taken: dict[str, list[float]] = {name: [] for name in arms}
    for turn in range(ROUNDS + 1):
        for name in list(arms)[:: 1 if turn % 2 == 0 else -1]:
            start = time.perf_counter()
            for _ in range(CALLS):
                await arms[name]()
            if turn:
                taken[name].append((time.perf_counter() - start) / CALLS * 1e6)
    return {name: round(statistics.median(each), 1) for name, each in taken.items()}


async def through_redis(one: RedisRelay, two: RedisRelay) -> Arm:
    """Published by one process's relay, delivered by another's."""
    heard: asyncio.Queue[object] = asyncio.Queue()
    two.subscribe("bench", heard.put_nowait)
    await one.settled()
    await two.settled()

    async def round_trip() -> None:
        one.publish("bench")
        await heard.get()

    return round_trip


async def through_notify(sender: Any, listener: Any, channel: str) -> Arm:
    heard: asyncio.Queue[object] = asyncio.Queue()

    def note(*_: object) -> None:
        heard.put_nowait(None)

    await listener.add_listener(channel, note)

    async def round_trip() -> None:
        await sender.fetchval("SELECT pg_notify($1, $2)", channel, "x")
        await heard.get()

    return round_trip


def keys_inserted(connection: Any, count: int) -> Arm:
    """So many replay keys in a transaction that writes something else as well, as a round does."""
    statement = "INSERT INTO replays SELECT unnest($1::bytea[]), 0 ON CONFLICT DO NOTHING"

    async def written() -> None:
        async with connection.transaction():
            await connection.execute("UPDATE heads SET n = n + 1")
            if count:
                await connection.execute(statement, [secrets.token_bytes(16) for _ in range(count)])

    return written


def keys_asked(client: Any, prefix: str, count: int) -> Arm:
    """SET with NX for so many at once."""

    async def asked() -> None:
        commands = client.pipeline(transaction=False)
        for _ in range(count):
            commands.set(f"{prefix}:{secrets.token_hex(16)}", b"", nx=True, ex=5)
        await commands.execute()

    return asked


async def run(schema: str) -> dict[str, float]:
    postgres = importlib.import_module("asyncpg")
    client: Any = importlib.import_module("redis.asyncio").Redis.from_url(REDIS, protocol=2)
    one, two, three = [await postgres.connect(dsn(), server_settings={"search_path": schema}) for _ in range(3)]
    await one.execute(
        f"CREATE SCHEMA {schema}; CREATE TABLE replays (key bytea PRIMARY KEY, until float8 NOT NULL);"
        " CREATE TABLE heads (n bigint NOT NULL) WITH (fillfactor = 50); INSERT INTO heads VALUES (0)"
    )
    relays = RedisRelay(REDIS, prefix=schema), RedisRelay(REDIS, prefix=schema)
    for relay in relays:
        await relay.open()
    try:
        return await measured(
            {
                "redis": await through_redis(*relays),
                "notify": await through_notify(one, two, schema),
                "no_key": keys_inserted(three, 0),
                "one_key": keys_inserted(three, 1),
                f"{KEYS}_keys": keys_inserted(three, KEYS),
                "one_asked": keys_asked(client, schema, 1),
                f"{KEYS}_asked": keys_asked(client, schema, KEYS),
            }
        )
    finally:
        for relay in relays:
            await relay.close()
        for connection in (one, two, three):
            await connection.close()
        await client.aclose()


def main() -> None:
    with schema_place() as schema:
        us = asyncio.run(run(schema))
    print(us)
    report(
        "wake_ups",
        value=round(us["notify"] / us["redis"], 3),
        baseline=us["notify"],
        goal=1.0,
        unit="ratio of NOTIFY's time to Redis's; all else in us",
        **us,
        rounds=ROUNDS,
    )


if __name__ == "__main__":
    main()
