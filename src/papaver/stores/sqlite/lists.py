"""Which conversations of one Company in SQLite are idle, attended, prunable; all of somebody; and their erasure."""

from __future__ import annotations

import json
import sqlite3

from papaver.ports.company import Erased
from papaver.protocol.conversation.record import read_head
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ClientId, ConversationId, UserId
from papaver.stores.digests import number
from papaver.stores.sqlite.group import DAY
from papaver.stores.sqlite.outbox import SqliteOutbox
from papaver.stores.sqlite.rows import execute_in
from papaver.stores.sqlite.writer import Transaction
from papaver.stores.turns import seconds

__all__ = ["SqliteLists"]


class SqliteLists(SqliteOutbox):
    """The lists' part of `ConversationLog`."""

    async def conversations(self, *, idle_since: float, limit: int) -> tuple[ConversationId, ...]:
        def query(connection: sqlite3.Connection) -> tuple[ConversationId, ...]:
            rows = connection.execute(
                "SELECT id FROM conversations"
                " WHERE company = ? AND closed = 0 AND changed_day <= ? AND changed_at <= ?"
                " ORDER BY changed_day, changed_at, id LIMIT ?",
                (self._company, int(idle_since // DAY), idle_since, limit),
            )
            return tuple(ConversationId(id) for (id,) in rows)

        return await self._database.readers.far(query)

    async def attention(self, limit: int) -> tuple[Head, ...]:
        def query(connection: sqlite3.Connection) -> tuple[Head, ...]:
            rows = connection.execute(
                "SELECT head FROM conversations WHERE company = ? AND attends IS NOT NULL"
                " ORDER BY attends, attends_since, id LIMIT ?",
                (self._company, limit),
            )
            heads = [read_head(row) for (row,) in rows]
            return tuple(sorted(heads, key=lambda head: (head.queued_at is None, *_since(head))))

        return await self._database.readers.far(query)

    async def listed(
        self,
        *,
        client_id: ClientId | None = None,
        user_id: UserId | None = None,
        after: ConversationId | None = None,
        limit: int = 100,
    ) -> tuple[Head, ...]:
        def query(connection: sqlite3.Connection) -> tuple[Head, ...]:
            condition, values = self._of(client_id, user_id)
            rows = connection.execute(
                f"SELECT head FROM conversations WHERE {condition} AND id > ? ORDER BY id", (*values, after or "")
            )
            found: list[Head] = []
            for (row,) in rows:
                head = read_head(row)
                if client_id in (None, head.client_id) and user_id in (None, head.user_id):
                    found.append(head)
                    if len(found) == limit:
                        break
            return tuple(found)

        return await self._database.readers.far(query)

    def _of(self, client_id: ClientId | None, user_id: UserId | None) -> tuple[str, tuple[object, ...]]:
        """What the numbers beside a head say of whose it is; the head itself is certain."""
        if client_id is None:
            return "company = ?", (self._company,)
        if user_id is None:
            return "company = ? AND client_key = ?", (self._company, number(client_id))
        return "company = ? AND user_key = ?", (self._company, number(client_id, user_id))

    async def prunable(self, *, before: float, limit: int) -> tuple[ConversationId, ...]:
        def query(connection: sqlite3.Connection) -> tuple[ConversationId, ...]:
            rows = connection.execute(
                "SELECT id FROM conversations WHERE company = ? AND prunable < ? ORDER BY prunable, id LIMIT ?",
                (self._company, before, limit),
            )
            return tuple(ConversationId(id) for (id,) in rows)

        return await self._database.readers.far(query)

    async def erase(self, client_id: ClientId, user_id: UserId) -> Erased:
        """See `CompanyTables.erase`. Neither conversations by User nor receipts by conversation have an index, which
        would cost each message a page: both tables are walked through once, and writers wait for that. A million
        receipts take some 0.2 s."""

        def erased(transaction: Transaction) -> Erased:
            connection = transaction.connection
            condition, values = self._of(client_id, user_id)
            rows = connection.execute(f"SELECT id, head FROM conversations WHERE {condition}", values).fetchall()
            heads = {id: read_head(row) for id, row in rows}
            ids = [id for id, head in heads.items() if (head.client_id, head.user_id) == (client_id, user_id)]
            before = connection.total_changes
            execute_in(connection, "DELETE FROM events WHERE company = ? AND conversation", (self._company,), ids)
            events = connection.total_changes - before
            for table, column in (("journal", "conversation"), ("notes", "conversation"), ("conversations", "id")):
                execute_in(connection, f"DELETE FROM {table} WHERE company = ? AND {column}", (self._company,), ids)
            if ids:
                connection.execute(
                    "DELETE FROM receipts WHERE company = ? AND conversation IN (SELECT value FROM json_each(?))",
                    (self._company, json.dumps(ids)),
                )
            sessions = connection.execute(
                "DELETE FROM sessions WHERE company = ? AND client_id = ? AND user_id = ?",
                (self._company, client_id, user_id),
            ).rowcount
            transaction.topics.update((self._company, id) for id in ids)
            return Erased(len(ids), events, sessions)

        return await self._database.writer.run(erased)


def _since(head: Head) -> tuple[float, ConversationId]:
    return (seconds(head) if head.queued_at is None else head.queued_at.timestamp()), head.id
