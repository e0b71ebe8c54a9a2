"""The five conversation requests of draft 0.4 and their answers, written and read for both parties (8.2-8.5, 8.12)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, TypeVar
from urllib.parse import quote, unquote_plus

import msgspec
from pydantic import BaseModel

from papaver.protocol.conversation.content import check_content, check_id, is_id
from papaver.protocol.conversation.model import Event, Message, Responder, Status, TextDelta
from papaver.protocol.dialect import (
    Accepted,
    ConversationCodec,
    NoRoute,
    Page,
    Route,
    RouteKind,
    StartBody,
    Wanted,
)
from papaver.protocol.errors import InvalidCursor, InvalidRequest, Misbehaved, PayloadTooLarge
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.values import strict_json
from papaver.values.rules import rule
from papaver.versions.v0_4.conversation_events import (
    answer_shape,
    read_event,
    read_responder,
    read_said,
    read_status,
    write_event,
    write_said,
)
from papaver.versions.v0_4.conversation_wire import (
    WireAccepted,
    WireError,
    WirePage,
    WireSay,
    WireStart,
    WireState,
    shape,
)
from papaver.versions.v0_4.plain import read_plain
from papaver.versions.v0_4.stream_reading import read_stream_event
from papaver.versions.v0_4.streaming import last_event_ids, wants_stream, write_delta, write_stream_event
from papaver.web.messages import Headers, Request, Response
from papaver.web.sse import ServerEvent

__all__ = [
    "CONVERSATIONS",
    "MAX_ANSWER_BYTES",
    "MAX_ANSWER_DEPTH",
    "MAX_BODY_BYTES",
    "Conversations",
    "check_accepting_names_both",
    "check_content_type",
    "check_cursor_form",
    "check_wait",
]

MAX_BODY_BYTES: Final = 262_144
"""The largest request body, in octets."""
MAX_ANSWER_BYTES: Final = 10_485_760
"""The largest answer that a Personal Agent reads, in octets: as much as its transport takes, several full pages."""
MAX_ANSWER_DEPTH: Final = 64
"""An event nests what a message says deeper than its request; whoever sent it can still read it (readings 63)."""

M = TypeVar("M", bound=BaseModel)

_JSON: Final = re.compile(r"[ \t]*application/json[ \t]*(?:;.*)?", re.IGNORECASE)
_WAIT: Final = re.compile(r"[0-9]+")
_WAIT_DIGITS: Final = 9
"""More than these are a wait above every limit, and are not turned into a number."""
_WRITTEN: Final = Headers([("Content-Type", "application/json"), ("Cache-Control", "no-store")])
_SENT: Final = Headers([("Content-Type", "application/json"), ("Accept", "application/json")])
_READ: Final = Headers([("Accept", "application/json")])
_STREAMED: Final = Headers([("Accept", "text/event-stream, application/json;q=0.5"), ("Cache-Control", "no-cache")])
_ENCODE: Final = msgspec.json.Encoder().encode
_PATHS: Final[Mapping[str, tuple[str, RouteKind]]] = {
    "messages": ("POST", RouteKind.SAY),
    "events": ("GET", RouteKind.READ),
    "handoff": ("POST", RouteKind.HAND_OFF),
    "close": ("POST", RouteKind.CLOSE),
}


@rule("request.content-type")
def check_content_type(request: Request) -> None:
    """A body is `application/json`, parameters allowed (8.2; readings 37). Raises InvalidRequest."""
    types = request.headers.all("Content-Type")
    if len(types) != 1 or _JSON.fullmatch(types[0]) is None:
        raise InvalidRequest("the body has to be application/json", rule="request.content-type")


@rule("query.wait")
def check_wait(values: list[str]) -> None:
    """`wait` comes once, as whole seconds in any number of digits (8.5; readings 43). Raises InvalidRequest."""
    if len(values) != 1 or _WAIT.fullmatch(values[0]) is None:
        raise InvalidRequest("wait is a whole number of seconds, given once", rule="query.wait")


def _seconds(digits: str) -> int:
    """Larger values are not refused (8.5): a Company holds for as long as it will, however much larger they are."""
    told = digits.lstrip("0")
    return int(told or "0") if len(told) <= _WAIT_DIGITS else 10**_WAIT_DIGITS


@rule("query.cursor")
def check_cursor_form(values: list[str]) -> None:
    """`cursor` comes once and can be an event id (8.2; readings 29). Raises InvalidCursor."""
    if len(values) != 1 or not is_id(values[0]):
        raise InvalidCursor(rule="query.cursor")


@rule("message.absent-only-when-accepting")
def check_accepting_names_both(body: StartBody) -> None:
    """Only who accepts a `user_requested` event, naming it and the parent, may leave the message out (8.10)."""
    if body.message is None and (body.parent is None or body.user_requested is None):
        raise InvalidRequest("a conversation starts with a message", rule="message.absent-only-when-accepting")


class Conversations:
    """Draft 0.4's ConversationCodec."""

    def route(self, method: str, path: str) -> Route | NoRoute:
        if not path:
            return Route(RouteKind.START) if method == "POST" else NoRoute(("POST",))
        parts = path.split("/")
        if len(parts) != 3 or parts[0] or parts[2] not in _PATHS:
            return NoRoute()
        allowed, kind = _PATHS[parts[2]]
        if method != allowed:
            return NoRoute((allowed,))
        check_id(parts[1])
        return Route(kind, ConversationId(parts[1]))

    def read_query(self, query: str) -> Wanted:
        return _wanted(query, posted=True) if query else Wanted()

    def read_wanted(self, query: str, headers: Headers) -> Wanted:
        last, stream = last_event_ids(headers), wants_stream(headers)
        return _wanted(query, last, stream=stream) if query or last or stream else Wanted()

    def read_start(self, request: Request) -> StartBody:
        check_content_type(request)
        wire = _request_shape(WireStart, _read_object(request.body))
        parent, requested = wire.parent_conversation_id, wire.user_requested_event_id
        for named in (parent, requested):
            if named is not None:
                check_id(named)
        body = StartBody(
            message=None if wire.message is None else read_said(wire.message),
            parent=None if parent is None else ConversationId(parent),
            user_requested=None if requested is None else EventId(requested),
        )
        check_accepting_names_both(body)
        return body

    def read_say(self, request: Request) -> Message:
        check_content_type(request)
        plain = read_plain(request.body) if len(request.body) <= MAX_BODY_BYTES else None
        return plain or read_said(_request_shape(WireSay, _read_object(request.body)).message)

    def read_nothing(self, request: Request) -> None:
        if request.body.strip():
            _read_object(request.body)

    def write_accepted(self, status_code: int, accepted: Accepted) -> Response:
        return _written(
            status_code,
            {
                "conversation_id": accepted.conversation_id,
                "status": accepted.status,
                "responder": accepted.responder,
            },
        )

    def write_state(self, status_code: int, status: Status, responder: Responder) -> Response:
        return _written(status_code, {"status": status.value, "responder": responder.value})

    def write_page(self, status_code: int, page: Page, reader_extensions: Mapping[str, str]) -> Response:
        return _written(
            status_code,
            {
                "conversation_id": page.conversation_id,
                "events": [write_event(event, reader_extensions) for event in page.events],
                "cursor": page.cursor,
                "has_more": page.has_more,
                "status": page.status.value,
                "responder": page.responder.value,
            },
        )

    def write_stream_event(self, event: Event, reader_extensions: Mapping[str, str]) -> bytes:
        return write_stream_event(event, reader_extensions)

    def write_delta(self, message_id: MessageId, text: str) -> bytes:
        return write_delta(message_id, text)

    def write_start(
        self,
        endpoint: str,
        message: Message | None,
        wanted: Wanted,
        parent: ConversationId | None = None,
        user_requested: EventId | None = None,
    ) -> Request:
        check_accepting_names_both(StartBody(message, parent, user_requested))
        named = {"parent_conversation_id": parent, "user_requested_event_id": user_requested}
        document: dict[str, object] = {name: value for name, value in named.items() if value is not None}
        return _sent(endpoint, wanted, document if message is None else {**document, "message": _checked(message)})

    def write_say(self, endpoint: str, conversation: ConversationId, message: Message, wanted: Wanted) -> Request:
        return _sent(f"{endpoint}/{conversation}/messages", wanted, {"message": _checked(message)})

    def write_read(self, endpoint: str, conversation: ConversationId, wanted: Wanted) -> Request:
        headers = _STREAMED if wanted.stream else _READ
        if wanted.last_event_id is not None:
            headers = headers.with_(("Last-Event-ID", wanted.last_event_id))
        return Request("GET", _with_query(f"{endpoint}/{conversation}/events", wanted), headers)

    def write_hand_off(self, endpoint: str, conversation: ConversationId) -> Request:
        return _sent(f"{endpoint}/{conversation}/handoff", Wanted(), {})

    def write_close(self, endpoint: str, conversation: ConversationId) -> Request:
        return _sent(f"{endpoint}/{conversation}/close", Wanted(), {})

    def read_accepted(self, response: Response) -> Accepted | Page:
        document = _answer(response, (201, 202))
        if "events" in document:
            return _read_page(document)
        wire = answer_shape(WireAccepted, document, "answer.members")
        return Accepted(
            _conversation_id(wire.conversation_id), read_status(wire.status), read_responder(wire.responder)
        )

    def read_page(self, response: Response) -> Page:
        return _read_page(_answer(response, (200,)))

    def read_stream_event(self, event: ServerEvent) -> Event | TextDelta | None:
        return read_stream_event(event)

    def read_state(self, response: Response) -> tuple[Status, Responder]:
        wire = answer_shape(WireState, _answer(response, (200, 202)), "answer.members")
        return read_status(wire.status), read_responder(wire.responder)


