"""What one atomic change of a conversation loads, and what it writes (8.2, 8.3). Shared by `decide` and the stores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, TypeVar

from papaver.protocol.conversation.model import Event
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import AgentId, ClientId, ConversationId, MessageId, SessionId, UserId

__all__ = ["Change", "Keys", "Loaded", "ReplayKey", "SessionRow", "Slice"]

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


@dataclass(frozen=True, slots=True)
class Keys:
    """What one change has to load.

    `conversation`   the conversation it is about; None for a start
    `parent`         loaded as a second head (8.10)
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


@dataclass(frozen=True, slots=True)
class Loaded:
    """What was found, inside the transaction."""

    head: Head | None = None
    parent: Head | None = None
    receipt: Receipt | None = None
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
    """

    result: R_co
    heads: tuple[Head, ...] = ()
    events: tuple[tuple[ConversationId, int, Event], ...] = ()
    receipt: Receipt | None = None
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Slice:
    """A head and some of its events in order, read in one snapshot. `more`: there are later ones."""

    head: Head
    events: tuple[Event, ...]
    more: bool
    session: SessionRow | None = None
