"""A Personal Agent's vault in this process's memory, for tests: the same contract, nothing kept, nothing encrypted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from papaver.stores.faults import StoreFailed

__all__ = ["MemoryVault"]


class MemoryVault:
    """A `Vault`. What it holds outlives `close` and a second `open`, not the process."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str], bytes] = {}
        self._locks: dict[str, asyncio.Lock] = {}
        self._is_open = False

    def __reduce__(self) -> str:
        raise TypeError("a vault is not pickled")

    def __repr__(self) -> str:
        return f"<MemoryVault with {len(self._rows)} rows>"

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False

    def _check_open(self) -> None:
        if not self._is_open:
            raise StoreFailed("the vault is not open")

    async def load(self, kind: str, key: str) -> bytes | None:
        self._check_open()
        return self._rows.get((kind, key))

    async def change(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        self._check_open()
        after = decide(self._rows.get((kind, key)))
        if after is None:
            self._rows.pop((kind, key), None)
        else:
            self._rows[kind, key] = after
        return after

    async def rows(self, kind: str) -> tuple[tuple[str, bytes], ...]:
        self._check_open()
        return tuple((key, value) for (its_kind, key), value in self._rows.items() if its_kind == kind)

    @asynccontextmanager
    async def exclusive(self, name: str) -> AsyncGenerator[None]:
        self._check_open()
        async with self._locks.setdefault(name, asyncio.Lock()):
            yield

    @property
    def guarded_by(self) -> str:
        return "memory"
