"""Watches: a wake-up is never lost, told once, and forgotten with its watch."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

from papaver.stores.notify import WatchRegistry

pytestmark = pytest.mark.anyio


async def test_a_wake_up_ends_the_wait_of_its_topic_only() -> None:
    """Other topics sleep on."""
    registry = WatchRegistry()
    with registry.watch((1, "a")) as watch, registry.watch((1, "b")) as other, registry.watch((2, "a")) as third:
        waiting = asyncio.create_task(watch.wait(20))
        await asyncio.sleep(0)
        registry.wake([(1, "a"), (9, "nobody")])
        assert await waiting
        assert not await other.wait(0)
        assert not await third.wait(0)


async def test_a_wake_up_before_the_wait_is_not_lost() -> None:
    """Several of them count as one."""
    registry = WatchRegistry()
    with registry.watch((1, "a")) as watch:
        registry.wake([(1, "a")])
        registry.wake([(1, "a")])
        assert await watch.wait(20)
        assert not await watch.wait(0.001)


async def test_two_wake_ups_within_one_wait_are_one() -> None:
    """The second finds the first's waiter already woken."""
    registry = WatchRegistry()
    with registry.watch((1, "a")) as watch:
        waiting = asyncio.create_task(watch.wait(20))
        await asyncio.sleep(0)
        registry.wake([(1, "a"), (1, "a")])
        assert await waiting
        assert not await watch.wait(-1)


async def test_everyone_can_be_woken() -> None:
    """For when it is not known what changed; turns have a call of their own."""
    registry = WatchRegistry()
    with registry.watch((1, "a")) as watch, registry.watch((1, "")) as turns:
        assert registry.awaits_turns
        registry.wake_turns()
        assert [await watch.wait(0), await turns.wait(0)] == [False, True]
        registry.wake_all()
        assert [await watch.wait(0), await turns.wait(0)] == [True, True]
    assert not registry.awaits_turns


async def test_leaving_twice_is_harmless() -> None:
    """As when a watch was never entered."""
    registry = WatchRegistry()
    first, second = registry.watch((1, "a")), registry.watch((1, "a"))
    with first:
        second.__exit__()
        registry.wake([(1, "a")])
        assert await first.wait(0)
    first.__exit__()
    registry.wake([(1, "a")])
    assert not await first.wait(0)


async def test_a_waiter_is_small() -> None:
    """2,000 idle polls: the registration and its timer are a small part of the 30 kB that one poll may cost."""
    registry = WatchRegistry()

    async def wait(number: int) -> bool:
        with registry.watch((1, f"cnv_{number}")) as watch:
            return await watch.wait(600)

    tracemalloc.start()
    try:
        waiting = [asyncio.create_task(wait(number)) for number in range(2000)]
        await asyncio.sleep(0)
        used = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    registry.wake_all()
    assert all(await asyncio.gather(*waiting))
    assert used / 2000 < 4000
