"""A Personal Agent's ports in memory: a clock on which sleeping takes no time, and a vault that outlives its user."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import anyio
from anyio.lowlevel import checkpoint

__all__ = ["MemoryVault", "PassingClock"]


class PassingClock:
    """Time passes only by sleeping. `slept` is how long, each time."""

    def __init__(self, now: float) -> None:
        self._now = now
        self.slept: list[float] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._now += seconds
        await checkpoint()

    def advance(self, seconds: float) -> None:
        self._now += seconds


class MemoryVault:
    """Rows in a dict that stays when the vault is closed; `kinds` are the kinds that were ever changed."""

    def __init__(self) -> None:
        self.stored: dict[tuple[str, str], bytes] = {}
        self.kinds: set[str] = set()
        self._locks: dict[str, anyio.Lock] = {}

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def load(self, kind: str, key: str) -> bytes | None:
        await checkpoint()
        return self.stored.get((kind, key))

    async def change(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        await checkpoint()
        self.kinds.add(kind)
        value = decide(self.stored.get((kind, key)))
        if value is None:
            self.stored.pop((kind, key), None)
        else:
            self.stored[kind, key] = value
        return value

    async def rows(self, kind: str) -> tuple[tuple[str, bytes], ...]:
        return tuple((key, value) for (of, key), value in self.stored.items() if of == kind)

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._held(name)

    @asynccontextmanager
    async def _held(self, name: str) -> AsyncGenerator[None]:
        async with self._locks.setdefault(name, anyio.Lock()):
            yield

    @property
    def guarded_by(self) -> str:
        return "the test"
