"""What a store raises when it does not work: never a driver's own error."""

from __future__ import annotations

from papaver.protocol.errors import TemporarilyUnavailable
from papaver.values.errors import PapaverError

__all__ = ["StoreFailed", "StoreMisused", "StoreUnusable", "VaultKeyWrong"]


class StoreFailed(TemporarilyUnavailable):
    """Nothing of the change was written: the disk is full, the file is locked by another program, the store is closed.

    The other party gets `temporarily_unavailable`; the reason is in `detail`.
    """

    description = "the store does not work right now; try again later"

    def __init__(self, detail: str, *, retry_after: int = 1) -> None:
        super().__init__(retry_after, detail=detail)


class StoreUnusable(PapaverError):
    """The store cannot be opened at all: the file system has no working locks, the file belongs to a later version."""

    code = "store_unusable"


class StoreMisused(PapaverError):
    """A change broke the contract of `apply`: events with a gap, a second receipt, a lost lease's writes."""

    code = "store_misused"


class VaultKeyWrong(StoreUnusable):
    """The key does not open this vault."""

    code = "vault_key_wrong"
