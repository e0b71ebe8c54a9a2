"""Sessions and clients of one Company in this process's memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from papaver.ports.company import ClientRow, DocumentRow
from papaver.protocol.conversation.change import SessionRow
from papaver.protocol.terms import ClientId, SessionId, UserId

__all__ = ["MemoryClients", "MemorySessions"]

SEEN_EVERY = 60.0
"""`seen_at` is written at most once a minute (limits.md)."""


class MemorySessions:
    def __init__(self) -> None:
        self.rows: dict[tuple[ClientId, SessionId], SessionRow] = {}

    async def open(self, fresh: SessionRow, *, forget_before: float) -> SessionRow:
        key = (fresh.client_id, fresh.sid)
        row = self.rows.get(key)
        if row is None or (row.ended_at is None and row.seen_at < forget_before):
            row = self.rows[key] = fresh
        elif (
            row.ended_at is None
            and (row.user_id, row.agent_id) == (fresh.user_id, fresh.agent_id)
            and fresh.seen_at - row.seen_at >= SEEN_EVERY
        ):
            row = self.rows[key] = replace(row, seen_at=fresh.seen_at)
        return row

    async def load(self, client_id: ClientId, sid: SessionId) -> SessionRow | None:
        return self.rows.get((client_id, sid))

    async def end(self, client_id: ClientId, sid: SessionId, at: float) -> bool:
        row = self.rows.get((client_id, sid))
        if row is None or row.ended_at is not None:
            return False
        self.rows[client_id, sid] = replace(row, ended_at=at)
        return True

    async def end_user(self, client_id: ClientId, user_id: UserId, at: float) -> int:
        live = [
            key
            for key, row in self.rows.items()
            if (row.client_id, row.user_id) == (client_id, user_id) and row.ended_at is None
        ]
        for key in live:
            self.rows[key] = replace(self.rows[key], ended_at=at)
        return len(live)

    def erase(self, client_id: ClientId, user_id: UserId) -> int:
        gone = [key for key, row in self.rows.items() if (row.client_id, row.user_id) == (client_id, user_id)]
        for key in gone:
            del self.rows[key]
        return len(gone)

    async def sweep(self, *, forget_before: float, ended_before: float) -> int:
        old = [
            key
            for key, row in self.rows.items()
            if (row.seen_at < forget_before if row.ended_at is None else row.ended_at < ended_before)
        ]
        for key in old:
            del self.rows[key]
        return len(old)


class MemoryClients:
    def __init__(self) -> None:
        self._rows: dict[ClientId, ClientRow] = {}
        self._documents: dict[str, DocumentRow] = {}

    async def verdict(self, client_id: ClientId) -> Literal["allowed", "blocked"] | None:
        row = self._rows.get(client_id)
        return row.verdict if row is not None else None

    async def judge(self, client_id: ClientId, verdict: Literal["allowed", "blocked"] | None) -> None:
        row = self._rows.get(client_id, ClientRow(client_id, None))
        self._rows[client_id] = replace(row, verdict=verdict)

    async def seen(self, client_id: ClientId, at: float) -> None:
        row = self._rows.get(client_id, ClientRow(client_id, None))
        self._rows[client_id] = replace(row, seen_at=at if row.seen_at is None else max(row.seen_at, at))

    async def clients(self) -> tuple[ClientRow, ...]:
        return tuple(self._rows[client_id] for client_id in sorted(self._rows))

    async def keep_document(self, row: DocumentRow) -> None:
        self._documents[row.url] = row

    async def load_document(self, url: str) -> DocumentRow | None:
        return self._documents.get(url)

    async def drop_document(self, url: str) -> None:
        self._documents.pop(url, None)

    async def sweep(self, *, fetched_before: float, seen_before: float) -> int:
        old = [row.url for row in self._documents.values() if row.fetched_at < fetched_before]
        gone = [row.client_id for row in self._rows.values() if not row.verdict and (row.seen_at or 0) < seen_before]
        for url in old:
            del self._documents[url]
        for client_id in gone:
            del self._rows[client_id]
        return len(old) + len(gone)
