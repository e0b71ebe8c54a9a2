"""Messages and events of draft 0.4 between JSON and the model (8.4, 8.5)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Final, TypeVar

from pydantic import BaseModel

from papaver.protocol.conversation.content import check_content, check_id, check_text_size, is_id
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
from papaver.protocol.errors import Misbehaved
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.versions.v0_4.conversation_wire import (
    WireAuthorizationEvent,
    WireCompanyMessage,
    WireDirectEvent,
    WireError,
    WireEvent,
    WireMessage,
    WireMessageEvent,
    WireStateEvent,
    WireUserRequestedEvent,
    shape,
)

__all__ = [
    "answer_shape",
    "read_event",
    "read_responder",
    "read_said",
    "read_status",
    "read_time",
    "write_event",
    "write_said",
    "write_time",
]

M = TypeVar("M", bound=BaseModel)

_TIME: Final = re.compile(r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))", re.ASCII)
_COMPANY_AUTHOR: Final = frozenset({"id", "name", "image"})
_STATUSES: Final = {status.value: status for status in Status}
_RESPONDERS: Final = {responder.value: responder for responder in Responder}


def read_said(wire: WireMessage) -> Message:
    """A message of the User's side, as sent: unknown members kept, `role` and the Company's author members left out.

    Raises InvalidRequest or PayloadTooLarge (8.4; readings 34, 36).
    """
    check_id(wire.id)
    message = Message(
        id=MessageId(wire.id),
        author=Author(AuthorType(wire.author.type), extra=_unknown(wire.author.model_extra, _COMPANY_AUTHOR)),
        text=wire.text,
        data=wire.data,
        context=wire.context,
        extensions=wire.extensions,
        extra=_unknown(wire.model_extra, _ROLE),
    )
    check_content(message)
    check_text_size(message)
    return message


def write_said(message: Message) -> dict[str, object]:
    """A message as the Personal Agent sends it: without `role`, and without what only Company authors have."""
    return {
        "id": message.id,
        "author": {"type": message.author.type.value, **message.author.extra},
        **_content(message),
        **message.extra,
    }


def write_event(event: Event, reader_extensions: Mapping[str, str]) -> dict[str, object]:
    """An event for a reader who declared these extensions, name to version (8.5; readings 9)."""
    head: dict[str, object] = {"id": event.id, "type": _TYPES[type(event)], "created_at": write_time(event.at)}
    match event:
        case MessageAdded(message=message):
            head["message"] = _write_recorded(message, reader_extensions)
        case StateChanged():
            head["status"] = event.status.value
            head["responder"] = event.responder.value
        case AuthorizationNeeded():
            head["error"] = event.error
            head["scope"] = event.scope
        case UserRequested():
            head["reason"] = event.reason
        case _:
            head["conversation_id"] = event.conversation_id
    return head


def read_event(document: Mapping[str, object]) -> Event | None:
    """An event of a Company; None for a type that draft 0.4 does not know (8.5). Raises Misbehaved."""
    kind = document.get("type")
    match kind:
        case "message":
            wire = answer_shape(WireMessageEvent, document, "event.message")
            return MessageAdded(*_placed(wire), _read_recorded(wire.message))
        case "state":
            state = answer_shape(WireStateEvent, document, "event.state")
            return StateChanged(*_placed(state), read_status(state.status), read_responder(state.responder))
        case "authorization":
            needed = answer_shape(WireAuthorizationEvent, document, "event.authorization")
            return AuthorizationNeeded(*_placed(needed), needed.scope, needed.error)
        case "user_requested":
            asked = answer_shape(WireUserRequestedEvent, document, "event.user-requested")
            return UserRequested(*_placed(asked), asked.reason)
        case "direct_opened" | "direct_closed":
            direct = answer_shape(WireDirectEvent, document, "event.direct")
            made = DirectOpened if kind == "direct_opened" else DirectClosed
            return made(*_placed(direct), ConversationId(_id(direct.conversation_id)))
        case str():
            return None
        case _:
            raise Misbehaved("an event has no type", rule="event.type")


def answer_shape(model: type[M], document: Mapping[str, object], rule_id: str) -> M:
    """A part of a Company's answer as its model. Raises Misbehaved under this rule id."""
    try:
        return shape(model, document)
    except WireError as error:
        raise Misbehaved(error.description, rule=rule_id) from None


