"""The memory of an anonymous Session: nothing of it reaches the vault, and it ends with the Session (5.1)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

import anyio

from papaver.ports.personal_agent import Vault

__all__ = ["AnonymousVault"]

SHARED: Final = "company"
"""The kind that belongs to no User: what is known of a Company protects anonymous Sessions as well (3.2)."""


class AnonymousVault:
    """A Vault whose rows are only in memory, but for what is known about Companies."""

    def __init__(self, vault: Vault) -> None:
        self._vault = vault
        self._rows: dict[tuple[str, str], bytes] = {}
        self._locks: dict[str, anyio.Lock] = {}

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Forget everything."""
        self._rows.clear()

    async def load(self, kind: str, key: str) -> bytes | None:
        if kind == SHARED:
            return await self._vault.load(kind, key)
        return self._rows.get((kind, key))

    async def change(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        if kind == SHARED:
            return await self._vault.change(kind, key, decide)
        value = decide(self._rows.get((kind, key)))
        if value is None:
            self._rows.pop((kind, key), None)
        else:
            self._rows[kind, key] = value
        return value

    async def rows(self, kind: str) -> tuple[tuple[str, bytes], ...]:
        if kind == SHARED:
            return await self._vault.rows(kind)
        return tuple((key, value) for (of, key), value in self._rows.items() if of == kind)

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        return self._held(name)

    @asynccontextmanager
    async def _held(self, name: str) -> AsyncGenerator[None]:
        async with self._locks.setdefault(name, anyio.Lock()):
            yield

    @property
    def guarded_by(self) -> str:
        """It is not kept at all."""
        return "memory"
