"""A Company's store in this process's memory, for tests: the same contract, nothing kept after the process ends."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from papaver.ports.company import PAGE_BYTES, Erased, LeasedNote, LeasedTurn, Share
from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, Slice
from papaver.protocol.conversation.model import Event, Status
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import ClientId, CompanyId, ConversationId, EventId, MessageId, SessionId, TurnId, UserId
from papaver.stores.deltas import LocalDeltas
from papaver.stores.faults import StoreFailed
from papaver.stores.memory_grants import MemoryGrants
from papaver.stores.memory_tables import MemoryClients, MemorySessions
from papaver.stores.notify import RegisteredWatch, WatchRegistry
from papaver.stores.turns import NOTES, begun, check_change, continues, due_since, given_back, makes_due, seconds

__all__ = ["MemoryStore"]

R = TypeVar("R")
REPLAYS_PRUNED_EVERY = 1024


@dataclass(slots=True)
class _Conversation:
    head: Head
    events: list[Event] = field(default_factory=list[Event])
    sizes: list[int] = field(default_factory=list[int])
    pruned: int = 0
    due_since: float | None = None
    token: int = 0
    lease: Lease | None = None
    turn_id: TurnId | None = None
    until_seq: int = 0
    journal: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def lease_at(self, now: float) -> Lease | None:
        return self.lease if self.lease is not None and self.lease.until > now else None

    def prune(self) -> None:
        """Drop the events before the head's `first_seq`."""
        gone = self.head.first_seq - 1 - self.pruned
        del self.events[:gone], self.sizes[:gone]
        self.pruned += gone

    def forget_turn(self) -> None:
        self.lease = None
        self.turn_id = None
        self.journal = {}


@dataclass(slots=True)
class _NoteRow:
    n: int
    note: Note
    attempts: int = 0
    free_at: float = 0.0


def _within(sizes: Sequence[int], max_bytes: int, at_least: int) -> int:
    """How many of the first have so many octets together, and at least so many of them."""
    for count, size in enumerate(sizes):
        max_bytes -= size
        if max_bytes < 0 and count >= at_least:
            return count
    return len(sizes)


