"""Fuzzing event streams: cuts do not matter, what is written is read back, and no error but its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from papaver.web.sse import Decoder, ServerEvent, SseError, comment, encode, retry
from tests.fuzz.seeds import files, grown, unreached


def read(stream: bytes, size: int) -> list[ServerEvent] | None:
    decoder = Decoder(max_event_bytes=128)
    events: list[ServerEvent] = []
    for at in range(0, len(stream), size):
        try:
            events += decoder.feed(stream[at : at + size])
        except SseError:
            with pytest.raises(SseError):
                decoder.feed(b"")
            return None
    assert decoder.feed(b"") == []
    return events


def drive(data: bytes) -> None:
    """A stream in three cuts; and the first two lines as id and event name of the rest, written and read."""
    whole = read(data, max(1, len(data)))
    assert read(data, 1) == whole
    assert read(data, 3) == whole
    text = data.decode("utf-8", "surrogateescape")
    event_id, name, body = (*text.split("\n", 2), "", "")[:3]
    for write in (lambda: encode(None, data), lambda: comment(text)):
        try:
            assert write().endswith(b"\n\n")
        except SseError:
            continue
    try:
        written = encode(event_id or None, body, name or None)
        assert written == encode(event_id or None, body.encode(), name or None)
        (event,) = Decoder().feed(comment(text) + retry(len(text)) + written)
        assert (event.id, event.event) == (event_id or None, name or "message")
        assert event.data.split("\n") == body.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    except SseError:
        return


@pytest.mark.parametrize("path", files("sse"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("sse"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `SseError` comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("sse", "papaver.web.sse") == ""
