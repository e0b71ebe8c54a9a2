"""Texts that are hard to carry: control characters, U+2028, half pairs, a megabyte, both ways and as a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.company.turn import Turn
from papaver.testing.company import company_bench

pytestmark = pytest.mark.anyio

HARD = "a\u2028b\u2029c\r\nd\re\tf\x01g\x7fh\u202ei\ufeffj 𝕜 data: x\n\nid: y"


async def parrot(turn: Turn) -> None:
    for piece in turn.text:
        await turn.write(piece)


@pytest.mark.requirement("8.6-04")
async def test_a_hard_text_comes_back_as_it_was_in_pages_and_streams() -> None:
    """Line ends and separators of the text are none of the stream's; one event stays one event."""
    async with company_bench(handler=parrot) as bench:
        conversation = (await bench.start(HARD)).json["conversation_id"]
        page = await bench.idle(conversation)
        assert [event["message"]["text"] for event in page.json["events"][:2]] == [HARD, HARD]
        async with await bench.stream(conversation) as stream:
            for said in page.json["events"]:
                event = await stream.event()
                assert event is not None
                assert (event.id, json.loads(event.data)) == (said["id"], said)


@pytest.mark.parametrize("text", ["\ud800", "a\udfff"], ids=["high", "low"])
async def test_half_a_pair_is_refused_and_nothing_is_recorded(text: str) -> None:
    """JSON can write it and UTF-8 cannot say it: 400."""
    async with company_bench() as bench:
        body = json.dumps({"message": {"id": "msg_1", "author": {"type": "agent"}, "text": text}}).encode()
        answer = await bench.send("POST", "", raw=body)
        assert (answer.status, answer.error) == (400, "invalid_request")
        assert (await bench.start()).status == 201


async def test_what_a_handler_cannot_say_ends_in_a_worded_message() -> None:
    """Half a pair, or more than a message has; what was streamed of it is not the reply."""

    async def odd(turn: Turn) -> Any:
        if turn.text == "half":
            return "\ud800"
        await turn.write("x" * 60_000)
        await turn.write("x" * 60_000)
        return None

    async with company_bench(handler=odd) as bench:
        for text in ("half", "much"):
            page = await bench.idle((await bench.start(text)).json["conversation_id"])
            assert page.json["events"][1]["message"]["text"].startswith("Sorry, something went wrong")
            assert page.json["status"] == "idle"


@pytest.mark.parametrize("octets", [65_536, 65_537, 1_048_576])
async def test_c91_a_text_has_an_end(octets: int) -> None:
    """64 KiB go, more is 413, and a megabyte is not read whole."""
    async with company_bench() as bench:
        answer = await bench.start("x" * octets)
        assert answer.status == (201 if octets == 65_536 else 413)


async def test_a_clock_that_is_set_back_disorders_nothing() -> None:
    """Times of the log never run backwards; turns go on."""
    async with company_bench() as bench:
        conversation = (await bench.start("one")).json["conversation_id"]
        await bench.idle(conversation)
        bench.clock.advance(-30)
        await bench.say(conversation, "two")
        page = await bench.idle(conversation)
        times = [event["created_at"] for event in page.json["events"]]
        assert times == sorted(times)
        assert page.json["events"][-2]["message"]["text"] == "You said: two"
