"""One Company's conversations in SQLite: the one door through which they change, and how they are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, Slice
from papaver.protocol.conversation.model import Event, Status
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import ClientId, ConversationId, SessionId
from papaver.stores.crash import Step
from papaver.stores.notify import RegisteredWatch
from papaver.stores.sqlite.database import Database, snapshot
from papaver.stores.sqlite.forms import digest, read_receipt
from papaver.stores.sqlite.records import Records
from papaver.stores.sqlite.replays import Replays
from papaver.stores.sqlite.sessions import load_session
from papaver.stores.sqlite.turns import SqliteTurns
from papaver.stores.sqlite.writer import Transaction, savepoint
from papaver.stores.turns import check_change, due_since, makes_due, seconds

__all__ = ["SqliteLog"]

R = TypeVar("R")
DAY = 86_400
NEAR_EVENTS = 256
"""Up to so many events are read on the loop's own thread: decoding them costs more than finding them."""
NEAR_RECORDS = 1024
"""The same for events that are not decoded."""

_LOAD = "SELECT head, closed, changed_day, due_since, token, holder FROM conversations WHERE company = ? AND id = ?"


@dataclass(slots=True)
class _Stored:
    """A conversation's row, as it was before the change."""

    head: Head
    closed: int
    changed_day: int
    due_since: float | None
    token: int
    holder: str | None


def _update(moved: bool, due: bool, ended: bool) -> str:
    """Only the columns that change: SQLite rewrites the index of each column that is named."""
    columns = ["head = ?", "changed_at = ?"]
    if moved:
        columns += ["closed = ?", "changed_day = ?"]
    if due:
        columns += ["due_since = ?"]
    if ended:
        columns += ["turn_id = NULL", "until_seq = NULL", "holder = NULL", "until = NULL"]
    return f"UPDATE conversations SET {', '.join(columns)} WHERE company = ? AND id = ?"


_UPDATE = {
    (moved, due, ended): _update(moved, due, ended)
    for moved in (False, True)
    for due in (False, True)
    for ended in (False, True)
}


