"""A Company's store in this process's memory, for tests: the same contract, nothing kept after the process ends."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, TypeVar

from papaver.ports.company import PAGE_BYTES, ClientRow, DocumentRow, LeasedTurn, Share
from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, SessionRow, Slice
from papaver.protocol.conversation.model import Event, Status
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import ClientId, CompanyId, ConversationId, MessageId, SessionId, TurnId, UserId
from papaver.stores.deltas import LocalDeltas
from papaver.stores.faults import StoreFailed
from papaver.stores.memory_grants import MemoryGrants
from papaver.stores.notify import RegisteredWatch, WatchRegistry
from papaver.stores.turns import begun, check_change, continues, due_since, given_back, makes_due, seconds

__all__ = ["MemoryStore"]

R = TypeVar("R")
SEEN_EVERY = 60.0
"""`seen_at` is written at most once a minute (limits.md)."""
REPLAYS_PRUNED_EVERY = 1024


@dataclass(slots=True)
class _Conversation:
    head: Head
    events: list[Event] = field(default_factory=list[Event])
    sizes: list[int] = field(default_factory=list[int])
    due_since: float | None = None
    token: int = 0
    lease: Lease | None = None
    turn_id: TurnId | None = None
    until_seq: int = 0
    journal: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def lease_at(self, now: float) -> Lease | None:
        return self.lease if self.lease is not None and self.lease.until > now else None

    def forget_turn(self) -> None:
        self.lease = None
        self.turn_id = None
        self.journal = {}


def _within(sizes: Sequence[int], max_bytes: int, at_least: int) -> int:
    """How many of the first have so many octets together, and at least so many of them."""
    for count, size in enumerate(sizes):
        max_bytes -= size
        if max_bytes < 0 and count >= at_least:
            return count
    return len(sizes)


class _Sessions:
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

    async def sweep(self, *, forget_before: float, ended_before: float) -> int:
        old = [
            key
            for key, row in self.rows.items()
            if (row.seen_at < forget_before if row.ended_at is None else row.ended_at < ended_before)
        ]
        for key in old:
            del self.rows[key]
        return len(old)


class _Log:
    def __init__(self, company: int, sessions: _Sessions, registry: WatchRegistry) -> None:
        self._company = company
        self._sessions = sessions
        self._registry = registry
        self._rows: dict[ConversationId, _Conversation] = {}
        self._receipts: dict[tuple[ClientId, UserId, MessageId], Receipt] = {}
        self._replays: dict[tuple[ClientId, str], float] = {}

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
        if keys.replay is not None and not loaded.replayed:
            self._replays[keys.replay.client_id, keys.replay.jti] = keys.replay.until
        if change.ended and lease is not None:
            row = self._rows[lease.conversation_id]
            row.forget_turn()
            row.due_since = due_since(row.head, row.due_since, ended=True)
        self._registry.wake([(self._company, head.id) for head in change.heads])
        if makes_due(change, lease):
            self._registry.wake([(self._company, "")])
        return change.result

    def _load(self, keys: Keys) -> Loaded:
        receipt = self._receipts.get(keys.receipt) if keys.receipt is not None else None
        conversation = keys.conversation
        if conversation is None and receipt is not None:
            conversation = receipt.conversation_id
        row = self._rows.get(conversation) if conversation is not None else None
        parent = self._rows.get(keys.parent) if keys.parent is not None else None
        return Loaded(
            head=row.head if row is not None else None,
            parent=parent.head if parent is not None else None,
            receipt=receipt,
            replayed=keys.replay is not None and (keys.replay.client_id, keys.replay.jti) in self._replays,
            session=self._sessions.rows.get(keys.session) if keys.session is not None else None,
            lease_lost=keys.lease is not None and self._held(keys.lease) is None,
        )

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
        count = _within(row.sizes[after_seq : after_seq + limit], max_bytes, 1)
        events = tuple(row.events[after_seq : after_seq + count])
        return Slice(
            head=row.head,
            events=events,
            more=after_seq + len(events) < len(row.events),
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
        end = max(0, min(before_seq - 1, len(row.events)))
        count = _within(row.sizes[max(0, end - limit) : end][::-1], max_bytes, at_least)
        return tuple(row.events[end - count : end])

    async def conversations(self, *, idle_since: float, limit: int) -> tuple[ConversationId, ...]:
        idle = [
            row.head
            for row in self._rows.values()
            if row.head.status is not Status.CLOSED and seconds(row.head) <= idle_since
        ]
        return tuple(head.id for head in sorted(idle, key=lambda head: (seconds(head), head.id))[:limit])

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


class _Clients:
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


class _Tables:
    def __init__(self, company: int, registry: WatchRegistry) -> None:
        self.sessions = _Sessions()
        self.log = _Log(company, self.sessions, registry)
        self.clients = _Clients()
        self.grants = MemoryGrants()
        self.deltas = LocalDeltas(company, registry)
        self.secret = secrets.token_bytes(32)


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
