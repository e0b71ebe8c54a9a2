"""Events and heads in our stores' own form: compact JSON that no protocol version can change (architecture 3.7).

What was written once is read for ever: members may be added with a default, none may change its name or meaning. The
golden files of the tests hold every form that ever left this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    AuthorType,
    DirectClosed,
    DirectOpened,
    Event,
    Message,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
    UserRequested,
)
from papaver.protocol.conversation.state import Access, Asker, Head
from papaver.protocol.terms import AccountId, AgentId, ClientId, ConversationId, EventId, MessageId, UserId
from papaver.values.errors import PapaverError

__all__ = ["RecordError", "read", "read_head", "write", "write_head"]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


class RecordError(PapaverError):
    """Stored octets that are no record of ours, or a value that cannot be stored."""

    code = "unreadable_record"
    description = "the store holds something that cannot be read"


class _Row(msgspec.Struct, omit_defaults=True, tag_field="t"):
    pass


class _Author(msgspec.Struct, frozen=True, omit_defaults=True):
    type: AuthorType
    id: str | None = None
    name: str | None = None
    image: str | None = None
    extra: Mapping[str, object] | None = None


class _Message(_Row, tag="message"):
    """`at` in microseconds since the epoch."""

    event: str
    at: int
    id: str
    role: Role
    author: _Author
    text: str | None = None
    data: Mapping[str, object] | None = None
    context: Mapping[str, object] | None = None
    extensions: Mapping[str, object] | None = None
    extra: Mapping[str, object] | None = None


class _State(_Row, tag="state"):
    event: str
    at: int
    status: Status
    responder: Responder


class _Authorization(_Row, tag="authorization"):
    event: str
    at: int
    scope: str
    error: str


class _UserRequested(_Row, tag="user_requested"):
    event: str
    at: int
    reason: str


class _DirectOpened(_Row, tag="direct_opened"):
    event: str
    at: int
    conversation: str


class _DirectClosed(_Row, tag="direct_closed"):
    event: str
    at: int
    conversation: str


class _Access(msgspec.Struct, frozen=True, omit_defaults=True):
    """`until` in Unix seconds."""

    scopes: tuple[str, ...]
    until: float | None = None
    ath: str | None = None


class _Asker(msgspec.Struct, frozen=True, omit_defaults=True):
    agent: str | None = None
    version: str = ""
    extensions: Mapping[str, str] | None = None


class _Head(msgspec.Struct, frozen=True, omit_defaults=True):
    """Times in microseconds since the epoch."""

    id: str
    client: str
    user: str
    created_at: int
    changed_at: int
    status: Status
    responder: Responder
    account: str | None = None
    context: Mapping[str, object] | None = None
    last_seq: int = 0
    first_seq: int = 1
    answered_seq: int = 0
    asked_seq: int = 0
    failures: int = 0
    handoff_pending: bool = False
    parent: str | None = None
    open_direct: str | None = None
    access: _Access | None = None
    scope: str = ""
    parked: bool = False
    asked_by: _Asker | None = None
    person: _Author | None = None
    queued_at: int | None = None
    kept_from: int | None = None


_Any = _Message | _State | _Authorization | _UserRequested | _DirectOpened | _DirectClosed
_ENCODE: Final = msgspec.json.Encoder().encode
_DECODE_EVENT: Final = msgspec.json.Decoder(_Any).decode
_DECODE_HEAD: Final = msgspec.json.Decoder(_Head).decode


def write(event: Event) -> bytes:
    """The event for the store. Raises RecordError for content that is not JSON."""
    return _encode(_event_row(event))


def read(record: bytes) -> Event:
    """What `write` was given. Raises RecordError."""
    try:
        return _read_event(_DECODE_EVENT(record))
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise RecordError(detail=str(error)) from None


def write_head(head: Head) -> bytes:
    """The head for the store. Raises RecordError for a context that is not JSON."""
    return _encode(
        _Head(
            id=head.id,
            client=head.client_id,
            user=head.user_id,
            created_at=_micros(head.created_at),
            changed_at=_micros(head.changed_at),
            status=head.status,
            responder=head.responder,
            account=head.account_id,
            context=head.context or None,
            last_seq=head.last_seq,
            first_seq=head.first_seq,
            answered_seq=head.answered_seq,
            asked_seq=head.asked_seq,
            failures=head.failures,
            handoff_pending=head.handoff_pending,
            parent=head.parent,
            open_direct=head.open_direct,
            access=_access_row(head.access),
            scope=head.scope,
            parked=head.parked,
            asked_by=_asker_row(head.asked_by),
            person=None if head.person is None else _author_row(head.person),
            queued_at=None if head.queued_at is None else _micros(head.queued_at),
            kept_from=None if head.kept_from is None else _micros(head.kept_from),
        )
    )


def read_head(record: bytes) -> Head:
    """What `write_head` was given. Raises RecordError."""
    try:
        row = _DECODE_HEAD(record)
        return Head(
            id=ConversationId(row.id),
            client_id=ClientId(row.client),
            user_id=UserId(row.user),
            created_at=_time(row.created_at),
            changed_at=_time(row.changed_at),
            account_id=None if row.account is None else AccountId(row.account),
            status=row.status,
            responder=row.responder,
            context=row.context or {},
            last_seq=row.last_seq,
            first_seq=row.first_seq,
            answered_seq=row.answered_seq,
            asked_seq=row.asked_seq,
            failures=row.failures,
            handoff_pending=row.handoff_pending,
            parent=None if row.parent is None else ConversationId(row.parent),
            open_direct=None if row.open_direct is None else ConversationId(row.open_direct),
            access=None if row.access is None else Access(row.access.scopes, row.access.until, row.access.ath),
            scope=row.scope,
            parked=row.parked,
            asked_by=_read_asker(row.asked_by),
            person=None if row.person is None else _read_author(row.person),
            queued_at=None if row.queued_at is None else _time(row.queued_at),
            kept_from=None if row.kept_from is None else _time(row.kept_from),
        )
    except (msgspec.MsgspecError, ValueError, OverflowError) as error:
        raise RecordError(detail=str(error)) from None


def _encode(row: _Any | _Head) -> bytes:
    try:
        return _ENCODE(row)
    except (msgspec.MsgspecError, ValueError, TypeError, OverflowError, RecursionError) as error:
        raise RecordError("this cannot be stored", detail=str(error)) from None


def _access_row(access: Access | None) -> _Access | None:
    return None if access is None else _Access(access.scopes, access.expires_at, access.ath)


def _asker_row(asker: Asker | None) -> _Asker | None:
    return None if asker is None else _Asker(asker.agent_id, asker.version, asker.extensions or None)


def _read_asker(row: _Asker | None) -> Asker | None:
    if row is None:
        return None
    return Asker(None if row.agent is None else AgentId(row.agent), row.version, row.extensions or {})


def _author_row(author: Author) -> _Author:
    return _Author(author.type, author.id, author.name, author.image, author.extra or None)


def _read_author(row: _Author) -> Author:
    return Author(row.type, row.id, row.name, row.image, row.extra or {})


def _micros(at: datetime) -> int:
    return (at - _EPOCH) // _MICROSECOND


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)


def _event_row(event: Event) -> _Any:
    at = _micros(event.at)
    match event:
        case MessageAdded(message=message):
            return _Message(
                event=event.id,
                at=at,
                id=message.id,
                role=message.role,
                author=_author_row(message.author),
                text=message.text,
                data=message.data,
                context=message.context,
                extensions=message.extensions,
                extra=message.extra or None,
            )
        case StateChanged():
            return _State(event.id, at, event.status, event.responder)
        case AuthorizationNeeded():
            return _Authorization(event.id, at, event.scope, event.error)
        case UserRequested():
            return _UserRequested(event.id, at, event.reason)
        case DirectOpened():
            return _DirectOpened(event.id, at, event.conversation_id)
        case _:
            return _DirectClosed(event.id, at, event.conversation_id)


def _read_event(row: _Any) -> Event:
    event_id, at = EventId(row.event), _time(row.at)
    match row:
        case _Message():
            return MessageAdded(event_id, at, _read_message(row))
        case _State():
            return StateChanged(event_id, at, row.status, row.responder)
        case _Authorization():
            return AuthorizationNeeded(event_id, at, row.scope, row.error)
        case _UserRequested():
            return UserRequested(event_id, at, row.reason)
        case _DirectOpened():
            return DirectOpened(event_id, at, ConversationId(row.conversation))
        case _:
            return DirectClosed(event_id, at, ConversationId(row.conversation))


def _read_message(row: _Message) -> Message:
    return Message(
        id=MessageId(row.id),
        author=_read_author(row.author),
        role=row.role,
        text=row.text,
        data=row.data,
        context=row.context,
        extensions=row.extensions,
        extra=row.extra or {},
    )
