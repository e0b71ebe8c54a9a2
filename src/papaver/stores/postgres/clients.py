"""A Company's clients and fetched documents in PostgreSQL."""

from __future__ import annotations

from typing import Final, Literal, cast

from papaver.ports.company import ClientRow, DocumentRow
from papaver.protocol.terms import ClientId
from papaver.stores.postgres.lookups import Lookups
from papaver.stores.postgres.server import Server
from papaver.stores.postgres.values import count_of
from papaver.stores.sessions import SEEN_EVERY

__all__ = ["PostgresClients"]

Verdict = Literal["allowed", "blocked"]
KEPT: Final = 10_000
"""Clients of whom it is remembered when they were seen, at most."""


class PostgresClients:
    """`ClientStore` of one Company. A verdict is asked for each time: another replica's word holds at once."""

    def __init__(self, server: Server, company: int, lookups: Lookups) -> None:
        self._server, self._company, self._lookups = server, company, lookups
        self._seen: dict[ClientId, float] = {}

    async def verdict(self, client_id: ClientId) -> Verdict | None:
        verdict, _ = await self._lookups.client(client_id)
        return cast("Verdict | None", verdict)

    async def judge(self, client_id: ClientId, verdict: Verdict | None) -> None:
        await self._write(
            "INSERT INTO clients (company, id, verdict) VALUES ($1, $2, $3)"
            " ON CONFLICT (company, id) DO UPDATE SET verdict = excluded.verdict",
            client_id,
            verdict,
        )

    async def seen(self, client_id: ClientId, at: float) -> None:
        # Remembered, and then looked at: a row that is not written costs no page.
        if at - self._seen.get(client_id, 0.0) < SEEN_EVERY:
            return
        _, before = await self._lookups.client(client_id)
        if before is None or at - before >= SEEN_EVERY:
            before = at
            await self._write(
                "INSERT INTO clients (company, id, seen_at) VALUES ($1, $2, $3)"
                " ON CONFLICT (company, id) DO UPDATE SET seen_at = greatest(clients.seen_at, excluded.seen_at)",
                client_id,
                at,
            )
        if len(self._seen) >= KEPT:
            self._seen.clear()
        self._seen[client_id] = before

    async def clients(self) -> tuple[ClientRow, ...]:
        statement = 'SELECT id, verdict, seen_at FROM clients WHERE company = $1 ORDER BY id COLLATE "C"'
        rows = await self._server.run(lambda connection: connection.fetch(statement, self._company))
        return tuple(ClientRow(ClientId(client_id), verdict, seen_at) for client_id, verdict, seen_at in rows)

    async def keep_document(self, row: DocumentRow) -> None:
        await self._write(
            "INSERT INTO documents (company, url, body, fetched_at, fresh_until) VALUES ($1, $2, $3, $4, $5)"
            " ON CONFLICT (company, url) DO UPDATE SET body = excluded.body, fetched_at = excluded.fetched_at,"
            " fresh_until = excluded.fresh_until",
            row.url,
            row.body,
            row.fetched_at,
            row.fresh_until,
        )

    async def load_document(self, url: str) -> DocumentRow | None:
        statement = "SELECT body, fetched_at, fresh_until FROM documents WHERE company = $1 AND url = $2"
        rows = await self._server.run(lambda connection: connection.fetch(statement, self._company, url))
        return DocumentRow(url, *rows[0]) if rows else None

    async def drop_document(self, url: str) -> None:
        await self._write("DELETE FROM documents WHERE company = $1 AND url = $2", url)

    async def sweep(self, *, fetched_before: float, seen_before: float) -> int:
        documents = await self._write("DELETE FROM documents WHERE company = $1 AND fetched_at < $2", fetched_before)
        return documents + await self._write(
            "DELETE FROM clients WHERE company = $1 AND verdict IS NULL AND (seen_at IS NULL OR seen_at < $2)",
            seen_before,
        )

    async def _write(self, statement: str, *values: object) -> int:
        """How many rows that touched."""
        return count_of(
            await self._server.run(lambda connection: connection.execute(statement, self._company, *values))
        )
