"""What a Personal Agent asks of its vault: encrypted rows, changed atomically, locked across processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol

__all__ = ["Vault"]


class Vault(Protocol):
    """Rows of bytes under (kind, key). Values are encrypted at rest; kinds and keys are hidden too (keyed hashes).

    A vault belongs to one Personal Agent. Kinds in use: `user-id`, `agent-id`, `delegated-key`, `company`, `session`,
    `conversation`, `outbox`.
    """

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def load(self, kind: str, key: str) -> bytes | None: ...

    async def change(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """Replace a row by what `decide` makes of it, in one durable transaction; None deletes. Returns the new value.

        Two changes of one row never interleave, in this process or another.
        """
        ...

    async def rows(self, kind: str) -> tuple[tuple[str, bytes], ...]:
        """Every (key, value) of one kind, oldest first."""
        ...

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held by one task of one process at a time."""
        ...

    @property
    def guarded_by(self) -> str:
        """Where the key of the encryption is: `keyring` or the path of a 0600 file."""
        ...
