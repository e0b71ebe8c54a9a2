"""What one atomic change of a conversation loads, and what it writes (8.2, 8.3). Shared by `decide` and the stores."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from papaver.protocol.conversation.model import Event
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import AgentId, ClientId, ConversationId, EventId, MessageId, SessionId, UserId

__all__ = ["Change", "Keys", "Loaded", "Note", "NoteKind", "ReplayKey", "SessionRow", "Slice"]

R_co = TypeVar("R_co", covariant=True)


@dataclass(frozen=True, slots=True)
class SessionRow:
    """One Session as the Company remembers it (5.3 step 4, 5.5; readings 24).

    `key`      our own id of this record; a revived `sid` gets a new one
    `seen_at`  seconds since the epoch, written at most once a minute; `ended_at` likewise, None while it lives
    """

    key: str
    client_id: ClientId
    sid: SessionId
    user_id: UserId
    agent_id: AgentId | None
    seen_at: float
    ended_at: float | None = None


@dataclass(frozen=True, slots=True)
class ReplayKey:
    """A Session JWT's (`client_id`, `jti`), remembered until `until`, seconds since the epoch (5.3; readings 49)."""

    client_id: ClientId
    jti: str
    until: float


class NoteKind(StrEnum):
    """What the Company's own code is told of, once it is durable (8.9, 8.10)."""

    MESSAGE = "message"
    """A message of the User's side that a person is to read: one waits, or one has joined."""
    CANCELLED = "cancelled"
    """A conversation was closed while a person was waited for, or had joined."""
    DIRECT_OPENED = "direct_opened"
    DIRECT_CLOSED = "direct_closed"


@dataclass(frozen=True, slots=True)
class Note:
    """A row of the outbox: told at least once, in the order of its conversation.

    `conversation`  the one it is told of; for the two direct kinds the Direct Conversation
    `seq`           the event that it is about; of a MESSAGE the newest of those from `first_seq` on
    """

    kind: NoteKind
    conversation: ConversationId
    seq: int
    first_seq: int = 0


@dataclass(frozen=True, slots=True)
class Keys:
    """What one change has to load.

    `conversation`   the conversation it is about; None for a start
    `parent`         loaded as a second head (8.10)
    `relatives`      the head's own `parent` and `open_direct` are loaded too; every head is locked, in the order of ids
    `acceptance`     (parent, `user_requested` event): the receipt of an acceptance to look up (8.10; readings 23)
    `receipt`        (client_id, user_id, message_id): the receipt to look up. When `conversation` is None and there is
                     one, the head of the receipt's conversation is loaded as `Loaded.head`: the owner is checked (8.2)
    `replay`         looked up, and inserted with a change that is written
    `session`        (client_id, sid): its row is loaded too, so that a Session ended meanwhile is noticed
    `lease`          the change comes from a turn: refused (Loaded.lease_lost) unless this lease is still the newest
    """

    conversation: ConversationId | None = None
    parent: ConversationId | None = None
    receipt: tuple[ClientId, UserId, MessageId] | None = None
    replay: ReplayKey | None = None
    session: tuple[ClientId, SessionId] | None = None
    lease: Lease | None = None
    relatives: bool = False
    acceptance: tuple[ConversationId, EventId] | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found, inside the transaction.

    `accepted`  the head of the conversation that `acceptance` names
    """

    head: Head | None = None
    parent: Head | None = None
    direct: Head | None = None
    receipt: Receipt | None = None
    acceptance: Receipt | None = None
    accepted: Head | None = None
    replayed: bool = False
    session: SessionRow | None = None
    lease_lost: bool = False


@dataclass(frozen=True, slots=True)
class Change(Generic[R_co]):
    """What `decide` wants written, all of it in one transaction, and the result for the caller.

    `heads`    written as they are; a new one is inserted
    `events`   (conversation, seq, event); seq goes on from the loaded head's `last_seq`, without gaps
    `receipt`  stored under Keys.receipt; None stores none
    `ended`    the turn of Keys.lease is over: its lease and its journal are deleted
    `acceptance`  stored under Keys.acceptance; None stores none
    `notes`    appended to the outbox, in this order
    `prune`    the events before `first_seq` of these heads are deleted
    """

    result: R_co
    heads: tuple[Head, ...] = ()
    events: tuple[tuple[ConversationId, int, Event], ...] = ()
    receipt: Receipt | None = None
    ended: bool = False
    acceptance: Receipt | None = None
    notes: tuple[Note, ...] = ()
    prune: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """A head and some of its events in order, read in one snapshot. `more`: there are later ones."""

    head: Head
    events: tuple[Event, ...]
    more: bool
    session: SessionRow | None = None
