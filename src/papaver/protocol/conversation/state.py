"""The head of a conversation: all that `decide` has to know of it, besides the event log (8.2, 8.7)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from papaver.protocol.conversation.model import Author, Context, Responder, Status
from papaver.protocol.terms import AccountId, AgentId, ClientId, ConversationId, TurnId, UserId

__all__ = ["Access", "Asker", "Head", "Lease", "Receipt"]


@dataclass(frozen=True, slots=True)
class Access:
    """What an access token of the conversation's account allows (8.11); the token itself is not kept.

    `scopes`      in alphabetical order
    `expires_at`  Unix seconds; None when its issuer does not say
    `ath`         its hash, for asking its issuer again; None in heads that were stored before there was one
    """

    scopes: tuple[str, ...]
    expires_at: float | None = None
    ath: str | None = None

    def lives(self, now: float) -> bool:
        """Whether it has not expired at `now`, Unix seconds."""
        return self.expires_at is None or now < self.expires_at

    def covers(self, scopes: Collection[str], now: float) -> bool:
        """Whether it allows all of them at `now`."""
        return self.lives(now) and set(scopes) <= set(self.scopes)


@dataclass(frozen=True, slots=True)
class Asker:
    """Of the request that made a turn due: its Agent ID, its protocol version, its extensions (name to version)."""

    agent_id: AgentId | None = None
    version: str = ""
    extensions: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True)
class Head:
    """One conversation's head.

    `last_seq`      sequence number of the newest event; 0 before the first. Events count from 1 without gaps.
    `first_seq`     sequence number of the oldest event still kept; 1 until something is pruned
    `answered_seq`  every message of the User's side up to this event has been answered (or needed no answer)
    `asked_seq`     the newest event that needs an answer; a turn is due while it is above `answered_seq`,
                    `status` is `working` and `responder` is `agent`
    `failures`      how often the turn that is due was begun and not ended; 0 after each ended turn
    `handoff_pending`  a person was asked for, and nobody has said yet whether one comes
    `parent`        the earlier conversation, when this one is a Direct Conversation
    `open_direct`   the open Direct Conversation of this one
    `access`        of the newest accepted request that carried a token; None before one did
    `scope`         what a challenge names (readings 32): the scopes of the last `authorization` event, else of the
                    token that bound the conversation to its account
    `parked`        the unanswered messages wait for a token that covers `scope` (8.11)
    `asked_by`      who sent the newest message that needs an answer
    `person`        who handles it, while `responder` is `human` (8.7)
    `queued_at`     since when a person is waited for; None while none is
    `kept_from`     the time of the oldest event still kept; None where that is `created_at`
    """

    id: ConversationId
    client_id: ClientId
    user_id: UserId
    created_at: datetime
    changed_at: datetime
    account_id: AccountId | None = None
    status: Status = Status.WORKING
    responder: Responder = Responder.AGENT
    context: Context = field(default_factory=dict[str, object])
    last_seq: int = 0
    first_seq: int = 1
    answered_seq: int = 0
    asked_seq: int = 0
    failures: int = 0
    handoff_pending: bool = False
    parent: ConversationId | None = None
    open_direct: ConversationId | None = None
    access: Access | None = None
    scope: str = ""
    parked: bool = False
    asked_by: Asker | None = None
    person: Author | None = None
    queued_at: datetime | None = None
    kept_from: datetime | None = None

    @property
    def prunable_from(self) -> datetime | None:
        """The time of the oldest event that may go one day; None while there is only the newest, which stays."""
        return (self.kept_from or self.created_at) if self.first_seq < self.last_seq else None

    @property
    def turn_due(self) -> bool:
        """Whether the Company's side has something to do: a message to answer, or a handoff to see to."""
        return self.handoff_pending or (
            self.asked_seq > self.answered_seq and self.status is Status.WORKING and self.responder is Responder.AGENT
        )


@dataclass(frozen=True, slots=True)
class Receipt:
    """What an accepted message was answered with, so that a retry gets the same (8.3; readings 7, 8).

    `fingerprint`  SHA-256, hex, of the message's content and target in canonical JSON
    `accepted_as`  status code of the first answer: 201 or 202
    """

    fingerprint: str
    conversation_id: ConversationId
    accepted_as: int
    status: Status
    responder: Responder


@dataclass(frozen=True, slots=True)
class Lease:
    """One runner's hold on one conversation's turn.

    `token`  the fencing token: grows with every lease of the conversation; a change carrying an older one is refused
    `until`  seconds since the epoch
    """

    conversation_id: ConversationId
    turn_id: TurnId
    token: int
    holder: str
    until: float
