"""Event streams of draft 0.4 as a Personal Agent reads them (8.6)."""

from __future__ import annotations

from typing import Final

from papaver.protocol.conversation.content import is_id
from papaver.protocol.conversation.model import Event, TextDelta
from papaver.protocol.errors import Misbehaved
from papaver.protocol.terms import MessageId
from papaver.values import strict_json
from papaver.versions.v0_4.conversation_events import answer_shape, read_event
from papaver.versions.v0_4.conversation_wire import WireDelta
from papaver.web.sse import ServerEvent

__all__ = ["MAX_EVENT_BYTES", "read_stream_event"]

MAX_EVENT_BYTES: Final = 1_048_576
"""The largest event of a stream that is read, in octets."""
MAX_DEPTH: Final = 64
"""An event nests what a message says deeper than its request."""


def read_stream_event(event: ServerEvent) -> Event | TextDelta | None:
    """An event, a piece of one, or None for what this version does not know. Raises Misbehaved."""
    match event.event:
        case "message":
            return read_event(_object(event.data))
        case "text-delta":
            wire = answer_shape(WireDelta, _object(event.data), "stream.text-delta")
            if not is_id(wire.message_id):
                raise Misbehaved("a piece of a message names no message", rule="stream.text-delta")
            return TextDelta(MessageId(wire.message_id), wire.text)
        case _:
            return None


def _object(data: str) -> dict[str, object]:
    octets = data.encode()
    try:
        return strict_json.loads_object(octets, max_bytes=MAX_EVENT_BYTES, max_depth=MAX_DEPTH)
    except strict_json.JsonError as error:
        raise Misbehaved(
            "an event of the stream is no JSON object", rule="stream.json", detail=error.description
        ) from None
