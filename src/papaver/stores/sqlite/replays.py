"""One-time ids of one Company (5.3; readings 49): a log on the disk that every process reads on, and a set in memory.

A table looked up by key would cost each message a page of its own, written and deleted again. The log costs a part of a
page; who writes has the file lock, and therefore has read all that other processes wrote.
"""

from __future__ import annotations

import sqlite3
from typing import Literal

from papaver.stores.sqlite.rows import insert_rows
from papaver.stores.sqlite.writer import Transaction

__all__ = ["Replays"]

PRUNED_EVERY = 256


class Replays:
    """Used on the writer's thread alone."""

    __slots__ = ("_company", "_fresh", "_known", "_newest", "_since_pruned", "_table", "_transaction")

    def __init__(self, company: int, table: Literal["replays", "spent"] = "replays") -> None:
        self._company, self._table = company, table
        self._known: dict[bytes, float] = {}
        self._fresh: list[tuple[object, ...]] = []
        self._newest = 0
        self._since_pruned = 0
        self._transaction: Transaction | None = None

    def known(self, transaction: Transaction, key: bytes) -> float | None:
        """Until when this digest of an id is remembered that was noted before, by whatever process; None if it was not.

        One that is over may still be known.
        """
        if transaction is not self._transaction:
            self._read_on(transaction)
        return self._known.get(key)

    def note(self, key: bytes, until: float) -> None:
        """From now on it is known. For one that was asked about in this transaction, and is to be known longer."""
        self._newest += 1
        self._fresh.append((self._company, self._newest, key, until))
        self._known[key] = until
        self._since_pruned += 1

    def drop(self) -> None:
        """What was noted and not written never will be: its transaction failed."""
        self._fresh.clear()

    def write(self, connection: sqlite3.Connection, now: float) -> None:
        """Before COMMIT: what came since the last time. Now and then forgets what is over at `now`."""
        if self._fresh:
            insert_rows(connection, self._table, "company, n, key, until", self._fresh)
            self._fresh.clear()
        if self._since_pruned >= PRUNED_EVERY:
            self.prune(connection, now)

    def _read_on(self, transaction: Transaction) -> None:
        """Learn what other processes have written since our last group commit, or all of it when that one failed."""
        if self._transaction is not None and not self._transaction.committed:
            self._known.clear()
            self._fresh.clear()
            self._newest = 0
        rows = transaction.direct.execute(
            f"SELECT n, key, until FROM {self._table} WHERE company = ? AND n > ? ORDER BY n",
            (self._company, self._newest),
        )
        for self._newest, key, until in rows:
            self._known[key] = until
        self._transaction = transaction

    def prune(self, connection: sqlite3.Connection, now: float) -> int:
        """Forget those before the first one that still counts at `now`; how many rows that deleted."""
        self._since_pruned = 0
        over: list[bytes] = []
        for key, until in self._known.items():
            if until >= now:
                break
            over.append(key)
        for key in over:
            del self._known[key]
        # The newest one always stays: numbers are never given twice.
        own = f"FROM {self._table} WHERE company = ?"
        return connection.execute(
            f"DELETE {own} AND n < coalesce("
            f"(SELECT n {own} AND until >= ? ORDER BY n LIMIT 1), (SELECT max(n) {own}), 0)",
            (self._company, self._company, now, self._company),
        ).rowcount
