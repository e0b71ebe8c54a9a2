"""Tables in memory that cannot grow for ever, and work on one key that is never done twice at once."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncGenerator, Hashable
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

__all__ = ["Bounded", "OneAtATime"]

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Bounded(Generic[K, V]):
    """At most `count` entries, and at most `weight` of their weights in all; the one put longest ago goes first."""

    def __init__(self, count: int, weight: float = float("inf")) -> None:
        self._count, self._weight = count, weight
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()
        self._weighs = 0

    def find(self, key: K) -> V | None:
        """The value, or None."""
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def put(self, key: K, value: V, weight: int = 0) -> None:
        """Keep it as the newest. One that outweighs the whole table is not kept."""
        self.drop(key)
        self._entries[key] = (value, weight)
        self._weighs += weight
        while len(self._entries) > self._count or self._weighs > self._weight:
            _, (_, lighter) = self._entries.popitem(last=False)
            self._weighs -= lighter

    def drop(self, key: K) -> None:
        """Forget it, if it is there."""
        entry = self._entries.pop(key, None)
        if entry is not None:
            self._weighs -= entry[1]

    def drop_all(self) -> None:
        """Forget everything."""
        self._entries.clear()
        self._weighs = 0

    def __len__(self) -> int:
        return len(self._entries)


class _Work:
    __slots__ = ("lock", "users")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0


class OneAtATime(Generic[K]):
    """A lock for each key, which exists only while somebody wants it."""

    def __init__(self) -> None:
        self._works: dict[K, _Work] = {}

    @asynccontextmanager
    async def of(self, key: K) -> AsyncGenerator[None]:
        """A block that no other task runs for the same key meanwhile; each that waits gets its turn."""
        work = self._works.setdefault(key, _Work())
        work.users += 1
        try:
            async with work.lock:
                yield
        finally:
            work.users -= 1
            if not work.users:
                del self._works[key]

    def __contains__(self, key: K) -> bool:
        """Whether somebody works on it, or waits to."""
        return key in self._works

    def __len__(self) -> int:
        return len(self._works)
