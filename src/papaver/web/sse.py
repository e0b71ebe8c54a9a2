"""Server-sent events: written whole, read in pieces (the WHATWG HTML standard, section 9.2)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from papaver.values.errors import PapaverError

__all__ = ["KEEP_ALIVE", "MEDIA_TYPE", "Decoder", "ServerEvent", "SseError", "comment", "encode", "retry"]

MEDIA_TYPE: Final = "text/event-stream"
KEEP_ALIVE: Final = b":\n\n"
"""A comment that readers skip, sent so that nobody on the way takes the stream for dead."""
MAX_EVENT_BYTES: Final = 1_048_576

_LINE_END: Final = re.compile(rb"\r\n|\n|\r")
_LINE_END_TEXT: Final = re.compile(r"\r\n|\n|\r")
_NOT_IN_FIELD: Final = re.compile(r"[\0\r\n]")
_DIGITS: Final = re.compile(r"[0-9]{1,15}")
_BOM: Final = b"\xef\xbb\xbf"


class SseError(PapaverError):
    """A stream that is not read on, or an event that a stream cannot say."""

    code = "invalid_stream"
    description = "the event stream is not acceptable"


@dataclass(frozen=True, slots=True)
class ServerEvent:
    """One event of a stream. `id` is the one that this event itself carried, None when it had no `id` field."""

    event: str
    data: str
    id: str | None = None


def encode(event_id: str | None, data: str | bytes, event: str | None = None) -> bytes:
    """One event as octets, ready to send. `data` as bytes is UTF-8. Line ends in it are read back as line feeds.

    Raises `SseError` for an id or event name with a line end or NUL, and for what is not UTF-8.
    """
    try:
        text = data.decode() if isinstance(data, bytes) else data
        lines: list[str] = []
        for name, value in (("id", event_id), ("event", event)):
            if value is not None:
                if _NOT_IN_FIELD.search(value) is not None:
                    raise SseError(f"the {name} of an event holds a line end or NUL")
                lines.append(f"{name}: {value}\n")
        lines.extend(f"data: {line}\n" for line in _LINE_END_TEXT.split(text))
        return ("".join(lines) + "\n").encode()
    except UnicodeError:
        raise SseError("an event is not UTF-8") from None


def comment(text: str) -> bytes:
    """A comment as octets, one line for each of `text`. Raises `SseError` when it is not UTF-8."""
    try:
        return ("".join(f": {line}\n" for line in _LINE_END_TEXT.split(text)) + "\n").encode()
    except UnicodeError:
        raise SseError("a comment is not UTF-8") from None


def retry(milliseconds: int) -> bytes:
    """The field that tells readers how long to wait before they connect again."""
    return f"retry: {max(0, milliseconds)}\n\n".encode()


class Decoder:
    """Reads a stream from pieces of any size. One decoder reads one connection.

    `last_event_id` is what to send as Last-Event-ID on the next connection, "" for nothing; `retry` is the wait in
    milliseconds that the stream asked for, or None.
    """

    __slots__ = (
        "_data",
        "_event",
        "_failed",
        "_id",
        "_limit",
        "_line",
        "_line_size",
        "_own_id",
        "_size",
        "_skip_line_feed",
        "_start",
        "last_event_id",
        "retry",
    )

    def __init__(self, *, max_event_bytes: int = MAX_EVENT_BYTES, last_event_id: str = "") -> None:
        self.last_event_id = last_event_id
        self.retry: int | None = None
        self._limit = max_event_bytes
        self._failed = False
        self._start: bytes | None = b""
        self._skip_line_feed = False
        self._line: list[bytes] = []
        self._line_size = 0
        self._id = last_event_id
        self._event = ""
        self._own_id: str | None = None
        self._data: list[str] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        """The events that `chunk` completes, in order. What is incomplete waits, and is lost with the connection.

        Raises `SseError` when one event or line grows beyond the limit; the stream cannot be read on after that.
        """
        if self._failed:
            raise SseError("an event of the stream is too large")
        if self._start is not None:
            chunk = self._start + chunk
            if len(chunk) < len(_BOM) and _BOM.startswith(chunk):
                self._start = chunk
                return []
            self._start = None
            chunk = chunk.removeprefix(_BOM)
        if self._skip_line_feed and chunk:
            chunk = chunk.removeprefix(b"\n")
            self._skip_line_feed = False
        if not chunk:
            return []
        self._skip_line_feed = chunk.endswith(b"\r")
        first, *others = _LINE_END.split(chunk)
        events: list[ServerEvent] = []
        self._grow(first)
        for following in others:
            line = b"".join(self._line)
            self._line.clear()
            self._line_size = 0
            event = self._take(line)
            if event is not None:
                events.append(event)
            self._grow(following)
        return events

    def _grow(self, piece: bytes) -> None:
        """Add to the unfinished line, within the limit of one event."""
        self._line.append(piece)
        self._line_size += len(piece)
        if self._size + self._line_size > self._limit:
            self._failed = True
            raise SseError("an event of the stream is too large")

    def _take(self, line: bytes) -> ServerEvent | None:
        """Read one whole line; an empty one completes the event."""
        if not line:
            return self._complete()
        name, _, value = line.decode("utf-8", "replace").partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
            self._size += len(line) + 1
        elif name == "event":
            self._event = value
        elif name == "id":
            if "\0" not in value:
                self._id = self._own_id = value
        elif name == "retry" and _DIGITS.fullmatch(value) is not None:
            self.retry = int(value)
        return None

    def _complete(self) -> ServerEvent | None:
        """The event that the lines so far make; a block without a `data` line makes none but still moves the id."""
        self.last_event_id = self._id
        event = ServerEvent(self._event or "message", "\n".join(self._data), self._own_id) if self._data else None
        self._event = ""
        self._own_id = None
        self._data.clear()
        self._size = 0
        return event
