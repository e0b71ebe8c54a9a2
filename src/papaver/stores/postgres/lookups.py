"""Rows that each request asks for, Sessions and clients: what is asked for at the same moment is one query.

A query begins after whoever asked, so that it sees all that any replica had committed by then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final

from papaver.protocol.conversation.change import SessionRow
from papaver.protocol.terms import AgentId, ClientId, SessionId, UserId
from papaver.stores.faults import StoreFailed
from papaver.stores.postgres.server import Server
from papaver.stores.postgres.values import from_column, is_storable

__all__ = ["SESSION_COLUMNS", "Lookups", "read_session"]

SESSION_COLUMNS: Final = "key, client_id, sid, user_id, agent_id, seen_at, ended_at"
_LOOK: Final = (
    f"SELECT {SESSION_COLUMNS}, NULL::text AS verdict FROM sessions"
    " WHERE company = $1 AND (client_id, sid) IN (SELECT * FROM unnest($2::text[], $3::text[]))"
    " UNION ALL SELECT NULL, id, NULL, NULL, NULL, seen_at, NULL, verdict FROM clients"
    " WHERE company = $1 AND id = ANY($4::text[])"
)
_Key = tuple[str, str | None]
"""(client, sid) of a Session, (client, None) of a client."""


def read_session(row: Sequence[Any]) -> SessionRow:
    """A row of SESSION_COLUMNS."""
    key, client_id, sid, user_id, agent_id, seen_at, ended_at = row
    agent = None if agent_id is None else AgentId(from_column(agent_id))
    return SessionRow(key, ClientId(client_id), SessionId(sid), UserId(from_column(user_id)), agent, seen_at, ended_at)


class Lookups:
    """One Company's. At most one query is on its way; what is asked for meanwhile goes together with the next."""

    def __init__(self, server: Server, company: int) -> None:
        self._server, self._company = server, company
        self._asked: dict[_Key, list[asyncio.Future[Sequence[Any] | None]]] = {}
        self._task: asyncio.Task[None] | None = None

    async def session(self, client_id: ClientId, sid: SessionId) -> SessionRow | None:
        row = await self._ask((client_id, sid))
        return None if row is None else read_session(row[:7])

    async def client(self, client_id: ClientId) -> tuple[str | None, float | None]:
        """Verdict and when it was seen last."""
        row = await self._ask((client_id, None))
        return (None, None) if row is None else (row[7], row[5])

    async def _ask(self, key: _Key) -> Sequence[Any] | None:
        if not is_storable(key):
            return None
        future: asyncio.Future[Sequence[Any] | None] = asyncio.get_running_loop().create_future()
        self._asked.setdefault(key, []).append(future)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return await future

    async def _run(self) -> None:
        asked: dict[_Key, list[asyncio.Future[Sequence[Any] | None]]] = {}
        try:
            while self._asked:
                asked, self._asked = self._asked, {}
                try:
                    found = await self._found(asked)
                except StoreFailed as fault:
                    for future in (future for futures in asked.values() for future in futures if not future.done()):
                        future.set_exception(StoreFailed(fault.detail))
                    continue
                for key, futures in asked.items():
                    row = found.get(key)
                    for future in futures:
                        if not future.done():
                            future.set_result(row)
        finally:
            self._task = None
            # Not done when the loop ends under it: nobody waits for ever.
            for future in (future for futures in (*asked.values(), *self._asked.values()) for future in futures):
                future.cancel()
            self._asked = {}

    async def _found(self, asked: dict[_Key, list[asyncio.Future[Sequence[Any] | None]]]) -> dict[_Key, Sequence[Any]]:
        sessions = [key for key in asked if key[1] is not None]
        values = (
            [client for client, _ in sessions],
            [sid for _, sid in sessions],
            [client for client, sid in asked if sid is None],
        )
        rows = await self._server.run(lambda connection: connection.fetch(_LOOK, self._company, *values))
        return {(row[1], row[2]): row for row in rows}
