"""The parts of a stream that need no conversation: which pieces follow, and how a stream ends that something fails."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from papaver.company.streaming import REMEMBERED, Pieces
from papaver.ports.deltas import Delta
from papaver.protocol.terms import MessageId
from papaver.stores.faults import StoreFailed
from papaver.testing.company import CompanyBench, company_bench
from papaver.values.errors import PapaverError
from papaver.web.messages import Stream
from papaver.web.sse import MEDIA_TYPE


def delta(text: str, at: int, message_id: str = "msg_r") -> Delta:
    return Delta(MessageId(message_id), text, at)


def test_pieces_follow_each_other_without_a_gap() -> None:
    """From 0 on, in characters, whatever they are in octets; one that came before is not the next one."""
    pieces = Pieces()
    came = [delta("Zürich ", 0), delta("\U0001f600", 7), delta("Zürich ", 0), delta("!", 9), delta(".", 8)]
    assert [pieces.take(one) for one in came] == [True, True, False, False, True]


def test_messages_have_their_own_pieces() -> None:
    """Two that are written at once do not disturb each other; an empty piece is one."""
    pieces = Pieces()
    came = [delta("a", 0, "one"), delta("", 0, "two"), delta("b", 1, "one"), delta("c", 0, "two")]
    assert [pieces.take(one) for one in came] == [True] * 4


def test_a_message_that_is_complete_has_no_more_pieces() -> None:
    """Whether some were sent before or none."""
    pieces = Pieces()
    assert pieces.take(delta("who", 0))
    for ended in ("msg_r", "msg_s"):
        pieces.end(MessageId(ended))
    assert not pieces.take(delta("le", 3))
    assert not pieces.take(delta("whole", 0, "msg_s"))
    assert pieces.take(delta("next", 0, "msg_t"))


def test_so_many_messages_are_remembered() -> None:
    """The ones touched last; a stream costs the same after a year."""
    pieces = Pieces()
    pieces.end(MessageId("msg_first"))
    for number in range(REMEMBERED - 1):
        assert pieces.take(delta("x", 0, f"msg_{number}"))
    assert not pieces.take(delta("x", 0, "msg_first"))
    assert pieces.take(delta("x", 1, "msg_0"))
    assert pieces.take(delta("x", 0, "msg_more"))
    assert not pieces.take(delta("x", 1, "msg_1x"))
    assert pieces.take(delta("x", 0, "msg_first")), "forgotten, as the one touched longest ago"


async def never() -> None:
    await asyncio.Event().wait()


async def opened(bench: CompanyBench, conversation: str = "") -> Stream:
    conversation = conversation or (await bench.start()).json["conversation_id"]
    response = await bench.handled("GET", f"/{conversation}/events", headers={"accept": MEDIA_TYPE})
    assert isinstance(response, Stream)
    return response


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("fault", "level"),
    [
        pytest.param(StoreFailed("the disk is gone"), "INFO", id="unavailable"),
        pytest.param(PapaverError("as nobody expects"), "ERROR", id="ours"),
    ],
)
async def test_a_read_that_fails_ends_a_stream(
    fault: PapaverError, level: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a word to the reader, who comes again and is told then; a line for us."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        stream = await opened(bench, conversation)
        await anext(stream.chunks)
        tables: Any = await bench.company.store.tables(bench.company.id)

        async def fail(*_: object, **__: object) -> None:
            raise fault

        tables.log.read = fail
        await bench.say(conversation)
        with caplog.at_level(logging.INFO), pytest.raises(StopAsyncIteration):
            await anext(stream.chunks)
        assert [record.levelname for record in caplog.records] == [level]
        await stream.chunks.aclose()
        assert bench.company.held == 0


@pytest.mark.anyio
async def test_a_stream_that_was_never_read_gives_its_place_back() -> None:
    """Once, however often it is closed; nothing of it goes on afterwards."""
    async with company_bench(turns=False) as bench:
        stream = await opened(bench)
        assert bench.company.held == 1
        await stream.chunks.aclose()
        await stream.chunks.aclose()
        assert bench.company.held == 0
        assert await anext(stream.chunks) == b"retry: 1000\n\n"
        with pytest.raises(StopAsyncIteration):
            await anext(stream.chunks)


@pytest.mark.anyio
@pytest.mark.requirement("papaver-131")
@pytest.mark.parametrize("ends", ["stalled", "stopped", "over"])
async def test_c86_a_chunk_that_is_not_taken_is_waited_for_so_long(ends: str) -> None:
    """The time that a reader may take nothing; less once the Company stops, or the stream has ended before."""
    stalled = 1 if ends == "stalled" else 600
    async with company_bench(turns=False, stream_stalled=stalled) as bench:
        stream = await opened(bench)
        if ends == "over":
            bench.company.stop()
        sending = asyncio.ensure_future(stream.taken(never()))
        await bench.tick()
        if ends == "stopped":
            bench.company.stop()
        with pytest.raises(TimeoutError):
            await sending
        await stream.taken(asyncio.sleep(0))
        await stream.chunks.aclose()
