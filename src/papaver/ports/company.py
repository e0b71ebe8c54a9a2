"""What a Company asks of its store. Dumb and atomic: `apply` is the one door through which a conversation changes.

Every method belongs to one Company: `CompanyStore.tables(company_id)` hands out the rows of that Company and no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Protocol, TypeVar

from papaver.ports.deltas import Deltas
from papaver.ports.grants import GrantStore
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, ReplayKey, SessionRow, Slice
from papaver.protocol.conversation.model import Event
from papaver.protocol.conversation.state import Head, Lease
from papaver.protocol.terms import ClientId, CompanyId, ConversationId, SessionId, TurnId, UserId

__all__ = [
    "PAGE_BYTES",
    "Change",
    "ClientRow",
    "ClientStore",
    "CompanyStore",
    "CompanyTables",
    "ConversationLog",
    "DocumentRow",
    "Erased",
    "Keys",
    "LeasedNote",
    "LeasedTurn",
    "Loaded",
    "Note",
    "ReplayKey",
    "SessionRow",
    "SessionStore",
    "Share",
    "SharedCounts",
    "Slice",
    "Watch",
]

R = TypeVar("R")
PAGE_BYTES: Final = 2**20
"""Octets of stored events that are read at once, when nobody says otherwise."""


class SessionStore(Protocol):
    async def open(self, fresh: SessionRow, *, forget_before: float) -> SessionRow:
        """The Session of (`fresh.client_id`, `fresh.sid`): the stored row, or `fresh` inserted.

        A live row last seen before `forget_before` counts as forgotten and is replaced by `fresh`. A stored row whose
        User ID and Agent ID are `fresh`'s gets `seen_at` moved on. Ended rows are returned as they are.
        """
        ...

    async def load(self, client_id: ClientId, sid: SessionId) -> SessionRow | None: ...

    async def end(self, client_id: ClientId, sid: SessionId, at: float) -> bool:
        """Mark it ended; False when there is no live one."""
        ...

    async def end_user(self, client_id: ClientId, user_id: UserId, at: float) -> int:
        """End every live Session of a User; how many."""
        ...

    async def sweep(self, *, forget_before: float, ended_before: float) -> int:
        """Delete rows idle or ended before these times; how many."""
        ...


@dataclass(frozen=True, slots=True)
class LeasedTurn:
    """A turn to run. `until_seq` is the newest event it answers: fixed when its `turn_id` is first leased.

    `journal`  what earlier holders of the same turn wrote down; empty the first time
    """

    lease: Lease
    head: Head
    until_seq: int
    journal: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


@dataclass(frozen=True, slots=True)
class LeasedNote:
    """A row of the outbox to tell of. `n` grows with each row of the Company; `attempts` is 1 the first time."""

    n: int
    note: Note
    attempts: int


@dataclass(frozen=True, slots=True)
class Erased:
    """How much was deleted of one User."""

    conversations: int
    events: int
    sessions: int


@dataclass(frozen=True, slots=True)
class Share:
    """How many turns one holder runs at once for one `user` of a client, and for one `client`."""

    user: int
    client: int


class Watch(Protocol):
    """A registration for wake-ups, made before the read that it covers, so that no wake-up is lost.

    Wake-ups are hints: the log is the truth. Across processes one may take some 50 ms.
    """

    def __enter__(self) -> Watch: ...

    def __exit__(self, *_: object) -> None: ...

    async def wait(self, seconds: float) -> bool:
        """True as soon as there was a wake-up since the last `wait` (or since it was made); False after `seconds`."""
        ...

    def wake(self) -> None:
        """End the `wait` that runs, or the next one, at once."""
        ...


class ConversationLog(Protocol):
    """Heads, events, receipts, replay keys and turns of one Company."""

    async def apply(self, keys: Keys, decide: Callable[[Loaded], Change[R]]) -> R:
        """Load what `keys` names, run the pure `decide`, write its Change: one transaction, durable on return.

        `keys.replay` is recorded with every Change, even one that changes nothing else. What `decide` raises is raised
        here, and nothing is written. `decide` may run on another thread and must not block. Two changes of one head
        never interleave.
        """
        ...

    async def read(
        self,
        conversation: ConversationId,
        after_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        session: tuple[ClientId, SessionId] | None = None,
    ) -> Slice | None:
        """The head and at most `limit` events after `after_seq`; None when there is no such conversation.

        So many of them as have at most `max_bytes` octets as they are stored, and at least one.
        """
        ...

    async def read_back(
        self,
        conversation: ConversationId,
        before_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        at_least: int = 1,
    ) -> Sequence[Event]:
        """The last `limit` events before `before_seq`, oldest first: a transcript's tail, whatever the log's length.

        The newest that have at most `max_bytes` octets as they are stored; `at_least` so many, whatever they have.
        """
        ...

    async def conversations(self, *, idle_since: float, limit: int) -> tuple[ConversationId, ...]:
        """Open conversations unchanged since then (seconds since the epoch), oldest first: for the inactivity sweep."""
        ...

    async def attention(self, limit: int) -> tuple[Head, ...]:
        """Conversations with `queued_at` or `person` and not closed: those that wait first, the longest wait first."""
        ...

    async def listed(
        self,
        *,
        client_id: ClientId | None = None,
        user_id: UserId | None = None,
        after: ConversationId | None = None,
        limit: int = 100,
    ) -> tuple[Head, ...]:
        """Heads in the order of their ids, after `after`; of one client, or of one User of it: for an operator."""
        ...

    async def prunable(self, *, before: float, limit: int) -> tuple[ConversationId, ...]:
        """Those whose `Head.prunable_from` is before then (seconds since the epoch), oldest first."""
        ...

    async def take_note(self, holder: str, *, now: float, until: float) -> LeasedNote | None:
        """The oldest row of the outbox that is the first of its conversation, and that is neither held nor put off.

        It is held until then; a dead holder's hold is void as a turn's lease is. Counts up `attempts`. A row that was
        held before and not done is taken again: at least once.
        """
        ...

    async def done_note(self, note: LeasedNote) -> None:
        """Delete it. The next one of its conversation may be taken."""
        ...

    async def later_note(self, note: LeasedNote, at: float) -> None:
        """Put it off until then; those after it of the same conversation wait as well."""
        ...

    def watch_notes(self) -> Watch:
        """Wakes when a row of the outbox was added."""
        ...

    def watch(self, conversation: ConversationId) -> Watch:
        """Wakes at each change of this conversation, by whatever process."""
        ...

    def watch_turns(self) -> Watch:
        """Wakes when a turn may have become due."""
        ...

    async def lease(
        self, holder: str, turn_id: TurnId, *, now: float, until: float, share: Share | None = None
    ) -> LeasedTurn | None:
        """Take the turn that has been due longest and that nobody holds; counts up `head.failures`.

        Turns of whom `holder` runs as many as `share` says are passed over, also when several are leased at once.
        A lease that is over (`until` passed) or whose holder is known to be dead is void: its turn keeps its id and its
        journal and gets a greater fencing token. Otherwise the turn gets `turn_id`.
        """
        ...

    async def renew(self, lease: Lease, until: float) -> bool:
        """Hold on to it; False when it was lost."""
        ...

    async def release(self, lease: Lease) -> None:
        """Give it back unfinished, as at a shutdown; the turn is due again at once and not counted as failed."""
        ...

    async def journal(self, lease: Lease, key: str, value: bytes) -> bool:
        """Write down a step of the turn, durable on return; False when the lease was lost."""
        ...

    async def turns_pending(self, now: float) -> tuple[int, float]:
        """How many turns are due and since when the oldest, seconds since the epoch; for health and for waiting."""
        ...

    async def turns_held(self, now: float) -> int:
        """How many turns are worked on, by whatever living process."""
        ...


@dataclass(frozen=True, slots=True)
class ClientRow:
    """One Personal Agent as a Company knows it. `verdict` is set by its operator; None leaves it to the policy."""

    client_id: ClientId
    verdict: Literal["allowed", "blocked"] | None
    seen_at: float | None = None


@dataclass(frozen=True, slots=True)
class DocumentRow:
    """A fetched document, kept so that a restart needs no fetch. Times are seconds since the epoch."""

    url: str
    body: bytes
    fetched_at: float
    fresh_until: float


class ClientStore(Protocol):
    async def verdict(self, client_id: ClientId) -> Literal["allowed", "blocked"] | None:
        """The operator's word on it; sees what another process committed before this call."""
        ...

    async def judge(self, client_id: ClientId, verdict: Literal["allowed", "blocked"] | None) -> None: ...

    async def seen(self, client_id: ClientId, at: float) -> None: ...

    async def clients(self) -> tuple[ClientRow, ...]: ...

    async def keep_document(self, row: DocumentRow) -> None: ...

    async def load_document(self, url: str) -> DocumentRow | None: ...

    async def drop_document(self, url: str) -> None:
        """Forget it, if it is there."""
        ...

    async def sweep(self, *, fetched_before: float, seen_before: float) -> int:
        """Delete documents fetched before, and clients without a verdict that were not seen since; how many.

        Times are seconds since the epoch. A client of whom nothing is known, neither seen nor judged, goes too.
        """
        ...


