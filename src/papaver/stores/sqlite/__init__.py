"""SQLite: `SqliteStore` for a Company."""

from papaver.stores.sqlite.store import SqliteStore

__all__ = ["SqliteStore"]
