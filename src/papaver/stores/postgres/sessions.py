"""A Company's Sessions in PostgreSQL (5.3 step 4, 5.5)."""

from __future__ import annotations

from papaver.protocol.conversation.change import SessionRow
from papaver.protocol.terms import ClientId, SessionId, UserId
from papaver.stores.postgres.lookups import SESSION_COLUMNS, Lookups, read_session
from papaver.stores.postgres.server import Connection, Server
from papaver.stores.postgres.values import count_of, to_column
from papaver.stores.sessions import opened

__all__ = ["PostgresSessions"]

_LOAD = f"SELECT {SESSION_COLUMNS} FROM sessions WHERE company = $1 AND client_id = $2 AND sid = $3"
_MAKE = (
    f"INSERT INTO sessions (company, {SESSION_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
    " ON CONFLICT DO NOTHING RETURNING true"
)
_REPLACE = (
    "UPDATE sessions SET key = $2, user_id = $5, agent_id = $6, seen_at = $7, ended_at = $8"
    " WHERE company = $1 AND client_id = $3 AND sid = $4"
)


class PostgresSessions:
    """`SessionStore` of one Company."""

    def __init__(self, server: Server, company: int, lookups: Lookups) -> None:
        self._server, self._company, self._lookups = server, company, lookups

    async def open(self, fresh: SessionRow, *, forget_before: float) -> SessionRow:
        stored = await self.load(fresh.client_id, fresh.sid)
        if stored is not None and opened(stored, fresh, forget_before) is stored:
            return stored
        # A second try after a lost connection finds what the first one may have written.
        return await self._server.run(lambda connection: self._open(connection, fresh, forget_before))

    async def _open(self, connection: Connection, fresh: SessionRow, forget_before: float) -> SessionRow:
        while True:
            if await connection.fetchval(_MAKE, *self._columns(fresh)):
                return fresh
            async with connection.transaction():
                rows = await connection.fetch(f"{_LOAD} FOR UPDATE", self._company, fresh.client_id, fresh.sid)
                # None: a sweep has deleted it in between.
                if rows:
                    stored = read_session(rows[0])
                    row = opened(stored, fresh, forget_before)
                    if row is not stored:
                        await connection.execute(_REPLACE, *self._columns(row))
                    return row

    def _columns(self, row: SessionRow) -> tuple[object, ...]:
        agent = None if row.agent_id is None else to_column(row.agent_id)
        whose = row.client_id, row.sid, to_column(row.user_id), agent
        return self._company, row.key, *whose, row.seen_at, row.ended_at

    async def load(self, client_id: ClientId, sid: SessionId) -> SessionRow | None:
        return await self._lookups.session(client_id, sid)

    async def end(self, client_id: ClientId, sid: SessionId, at: float) -> bool:
        statement = (
            "UPDATE sessions SET ended_at = $4 WHERE company = $1 AND client_id = $2 AND sid = $3 AND ended_at IS NULL"
        )
        return await self._write(statement, client_id, sid, at) == 1

    async def end_user(self, client_id: ClientId, user_id: UserId, at: float) -> int:
        statement = (
            "UPDATE sessions SET ended_at = $4"
            " WHERE company = $1 AND client_id = $2 AND user_id = $3 AND ended_at IS NULL"
        )
        return await self._write(statement, client_id, to_column(user_id), at)

    async def sweep(self, *, forget_before: float, ended_before: float) -> int:
        idle = await self._write(
            "DELETE FROM sessions WHERE company = $1 AND ended_at IS NULL AND seen_at < $2", forget_before
        )
        return idle + await self._write("DELETE FROM sessions WHERE company = $1 AND ended_at < $2", ended_before)

    async def _write(self, statement: str, *values: object) -> int:
        """How many rows that touched."""
        return count_of(
            await self._server.run(lambda connection: connection.execute(statement, self._company, *values))
        )
