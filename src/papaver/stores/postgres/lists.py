"""Which conversations of one Company in PostgreSQL are idle, attended, prunable; all of somebody; and their erasure."""

from __future__ import annotations

from typing import Final

from papaver.ports.company import Erased
from papaver.protocol.conversation.record import read_head
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ClientId, ConversationId, UserId
from papaver.stores.digests import number
from papaver.stores.postgres.outbox import PostgresOutbox
from papaver.stores.postgres.server import Connection
from papaver.stores.postgres.values import count_of, to_column
from papaver.stores.turns import seconds

__all__ = ["PostgresLists"]

DAY: Final = 86_400
_WHOSE: Final = "($2::bigint IS NULL OR client_key = $2) AND ($3::bigint IS NULL OR user_key = $3)"
_OF_IDS: Final = tuple(
    f"DELETE FROM {table} WHERE company = $1 AND {column} = ANY($2::text[])"
    for table, column in (
        ("events", "conversation"),
        ("journal", "conversation"),
        ("notes", "conversation"),
        ("receipts", "conversation"),
        ("conversations", "id"),
    )
)
"""Events first: how many there were is told. Receipts have no index by conversation, which would cost each message."""


class PostgresLists(PostgresOutbox):
    """The lists' part of `ConversationLog`."""

    async def conversations(self, *, idle_since: float, limit: int) -> tuple[ConversationId, ...]:
        rows = await self._fetch(
            "SELECT id FROM conversations WHERE company = $1 AND NOT closed AND changed_day <= $2 AND changed_at <= $3"
            " ORDER BY changed_day, changed_at, id LIMIT $4",
            int(idle_since // DAY),
            idle_since,
            limit,
        )
        return tuple(ConversationId(id) for (id,) in rows)

    async def attention(self, limit: int) -> tuple[Head, ...]:
        rows = await self._fetch(
            "SELECT head FROM conversations WHERE company = $1 AND attends IS NOT NULL"
            " ORDER BY attends, attends_since, id LIMIT $2",
            limit,
        )
        heads = [read_head(row) for (row,) in rows]
        return tuple(sorted(heads, key=lambda head: (head.queued_at is None, *_since(head))))

    async def listed(
        self,
        *,
        client_id: ClientId | None = None,
        user_id: UserId | None = None,
        after: ConversationId | None = None,
        limit: int = 100,
    ) -> tuple[Head, ...]:
        """The numbers beside a head say whose it may be; the head itself is certain."""
        found: list[Head] = []
        keys = _keys(client_id, user_id)
        last = after or ""
        while True:
            rows = await self._fetch(
                f"SELECT id, head FROM conversations WHERE company = $1 AND {_WHOSE} AND id > $4 ORDER BY id LIMIT $5",
                *keys,
                last,
                limit,
            )
            for id, row in rows:
                head, last = read_head(row), id
                if client_id in (None, head.client_id) and user_id in (None, head.user_id):
                    found.append(head)
                    if len(found) == limit:
                        return tuple(found)
            if len(rows) < limit:
                return tuple(found)

    async def prunable(self, *, before: float, limit: int) -> tuple[ConversationId, ...]:
        rows = await self._fetch(
            "SELECT id FROM conversations WHERE company = $1 AND prunable < $2 ORDER BY prunable, id LIMIT $3",
            before,
            limit,
        )
        return tuple(ConversationId(id) for (id,) in rows)

    async def erase(self, client_id: ClientId, user_id: UserId) -> Erased:
        """See `CompanyTables.erase`."""
        ids: list[str] = []

        async def work(connection: Connection) -> Erased:
            async with connection.transaction():
                rows = await connection.fetch(
                    f"SELECT id, head FROM conversations WHERE company = $1 AND {_WHOSE} ORDER BY id FOR UPDATE",
                    self._company,
                    *_keys(client_id, user_id),
                )
                heads = [read_head(row) for _, row in rows]
                ids[:] = [head.id for head in heads if (head.client_id, head.user_id) == (client_id, user_id)]
                counts = [count_of(await connection.execute(one, self._company, ids)) for one in _OF_IDS]
                sessions = await connection.execute(
                    "DELETE FROM sessions WHERE company = $1 AND client_id = $2 AND user_id = $3",
                    self._company,
                    client_id,
                    to_column(user_id),
                )
                return Erased(len(ids), counts[0], count_of(sessions))

        erased = await self._server.run(work)
        self._wake({(self._company, id) for id in ids})
        return erased


def _keys(client_id: ClientId | None, user_id: UserId | None) -> tuple[int | None, int | None]:
    client = None if client_id is None else number(client_id)
    return client, None if client_id is None or user_id is None else number(client_id, user_id)


def _since(head: Head) -> tuple[float, ConversationId]:
    return (seconds(head) if head.queued_at is None else head.queued_at.timestamp()), head.id
