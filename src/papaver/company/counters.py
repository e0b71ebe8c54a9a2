"""A Company's counters of requests, and what replicas tell each other of them once a second (5.6).

Whether a request is within its limit is decided here at once, from what is known: nobody waits for another replica.
"""

from __future__ import annotations

from typing import Final

from papaver.company.limits import Key, Rates
from papaver.ports.company import SharedCounts
from papaver.ports.system import Clock
from papaver.values.errors import PapaverError

__all__ = ["EVERY", "Counters"]

EVERY: Final = 1.0
"""Seconds between two exchanges: how long the replicas together may let through more than the limit."""


class Counters:
    """Makes every `Rates` of a Company. Without `shared` this process counts for itself."""

    def __init__(self, shared: SharedCounts | None = None) -> None:
        self._shared = shared
        self._rates: dict[str, Rates] = {}

    def rates(self, name: str, kept: int) -> Rates:
        """Counters of their own: keys of two names never meet."""
        made = self._rates[name] = Rates(kept, shared=self._shared is not None)
        return made

    async def run(self, clock: Clock) -> None:
        """Exchange what is counted, until it is cancelled. Returns at once when nothing is shared."""
        while self._shared is not None:
            await clock.sleep(EVERY)
            await self.exchange(self._shared, clock.now())

    async def exchange(self, shared: SharedCounts, now: float) -> None:
        """Whoever cannot be told now is told the next time; meanwhile the limits hold for this process alone."""
        fresh: dict[int, dict[str, tuple[Rates, Key, int]]] = {}
        for name, rates in self._rates.items():
            for minute, counts in rates.take(now).items():
                told = fresh.setdefault(minute, {})
                told.update((repr((name, *key)), (rates, key, count)) for key, count in counts.items())
        for minute, told in fresh.items():
            try:
                sums = await shared.exchange(minute, {name: count for name, (_, _, count) in told.items()})
            except PapaverError:
                for rates, key, count in told.values():
                    rates.give_back(minute, {key: count})
                continue
            for name, (total, before) in sums.items():
                rates, key, _ = told[name]
                rates.learn(minute, key, total, before)