class SqliteLog(SqliteTurns):
    """`ConversationLog` of one Company."""

    def __init__(self, database: Database, company: int) -> None:
        super().__init__(database, company)
        self._replays = Replays(company)

    async def apply(self, keys: Keys, decide: Callable[[Loaded], Change[R]]) -> R:
        step: Step | None = None
        if keys.lease is not None:
            step = "finish"
        elif keys.receipt is not None:
            step = "accept"
        return await self._database.writer.run(lambda transaction: self._apply(transaction, keys, decide), step)

    def _apply(self, transaction: Transaction, keys: Keys, decide: Callable[[Loaded], Change[R]]) -> R:
        connection = transaction.connection
        stored: dict[ConversationId, _Stored] = {}
        loaded = self._load(transaction, keys, stored)
        # What `decide` raises leaves the replay key and nothing else: nothing else is written before it.
        change = decide(loaded)
        check_change(change, keys, loaded, lambda id: stored[id].head.last_seq if id in stored else None)
        if change.heads or change.receipt is not None or change.ended:
            with savepoint(connection):
                self._write(connection, keys, change, stored)
        for head in change.heads:
            transaction.topics.add((self._company, head.id))
        if makes_due(change, keys.lease):
            transaction.topics.add((self._company, ""))
        if change.heads:
            self._replays.prune(connection, seconds(change.heads[0]))
        return change.result

    def _load(self, transaction: Transaction, keys: Keys, stored: dict[ConversationId, _Stored]) -> Loaded:
        connection = transaction.connection
        conversation = keys.conversation
        receipt = None if keys.receipt is None else self._receipt(connection, keys.receipt)
        if conversation is None and receipt is not None:
            conversation = receipt.conversation_id
        wanted = {conversation, keys.parent, None if keys.lease is None else keys.lease.conversation_id}
        for id in wanted:
            if id is not None and (row := connection.execute(_LOAD, (self._company, id)).fetchone()) is not None:
                stored[id] = _Stored(record.read_head(row[0]), *row[1:])
        return Loaded(
            head=stored[conversation].head if conversation is not None and conversation in stored else None,
            parent=stored[keys.parent].head if keys.parent is not None and keys.parent in stored else None,
            receipt=receipt,
            replayed=keys.replay is not None and self._replays.replayed(transaction, keys.replay),
            session=None if keys.session is None else load_session(connection, self._company, *keys.session),
            lease_lost=keys.lease is not None and _lost(keys.lease, stored.get(keys.lease.conversation_id)),
        )

    def _receipt(self, connection: sqlite3.Connection, key: tuple[str, str, str]) -> Receipt | None:
        row = connection.execute(
            "SELECT fingerprint, conversation, accepted_as, status, responder FROM receipts"
            " WHERE company = ? AND key = ?",
            (self._company, digest(*key)),
        ).fetchone()
        return None if row is None else read_receipt(row)

    def _write(
        self, connection: sqlite3.Connection, keys: Keys, change: Change[R], stored: dict[ConversationId, _Stored]
    ) -> None:
        company, ending = self._company, keys.lease.conversation_id if change.ended and keys.lease is not None else None
        for head in change.heads:
            self._write_head(connection, head, stored.get(head.id), ended=head.id == ending)
        for conversation, seq, event in change.events:
            connection.execute(
                "INSERT INTO events (company, conversation, seq, body) VALUES (?, ?, ?, ?)",
                (company, conversation, seq, record.write(event)),
            )
        if (receipt := change.receipt) is not None and keys.receipt is not None:
            connection.execute(
                "INSERT INTO receipts (company, key, fingerprint, conversation, accepted_as, status, responder)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    company,
                    digest(*keys.receipt),
                    receipt.fingerprint,
                    receipt.conversation_id,
                    receipt.accepted_as,
                    receipt.status.value,
                    receipt.responder.value,
                ),
            )
        if ending is not None:
            if all(head.id != ending for head in change.heads):
                self._write_head(connection, stored[ending].head, stored[ending], ended=True)
            connection.execute("DELETE FROM journal WHERE company = ? AND conversation = ?", (company, ending))

    def _write_head(self, connection: sqlite3.Connection, head: Head, before: _Stored | None, *, ended: bool) -> None:
        changed_at = seconds(head)
        closed, day = int(head.status is Status.CLOSED), int(changed_at // DAY)
        due = due_since(head, None if before is None else before.due_since, ended=ended)
        values: list[object] = [record.write_head(head), changed_at]
        if before is None:
            connection.execute(
                "INSERT INTO conversations (head, changed_at, closed, changed_day, due_since, company, id)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (*values, closed, day, due, self._company, head.id),
            )
            return
        moved = (closed, day) != (before.closed, before.changed_day)
        if moved:
            values += [closed, day]
        if due != before.due_since:
            values += [due]
        statement = _UPDATE[moved, due != before.due_since, ended]
        connection.execute(statement, (*values, self._company, head.id))

    async def read(
        self,
        conversation: ConversationId,
        after_seq: int,
        limit: int,
        *,
        session: tuple[ClientId, SessionId] | None = None,
    ) -> Slice | None:
        def query(connection: sqlite3.Connection) -> Slice | None:
            with snapshot(connection):
                return self._slice(connection, conversation, after_seq, limit, session)

        readers = self._database.readers
        return readers.near(query) if limit <= NEAR_EVENTS else await readers.far(query)

    def _slice(
        self,
        connection: sqlite3.Connection,
        conversation: ConversationId,
        after_seq: int,
        limit: int,
        session: tuple[ClientId, SessionId] | None,
    ) -> Slice | None:
        row = connection.execute(
            "SELECT head FROM conversations WHERE company = ? AND id = ?", (self._company, conversation)
        ).fetchone()
        if row is None:
            return None
        head = record.read_head(row[0])
        after_seq = max(after_seq, head.first_seq - 1)
        events: tuple[Event, ...] = ()
        if after_seq < head.last_seq and limit > 0:
            rows = connection.execute(
                "SELECT body FROM events WHERE company = ? AND conversation = ? AND seq > ? ORDER BY seq LIMIT ?",
                (self._company, conversation, after_seq, limit),
            )
            events = tuple([record.read(body) for (body,) in rows])
        return Slice(
            head=head,
            events=events,
            more=after_seq + len(events) < head.last_seq,
            session=None if session is None else load_session(connection, self._company, *session),
        )

    async def read_back(self, conversation: ConversationId, before_seq: int, limit: int) -> Sequence[Event]:
        def query(connection: sqlite3.Connection) -> Sequence[Event]:
            rows = connection.execute(
                "SELECT body FROM events WHERE company = ? AND conversation = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
                (self._company, conversation, before_seq, max(limit, 0)),
            ).fetchall()
            return Records([body for (body,) in reversed(rows)]) if rows else ()

        readers = self._database.readers
        return readers.near(query) if limit <= NEAR_RECORDS else await readers.far(query)

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

    def watch(self, conversation: ConversationId) -> RegisteredWatch:
        self._database.start_watching()
        return self._database.registry.watch((self._company, conversation))


def _lost(lease: Lease, stored: _Stored | None) -> bool:
    return stored is None or stored.token != lease.token or stored.holder is None
