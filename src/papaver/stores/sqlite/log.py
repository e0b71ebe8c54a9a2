"""One Company's conversations in SQLite: the one door through which they change, and how they are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from typing import TypeVar, cast

from papaver.ports.company import PAGE_BYTES
from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, Slice
from papaver.protocol.conversation.model import Event
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ClientId, ConversationId, SessionId
from papaver.stores.crash import Step
from papaver.stores.digests import digest
from papaver.stores.notify import RegisteredWatch
from papaver.stores.records import Records
from papaver.stores.sqlite.database import snapshot
from papaver.stores.sqlite.group import Apply, lost
from papaver.stores.sqlite.lists import SqliteLists
from papaver.stores.sqlite.sessions import load_session
from papaver.stores.sqlite.writer import Transaction
from papaver.stores.turns import NOTES, check_change, makes_due

__all__ = ["SqliteLog"]

R = TypeVar("R")
NEAR_EVENTS, NEAR_BYTES = 256, 2 * PAGE_BYTES
"""Up to so many events are read on the loop's own thread: decoding them costs more than finding them."""
NEAR_RECORDS, NEAR_RECORD_BYTES = 1024, 256 * 1024
"""The same for events that are not decoded."""


def _within(rows: sqlite3.Cursor, max_bytes: int, at_least: int) -> tuple[list[bytes], bool]:
    """The first bodies that have so many octets together, and at least so many of them; and whether that is all."""
    found: list[bytes] = []
    for (body,) in rows:
        max_bytes -= len(body)
        if max_bytes < 0 and len(found) >= at_least:
            rows.close()
            return found, False
        found.append(body)
    return found, True


class SqliteLog(SqliteLists):
    """`ConversationLog` of one Company."""

    async def apply(self, keys: Keys, decide: Callable[[Loaded], Change[R]]) -> R:
        step: Step | None = None
        if keys.lease is not None:
            step = "finish"
        elif keys.receipt is not None:
            step = "accept"
        return cast(R, await self._database.writer.run(Apply(self, keys, decide), step))

    def change(self, transaction: Transaction, apply: Apply) -> object:
        """On the writer's thread: decide, and hold back what is to be written."""
        group, keys = self.group, apply.keys
        group.enter(transaction)
        replay = None if keys.replay is None else digest(keys.replay.client_id, keys.replay.jti)
        # What `decide` raises leaves nothing: nothing is noted before it.
        loaded = self._load(transaction, apply, replay)
        change = apply.decide(loaded)
        check_change(change, keys, loaded, self._last_seq)
        if change.heads or change.receipt or change.ended or change.acceptance or change.notes:
            group.note(change, apply, keys.lease.conversation_id if change.ended and keys.lease else None)
        if keys.replay is not None and replay is not None and not loaded.replayed:
            group.replays.note(replay, keys.replay.until)
        for head in change.heads:
            transaction.topics.add((self._company, head.id))
        if makes_due(change, keys.lease):
            transaction.topics.add((self._company, ""))
        if change.notes:
            transaction.topics.add((self._company, NOTES))
        return change.result

    def _last_seq(self, conversation: ConversationId) -> int | None:
        stored = self.group.known(conversation)
        return None if stored is None else stored.head.last_seq

    def _load(self, transaction: Transaction, apply: Apply, replay: bytes | None) -> Loaded:
        group, keys = self.group, apply.keys
        conversation = keys.conversation
        receipt = None if apply.receipt is None else group.receipt(apply.receipt)
        if conversation is None and receipt is not None:
            conversation = receipt.conversation_id
        acceptance = None if apply.acceptance is None else group.receipt(apply.acceptance)
        head = self._head(conversation)
        kin = head if keys.relatives else None
        return Loaded(
            head=head,
            parent=self._head(keys.parent or (None if kin is None else kin.parent)),
            direct=self._head(None if kin is None else kin.open_direct),
            receipt=receipt,
            acceptance=acceptance,
            accepted=self._head(None if acceptance is None else acceptance.conversation_id),
            replayed=replay is not None and group.replays.known(transaction, replay) is not None,
            session=None if keys.session is None else group.session(keys.session),
            lease_lost=keys.lease is not None and lost(keys.lease, group.stored(keys.lease.conversation_id)),
        )

    def _head(self, conversation: ConversationId | None) -> Head | None:
        stored = None if conversation is None else self.group.stored(conversation)
        return None if stored is None else stored.head

    async def read(
        self,
        conversation: ConversationId,
        after_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        session: tuple[ClientId, SessionId] | None = None,
    ) -> Slice | None:
        def query(connection: sqlite3.Connection) -> Slice | None:
            with snapshot(connection):
                return self._slice(connection, conversation, after_seq, limit, max_bytes, session)

        readers = self._database.readers
        near = limit <= NEAR_EVENTS and max_bytes <= NEAR_BYTES
        return readers.near(query) if near else await readers.far(query)

    def _slice(
        self,
        connection: sqlite3.Connection,
        conversation: ConversationId,
        after_seq: int,
        limit: int,
        max_bytes: int,
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
            events = tuple([record.read(body) for body in _within(rows, max_bytes, 1)[0]])
        return Slice(
            head=head,
            events=events,
            more=after_seq + len(events) < head.last_seq,
            session=None if session is None else load_session(connection, self._company, *session),
        )

    async def read_back(
        self,
        conversation: ConversationId,
        before_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        at_least: int = 1,
    ) -> Sequence[Event]:
        def tail(connection: sqlite3.Connection) -> sqlite3.Cursor:
            return connection.execute(
                "SELECT body FROM events WHERE company = ? AND conversation = ? AND seq < ? ORDER BY seq DESC LIMIT ?",
                (self._company, conversation, before_seq, max(limit, 0)),
            )

        # Whether they are few octets, too, is known only when they are read.
        readers, whole, found = self._database.readers, False, list[bytes]()
        if limit <= NEAR_RECORDS:
            found, whole = readers.near(lambda reader: _within(tail(reader), min(max_bytes, NEAR_RECORD_BYTES), 0))
        if not whole:
            found, _ = await readers.far(lambda reader: _within(tail(reader), max_bytes, at_least))
        found.reverse()
        return Records(found) if found else ()

    def watch(self, conversation: ConversationId) -> RegisteredWatch:
        self._database.start_watching()
        return self._database.registry.watch((self._company, conversation))
