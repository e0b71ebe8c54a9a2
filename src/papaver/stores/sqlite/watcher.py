"""What other processes committed: one look every 50 ms for the whole process, however many of its tasks wait."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Iterable

from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic, WatchRegistry
from papaver.stores.sqlite.database import Readers
from papaver.stores.sqlite.holders import Holders
from papaver.stores.sqlite.writer import Transaction

__all__ = ["Wakes", "Watcher"]

EVERY = 0.05
LIVES_EVERY = 10
"""Looks between two questions whether the other processes live: half a second."""
KEPT = 1000
"""Wake-ups that stay in the table: a process that was paused for longer wakes everyone instead."""
PRUNED_EVERY = 256


class Wakes:
    """The writing half: each group commit says in one row per Company what it changed."""

    def __init__(self, holders: Holders) -> None:
        self._holders = holders
        self._since_pruned: dict[int, int] = {}

    def note(self, transaction: Transaction) -> None:
        """On the writer's thread, before COMMIT."""
        changed: dict[int, list[str]] = {}
        for company, conversation in transaction.topics:
            changed.setdefault(company, []).append(conversation)
        for company, conversations in changed.items():
            transaction.direct.execute(
                "INSERT INTO wakes (company, n, origin, conversations)"
                " SELECT ?, coalesce(max(n), 0) + 1, ?, ? FROM wakes WHERE company = ?",
                (company, self._holders.name, json.dumps(conversations), company),
            )
            self._prune(transaction.direct, company)

    def _prune(self, connection: sqlite3.Connection, company: int) -> None:
        self._since_pruned[company] = self._since_pruned.get(company, 0) + 1
        if self._since_pruned[company] >= PRUNED_EVERY:
            self._since_pruned[company] = 0
            connection.execute(
                "DELETE FROM wakes WHERE company = ? AND n <= (SELECT max(n) FROM wakes WHERE company = ?) - ?",
                (company, company, KEPT),
            )


class Watcher:
    """The reading half, on the event loop: it starts with the first watch and runs until the store is closed."""

    def __init__(self, readers: Readers, registry: WatchRegistry, holders: Holders) -> None:
        self._readers = readers
        self._registry = registry
        self._holders = holders
        self._seen: dict[int, int] = {}
        self._version = 0
        self._looks = 0
        self._timer: asyncio.TimerHandle | None = None

    def follow(self, company: int) -> None:
        """From now on this Company's changes are looked for."""
        if company not in self._seen:
            self._seen[company] = self._readers.near(
                lambda connection: connection.execute(
                    "SELECT coalesce(max(n), 0) FROM wakes WHERE company = ?", (company,)
                ).fetchone()[0]
            )

    def start(self) -> None:
        """Cheap when it runs already."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(0, self._look)

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._seen.clear()

    def _look(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(EVERY, self._look)
        self._looks += 1
        try:
            self._readers.near(self._changes)
            if self._looks % LIVES_EVERY == 0 and self._registry.awaits_turns:
                self._readers.near(self._deaths)
        except StoreFailed:
            # The next look may work; till then those who wait are told to look for themselves.
            self._registry.wake_all()

    def _changes(self, connection: sqlite3.Connection) -> None:
        version = connection.execute("PRAGMA data_version").fetchone()[0]
        if version == self._version or not self._seen:
            return
        self._version = version
        known = [value for pair in self._seen.items() for value in pair]
        rows = connection.execute(
            f"WITH seen (company, n) AS (VALUES {', '.join(['(?, ?)'] * len(self._seen))})"
            " SELECT wakes.company, wakes.n, CASE wakes.origin WHEN ? THEN NULL ELSE wakes.conversations END"
            " FROM seen CROSS JOIN wakes ON wakes.company = seen.company AND wakes.n > seen.n"
            " ORDER BY wakes.company, wakes.n",
            (*known, self._holders.name),
        ).fetchall()
        for company, n, conversations in rows:
            if n > self._seen[company] + 1:
                self._registry.wake_all()
            self._seen[company] = n
            if conversations is not None:
                self._registry.wake(_topics(company, json.loads(conversations)))

    def _deaths(self, connection: sqlite3.Connection) -> None:
        """A dead process wakes nobody: its turns are announced for it."""
        holders = connection.execute("SELECT DISTINCT holder FROM conversations WHERE holder IS NOT NULL")
        if any(not self._holders.lives(holder) for (holder,) in holders):
            self._registry.wake_turns()


def _topics(company: int, conversations: Iterable[str]) -> list[Topic]:
    return [(company, conversation) for conversation in conversations]