CONVERSATIONS: Final[ConversationCodec] = Conversations()


def _wanted(query: str, last: list[str] | None = None, *, stream: bool = False, posted: bool = False) -> Wanted:
    """`last` takes the place of `cursor`, which may be as old as the first connection and is not looked at then.

    Nor is that of what is `posted` without a `wait` (readings 22).
    """
    values: dict[str, list[str]] = {}
    for pair in query.split("&") if query else ():
        name, _, value = pair.partition("=")
        values.setdefault(unquote_plus(name), []).append(unquote_plus(value))
    waits, cursors = values.get("wait"), last or values.get("cursor")
    if waits is not None:
        check_wait(waits)
    if posted and waits is None:
        cursors = None
    if cursors is not None:
        check_cursor_form(cursors)
    return Wanted(
        cursor=None if cursors is None else EventId(cursors[0]),
        wait=None if waits is None else _seconds(waits[0]),
        stream=stream,
    )


def _read_object(body: bytes) -> dict[str, object]:
    if len(body) > MAX_BODY_BYTES:
        raise PayloadTooLarge(rule="request.body-size")
    try:
        return strict_json.loads_object(body, max_bytes=MAX_BODY_BYTES)
    except strict_json.JsonError as error:
        raise InvalidRequest(error.description, rule="request.json", detail=error.detail) from None


