"""Event streams of draft 0.4 as a Company reads the request for one and writes it (8.6; readings 41)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import msgspec

from papaver.protocol.conversation.model import Event
from papaver.protocol.terms import MessageId
from papaver.versions.v0_4.conversation_events import write_event
from papaver.web import sse
from papaver.web.accept import named_quality, quality
from papaver.web.messages import Headers

__all__ = ["last_event_ids", "wants_stream", "write_delta", "write_stream_event"]

_ENCODE: Final = msgspec.json.Encoder().encode
_JSON: Final = "application/json"
_DELTA: Final = "text-delta"


def wants_stream(headers: Headers) -> bool:
    """Whether a read asks for a stream: by its name, and at least as gladly as for JSON (readings 41)."""
    values = headers.all("accept")
    stream = named_quality(values, sse.MEDIA_TYPE)
    return stream > 0 and stream >= quality(values, _JSON)


def last_event_ids(headers: Headers) -> list[str] | None:
    """The values of Last-Event-ID; None without one, or when it is empty, as before the first event (readings 41)."""
    values = list(headers.all("last-event-id"))
    return None if values in ([], [""]) else values


def write_stream_event(event: Event, reader_extensions: Mapping[str, str]) -> bytes:
    """An event as a stream has it: its id, and the JSON that a page has for the same reader."""
    return sse.encode(event.id, _ENCODE(write_event(event, reader_extensions)))


def write_delta(message_id: MessageId, text: str) -> bytes:
    """A piece of a message, without an id. Empty for what UTF-8 cannot say."""
    try:
        return sse.encode(None, _ENCODE({"message_id": message_id, "text": text}), _DELTA)
    except UnicodeEncodeError:
        return b""
