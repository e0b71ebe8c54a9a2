"""Event streams are written so that any reader reads them, and read from pieces of any size (8.6)."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.web.sse import KEEP_ALIVE, Decoder, ServerEvent, SseError, comment, encode, retry

TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
LINE = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\r\n"), min_size=1, max_size=8)


def read(stream: bytes, size: int | None = None) -> list[ServerEvent]:
    decoder = Decoder()
    if size is None:
        return decoder.feed(stream)
    return [event for at in range(0, len(stream), size) for event in decoder.feed(stream[at : at + size])]


@pytest.mark.parametrize(
    ("stream", "events"),
    [
        (b"data: a\n\n", [ServerEvent("message", "a")]),
        (b"\xef\xbb\xbfdata: a\n\n", [ServerEvent("message", "a")]),
        (b"\xef\xbb\xbf\xef\xbb\xbfdata: a\n\n", []),
        (b"data:a\r\rdata:b\r\n\r\ndata:c\n\n", [ServerEvent("message", x) for x in "abc"]),
        (b"data: a\r\ndata:  b\rdata\ndata:c\n\n", [ServerEvent("message", "a\n b\n\nc")]),
        (b"data\n\ndata\ndata\n\ndata:", [ServerEvent("message", ""), ServerEvent("message", "\n")]),
        (
            b"id: 7\nevent: message\ndata: a\n\ndata: b\n\n",
            [ServerEvent("message", "a", "7"), ServerEvent("message", "b")],
        ),
        (b"event: text-delta\ndata: a\n\n\n\n", [ServerEvent("text-delta", "a")]),
        (b"event: x\n\ndata: a\n\n", [ServerEvent("message", "a")]),
        (b"id: 7\n\ndata: a\n\n", [ServerEvent("message", "a")]),
        (b": comment\n:\ndata: a\nfoo: b\nDATA: c\n data: d\n\n", [ServerEvent("message", "a")]),
        (b"id: a\0b\ndata: a\n\n", [ServerEvent("message", "a")]),
        (b"id\ndata: a\n\n", [ServerEvent("message", "a", "")]),
        (b"data: \xff\xc3\xa9\n\n", [ServerEvent("message", "\ufffdé")]),
        (b"data: a:b: c\n\n", [ServerEvent("message", "a:b: c")]),
        (b"data: lost\n", []),
        (b"", []),
    ],
)
@pytest.mark.parametrize("size", [None, 1, 2, 3, 5])
def test_streams_are_read_as_browsers_read_them(stream: bytes, events: list[ServerEvent], size: int | None) -> None:
    """Whatever the line ends, wherever the pieces are cut."""
    assert read(stream, size) == events


@given(
    st.binary(max_size=60).map(lambda data: data.translate(bytes.maketrans(b"\x01\x02\x03\x04", b"\r\n:d"))), st.data()
)
def test_cuts_do_not_matter(stream: bytes, data: st.DataObject) -> None:
    """Two ways to cut a stream give the same events."""
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    decoder = Decoder()
    events = [e for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True) for e in decoder.feed(stream[a:b])]
    assert events == read(stream)


@given(st.none() | LINE, TEXT, st.none() | LINE)
def test_what_is_written_is_read_back(event_id: str | None, data: str, event: str | None) -> None:
    """Line ends in data come back as line feeds; everything else as it was, from text and from octets."""
    events = read(encode(event_id, data, event) + encode(event_id, data.encode(), event))
    assert events == [ServerEvent(event or "message", re.sub("\r\n|\r", "\n", data), event_id)] * 2


def test_an_event_is_written_in_the_order_of_the_draft() -> None:
    """8.6: id, then data; no event name unless there is one."""
    assert encode("e1", b'{"a":1}') == b'id: e1\ndata: {"a":1}\n\n'
    assert encode(None, "x\r\ny", "text-delta") == b"event: text-delta\ndata: x\ndata: y\n\n"


@pytest.mark.parametrize(
    ("event_id", "data", "event"),
    [
        ("a\nb", "x", None),
        ("a\rb", "x", None),
        ("a\0b", "x", None),
        (None, "x", "a\nb"),
        (None, "\ud800", None),
        ("\ud800", "x", None),
        (None, b"\xff", None),
    ],
)
def test_what_would_break_a_stream_is_not_written(event_id: str | None, data: str | bytes, event: str | None) -> None:
    """A line end in an id would begin a field of the sender's choice."""
    with pytest.raises(SseError) as caught:
        encode(event_id, data, event)
    assert caught.value.code == "invalid_stream"


def test_comments_and_retry_deliver_nothing() -> None:
    """B61's keep-alives are invisible, and no text leaves the comment."""
    decoder = Decoder()
    assert decoder.feed(KEEP_ALIVE + comment("x\n\ndata: y") + comment("") + retry(1500)) == []
    assert decoder.retry == 1500
    with pytest.raises(SseError):
        comment("\ud800")


def test_retry_takes_digits_alone() -> None:
    """Others are ignored."""
    decoder = Decoder()
    decoder.feed(b"retry: 10\nretry: -1\nretry: 1.5\nretry:\nretry: \xd9\xa1\nretry: " + b"9" * 16 + b"\n\n")
    assert decoder.retry == 10
    assert retry(-5) == b"retry: 0\n\n"


def test_the_last_event_id_outlives_its_event() -> None:
    """It moves with a finished block, also one without data; an event's own `id` stays None."""
    decoder = Decoder(last_event_id="0")
    assert decoder.last_event_id == "0"
    decoder.feed(b"id: 1\ndata: a\n")
    assert decoder.last_event_id == "0"
    decoder.feed(b"\n")
    assert decoder.last_event_id == "1"
    assert decoder.feed(b"event: text-delta\ndata: b\n\n") == [ServerEvent("text-delta", "b")]
    decoder.feed(b"id: 2\n\n")
    assert decoder.last_event_id == "2"
    decoder.feed(b"id:\n\n")
    assert decoder.last_event_id == ""


@pytest.mark.parametrize(
    "pieces",
    [
        [b"data: " + b"x" * 100],
        [b"x" * 33, b"x" * 33],
        [b":" * 65],
        [b"data: 0123456789\n" * 3, b"data: 0123456789\n"],
        [b"data\n" * 20],
    ],
)
def test_an_event_is_limited_in_size(pieces: list[bytes]) -> None:
    """One line or many: beyond the limit the stream is dead and says so again."""
    decoder = Decoder(max_event_bytes=64)
    assert [decoder.feed(piece) for piece in pieces[:-1]] == [[]] * (len(pieces) - 1)
    with pytest.raises(SseError):
        decoder.feed(pieces[-1])
    with pytest.raises(SseError):
        decoder.feed(b"\n\n")


def test_the_limit_is_for_one_event() -> None:
    """Many small ones and any number of comments pass."""
    decoder = Decoder(max_event_bytes=64)
    stream = (b"data: " + b"x" * 50 + b"\n\n" + KEEP_ALIVE + b": c\n") * 50
    assert len(decoder.feed(stream)) == 50