class _Log:
    def __init__(self, company: int, sessions: MemorySessions, registry: WatchRegistry) -> None:
        self._company = company
        self._sessions = sessions
        self._registry = registry
        self._rows: dict[ConversationId, _Conversation] = {}
        self._receipts: dict[tuple[ClientId, UserId, MessageId], Receipt] = {}
        self._replays: dict[tuple[ClientId, str], float] = {}
        self._acceptances: dict[tuple[ConversationId, EventId], Receipt] = {}
        self._notes: list[_NoteRow] = []
        self._noted = 0

    async def apply(self, keys: Keys, decide: Callable[[Loaded], Change[R]]) -> R:
        loaded = self._load(keys)
        change = decide(loaded)
        check_change(change, keys, loaded, self._last_seq)
        sizes = [len(record.write(event)) for _, _, event in change.events]
        lease = keys.lease
        for head in change.heads:
            self._write(head, ended=change.ended and lease is not None and head.id == lease.conversation_id)
        for (conversation, _, event), size in zip(change.events, sizes, strict=True):
            self._rows[conversation].events.append(event)
            self._rows[conversation].sizes.append(size)
        if change.receipt is not None and keys.receipt is not None:
            self._receipts[keys.receipt] = change.receipt
        if change.acceptance is not None and keys.acceptance is not None:
            self._acceptances[keys.acceptance] = change.acceptance
        if change.prune:
            for head in change.heads:
                self._rows[head.id].prune()
        for note in change.notes:
            self._noted += 1
            self._notes.append(_NoteRow(self._noted, note))
        if keys.replay is not None and not loaded.replayed:
            self._replays[keys.replay.client_id, keys.replay.jti] = keys.replay.until
        if change.ended and lease is not None:
            row = self._rows[lease.conversation_id]
            row.forget_turn()
            row.due_since = due_since(row.head, row.due_since, ended=True)
        self._registry.wake([(self._company, head.id) for head in change.heads])
        if makes_due(change, lease):
            self._registry.wake([(self._company, "")])
        if change.notes:
            self._registry.wake([(self._company, NOTES)])
        return change.result

    def _load(self, keys: Keys) -> Loaded:
        receipt = self._receipts.get(keys.receipt) if keys.receipt is not None else None
        conversation = keys.conversation
        if conversation is None and receipt is not None:
            conversation = receipt.conversation_id
        acceptance = None if keys.acceptance is None else self._acceptances.get(keys.acceptance)
        head = self._head(conversation)
        kin = head if keys.relatives else None
        return Loaded(
            head=head,
            parent=self._head(keys.parent or (None if kin is None else kin.parent)),
            direct=self._head(None if kin is None else kin.open_direct),
            receipt=receipt,
            acceptance=acceptance,
            accepted=self._head(None if acceptance is None else acceptance.conversation_id),
            replayed=keys.replay is not None and (keys.replay.client_id, keys.replay.jti) in self._replays,
            session=self._sessions.rows.get(keys.session) if keys.session is not None else None,
            lease_lost=keys.lease is not None and self._held(keys.lease) is None,
        )

    def _head(self, conversation: ConversationId | None) -> Head | None:
        row = None if conversation is None else self._rows.get(conversation)
        return None if row is None else row.head

    def _last_seq(self, conversation: ConversationId) -> int | None:
        row = self._rows.get(conversation)
        return None if row is None else row.head.last_seq

    def _write(self, head: Head, *, ended: bool) -> None:
        row = self._rows.get(head.id)
        if row is None:
            row = self._rows[head.id] = _Conversation(head)
        row.head = head
        row.due_since = due_since(head, row.due_since, ended=ended)

    def _held(self, lease: Lease) -> _Conversation | None:
        row = self._rows.get(lease.conversation_id)
        if row is None or row.lease is None or row.lease.token != lease.token:
            return None
        return row

    async def read(
        self,
        conversation: ConversationId,
        after_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        session: tuple[ClientId, SessionId] | None = None,
    ) -> Slice | None:
        row = self._rows.get(conversation)
        if row is None:
            return None
        start = max(0, after_seq - row.pruned)
        count = _within(row.sizes[start : start + limit], max_bytes, 1)
        events = tuple(row.events[start : start + count])
        return Slice(
            head=row.head,
            events=events,
            more=start + len(events) < len(row.events),
            session=self._sessions.rows.get(session) if session is not None else None,
        )

    async def read_back(
        self,
        conversation: ConversationId,
        before_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        at_least: int = 1,
    ) -> tuple[Event, ...]:
        row = self._rows.get(conversation)
        if row is None:
            return ()
        end = max(0, min(before_seq - 1 - row.pruned, len(row.events)))
        count = _within(row.sizes[max(0, end - limit) : end][::-1], max_bytes, at_least)
        return tuple(row.events[end - count : end])

    async def conversations(self, *, idle_since: float, limit: int) -> tuple[ConversationId, ...]:
        idle = [
            row.head
            for row in self._rows.values()
            if row.head.status is not Status.CLOSED and seconds(row.head) <= idle_since
        ]
        return tuple(head.id for head in sorted(idle, key=lambda head: (seconds(head), head.id))[:limit])

    async def attention(self, limit: int) -> tuple[Head, ...]:
        heads = [row.head for row in self._rows.values() if row.head.status is not Status.CLOSED]
        waiting = [head for head in heads if head.queued_at is not None]
        joined = [head for head in heads if head.queued_at is None and head.person is not None]
        waiting.sort(key=lambda head: (head.queued_at or head.changed_at, head.id))
        joined.sort(key=lambda head: (head.changed_at, head.id))
        return (*waiting, *joined)[:limit]

    async def listed(
        self,
        *,
        client_id: ClientId | None = None,
        user_id: UserId | None = None,
        after: ConversationId | None = None,
        limit: int = 100,
    ) -> tuple[Head, ...]:
        heads = (self._rows[id].head for id in sorted(self._rows) if after is None or id > after)
        found = [
            head
            for head in heads
            if (client_id is None or head.client_id == client_id) and (user_id is None or head.user_id == user_id)
        ]
        return tuple(found[:limit])

    async def prunable(self, *, before: float, limit: int) -> tuple[ConversationId, ...]:
        since = {id: row.head.prunable_from for id, row in self._rows.items()}
        old = [(at, id) for id, at in since.items() if at is not None and at.timestamp() < before]
        return tuple(id for _, id in sorted(old)[:limit])

    async def take_note(self, holder: str, *, now: float, until: float) -> LeasedNote | None:
        seen: set[ConversationId] = set()
        for row in self._notes:
            first = row.note.conversation not in seen
            seen.add(row.note.conversation)
            if first and row.free_at <= now:
                row.attempts += 1
                row.free_at = until
                return LeasedNote(row.n, row.note, row.attempts)
        return None

    async def done_note(self, note: LeasedNote) -> None:
        self._notes = [row for row in self._notes if row.n != note.n]

    async def later_note(self, note: LeasedNote, at: float) -> None:
        for row in self._notes:
            if row.n == note.n:
                row.free_at = at

    def watch_notes(self) -> RegisteredWatch:
        return self._registry.watch((self._company, NOTES))

    def erase(self, client_id: ClientId, user_id: UserId) -> tuple[int, int]:
        """The conversations of a User, and their events; how many of each."""
        gone = {
            id: row for id, row in self._rows.items() if (row.head.client_id, row.head.user_id) == (client_id, user_id)
        }
        for id in gone:
            del self._rows[id]
        self._receipts = {key: row for key, row in self._receipts.items() if row.conversation_id not in gone}
        self._acceptances = {key: row for key, row in self._acceptances.items() if row.conversation_id not in gone}
        self._notes = [row for row in self._notes if row.note.conversation not in gone]
        self._registry.wake([(self._company, id) for id in gone])
        return len(gone), sum(len(row.events) for row in gone.values())

    def watch(self, conversation: ConversationId) -> RegisteredWatch:
        return self._registry.watch((self._company, conversation))

    def watch_turns(self) -> RegisteredWatch:
        return self._registry.watch((self._company, ""))

    async def lease(
        self, holder: str, turn_id: TurnId, *, now: float, until: float, share: Share | None = None
    ) -> LeasedTurn | None:
        self._prune(now)
        waiting = self._waiting(now)
        if share is not None and waiting:
            held = [row.head for row in self._rows.values() if row.lease is not None and row.lease.holder == holder]
            clients = Counter(head.client_id for head in held)
            users = Counter((head.client_id, head.user_id) for head in held)
            waiting = [
                row
                for row in waiting
                if clients[row.head.client_id] < share.client
                and users[row.head.client_id, row.head.user_id] < share.user
            ]
        row = min(waiting, key=lambda row: row.due_since or 0.0, default=None)
        if row is None:
            return None
        if row.turn_id is None or not continues(row.head, row.until_seq):
            row.turn_id, row.until_seq, row.journal = turn_id, row.head.asked_seq, {}
        row.token += 1
        row.head = begun(row.head)
        row.lease = Lease(row.head.id, row.turn_id, row.token, holder, until)
        return LeasedTurn(row.lease, row.head, row.until_seq, dict(row.journal))

    def _waiting(self, now: float) -> list[_Conversation]:
        return [row for row in self._rows.values() if row.due_since is not None and row.lease_at(now) is None]

    def _prune(self, now: float) -> None:
        if len(self._replays) >= REPLAYS_PRUNED_EVERY:
            self._replays = {key: until for key, until in self._replays.items() if until >= now}

    async def renew(self, lease: Lease, until: float) -> bool:
        row = self._held(lease)
        if row is None:
            return False
        row.lease = replace(lease, until=until)
        return True

    async def release(self, lease: Lease) -> None:
        row = self._held(lease)
        if row is not None:
            row.lease = None
            row.head = given_back(row.head)
            self._registry.wake([(self._company, "")])

    async def journal(self, lease: Lease, key: str, value: bytes) -> bool:
        row = self._held(lease)
        if row is None:
            return False
        row.journal[key] = value
        return True

    async def turns_pending(self, now: float) -> tuple[int, float]:
        waiting = self._waiting(now)
        return len(waiting), min((row.due_since or now for row in waiting), default=now)

    async def turns_held(self, now: float) -> int:
        return sum(row.lease_at(now) is not None for row in self._rows.values())


