"""Pieces of text within one process: to whom they go, and how many wait for one who does not take them."""

from __future__ import annotations

import pytest

from papaver.ports.deltas import Delta
from papaver.protocol.terms import ConversationId, MessageId
from papaver.stores.deltas import MOST_WAITING, LocalDeltas
from papaver.stores.notify import WatchRegistry

pytestmark = pytest.mark.anyio

HERE, THERE = ConversationId("cnv_here"), ConversationId("cnv_there")


def delta(text: str, at: int = 0, message_id: str = "msg_1") -> Delta:
    return Delta(MessageId(message_id), text, at)


async def test_pieces_reach_every_reader_of_their_conversation() -> None:
    """Each once and in order, and they are woken; another conversation's readers are not."""
    registry = WatchRegistry()
    deltas = LocalDeltas(1, registry)
    with (
        deltas.listen(HERE) as one,
        deltas.listen(HERE) as two,
        deltas.listen(THERE) as other,
        registry.watch((1, HERE)) as watch,
        registry.watch((1, THERE)) as elsewhere,
        registry.watch((2, HERE)) as another,
    ):
        for number, text in enumerate("abc"):
            deltas.publish(HERE, delta(text, number))
        assert one.take() == two.take() == tuple(delta(text, number) for number, text in enumerate("abc"))
        assert one.take() == other.take() == ()
        assert await watch.wait(20)
        assert not await elsewhere.wait(0)
        assert not await another.wait(0)


async def test_nobody_is_woken_where_nobody_listens() -> None:
    """Held polls read the log, and pieces are none of its events; what was published before is not kept."""
    registry = WatchRegistry()
    deltas = LocalDeltas(1, registry)
    with registry.watch((1, HERE)) as watch:
        deltas.publish(HERE, delta("before"))
        assert not await watch.wait(0)
        with deltas.listen(HERE) as feed:
            assert feed.take() == ()
            deltas.publish(HERE, delta("now"))
            assert feed.take() == (delta("now"),)
        deltas.publish(HERE, delta("after"))
        assert feed.take() == ()


def test_c86_a_reader_that_takes_nothing_has_so_much_waiting() -> None:
    """Of the message that is too much it gets nothing more; the others are there, and the next one comes."""
    deltas = LocalDeltas(1, WatchRegistry())
    with deltas.listen(HERE) as feed:
        deltas.publish(HERE, delta("short", 0, "msg_0"))
        for number in range(20):
            deltas.publish(HERE, delta("x" * 10_000, number * 10_000))
        assert feed.take() == (delta("short", 0, "msg_0"),)
        deltas.publish(HERE, delta("late", 200_000))
        deltas.publish(HERE, delta("y" * MOST_WAITING, 0, "msg_2"))
        assert feed.take() == (delta("y" * MOST_WAITING, 0, "msg_2"),)
