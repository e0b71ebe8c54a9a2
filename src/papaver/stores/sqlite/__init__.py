"""SQLite: `SqliteStore` for a Company, `SqliteVault` for a Personal Agent."""

from papaver.stores.sqlite.store import SqliteStore
from papaver.stores.sqlite.vault import SqliteVault

__all__ = ["SqliteStore", "SqliteVault"]