class _Tables:
    def __init__(self, company: int, registry: WatchRegistry) -> None:
        self.sessions = MemorySessions()
        self.log = _Log(company, self.sessions, registry)
        self.clients = MemoryClients()
        self.grants = MemoryGrants()
        self.deltas = LocalDeltas(company, registry)
        self.counts = None
        self.secret = secrets.token_bytes(32)

    async def erase(self, client_id: ClientId, user_id: UserId) -> Erased:
        conversations, events = self.log.erase(client_id, user_id)
        return Erased(conversations, events, self.sessions.erase(client_id, user_id))


class MemoryStore:
    """A `CompanyStore` without a file. What it holds outlives `close` and a second `open`, not the process."""

    def __init__(self) -> None:
        self._tables: dict[CompanyId, _Tables] = {}
        self._registry = WatchRegistry()
        self._is_open = False
        self._holder = f"memory-{os.getpid()}-{secrets.token_hex(4)}"

    @property
    def is_open(self) -> bool:
        return self._is_open

    async def open(self) -> None:
        self._is_open = True

    async def close(self) -> None:
        self._is_open = False

    async def probe(self) -> None:
        if not self._is_open:
            raise StoreFailed("the store is not open")

    async def tables(self, company: CompanyId) -> _Tables:
        await self.probe()
        if company not in self._tables:
            self._tables[company] = _Tables(len(self._tables), self._registry)
        return self._tables[company]

    @property
    def holder(self) -> str:
        return self._holder