def read_status(text: str) -> Status:
    """A later version's value reads as `working` (8.7)."""
    return _STATUSES.get(text, Status.WORKING)


def read_responder(text: str) -> Responder:
    """A later version's value reads as `human` (8.7)."""
    return _RESPONDERS.get(text, Responder.HUMAN)


def write_time(at: datetime) -> str:
    """RFC 3339, in UTC, to the millisecond."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def read_time(text: str) -> datetime:
    """An RFC 3339 time, in UTC. A leap second reads as the second before it. Raises Misbehaved."""
    found = _TIME.fullmatch(text)
    if found is None:
        raise Misbehaved("created_at is no RFC 3339 time", rule="event.created-at")
    day, minute, second, fraction, sign, hours, minutes = found.groups()
    try:
        offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
        zone = timezone(-offset if sign == "-" else offset)
        at = datetime.fromisoformat(f"{day}T{minute}:{'59' if second == '60' else second}").replace(
            microsecond=int((fraction or "0").ljust(6, "0")[:6]), tzinfo=zone
        )
        return at.astimezone(UTC)
    except (ValueError, OverflowError):
        raise Misbehaved("created_at is no time", rule="event.created-at") from None


_ROLE: Final = frozenset({"role"})
_TYPES: Final[Mapping[type, str]] = {
    MessageAdded: "message",
    StateChanged: "state",
    AuthorizationNeeded: "authorization",
    UserRequested: "user_requested",
    DirectOpened: "direct_opened",
    DirectClosed: "direct_closed",
}


def _unknown(members: Mapping[str, object] | None, without: frozenset[str] = frozenset()) -> dict[str, object]:
    return {name: value for name, value in (members or {}).items() if name not in without}


def _content(message: Message) -> dict[str, object]:
    content: dict[str, object] = {}
    if message.text is not None:
        content["text"] = message.text
    if message.data is not None:
        content["data"] = message.data
    if message.context is not None:
        content["context"] = message.context
    if message.extensions is not None:
        content["extensions"] = message.extensions
    return content


def _write_recorded(message: Message, reader_extensions: Mapping[str, str]) -> dict[str, object]:
    author = message.author
    names = {"id": author.id, "name": author.name, "image": author.image}
    written: dict[str, object] = {
        "id": message.id,
        "role": message.role.value,
        "author": {
            "type": author.type.value,
            **{name: value for name, value in names.items() if value is not None},
            **author.extra,
        },
        **_content(message),
        **message.extra,
    }
    if message.extensions is not None:
        shown = {name: content for name, content in message.extensions.items() if name in reader_extensions}
        if shown:
            written["extensions"] = shown
        else:
            del written["extensions"]
    return written


def _read_recorded(wire: WireCompanyMessage) -> Message:
    author = wire.author
    return Message(
        id=MessageId(_id(wire.id)),
        author=Author(AuthorType(author.type), author.id, author.name, author.image, _unknown(author.model_extra)),
        role=Role(wire.role),
        text=wire.text,
        data=wire.data,
        context=wire.context,
        extensions=wire.extensions,
        extra=_unknown(wire.model_extra),
    )


def _placed(wire: WireEvent) -> tuple[EventId, datetime]:
    return EventId(_id(wire.id)), read_time(wire.created_at)


def _id(text: str) -> str:
    if not is_id(text):
        raise Misbehaved("an id has characters or a length that are not allowed", rule="answer.id-alphabet")
    return text
