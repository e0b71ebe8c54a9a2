"""The real server, killed at each moment of a turn: nothing accepted is lost, said twice, or stuck."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from typing import Any

import pytest

from papaver.stores.crash import CRASH_POINTS
from tests.house.server import Answer, Caller, House, Server, Unanswered, house, replies, request, texts

pytestmark = pytest.mark.anyio

FOREVER = 86_400
"""A lease that no test outlives: who takes over before has not waited for its end."""
HANDLER_RUNS = {point: 2 if point == "journal.before-commit" else 1 for point in CRASH_POINTS}
"""An outcome that is journaled is not asked for again."""


async def tried(caller: Caller, server: Server, conversation: str | None, message: dict[str, Any]) -> Answer | None:
    """The answer to a message, or None when the server died before it left."""
    try:
        return await sent(caller, server, conversation, message)
    except Unanswered:
        return None


async def sent(caller: Caller, server: Server, conversation: str | None, message: dict[str, Any]) -> Answer:
    if conversation is None:
        return await caller.start(server, message)
    return await caller.say(server, conversation, message)


def recorded(town: House) -> list[int]:
    """How many events, receipts and conversations are durable."""
    return [town.rows(f"SELECT count(*) FROM {table}")[0][0] for table in ("events", "receipts", "conversations")]


async def test_c79_one_turn_passes_each_crash_point_once_and_in_order(tmp_path: Path) -> None:
    """Accept, lease, journal and finish, each before and after its COMMIT, and nothing else."""
    log = tmp_path / "points"
    async with house(tmp_path) as town:
        server = await town.serve(environment={"PAPAVER_CRASH_LOG": str(log)})
        dana = town.caller()
        started = await dana.start(server, dana.message())
        await dana.idle(server, started.json["conversation_id"])
        await server.stop()
    assert tuple(log.read_text().split()) == CRASH_POINTS


@pytest.mark.requirement("8.3-06", "8.3-07")
@pytest.mark.parametrize("point", CRASH_POINTS)
async def test_c79_a_first_message_survives_a_kill(tmp_path: Path, point: str) -> None:
    """Killed at `point`, restarted, the message sent again: one conversation, one message, one reply, idle."""
    async with house(tmp_path) as town:
        await survives(town, point, None)


@pytest.mark.requirement("8.3-06", "ca-107")
@pytest.mark.parametrize("point", ["accept.before-commit", "accept.after-commit", "journal.after-commit"])
async def test_c79_a_later_message_survives_a_kill(tmp_path: Path, point: str) -> None:
    """The same in a conversation that goes on."""
    async with house(tmp_path) as town:
        first = await town.serve()
        dana = town.caller("usr_before")
        started = await dana.start(first, dana.message("Before"))
        conversation = str(started.json["conversation_id"])
        await dana.idle(first, conversation)
        await first.stop()
        await survives(town, point, conversation)


async def survives(town: House, point: str, conversation: str | None) -> None:
    dying = await town.serve(environment={"PAPAVER_CRASH_AT": point}, lease=FOREVER)
    dana = town.caller("usr_dana" if conversation is None else "usr_before")
    dana.count = 10
    message = dana.message("Where is it?")
    before = await tried(dana, dying, conversation, message)
    assert await dying.ended() == -signal.SIGKILL
    assert before is None or not point.startswith("accept"), "the answer left before the message was durable and told"

    again = await town.serve(lease=FOREVER)
    after = await sent(dana, again, conversation, message)
    assert after.status == (201 if conversation is None else 202), after
    assert before is None or before == after
    events = await dana.idle(again, after.json["conversation_id"])
    assert texts(events, "user")[-1] == "Where is it?"
    assert [event["message"]["id"] for event in events if event["type"] == "message"].count(message["id"]) == 1
    assert replies(events)[-1] == "You said: Where is it?"
    assert replies(events).count("You said: Where is it?") == 1
    assert len(town.rows("SELECT id FROM conversations")) == 1
    ran = dying.turns() + again.turns()
    assert len(ran) == HANDLER_RUNS[point], ran
    assert len({id for id, _, _ in ran}) == 1, "a turn keeps its id over a crash"
    assert town.rows("SELECT holder FROM conversations") == [(None,)]


HOLDING = ("lease.after-commit", "journal.before-commit", "journal.after-commit", "finish.before-commit")
"""Where a dead process leaves a lease behind."""


@pytest.mark.requirement("ca-106")
@pytest.mark.parametrize("point", HOLDING)
async def test_c79_a_live_process_takes_over_a_dead_ones_turn_at_once(tmp_path: Path, point: str) -> None:
    """The dead holder's lease has a day to go; nobody waits for that."""
    async with house(tmp_path) as town:
        living = await town.serve(lease=FOREVER, turns_at_once=1)
        busy, dana = town.caller("usr_busy"), town.caller()
        occupied = await busy.start(living, busy.message("gated"))
        await living.hears("called")  # it can lease nothing more, so that the other one has to
        dying = await town.serve(environment={"PAPAVER_CRASH_AT": point}, lease=FOREVER)
        message = dana.message("Where is it?")
        await tried(dana, dying, None, message)
        assert await dying.ended() == -signal.SIGKILL
        (holder,) = town.rows("SELECT holder FROM conversations WHERE holder IS NOT NULL ORDER BY due_since")[-1]
        assert f"-{dying.process.pid}-" in holder

        retried = await dana.start(living, message)
        living.tell("go")
        await busy.idle(living, occupied.json["conversation_id"])
        events = await dana.idle(living, retried.json["conversation_id"])
        assert (texts(events, "user"), replies(events)) == (["Where is it?"], ["You said: Where is it?"])
        ran = [id for id, _, text in dying.turns() + living.turns() if text == "Where is it?"]
        assert (len(ran), len(set(ran))) == (HANDLER_RUNS[point], 1)


