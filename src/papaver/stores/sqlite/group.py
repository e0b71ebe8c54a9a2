"""One Company's changes within a group commit: loaded together, decided in memory, written together before COMMIT.

A head that this process wrote is kept for the next group as long as no other connection has written to the file
(docs/decisions/0018-a-group-is-decided-in-memory.md).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, cast

from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, SessionRow
from papaver.protocol.conversation.model import Status
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import ClientId, ConversationId, SessionId
from papaver.stores.digests import digest, number
from papaver.stores.sqlite.forms import read_receipt
from papaver.stores.sqlite.replays import Replays
from papaver.stores.sqlite.rows import execute_in, insert_rows, select_in
from papaver.stores.sqlite.sessions import load_session
from papaver.stores.sqlite.shares import Shares
from papaver.stores.sqlite.writer import Transaction
from papaver.stores.turns import attends, due_since, prunable, seconds

if TYPE_CHECKING:
    from papaver.stores.sqlite.log import SqliteLog

__all__ = ["DAY", "Apply", "Group", "Stored", "lost"]

DAY = 86_400
KEPT = 4096
"""Heads and Sessions remembered between groups, at most."""

_HEADS = "SELECT id, head, closed, changed_day, due_since, token, holder FROM conversations WHERE company = ? AND id"
_RECEIPTS = (
    "SELECT key, fingerprint, conversation, accepted_as, status, responder FROM receipts WHERE company = ? AND key"
)
_FORGET_JOURNAL = "DELETE FROM journal WHERE company = ? AND conversation"
_HEAD_COLUMNS = (
    "company, id, head, changed_at, closed, changed_day, due_since, client_key, user_key,"
    " attends, attends_since, prunable"
)
_SAME_COLUMNS = "company, id, head, changed_at, closed, changed_day"
_SAME = " ON CONFLICT DO UPDATE SET head = excluded.head, changed_at = excluded.changed_at"
"""For a head of which nothing else has changed: SQLite rewrites the index of each column that is named."""


@dataclass(slots=True, frozen=True)
class Stored:
    """A conversation's row."""

    head: Head
    closed: int
    changed_day: int
    due_since: float | None
    token: int
    holder: str | None


def lost(lease: Lease, stored: Stored | None) -> bool:
    """Whether it is not the newest lease of its conversation any more."""
    return stored is None or stored.token != lease.token or stored.holder is None


class Apply:
    """One call of `ConversationLog.apply`, waiting for its group."""

    __slots__ = ("acceptance", "decide", "keys", "log", "receipt")

    def __init__(self, log: SqliteLog, keys: Keys, decide: Callable[[Loaded], Change[object]]) -> None:
        self.log, self.keys, self.decide = log, keys, decide
        self.receipt = None if keys.receipt is None else digest(*keys.receipt)
        # Two parts, where a message's key has three: the two never meet.
        self.acceptance = None if keys.acceptance is None else digest(*keys.acceptance)

    def __call__(self, transaction: Transaction) -> object:
        return self.log.change(transaction, self)


