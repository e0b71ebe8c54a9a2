"""A Company's Sessions in SQLite (5.3 step 4, 5.5)."""

from __future__ import annotations

import sqlite3

from papaver.protocol.conversation.change import SessionRow
from papaver.protocol.terms import ClientId, SessionId, UserId
from papaver.stores.sessions import opened
from papaver.stores.sqlite.database import Database
from papaver.stores.sqlite.forms import SESSION_COLUMNS, read_session
from papaver.stores.sqlite.writer import Transaction

__all__ = ["SqliteSessions", "load_session"]

SWEPT_AT_ONCE = 500
"""Rows that one transaction of a sweep deletes: nobody's message waits for a long one."""

_LOAD = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE company = ? AND client_id = ? AND sid = ?"


def load_session(
    connection: sqlite3.Connection, company: int, client_id: ClientId, sid: SessionId
) -> SessionRow | None:
    row = connection.execute(_LOAD, (company, client_id, sid)).fetchone()
    return None if row is None else read_session(row)


class SqliteSessions:
    """`SessionStore` of one Company."""

    def __init__(self, database: Database, company: int) -> None:
        self._database = database
        self._company = company

    async def open(self, fresh: SessionRow, *, forget_before: float) -> SessionRow:
        stored = await self.load(fresh.client_id, fresh.sid)
        if stored is not None and opened(stored, fresh, forget_before) is stored:
            return stored
        return await self._database.writer.run(lambda transaction: self._open(transaction, fresh, forget_before))

    def _open(self, transaction: Transaction, fresh: SessionRow, forget_before: float) -> SessionRow:
        stored = load_session(transaction.connection, self._company, fresh.client_id, fresh.sid)
        row = fresh if stored is None else opened(stored, fresh, forget_before)
        if row is not stored:
            transaction.connection.execute(
                f"INSERT OR REPLACE INTO sessions (company, {SESSION_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (self._company, row.key, row.client_id, row.sid, row.user_id, row.agent_id, row.seen_at, row.ended_at),
            )
        return row

    async def load(self, client_id: ClientId, sid: SessionId) -> SessionRow | None:
        return self._database.readers.near(lambda connection: load_session(connection, self._company, client_id, sid))

    async def end(self, client_id: ClientId, sid: SessionId, at: float) -> bool:
        return (
            await self._write(
                "UPDATE sessions SET ended_at = ? WHERE company = ? AND client_id = ? AND sid = ? AND ended_at IS NULL",
                (at, self._company, client_id, sid),
            )
            == 1
        )

    async def end_user(self, client_id: ClientId, user_id: UserId, at: float) -> int:
        return await self._write(
            "UPDATE sessions INDEXED BY sessions_of_user SET ended_at = ?"
            " WHERE company = ? AND client_id = ? AND user_id = ? AND ended_at IS NULL",
            (at, self._company, client_id, user_id),
        )

    async def sweep(self, *, forget_before: float, ended_before: float) -> int:
        swept = 0
        for old, before in (("ended_at IS NULL AND seen_at < ?", forget_before), ("ended_at < ?", ended_before)):
            deleted = SWEPT_AT_ONCE
            while deleted == SWEPT_AT_ONCE:
                deleted = await self._database.writer.run(
                    lambda transaction, old=old, before=before: self._sweep(transaction.connection, old, before)
                )
                swept += deleted
        return swept

    def _sweep(self, connection: sqlite3.Connection, old: str, before: float) -> int:
        keys = connection.execute(
            f"SELECT company, client_id, sid FROM sessions WHERE company = ? AND {old} LIMIT {SWEPT_AT_ONCE}",
            (self._company, before),
        ).fetchall()
        connection.executemany("DELETE FROM sessions WHERE company = ? AND client_id = ? AND sid = ?", keys)
        return len(keys)

    async def _write(self, statement: str, values: tuple[object, ...]) -> int:
        """How many rows that touched."""
        return await self._database.writer.run(
            lambda transaction: transaction.connection.execute(statement, values).rowcount
        )
