"""One turn of the Company Agent: what the handler is given, and that whatever it does has a worded end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from papaver.company import Reply, Texts, Turn
from papaver.company.turn import Transcript
from papaver.protocol.conversation.model import Author, AuthorType, Role
from papaver.testing.company import CompanyBench, company_bench

pytestmark = pytest.mark.anyio

FAILED, TIMED_OUT = Texts().failed, Texts().timed_out


def replies(page: Any) -> list[str]:
    """The texts of the Company's messages."""
    messages = [event["message"] for event in page.json["events"] if event["type"] == "message"]
    return [message.get("text") for message in messages if message["role"] == "company"]


async def ask(bench: CompanyBench, text: str = "Hello") -> Any:
    """All events once the Company is idle again."""
    return await bench.idle((await bench.start(text)).json["conversation_id"])


async def raises(turn: Turn) -> str:
    raise RuntimeError("database password is hunter2")


async def exits(turn: Turn) -> str:
    raise SystemExit(3)


async def cancels_itself(turn: Turn) -> str:
    raise asyncio.CancelledError


async def raises_a_group(turn: Turn) -> str:
    raise BaseExceptionGroup("as a task group raises it", [SystemExit(3)])


async def breaks_off(turn: Turn) -> AsyncIterator[str]:
    yield "half a "
    raise RuntimeError("broken off")


async def yields_numbers(turn: Turn) -> AsyncIterator[Any]:
    yield 5


def says(what: Any) -> Callable[[Turn], Awaitable[Any]]:
    async def answer(turn: Turn) -> Any:
        return what

    return answer


BAD = {
    "raises": raises,
    "exits": exits,
    "cancels itself": cancels_itself,
    "raises a group": raises_a_group,
    "breaks off": breaks_off,
    "yields numbers": yields_numbers,
    "a number": says(5),
    "bytes": says(b"x"),
    "an object": says(object()),
    "an empty reply": says(Reply()),
    "a list as data": says(Reply(data=[1])),  # type: ignore[arg-type]
    "what JSON cannot say": says(Reply(data={"x": {1, 2}})),
    "no number": says(Reply(data={"x": float("nan")})),
    "half a character": says("\ud800"),
    "an author that is text": says(Reply("x", author="Marta")),  # type: ignore[arg-type]
    "an author of another type": says(Reply("x", author=Author("bot"))),  # type: ignore[arg-type]
    "a picture without https": says(Reply("x", author=Author(AuthorType.HUMAN, image="http://x.example/i.png"))),
    "too much": says("x" * 300_000),
}


