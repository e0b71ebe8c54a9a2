"""Event streams of draft 0.4 as a Personal Agent reads them (8.6)."""

from __future__ import annotations

import json

import pytest

from papaver.protocol.conversation.model import Responder, StateChanged, Status, TextDelta
from papaver.protocol.errors import Misbehaved
from papaver.protocol.terms import MessageId
from papaver.versions.v0_4.stream_reading import read_stream_event
from papaver.web.sse import ServerEvent

STATE = {"id": "evt_1", "type": "state", "created_at": "2026-10-08T19:03:00Z", "status": "idle", "responder": "agent"}


def test_an_event_is_read_as_in_a_page() -> None:
    """The data is the event's own JSON; the SSE id is not looked at."""
    event = read_stream_event(ServerEvent("message", json.dumps(STATE), "another"))
    assert isinstance(event, StateChanged)
    assert (event.id, event.status, event.responder) == ("evt_1", Status.IDLE, Responder.AGENT)


@pytest.mark.requirement("8.6-09")
def test_a_piece_is_read() -> None:
    """Unknown members are no fault."""
    event = ServerEvent("text-delta", '{"message_id": "msg_1", "text": "It is ", "later": 1}')
    assert read_stream_event(event) == TextDelta(MessageId("msg_1"), "It is ")


@pytest.mark.parametrize("event", [ServerEvent("later", "x"), ServerEvent("message", '{"id": "e", "type": "later"}')])
def test_what_is_not_known_is_passed_over(event: ServerEvent) -> None:
    """Kinds of the stream, and types of events (8.5)."""
    assert read_stream_event(event) is None


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        (ServerEvent("message", "nonsense"), "stream.json"),
        (ServerEvent("message", "[]"), "stream.json"),
        (ServerEvent("message", "{}"), "event.type"),
        (ServerEvent("text-delta", '{"message_id": "msg_1"}'), "stream.text-delta"),
        (ServerEvent("text-delta", '{"message_id": "a/b", "text": "x"}'), "stream.text-delta"),
    ],
)
def test_what_is_no_event_is_refused(event: ServerEvent, rule: str) -> None:
    """The rule says what is wrong with it."""
    with pytest.raises(Misbehaved) as refused:
        read_stream_event(event)
    assert refused.value.rule == rule
