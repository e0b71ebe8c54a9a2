"""What a conversation is made of: messages, authors and the events of its log. Version-free (8.4, 8.5, 8.7)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from papaver.protocol.terms import ConversationId, EventId, MessageId

__all__ = [
    "Author",
    "AuthorType",
    "AuthorizationNeeded",
    "Context",
    "DirectClosed",
    "DirectOpened",
    "Event",
    "Message",
    "MessageAdded",
    "Responder",
    "Role",
    "StateChanged",
    "Status",
    "TextDelta",
    "UserRequested",
]

Context = Mapping[str, object]
"""Facts about the User's situation, merged field by field over the conversation (8.4)."""


class Status(StrEnum):
    """8.7. A reader maps a value it does not know to WORKING."""

    WORKING = "working"
    IDLE = "idle"
    QUEUED = "queued"
    CLOSED = "closed"


class Responder(StrEnum):
    """8.7. A reader maps a value it does not know to HUMAN."""

    AGENT = "agent"
    HUMAN = "human"


class Role(StrEnum):
    """The side a message came from; set by the Company when it records the message (8.4)."""

    USER = "user"
    COMPANY = "company"


class AuthorType(StrEnum):
    AGENT = "agent"
    HUMAN = "human"


@dataclass(frozen=True, slots=True)
class Author:
    """Who wrote a message (8.4). `id`, `name` and `image` are only on Company messages. `extra` as in Message."""

    type: AuthorType
    id: str | None = None
    name: str | None = None
    image: str | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Message:
    """One message of either side (8.4). `extra` keeps members that the version does not define, as they were sent."""

    id: MessageId
    author: Author
    role: Role = Role.USER
    text: str | None = None
    data: Mapping[str, object] | None = None
    context: Context | None = None
    extensions: Mapping[str, object] | None = None
    extra: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class MessageAdded:
    id: EventId
    at: datetime
    message: Message


@dataclass(frozen=True, slots=True)
class StateChanged:
    id: EventId
    at: datetime
    status: Status
    responder: Responder


@dataclass(frozen=True, slots=True)
class AuthorizationNeeded:
    """`scope` names the scopes needed, separated by spaces (8.11). `error` is always `insufficient_scope`."""

    id: EventId
    at: datetime
    scope: str
    error: str = "insufficient_scope"


@dataclass(frozen=True, slots=True)
class UserRequested:
    id: EventId
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class DirectOpened:
    id: EventId
    at: datetime
    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class DirectClosed:
    id: EventId
    at: datetime
    conversation_id: ConversationId


Event = MessageAdded | StateChanged | AuthorizationNeeded | UserRequested | DirectOpened | DirectClosed
"""`at` is aware, UTC. Readers skip event types they do not know (8.5)."""


@dataclass(frozen=True, slots=True)
class TextDelta:
    """A piece of a message that the Company Agent still writes (8.6): to be shown, until the whole message replaces it.

    `so_far`  the text of all pieces of it; "" when they are dropped, as after a reconnect
    """

    message_id: MessageId
    text: str
    so_far: str = ""
