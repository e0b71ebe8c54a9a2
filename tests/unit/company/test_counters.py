"""Counters that several replicas share: each decides at once, and knows within a second what the others let through."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from papaver.company.counters import EVERY, Counters
from papaver.company.limits import Rates
from papaver.stores.faults import StoreFailed
from papaver.testing.clock import ManualClock

pytestmark = pytest.mark.anyio
KEY = ("client", "https://agent.example/agent.json")


class Sums:
    """Adds up in memory what Redis would; `is_away` at will."""

    def __init__(self) -> None:
        self.sums: dict[tuple[int, str], int] = {}
        self.told: list[Mapping[str, int]] = []
        self.is_away = False

    async def exchange(self, window: int, counts: Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
        if self.is_away:
            raise StoreFailed("away")
        self.told.append(counts)
        for name, count in counts.items():
            self.sums[window, name] = self.sums.get((window, name), 0) + count
        return {name: (self.sums[window, name], self.sums.get((window - 1, name), 0)) for name in counts}


class Replica:
    def __init__(self, shared: Sums) -> None:
        self.shared, self.counters = shared, Counters(shared)
        self.rates = self.counters.rates("a", 100)

    def ask(self, limit: int, now: float, times: int = 1) -> int:
        """How many of so many requests are let through."""
        return sum(self.rates.count(KEY, limit, now) == 0 for _ in range(times))

    async def exchange(self, now: float) -> None:
        await self.counters.exchange(self.shared, now)


@pytest.mark.requirement("papaver-125")
async def test_replicas_together_let_through_what_one_may() -> None:
    """Within one exchange each may let through as much; after it, all of them know."""
    sums = Sums()
    one, two = Replica(sums), Replica(sums)
    assert (one.ask(10, 0, 6), two.ask(10, 0, 6)) == (6, 6)
    for replica in (one, two, one):
        assert replica.ask(20, 0) == 1
        await replica.exchange(1)
    assert (one.ask(10, 2), two.ask(10, 2)) == (0, 0)
    assert one.ask(20, 2, 20) == 5


async def test_the_minute_before_counts_in_proportion_wherever_it_was_counted() -> None:
    """What another replica let through then, and what this one learnt of it only now."""
    sums = Sums()
    one, two = Replica(sums), Replica(sums)
    assert one.ask(10, 59, 10) == 10
    await one.exchange(59.5)
    assert two.ask(10, 60) == 1
    await two.exchange(61)
    assert two.ask(10, 61) == 0
    assert two.ask(10, 90, 10) == 4
    assert one.ask(10, 119, 2) == 2
    await two.exchange(120.5)
    three = Replica(sums)
    three.ask(10, 121)
    await three.exchange(122)
    assert three.ask(10, 122, 10) == 5, "five of the minute before, of which two seconds are over, and one"


async def test_what_is_counted_while_it_is_told_is_not_lost() -> None:
    """It stays on top of what the others said."""

    class Slow(Sums):
        async def exchange(self, window: int, counts: Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
            sums = await super().exchange(window, counts)
            assert replica.ask(10, 61 if window else 1, 3) == 3
            return sums

    replica = Replica(Slow())
    assert replica.ask(10, 0, 5) == 5
    await replica.exchange(1)
    assert replica.ask(10, 1, 9) == 2
    assert replica.ask(10, 200) == 1
    replica.shared = Sums()
    await replica.exchange(200)
    assert list(replica.shared.told[0].values()) == [1]


async def test_a_minute_that_is_over_when_its_sum_comes_counts_as_the_one_before() -> None:
    """And what is two minutes old counts nothing any more."""

    class Late(Sums):
        later = 60.0

        async def exchange(self, window: int, counts: Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
            assert replica.ask(10, self.later) == 1
            return dict.fromkeys(counts, (10, 0))

    replica = Replica(late := Late())
    assert replica.ask(10, 59) == 1
    await replica.exchange(59)
    assert replica.ask(10, 60) == 0
    late.later = 300.0
    assert replica.ask(10, 180) == 1
    await replica.exchange(180)
    assert replica.ask(10, 300, 20) == 9


@pytest.mark.requirement("papaver-125")
async def test_while_nobody_can_be_told_each_counts_for_itself() -> None:
    """And tells it afterwards, as far as it still matters."""
    sums = Sums()
    one, two = Replica(sums), Replica(sums)
    sums.is_away = True
    assert one.ask(10, 0, 20) == 10
    await one.exchange(1)
    assert one.ask(10, 61, 3) == 1
    await one.exchange(62)
    sums.is_away = False
    await one.exchange(63)
    assert sorted(tuple(told.values()) for told in sums.told) == [(1,), (10,)]
    two.ask(10, 64)
    await two.exchange(64)
    assert two.ask(10, 64) == 0
    sums.is_away = True
    one.ask(100, 70)
    await one.exchange(70)
    sums.is_away = False
    sums.told.clear()
    await one.exchange(200)
    assert sums.told == []


async def test_counters_of_two_names_never_meet() -> None:
    """The same key stands for something else there."""
    sums = Sums()
    counters = Counters(sums)
    a, b = counters.rates("a", 10), counters.rates("b", 10)
    for rates in (a, a, b):
        rates.count(KEY, 10, 0)
    await counters.exchange(sums, 0)
    assert sorted(sums.sums.values()) == [1, 2]
    assert len(sums.told) == 1


def test_what_waits_to_be_told_is_bounded() -> None:
    """By as many keys as are counted at all."""
    rates = Rates(3, shared=True)
    for n in range(100):
        rates.count((str(n),), 10, 0)
    assert len(rates.take(0)[0]) == 4
    rates.learn(0, ("0",), 99, 99)
    assert rates.count(("0",), 10, 0) == 0, "it was forgotten, and stays so"


async def test_they_are_told_once_a_second() -> None:
    """And never where there is nobody to tell."""
    clock, sums = ManualClock(1000), Sums()
    await Counters().run(clock)
    rates = (counters := Counters(sums)).rates("a", 10)
    running = asyncio.create_task(counters.run(clock))
    for told in range(3):
        rates.count(KEY, 10, clock.now())
        while not clock.sleepers:
            await asyncio.sleep(0)
            assert len(sums.told) == told
        clock.advance(EVERY)
        while len(sums.told) == told:
            await asyncio.sleep(0)
            assert not running.done()
    running.cancel()
    await asyncio.wait({running})
    assert [list(told.values()) for told in sums.told] == [[1]] * 3