class Group:
    """Lives as long as its log, and is used on the writer's thread alone.

    `dead`: holders, and `shares`: what the living ones run, once somebody asked.
    """

    __slots__ = (
        "_before",
        "_company",
        "_ended",
        "_events",
        "_fresh",
        "_heads",
        "_journal",
        "_notes",
        "_now",
        "_pruned",
        "_receipts",
        "_rows",
        "_sessions",
        "_transaction",
        "dead",
        "replays",
        "shares",
    )

    def __init__(self, company: int) -> None:
        self._company = company
        self._transaction: Transaction | None = None
        self._now = 0.0
        self._heads: dict[ConversationId, Stored | None] = {}
        self._sessions: dict[tuple[ClientId, SessionId], SessionRow | None] = {}
        self._receipts: dict[bytes, Receipt | None] = {}
        self._before: dict[ConversationId, Stored | None] = {}
        self._rows: dict[ConversationId, bytes] = {}
        self._ended: set[ConversationId] = set()
        self._events: list[tuple[object, ...]] = []
        self._fresh: list[tuple[object, ...]] = []
        self._journal: dict[tuple[ConversationId, str], bytes] = {}
        self._notes: list[Note] = []
        self._pruned: list[tuple[int, ConversationId, int]] = []
        self.dead: tuple[str, ...] | None = None
        self.shares: dict[str, Shares] = {}
        self.replays = Replays(company)

    def enter(self, transaction: Transaction) -> None:
        """Called by each change. The first one of a group loads what all of them name."""
        before = self._transaction
        if transaction is before:
            return
        if before is None or not before.committed or before.version != transaction.version or transaction.touched:
            self.drop()
        elif len(self._heads) > KEPT or len(self._sessions) > KEPT:
            self.forget()
        self._receipts.clear()
        self.dead = None
        self.shares.clear()
        self._transaction = transaction
        transaction.hold(self)
        self._load(transaction)

    def forget(self) -> None:
        """Rows were or will be changed behind our back."""
        self._heads.clear()
        self._sessions.clear()
        self._receipts.clear()

    def drop(self) -> None:
        """Forget, and what was held back as well: its transaction is over."""
        self.forget()
        self._clear()
        self.replays.drop()

    def _clear(self) -> None:
        self._before.clear()
        self._rows.clear()
        self._ended.clear()
        self._events.clear()
        self._fresh.clear()
        self._journal.clear()
        self._notes.clear()
        self._pruned.clear()

    def _load(self, transaction: Transaction) -> None:
        conversations: list[ConversationId] = []
        receipts: list[bytes] = []
        for one in transaction.operations:
            if isinstance(one, Apply) and one.log.group is self:
                receipts += [key for key in (one.receipt, one.acceptance) if key is not None]
                if one.keys.conversation is not None and one.keys.conversation not in self._heads:
                    conversations.append(one.keys.conversation)
        if conversations:
            self._load_heads(transaction.direct, conversations)
        if receipts:
            self._load_receipts(transaction.direct, receipts)

    def _load_heads(self, connection: sqlite3.Connection, ids: list[ConversationId]) -> None:
        self._heads.update(dict.fromkeys(ids))
        for row in select_in(connection, _HEADS, (self._company,), ids):
            id, head, closed, day, due, token, holder = cast(
                "tuple[str, bytes, int, int, float | None, int, str | None]", row
            )
            self._heads[ConversationId(id)] = Stored(record.read_head(head), closed, day, due, token, holder)

    def _load_receipts(self, connection: sqlite3.Connection, keys: list[bytes]) -> None:
        self._receipts.update(dict.fromkeys(keys))
        for row in select_in(connection, _RECEIPTS, (self._company,), keys):
            key, *columns = row
            self._receipts[cast(bytes, key)] = read_receipt(cast("tuple[str, str, int, str, str]", tuple(columns)))

    def stored(self, conversation: ConversationId) -> Stored | None:
        """The conversation as the changes before this one left it."""
        if conversation not in self._heads:
            self._load_heads(self._direct, [conversation])
        return self._heads[conversation]

    def known(self, conversation: ConversationId) -> Stored | None:
        """The same, of what is loaded already."""
        return self._heads.get(conversation)

    def receipt(self, key: bytes) -> Receipt | None:
        if key not in self._receipts:
            self._load_receipts(self._direct, [key])
        return self._receipts[key]

    def session(self, key: tuple[ClientId, SessionId]) -> SessionRow | None:
        if key not in self._sessions:
            self._sessions[key] = load_session(self._direct, self._company, *key)
        return self._sessions[key]

    @property
    def _direct(self) -> sqlite3.Connection:
        assert self._transaction is not None
        return self._transaction.direct

    def leased(self, head: Head, token: int, holder: str | None) -> None:
        """A lease was written or given back: the same row, and these of its columns are new."""
        before = self._heads.get(head.id)
        if before is not None:
            self._heads[head.id] = replace(before, head=head, token=token, holder=holder)

    def note_journal(self, conversation: ConversationId, key: str, value: bytes) -> None:
        """A step of a turn; one of a turn that ends in the same group is never written."""
        self._journal[conversation, key] = value

    def note(self, change: Change[object], apply: Apply, ended: ConversationId | None) -> None:
        """Hold a change back for COMMIT. Raises RecordError for what cannot be stored; then nothing is noted."""
        rows = {head.id: record.write_head(head) for head in change.heads}
        events = [(self._company, conversation, seq, record.write(event)) for conversation, seq, event in change.events]
        if ended is not None and ended not in rows:
            before = self.stored(ended)
            assert before is not None
            self._note_head(before.head, record.write_head(before.head), ended=True)
        for head in change.heads:
            self._note_head(head, rows[head.id], ended=head.id == ended)
        self._events += events
        for key, receipt in ((apply.receipt, change.receipt), (apply.acceptance, change.acceptance)):
            if key is not None and receipt is not None:
                self._note_receipt(key, receipt)
        self._notes += change.notes
        if change.prune:
            self._pruned += [(self._company, head.id, head.first_seq) for head in change.heads]

    def _note_head(self, head: Head, row: bytes, *, ended: bool) -> None:
        id = head.id
        before = self._heads.get(id)
        self._before.setdefault(id, before)
        self._rows[id] = row
        self._now = changed_at = seconds(head)
        due = due_since(head, None if before is None else before.due_since, ended=ended)
        token, holder = (0, None) if before is None else (before.token, before.holder)
        if ended:
            self._ended.add(id)
            holder = None
            for step in [step for step in self._journal if step[0] == id]:
                del self._journal[step]
        self._heads[id] = Stored(head, int(head.status is Status.CLOSED), int(changed_at // DAY), due, token, holder)

    def _note_receipt(self, key: bytes, receipt: Receipt) -> None:
        self._receipts[key] = receipt
        self._fresh.append(
            (
                self._company,
                key,
                receipt.fingerprint,
                receipt.conversation_id,
                receipt.accepted_as,
                receipt.status.value,
                receipt.responder.value,
            )
        )

    def write(self, connection: sqlite3.Connection) -> None:
        """All that was held back."""
        self.replays.write(connection, self._now)
        if self._rows:
            self._write_heads(connection)
        if self._events:
            insert_rows(connection, "events", "company, conversation, seq, body", self._events)
        if self._fresh:
            columns = "company, key, fingerprint, conversation, accepted_as, status, responder"
            insert_rows(connection, "receipts", columns, self._fresh)
        if self._journal:
            columns = "company, conversation, key, value"
            steps = [(self._company, *step, value) for step, value in self._journal.items()]
            insert_rows(connection, "journal", columns, steps, " ON CONFLICT DO UPDATE SET value = excluded.value")
        if self._notes:
            self._write_notes(connection)
        for pruned in self._pruned:
            connection.execute("DELETE FROM events WHERE company = ? AND conversation = ? AND seq < ?", pruned)
        if self._ended:
            execute_in(connection, _FORGET_JOURNAL, (self._company,), list(self._ended))
        self._clear()

    def _write_notes(self, connection: sqlite3.Connection) -> None:
        company, count = self._company, len(self._notes)
        connection.execute("UPDATE companies SET noted = noted + ? WHERE company = ?", (count, company))
        (last,) = connection.execute("SELECT noted FROM companies WHERE company = ?", (company,)).fetchone()
        rows = [
            (company, n, note.conversation, note.kind.value, note.seq, note.first_seq)
            for n, note in enumerate(self._notes, last - count + 1)
        ]
        insert_rows(connection, "notes", "company, n, conversation, kind, seq, first_seq", rows)

    def _write_heads(self, connection: sqlite3.Connection) -> None:
        company, fresh, same = self._company, list[tuple[object, ...]](), list[tuple[object, ...]]()
        for id, row in self._rows.items():
            now, before = self._heads[id], self._before[id]
            assert now is not None
            at = seconds(now.head)
            if before is None:
                client, user = now.head.client_id, now.head.user_id
                whose = number(client), number(client, user)
                rare = (*attends(now.head), prunable(now.head))
                fresh.append((company, id, row, at, now.closed, now.changed_day, now.due_since, *whose, *rare))
                continue
            moved = (now.closed, now.changed_day) != (before.closed, before.changed_day)
            due, ended = now.due_since != before.due_since, id in self._ended
            rare = (*attends(now.head), prunable(now.head))
            seldom = rare != (*attends(before.head), prunable(before.head))
            if not (moved or due or ended or seldom):
                same.append((company, id, row, at, now.closed, now.changed_day))
                continue
            values: list[object] = [row, at]
            if moved:
                values += [now.closed, now.changed_day]
            if due:
                values += [now.due_since]
            if seldom:
                values += rare
            connection.execute(_UPDATE[moved, due, ended, seldom], (*values, company, id))
        insert_rows(connection, "conversations", _HEAD_COLUMNS, fresh)
        insert_rows(connection, "conversations", _SAME_COLUMNS, same, _SAME)


def _update(moved: bool, due: bool, ended: bool, seldom: bool) -> str:
    """Only the columns that change."""
    columns = ["head = ?", "changed_at = ?"]
    if moved:
        columns += ["closed = ?", "changed_day = ?"]
    if due:
        columns += ["due_since = ?"]
    if seldom:
        columns += ["attends = ?", "attends_since = ?", "prunable = ?"]
    if ended:
        columns += ["turn_id = NULL", "until_seq = NULL", "holder = NULL", "until = NULL"]
    return f"UPDATE conversations SET {', '.join(columns)} WHERE company = ? AND id = ?"


_UPDATE = {changed: _update(*changed) for changed in product((False, True), repeat=4)}