class SharedCounts(Protocol):
    """What the replicas of one Company count together. May be away: then each counts for itself."""

    async def exchange(self, window: int, counts: Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
        """Add these counts to those of a window of time, numbered as all replicas do.

        For each of the names: what all have added in this window, and in the one before it. Raises StoreFailed when
        nobody can be told; some of the counts may have been added then.
        """
        ...


class CompanyTables(Protocol):
    """One Company's rows."""

    @property
    def sessions(self) -> SessionStore: ...

    @property
    def log(self) -> ConversationLog: ...

    @property
    def clients(self) -> ClientStore: ...

    @property
    def grants(self) -> GrantStore: ...

    @property
    def deltas(self) -> Deltas: ...

    @property
    def counts(self) -> SharedCounts | None:
        """None where every process counts for itself."""
        ...

    async def erase(self, client_id: ClientId, user_id: UserId) -> Erased:
        """Delete every conversation of a User with all that belongs to it, and their Sessions; durable on return.

        A turn of one that runs meanwhile loses its lease.
        """
        ...

    @property
    def secret(self) -> bytes:
        """32 bytes made once for this Company and kept in the store: authenticates cursors on every replica."""
        ...


class CompanyStore(Protocol):
    """A store. Opened and closed by `running(company)`; migrates itself when opened.

    Several Companies may run on one: who finds it open leaves it open.
    """

    @property
    def is_open(self) -> bool: ...

    async def open(self) -> None: ...

    async def close(self) -> None: ...

    async def probe(self) -> None:
        """A write and a read, for `healthz`; raises PapaverError when the store does not work."""
        ...

    async def tables(self, company: CompanyId) -> CompanyTables: ...

    @property
    def holder(self) -> str:
        """This process's name on leases; the store can tell whether it lives."""
        ...
