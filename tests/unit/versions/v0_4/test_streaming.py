"""Event streams of draft 0.4: who asks for one, and its events and pieces as octets."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from papaver.protocol.conversation.model import Author, AuthorType, Message, MessageAdded, Role
from papaver.protocol.terms import EventId, MessageId
from papaver.versions.v0_4.conversation_events import write_event
from papaver.versions.v0_4.streaming import last_event_ids, wants_stream, write_delta, write_stream_event
from papaver.web.messages import Headers
from papaver.web.sse import Decoder, ServerEvent

REPLY = MessageId("msg_r2Kq")


@pytest.mark.requirement("8.6-01")
@pytest.mark.parametrize(
    ("accept", "wanted"),
    [
        ("text/event-stream", True),
        ("text/event-stream;q=0.1", True),
        ("text/event-stream, application/json", True),
        ("application/json;q=0.9, text/event-stream", True),
        ("text/event-stream, */*", True),
        ("text/event-stream;q=0.5, application/json", False),
        ("text/event-stream;q=0.5, */*", False),
        ("text/event-stream;q=0", False),
        ("application/json", False),
        ("*/*", False),
        ("text/*", False),
        ("", False),
        (None, False),
    ],
)
def test_a_stream_is_for_who_would_rather_have_it(accept: str | None, wanted: bool) -> None:
    """Named, and at least as welcome as JSON; nobody gets one for a wildcard (readings 41)."""
    assert wants_stream(Headers([] if accept is None else [("accept", accept)])) is wanted


@pytest.mark.parametrize(
    ("values", "read"), [([], None), ([""], None), (["evt_1"], ["evt_1"]), (["", "evt_1"], ["", "evt_1"])]
)
def test_an_empty_last_event_id_is_none(values: list[str], read: list[str] | None) -> None:
    """An SSE client that has handled no event may send it empty; two of them are for somebody else to judge."""
    assert last_event_ids(Headers([("last-event-id", value) for value in values])) == read


@pytest.mark.requirement("8.6-04")
def test_an_event_has_its_id_and_the_json_of_a_page() -> None:
    """Whatever the text holds stays one line: line ends, U+2028, quotes. Extension content is the reader's own only."""
    text = 'one\ntwo\r\n"three"\u2028\u0085\x00'
    extensions = {"https://x.example/card": {"colour": "red"}}
    said = Message(REPLY, Author(AuthorType.AGENT), Role.COMPANY, text, extensions=extensions)
    event = MessageAdded(EventId("evt_c2"), datetime(2026, 10, 8, 19, 3, tzinfo=UTC), said)
    for reader in ({}, {"https://x.example/card": "1"}):
        octets = write_stream_event(event, reader)
        assert octets.count(b"\n") == 3
        [read] = Decoder().feed(octets)
        assert (read.id, read.event, json.loads(read.data)) == ("evt_c2", "message", write_event(event, reader))
        assert ("extensions" in json.loads(read.data)["message"]) is bool(reader)


@pytest.mark.requirement("8.6-09")
def test_a_piece_has_a_type_and_no_id() -> None:
    """So that it is never what a reader goes on after."""
    [read] = Decoder(last_event_id="evt_1").feed(write_delta(REPLY, "I can do\nthat. "))
    assert read == ServerEvent("text-delta", '{"message_id":"msg_r2Kq","text":"I can do\\nthat. "}')
    assert write_delta(REPLY, "half a character \ud800") == b""