async def test_c38_an_orphaned_turn_is_found_by_an_idle_process_and_answered_once(tmp_path: Path) -> None:
    """A process that is killed wakes nobody; its turn is found all the same, and goes on under its id."""
    async with house(tmp_path) as town:
        living = await town.serve(lease=FOREVER, turns_at_once=1)
        busy, dana = town.caller("usr_busy"), town.caller()
        occupied = await busy.start(living, busy.message("gated"))
        await living.hears("called")
        dying = await town.serve(lease=FOREVER)
        started = await dana.start(dying, dana.message("gated question"))
        held = await dying.hears("called")
        living.tell("go")
        await busy.idle(living, occupied.json["conversation_id"])
        await dying.kill()

        events = await dana.idle(living, started.json["conversation_id"])
        assert replies(events) == ["You said: gated question"]
        assert living.turns()[-1] == (held.split()[0], 2, "gated question")


TABLES = ("replays", "conversations", "events", "receipts")


@pytest.mark.requirement("8.3-06", "8.3-07")
@pytest.mark.parametrize("table", TABLES)
async def test_c96_no_crash_comes_between_a_receipt_and_its_event(tmp_path: Path, table: str) -> None:
    """Killed right after any row of the accepting transaction, nothing of it is there; the retry is accepted."""
    async with house(tmp_path) as town:
        dana = town.caller()
        dying = await town.serve(dies_after=table)
        message = dana.message()
        assert await tried(dana, dying, None, message) is None
        assert await dying.ended() == -signal.SIGKILL
        assert recorded(town) == [0, 0, 0]

        again = await town.serve()
        started = await dana.start(again, message)
        assert started.status == 201, started
        events = await dana.idle(again, started.json["conversation_id"])
        assert (texts(events, "user"), replies(events)) == (["Hello"], ["You said: Hello"])


async def test_the_writer_waits_for_the_disk_at_each_commit(tmp_path: Path) -> None:
    """`synchronous` of the very connection that writes is FULL."""
    async with house(tmp_path) as town:
        server = await town.serve()
        server.tell("pragma synchronous")
        assert await server.hears("pragma synchronous") == "2"


async def test_an_answer_leaves_only_after_its_commit_returned(tmp_path: Path) -> None:
    """While a COMMIT is held, and even once it has returned, nothing is answered before the writer tells of it."""
    async with house(tmp_path) as town:
        server = await town.serve()
        dana = town.caller()
        started = await dana.start(server, dana.message("First"))
        conversation = started.json["conversation_id"]
        before = await dana.idle(server, conversation)

        server.tell("hold")
        await server.hears("holding")
        asked = asyncio.create_task(dana.say(server, conversation, dana.message("Second")))
        await server.hears("committing")
        assert recorded(town) == [len(before), 1, 1]
        # The server is alive meanwhile: it answers others, and shows nobody what is not durable yet.
        assert (await request(server, "GET", "/.well-known/poppy.json", [])).status == 200
        assert (await dana.read(server, conversation)).json["events"] == before
        assert not asked.done()

        server.tell("release")
        await server.hears("committed")
        assert recorded(town)[1] == 2
        assert (await request(server, "GET", "/.well-known/poppy.json", [])).status == 200
        assert not asked.done()

        server.tell("release")
        assert (await asked).status == 202
        assert replies(await dana.idle(server, conversation)) == ["You said: First", "You said: Second"]
