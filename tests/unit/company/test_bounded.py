"""Tables that cannot grow for ever, and work that is never done twice at once."""

from __future__ import annotations

import asyncio

import pytest

from papaver.company.bounded import Bounded, OneAtATime

pytestmark = pytest.mark.anyio


def test_the_oldest_goes_first() -> None:
    """Putting an entry again makes it the newest."""
    table: Bounded[str, int] = Bounded(2)
    for key, value in (("a", 1), ("b", 2), ("a", 3), ("c", 4)):
        table.put(key, value)
    assert (table.find("a"), table.find("b"), table.find("c"), len(table)) == (3, None, 4, 2)


def test_weights_are_bounded_too() -> None:
    """Many small ones or few large ones; one that outweighs everything is not kept."""
    table: Bounded[str, int] = Bounded(100, 10)
    for n in range(20):
        table.put(str(n), n, 1)
    assert len(table) == 10
    table.put("large", 0, 9)
    assert (len(table), table.find("19")) == (2, 19)
    table.put("larger", 0, 11)
    assert len(table) == 0
    table.put("a", 1, 10)
    table.put("a", 2, 3)
    table.put("b", 1, 7)
    assert (table.find("a"), table.find("b")) == (2, 1)


def test_entries_are_dropped() -> None:
    """One, one that is not there, and all; the weight goes with them."""
    table: Bounded[str, int] = Bounded(9, 2)
    table.put("a", 1, 2)
    table.drop("a")
    table.drop("a")
    table.put("b", 1, 2)
    assert (table.find("a"), table.find("b")) == (None, 1)
    table.drop_all()
    table.put("c", 1, 2)
    assert (table.find("b"), table.find("c")) == (None, 1)


async def test_one_key_is_worked_on_by_one_task() -> None:
    """Others wait and get their turn; another key is not held up; nothing is left behind."""
    alone: OneAtATime[str] = OneAtATime()
    order: list[str] = []
    go = asyncio.Event()

    async def work(key: str, name: str) -> None:
        async with alone.of(key):
            order.append(f"{name} begins")
            if key == "a":
                await go.wait()
            order.append(f"{name} ends")

    tasks = [asyncio.create_task(work("a", "one")), asyncio.create_task(work("a", "two"))]
    await asyncio.sleep(0)
    await work("b", "three")
    assert (order, len(alone)) == (["one begins", "three begins", "three ends"], 1)
    go.set()
    await asyncio.gather(*tasks)
    assert order[3:] == ["one ends", "two begins", "two ends"]
    assert len(alone) == 0


async def test_a_task_that_gives_up_waiting_leaves_nothing() -> None:
    """Nor does one that fails at its work."""
    alone: OneAtATime[str] = OneAtATime()
    async with alone.of("a"):
        waiting = asyncio.create_task(alone.of("a").__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    with pytest.raises(ValueError, match="work"):
        async with alone.of("a"):
            raise ValueError("work")
    assert len(alone) == 0
