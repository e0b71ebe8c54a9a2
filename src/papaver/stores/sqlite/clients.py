"""A Company's clients and fetched documents in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Literal

from papaver.ports.company import ClientRow, DocumentRow
from papaver.protocol.terms import ClientId
from papaver.stores.sessions import SEEN_EVERY
from papaver.stores.sqlite.database import Database
from papaver.stores.sqlite.writer import Transaction

__all__ = ["SqliteClients"]

Verdict = Literal["allowed", "blocked"]
KEPT = 10_000
"""Verdicts in memory, at most."""
SWEPT_AT_ONCE = 50
"""Rows that one transaction of a sweep deletes: a document is long, and nobody's message waits for many of them."""


class SqliteClients:
    """`ClientStore` of one Company."""

    def __init__(self, database: Database, company: int) -> None:
        self._database = database
        self._company = company
        self._verdicts: dict[ClientId, Verdict | None] = {}
        self._read_at = -1

    async def verdict(self, client_id: ClientId) -> Verdict | None:
        number = self._database.generation.number
        if number != self._read_at or number % 2 or len(self._verdicts) > KEPT:
            self._verdicts.clear()
            self._read_at = number
        if client_id not in self._verdicts:
            row = self._load(client_id)
            self._verdicts[client_id] = None if row is None else row.verdict
        return self._verdicts[client_id]

    def _load(self, client_id: ClientId) -> ClientRow | None:
        def query(connection: sqlite3.Connection) -> ClientRow | None:
            row = connection.execute(
                "SELECT verdict, seen_at FROM clients WHERE company = ? AND id = ?", (self._company, client_id)
            ).fetchone()
            return None if row is None else ClientRow(client_id, row[0], row[1])

        return self._database.readers.near(query)

    async def judge(self, client_id: ClientId, verdict: Verdict | None) -> None:
        generation = self._database.generation

        def judged(transaction: Transaction) -> None:
            transaction.afterwards.append(generation.changed)
            generation.changing()
            transaction.connection.execute(
                "INSERT INTO clients (company, id, verdict) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET verdict = excluded.verdict",
                (self._company, client_id, verdict),
            )

        await self._database.writer.run(judged)

    async def seen(self, client_id: ClientId, at: float) -> None:
        row = self._load(client_id)
        if row is None or row.seen_at is None or at - row.seen_at >= SEEN_EVERY:
            await self._write(
                "INSERT INTO clients (company, id, seen_at) VALUES (?, ?, ?)"
                " ON CONFLICT DO UPDATE SET seen_at = max(coalesce(seen_at, 0), excluded.seen_at)",
                (self._company, client_id, at),
            )

    async def clients(self) -> tuple[ClientRow, ...]:
        def query(connection: sqlite3.Connection) -> tuple[ClientRow, ...]:
            rows = connection.execute(
                "SELECT id, verdict, seen_at FROM clients WHERE company = ? ORDER BY id", (self._company,)
            )
            return tuple(ClientRow(ClientId(client_id), verdict, seen_at) for client_id, verdict, seen_at in rows)

        return await self._database.readers.far(query)

    async def keep_document(self, row: DocumentRow) -> None:
        await self._write(
            "INSERT OR REPLACE INTO documents (company, url, body, fetched_at, fresh_until) VALUES (?, ?, ?, ?, ?)",
            (self._company, row.url, row.body, row.fetched_at, row.fresh_until),
        )

    async def load_document(self, url: str) -> DocumentRow | None:
        def query(connection: sqlite3.Connection) -> DocumentRow | None:
            row = connection.execute(
                "SELECT body, fetched_at, fresh_until FROM documents WHERE company = ? AND url = ?",
                (self._company, url),
            ).fetchone()
            return None if row is None else DocumentRow(url, *row)

        return await self._database.readers.far(query)

    async def drop_document(self, url: str) -> None:
        await self._write("DELETE FROM documents WHERE company = ? AND url = ?", (self._company, url))

    async def sweep(self, *, fetched_before: float, seen_before: float) -> int:
        swept = 0
        for table, key, old, before in (
            ("documents", "url", "fetched_at < ?", fetched_before),
            ("clients", "id", "verdict IS NULL AND (seen_at IS NULL OR seen_at < ?)", seen_before),
        ):
            keys = await self._database.readers.far(
                lambda connection, query=f"SELECT {key} FROM {table} WHERE company = ? AND {old}", before=before: (
                    connection.execute(query, (self._company, before)).fetchall()
                )
            )
            # Looked at again when they are deleted: one may have come back meanwhile.
            statement = f"DELETE FROM {table} WHERE company = ? AND {key} = ? AND {old}"
            for start in range(0, len(keys), SWEPT_AT_ONCE):
                some = [(self._company, *row, before) for row in keys[start : start + SWEPT_AT_ONCE]]
                swept += await self._database.writer.run(
                    lambda transaction, statement=statement, some=some: (
                        transaction.connection.executemany(statement, some).rowcount
                    )
                )
        return swept

    async def _write(self, statement: str, values: tuple[object, ...]) -> None:
        await self._database.writer.run(lambda transaction: transaction.connection.execute(statement, values).rowcount)
