"""The real server told to end, and handlers that fail in every way: polls end, turns pass on, the server lives."""

from __future__ import annotations

import asyncio
import json
import signal
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from papaver.company.texts import Texts
from papaver.web.sse import ServerEvent
from tests.house.server import Caller, Server, house, replies, texts
from tests.house.sockets import Reader

pytestmark = pytest.mark.anyio

POLLS = 100
FOREVER = 86_400
FAILED, TIMED_OUT = Texts().failed, Texts().timed_out


@pytest.mark.requirement("8.5-16", "8.5-17", "8.5-18")
async def test_sigterm_ends_a_hundred_open_polls_and_the_process(tmp_path: Path) -> None:
    """Each poll, which had five minutes to go, ends with a proper empty page; then the process is gone."""
    async with house(tmp_path) as town:
        server = await town.serve(wait_cap=300)
        dana = town.caller()
        started = await dana.start(server, dana.message())
        conversation = started.json["conversation_id"]
        cursor = (await dana.idle(server, conversation))[-1]["id"]
        held = len([line for line in server.said if line.startswith("held")])

        query = f"wait=300&cursor={cursor}"
        polls = [asyncio.create_task(dana.read(server, conversation, query)) for _ in range(POLLS)]
        while int(await server.hears("held")) < held + POLLS:
            pass
        server.signal(signal.SIGTERM)
        answers = await asyncio.gather(*polls)
        empty: dict[str, object] = {
            "conversation_id": conversation,
            "events": [],
            "cursor": cursor,
            "has_more": False,
            "status": "idle",
            "responder": "agent",
        }
        assert [(answer.status, answer.json) for answer in answers] == [(200, empty)] * POLLS
        assert await server.ended() in (0, -signal.SIGTERM)
        assert [line for line in server.said if "Error" in line or "Traceback" in line] == []
        assert list((tmp_path / "shop.db-holders").iterdir()) == []


@pytest.mark.requirement("8.6-06", "papaver-132")
async def test_sigterm_ends_a_hundred_streams_and_polls_gives_the_turn_back_and_ends(tmp_path: Path) -> None:
    """Each stream has its proper end, and goes on at another process after what it had, with the reply of that turn."""
    async with house(tmp_path) as town:
        ending = await town.serve(wait_cap=300, lease=FOREVER)
        dana = town.caller()
        started = await dana.start(ending, dana.message())
        conversation = started.json["conversation_id"]
        cursor = (await dana.idle(ending, conversation))[-1]["id"]
        held = len([line for line in ending.said if line.startswith("held")])
        await dana.say(ending, conversation, dana.message("gated question"))
        while "gated" not in await ending.hears("called"):
            pass

        async with AsyncExitStack() as stack:
            streams = [await stack.enter_async_context(dana.stream(ending, conversation, cursor)) for _ in range(POLLS)]
            seen = [await events_until(stream, "state") for stream in streams]
            last = seen[0][-1].id
            assert [events[-1].id for events in seen] == [last] * POLLS
            query = f"wait=300&cursor={last}"
            polls = [asyncio.create_task(dana.read(ending, conversation, query)) for _ in range(POLLS)]
            while int(await ending.hears("held")) < held + 2 * POLLS:
                pass
            ending.signal(signal.SIGTERM)
            assert [(await stream.event(), stream.ended) for stream in streams] == [(None, True)] * POLLS
            assert {answer.status for answer in await asyncio.gather(*polls)} == {200}
        assert await ending.ended() in (0, -signal.SIGTERM)
        assert town.rows("SELECT holder FROM conversations") == [(None,)]

        again = await town.serve(lease=FOREVER)
        async with dana.stream(again, conversation, last or "") as stream:
            again.tell("go")
            events = await events_until(stream, "state")
        assert replies([json.loads(event.data) for event in events]) == ["You said: gated question"]


async def events_until(stream: Reader, kind: str) -> list[ServerEvent]:
    """The events up to the first of this type, which is among them."""
    events: list[ServerEvent] = []
    while not events or json.loads(events[-1].data)["type"] != kind:
        event = await stream.event()
        assert event is not None, "the stream has ended"
        events.append(event)
    return events