@pytest.mark.parametrize("handler", BAD)
@pytest.mark.requirement("8.7-02")
async def test_c15_a_handler_that_fails_ends_in_a_worded_message_and_idle(
    handler: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it does; the reason is logged and never sent, and the runner answers the next one."""
    async with company_bench(handler=BAD[handler]) as bench:
        for _ in range(2):
            page = await ask(bench)
            assert (replies(page), page.json["status"]) == ([FAILED], "idle")
            assert "hunter2" not in page.response.body.decode()
        assert json.loads((await bench.company.health()).body)["turns"] == "ok"
    assert len([record for record in caplog.records if record.levelno == logging.ERROR]) == 2


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("Hi", ["Hi"]), (None, []), ("", []), (Reply("Hi", {"n": 1}), ["Hi"]), (Reply("Hi"), ["Hi"])],
)
async def test_a_reply_is_text_or_a_message_or_nothing(answer: object, expected: list[str]) -> None:
    """None and the empty text say nothing; the conversation is idle all the same."""
    async with company_bench(handler=says(answer)) as bench:
        assert replies(await ask(bench)) == expected


async def test_pieces_become_one_message() -> None:
    """An async generator's, joined; one without pieces says nothing."""

    async def pieces(turn: Turn) -> AsyncIterator[str]:
        for word in turn.text.split():
            yield word + " "

    async with company_bench(handler=pieces) as bench:
        assert replies(await ask(bench, "one two")) == ["one two "]


@pytest.mark.parametrize("swallows", [False, True])
async def test_a_handler_that_hangs_is_left_after_its_time(swallows: bool) -> None:
    """Also when it swallows its cancellation; its late answer is dropped."""
    called, late, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def hangs(turn: Turn) -> str:
        called.set()
        while not late.is_set():
            try:
                await late.wait()
            except asyncio.CancelledError:
                if not swallows:
                    raise
        done.set()
        return "too late"

    async with company_bench(handler=hangs) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        await called.wait()
        await bench.sleepers(2)
        bench.clock.advance(bench.company.limits.turn_timeout)
        assert replies(await bench.idle(conversation)) == [TIMED_OUT]
        late.set()
        if swallows:
            await done.wait()
        assert replies(await bench.read(conversation)) == [TIMED_OUT]


@pytest.mark.requirement("8.4-10", "8.4-17", "8.4-16")
async def test_the_handler_gets_the_merged_context() -> None:
    """Fields that a later context omits keep their values, unknown ones are no fault, null clears one."""
    seen: list[Turn] = []

    async def answer(turn: Turn) -> None:
        seen.append(turn)

    async with company_bench(handler=answer) as bench:
        message = bench.message("a", context={"locale": "de-DE", "mood": "calm", "user_available": True})
        conversation = (await bench.send("POST", "", {"message": message})).json["conversation_id"]
        await bench.idle(conversation)
        message = bench.message("b", context={"user_available": False, "mood": None})
        await bench.send("POST", f"/{conversation}/messages", {"message": message})
        await bench.idle(conversation)
        assert [turn.context for turn in seen] == [
            {"locale": "de-DE", "mood": "calm", "user_available": True},
            {"locale": "de-DE", "user_available": False},
        ]
        assert [(turn.locale, turn.text, turn.attempt) for turn in seen] == [("de-DE", "a", 1), ("de-DE", "b", 1)]
        assert (seen[0].conversation_id, seen[0].user_id) == (conversation, "usr_dana")
        assert (seen[0].client_id, seen[0].id != seen[1].id) == (bench.agent.client_id, True)


async def test_what_came_during_a_turn_is_the_next_turns() -> None:
    """Several messages at once are one turn, and its text is theirs."""
    called, go = asyncio.Event(), asyncio.Event()
    texts: list[str] = []

    async def answer(turn: Turn) -> str:
        called.set()
        await go.wait()
        texts.append(turn.text)
        return f"{len(turn.messages)}"

    async with company_bench(handler=answer) as bench:
        conversation = (await bench.start("one")).json["conversation_id"]
        await called.wait()
        await bench.say(conversation, "two")
        await bench.say(conversation, "three")
        go.set()
        assert replies(await bench.idle(conversation)) == ["1", "2"]
        assert texts == ["one", "two\n\nthree"]


async def test_the_transcript_holds_the_newest_messages_and_history_the_others() -> None:
    """Both sides'; each message is in one of them, however the limits cut."""
    kept: list[list[str | None]] = []

    async def answer(turn: Turn) -> str:
        assert isinstance(turn.transcript, Transcript)
        assert len(turn.transcript) <= 3
        assert turn.transcript[-1].text == turn.text
        older = [message.text async for message in turn.history(2)]
        kept.append([*reversed(older), *(message.text for message in turn.transcript)])
        assert [message.role for message in turn.transcript[-1:]] == [Role.USER]
        return f"re {turn.text}"

    async with company_bench(handler=answer, transcript=3) as bench:
        conversation = (await bench.start("0")).json["conversation_id"]
        await bench.idle(conversation)
        for n in range(1, 6):
            await bench.say(conversation, str(n))
            await bench.idle(conversation)
        whole = [text for n in range(5) for text in (str(n), f"re {n}")] + ["5"]
        assert kept[-1] == whole
        assert kept[0] == ["0"]
        assert "re 4" in repr(kept)


async def test_a_flood_of_messages_is_one_turn_with_all_of_them() -> None:
    """More than a transcript holds: nothing that is unanswered is left out."""
    called, go = asyncio.Event(), asyncio.Event()
    counts: list[tuple[int, int]] = []

    async def answer(turn: Turn) -> None:
        called.set()
        await go.wait()
        counts.append((len(turn.messages), len(turn.transcript)))

    async with company_bench(handler=answer, transcript=2) as bench:
        conversation = (await bench.start("first")).json["conversation_id"]
        await called.wait()
        for n in range(9):
            await bench.say(conversation, str(n))
        go.set()
        await bench.idle(conversation)
        assert counts == [(1, 1), (9, 2)]


async def test_a_step_runs_once_however_often_its_turn_begins() -> None:
    """Its JSON result is journaled; the next attempt of the same turn, in another process, is given it."""
    ran: list[tuple[str, int]] = []
    ids: list[str] = []

    async def order(turn: Turn) -> dict[str, object]:
        ran.append((turn.id, turn.attempt))
        return {"order": 7}

    async def answer(turn: Turn) -> str:
        ids.append(turn.id)
        made = await turn.once("order", lambda: order(turn))
        both = await asyncio.gather(*(turn.once("other", lambda: order(turn)) for _ in range(2)))
        if len(ids) == 1:
            await asyncio.Event().wait()
        return f"order {made['order']}, {len(both)}"

    async with company_bench(handler=answer, turns=False) as bench:
        first = bench.company.start_turns()
        conversation = (await bench.start()).json["conversation_id"]
        while len(ran) < 2:
            await bench.tick()
        first.cancel()
        await asyncio.wait({first})
        second = bench.company.start_turns()
        assert replies(await bench.idle(conversation)) == ["order 7, 2"]
        bench.company.stop()
        await second
        assert len(ran) == 2
        assert len(set(ids)) == 1


@pytest.mark.parametrize("value", [{1, 2}, float("inf"), object()])
async def test_a_step_whose_result_is_no_json_fails_its_turn(value: object) -> None:
    """It could not be given to the next attempt."""

    async def answer(turn: Turn) -> str:
        async def call() -> object:
            return value

        return str(await turn.once("step", call))

    async with company_bench(handler=answer) as bench:
        assert replies(await ask(bench)) == [FAILED]


async def test_a_large_step_is_read_back_whole() -> None:
    """It is the Company's own data, not a request."""

    async def answer(turn: Turn) -> str:
        async def call() -> object:
            return "x" * 400_000

        return str(len(await turn.once("step", call)))

    async with company_bench(handler=answer) as bench:
        assert replies(await ask(bench)) == ["400000"]


@pytest.mark.requirement("8.12-06")
async def test_c77_a_turn_that_ends_after_the_close_says_nothing() -> None:
    """What the handler did stays done; its words are dropped, for the User closed."""
    called, go, done = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def answer(turn: Turn) -> str:
        called.set()
        await go.wait()
        done.set()
        return "late"

    async with company_bench(handler=answer) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        await called.wait()
        await bench.send("POST", f"/{conversation}/close", {})
        go.set()
        await done.wait()
        other = await ask(bench)
        assert replies(other) == ["late"]
        assert replies(await bench.read(conversation)) == []


async def test_a_conversation_is_closed_after_its_inactivity() -> None:
    """8.12: with its state event; one that is in use stays open. More than one sweep takes at once are all closed."""
    async with company_bench() as bench:
        conversations = [(await bench.start(sid=f"s{n}", sub=f"u{n}")).json["conversation_id"] for n in range(103)]
        for n, conversation in enumerate(conversations):
            while (await bench.read(conversation, sid=f"s{n}", sub=f"u{n}")).json["status"] != "idle":
                await bench.tick()
        bench.clock.advance(bench.company.limits.inactivity - 10)
        used = await bench.say(conversations[0], sid="again", sub="u0")
        assert used.status == 202
        await bench.sleepers(1)
        bench.clock.advance(70)
        statuses: list[str] = []
        for n, conversation in enumerate(conversations):
            while True:
                page = await bench.read(conversation, sid=f"new{n}", sub=f"u{n}")
                if page.json["status"] in (("idle", "working") if n == 0 else ("closed",)):
                    break
                await bench.tick()
            statuses.append(page.json["status"])
        assert set(statuses[1:]) == {"closed"}
