"""Two replicas over PostgreSQL and Redis, one of them killed, or Redis gone: nothing is lost, said twice, or stuck."""

from __future__ import annotations

import asyncio
import secrets
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.house.server import Caller, House, Server, Unanswered, house, replies, texts
from tests.stores.postgres import DSN, query
from tests.stores.redis_server import OwnRedis, own_redis

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres", "redis")]

FOREVER = 86_400
"""A lease that no test outlives: who takes over before has not waited for its end."""
USERS = 6


@asynccontextmanager
async def shared(folder: Path) -> AsyncGenerator[tuple[House, OwnRedis]]:
    """Processes on a schema of their own, and their own Redis, which runs."""
    schema = f"replicas_{secrets.token_hex(6)}"
    try:
        async with own_redis(folder) as redis:
            await redis.start()
            async with house(folder, f"{DSN} {redis.url} {schema}") as town:
                yield town, redis
    finally:
        await query(f"DROP SCHEMA IF EXISTS {schema} CASCADE")


async def started(caller: Caller, first: Server, other: Server, message: dict[str, Any]) -> str:
    """The conversation of this message, sent again to the other one when the first died over it."""
    try:
        answer = await caller.start(first, message)
    except Unanswered:
        answer = await caller.start(other, message)
    assert answer.status == 201, answer
    return answer.json["conversation_id"]


@pytest.mark.parametrize("point", ["accept.after-commit", "journal.after-commit"])
async def test_c79_a_replica_is_killed_and_another_answers_each_message_once(tmp_path: Path, point: str) -> None:
    """Killed while several Users talk to it; the lease of its turns had a day to go."""
    async with shared(tmp_path) as (town, _):
        living = await town.serve(lease=FOREVER, turns_at_once=1)
        busy = town.caller("usr_busy")
        occupied = await busy.start(living, busy.message("gated"))
        await living.hears("called")  # it can lease nothing more, so that the other one has to
        dying = await town.serve(environment={"PAPAVER_CRASH_AT": point}, lease=FOREVER)
        callers = [town.caller(f"usr_{number}") for number in range(USERS)]
        said = [caller.message(f"Question {number}") for number, caller in enumerate(callers)]
        pairs = zip(callers, said, strict=True)
        talks = await asyncio.gather(*(started(caller, dying, living, message) for caller, message in pairs))
        assert await dying.ended() == -signal.SIGKILL
        living.tell("go")
        await busy.idle(living, occupied.json["conversation_id"])
        for caller, conversation, message in zip(callers, talks, said, strict=True):
            events = await caller.idle(living, conversation)
            assert texts(events, "user") == [message["text"]]
            assert replies(events) == [f"You said: {message['text']}"]


async def test_redis_is_gone_and_a_reader_at_the_other_replica_still_gets_the_reply(tmp_path: Path) -> None:
    """What was a hint through Redis is found by the next look; once Redis is back, hints go through it again."""
    async with shared(tmp_path) as (town, redis):
        here, there = await town.serve(), await town.serve()
        dana = town.caller()
        conversation = await started(dana, here, there, dana.message("First"))
        await dana.idle(there, conversation)
        await redis.stop()
        assert (await dana.say(here, conversation, dana.message("Second"))).status == 202
        await dana.idle(there, conversation)
        await redis.start()
        assert (await dana.say(there, conversation, dana.message("Third"))).status == 202
        events = await dana.idle(here, conversation)
        assert replies(events) == ["You said: First", "You said: Second", "You said: Third"]