@pytest.mark.requirement("8.3-10", "8.3-12")
async def test_sigterm_gives_a_running_turn_to_another_process(tmp_path: Path) -> None:
    """Its lease had a day to go; the turn begins again elsewhere, with no attempt used up, and its POST is answered."""
    async with house(tmp_path) as town:
        other = await town.serve(lease=FOREVER, turns_at_once=1)
        busy, dana = town.caller("usr_busy"), town.caller()
        occupied = await busy.start(other, busy.message("gated"))
        await other.hears("called")
        ending = await town.serve(lease=FOREVER, wait_cap=300)
        posted = asyncio.create_task(dana.start(ending, dana.message("gated question"), "wait=300"))
        turn_id = (await ending.hears("called")).split()[0]
        other.tell("go")
        await busy.idle(other, occupied.json["conversation_id"])

        await ending.stop()
        started = await posted
        assert (started.status, started.json["status"]) == (201, "working")
        assert texts(started.json["events"], "user") == ["gated question"]
        events = await dana.idle(other, started.json["conversation_id"])
        assert replies(events) == ["You said: gated question"]
        assert other.turns()[-1] == (turn_id, 1, "gated question")


@pytest.mark.parametrize(("text", "reply"), [("gated question", "You said: gated question"), ("swallow", "too late")])
async def test_sigterm_alone_leaves_the_turn_for_the_next_start(tmp_path: Path, text: str, reply: str) -> None:
    """Nobody else is there, or the handler refuses to be cancelled: the message is answered after a restart."""
    async with house(tmp_path) as town:
        ending = await town.serve(lease=FOREVER)
        dana = town.caller()
        started = await dana.start(ending, dana.message(text))
        await ending.hears("called")
        await ending.stop()
        assert town.rows("SELECT holder FROM conversations") == [(None,)]

        again = await town.serve(lease=FOREVER)
        again.tell("go")
        assert replies(await dana.idle(again, started.json["conversation_id"])) == [reply]


async def asked(caller: Caller, server: Server, text: str) -> tuple[str, list[dict[str, Any]]]:
    """A conversation begun with `text`, and its events once it is idle."""
    started = await caller.start(server, caller.message(text))
    assert started.status == 201, started
    conversation = started.json["conversation_id"]
    return conversation, await caller.idle(server, conversation)


FAILING = {
    "raise": FAILED,
    "exit": FAILED,
    "cancel": FAILED,
    "group": FAILED,
    "hang": TIMED_OUT,
    "garbage object": FAILED,
    "garbage nothing": FAILED,
    "garbage surrogate": FAILED,
    "garbage set": FAILED,
    "garbage nan": FAILED,
    "garbage list": FAILED,
    "garbage number": FAILED,
    "garbage author": FAILED,
    "garbage keys": FAILED,
    "garbage deep": FAILED,
}


@pytest.mark.requirement("ca-115")
async def test_c15_a_failing_handler_is_a_worded_message_and_idle(tmp_path: Path) -> None:
    """Whatever it raises or returns, or when it hangs: one sentence, `idle`, and the server answers on."""
    async with house(tmp_path) as town:
        server = await town.serve(turn_timeout=1, lease=FOREVER)
        dana = town.caller()
        found = await asyncio.gather(*(asked(dana, server, text) for text in FAILING))
        assert {text: replies(events) for text, (_, events) in zip(FAILING, found, strict=True)} == {
            text: [sentence] for text, sentence in FAILING.items()
        }
        assert [attempt for _, attempt, _ in server.turns()] == [1] * len(FAILING)
        for conversation, _ in found:
            said = await dana.say(server, conversation, dana.message("Try this"))
            assert said.status == 202
            assert replies(await dana.idle(server, conversation))[1:] == ["You said: Try this"]


async def test_c15_a_handler_that_swallows_its_cancellation_holds_nothing_up(tmp_path: Path) -> None:
    """It is timed out all the same; what it says later is not recorded, and others are answered meanwhile."""
    async with house(tmp_path) as town:
        server = await town.serve(turn_timeout=1, lease=FOREVER, turns_at_once=1)
        dana = town.caller()
        conversation, events = await asked(dana, server, "swallow")
        assert replies(events) == [TIMED_OUT]
        _, others = await asked(dana, server, "Meanwhile")
        assert replies(others) == ["You said: Meanwhile"]

        server.tell("go")
        await server.hears("left swallow")
        assert (await dana.say(server, conversation, dana.message("And now?"))).status == 202
        events = await dana.idle(server, conversation)
        assert texts(events, "user") == ["swallow", "And now?"]
        assert replies(events) == [TIMED_OUT, "You said: And now?"]
        await server.stop()
