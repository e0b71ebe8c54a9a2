"""Time and randomness that a test holds in its hand."""

from __future__ import annotations

import asyncio
import hashlib
import heapq
import itertools

from papaver.values.base64url import encode

__all__ = ["ManualClock", "SeededIds"]


class ManualClock:
    """Stands still until `advance`. Sleepers wake when their time has come, in order."""

    def __init__(self, now: float) -> None:
        self._now = now
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._count = itertools.count()

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    @property
    def sleepers(self) -> int:
        """How many tasks wait for a time that has not come."""
        return sum(not waking.done() for _, _, waking in self._sleepers)

    async def sleep(self, seconds: float) -> None:
        waking = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._count), waking))
        await waking

    def advance(self, seconds: float) -> None:
        self._now += seconds
        while self._sleepers and self._sleepers[0][0] <= self._now:
            waking = heapq.heappop(self._sleepers)[2]
            if not waking.done():
                waking.set_result(None)


class SeededIds:
    """Ids that are the same in every run, and different within one."""

    def __init__(self, seed: str = "papaver") -> None:
        self._seed = seed
        self._count = itertools.count(1)

    def token(self, size: int = 16) -> str:
        return encode(self.secret(size))

    def secret(self, size: int = 32) -> bytes:
        return hashlib.shake_256(f"{self._seed} {next(self._count)}".encode()).digest(size)