def _request_shape(model: type[M], document: Mapping[str, object]) -> M:
    try:
        return shape(model, document)
    except WireError as error:
        raise InvalidRequest(error.description, rule="request.members") from None


def _written(status_code: int, document: Mapping[str, object]) -> Response:
    return Response(status_code, _WRITTEN, _ENCODE(document))


def _checked(message: Message) -> dict[str, object]:
    check_id(message.id)
    check_content(message)
    return write_said(message)


def _sent(url: str, wanted: Wanted, document: Mapping[str, object]) -> Request:
    return Request("POST", _with_query(url, wanted), _SENT, strict_json.dumps(document))


def _with_query(url: str, wanted: Wanted) -> str:
    """Cursors are opaque, and written as they came (8.5)."""
    pairs = [f"cursor={quote(wanted.cursor, safe='')}"] if wanted.cursor is not None else []
    if wanted.wait is not None:
        pairs.append(f"wait={wanted.wait}")
    return f"{url}?{'&'.join(pairs)}" if pairs else url


def _answer(response: Response, expected: tuple[int, ...]) -> dict[str, object]:
    if response.status not in expected:
        raise Misbehaved(
            "the answer has a status that its request does not end in",
            rule="answer.status",
            detail=f"{response.status}, not {' or '.join(map(str, expected))}",
        )
    try:
        return strict_json.loads_object(response.body, max_bytes=MAX_ANSWER_BYTES, max_depth=MAX_ANSWER_DEPTH)
    except strict_json.JsonError as error:
        raise Misbehaved("the answer is no JSON object", rule="answer.json", detail=error.description) from None


def _read_page(document: Mapping[str, object]) -> Page:
    wire = answer_shape(WirePage, document, "page.members")
    events = [event for event in map(read_event, wire.events) if event is not None]
    return Page(
        conversation_id=_conversation_id(wire.conversation_id),
        events=tuple(events),
        cursor=None if wire.cursor is None else _cursor(wire.cursor),
        has_more=wire.has_more,
        status=read_status(wire.status),
        responder=read_responder(wire.responder),
    )


def _conversation_id(text: str) -> ConversationId:
    if not is_id(text):
        raise Misbehaved("the Conversation ID is not allowed", rule="answer.id-alphabet")
    return ConversationId(text)


def _cursor(text: str) -> EventId:
    if not is_id(text):
        raise Misbehaved("the cursor is not allowed", rule="answer.id-alphabet")
    return EventId(text)
