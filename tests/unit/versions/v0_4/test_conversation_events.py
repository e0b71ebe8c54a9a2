"""Messages and events of draft 0.4 between JSON and the model."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from papaver.protocol.errors import InvalidRequest, Misbehaved, PayloadTooLarge
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.versions.v0_4.conversation_events import (
    read_event,
    read_responder,
    read_said,
    read_status,
    read_time,
    write_event,
    write_said,
    write_time,
)
from papaver.versions.v0_4.conversation_wire import WireMessage, shape

AT = datetime(2026, 10, 8, 19, 3, 0, 120_000, tzinfo=UTC)
E1 = EventId("evt_1")
REPLY = Message(
    MessageId("msg_2"),
    Author(AuthorType.HUMAN, "aut_alex", "Alex", "https://x.example/a.png"),
    Role.COMPANY,
    "Which size?",
    {"sizes": ["M", "L"]},
)
SAID = Message(
    MessageId("msg_1"),
    Author(AuthorType.AGENT, extra={"device": "phone"}),
    Role.USER,
    "Hi",
    context={"locale": "en", "units": None},
    extensions={"links": {"items": []}, "gift": {"wrap": True}},
    extra={"mood": "curious"},
)
EVENTS: list[tuple[Event, dict[str, object]]] = [
    (
        MessageAdded(E1, AT, REPLY),
        {
            "type": "message",
            "message": {
                "id": "msg_2",
                "role": "company",
                "author": {"type": "human", "id": "aut_alex", "name": "Alex", "image": "https://x.example/a.png"},
                "text": "Which size?",
                "data": {"sizes": ["M", "L"]},
            },
        },
    ),
    (StateChanged(E1, AT, Status.QUEUED, Responder.AGENT), {"type": "state", "status": "queued", "responder": "agent"}),
    (
        AuthorizationNeeded(E1, AT, "orders:read orders:write"),
        {"type": "authorization", "error": "insufficient_scope", "scope": "orders:read orders:write"},
    ),
    (UserRequested(E1, AT, "to confirm"), {"type": "user_requested", "reason": "to confirm"}),
    (DirectOpened(E1, AT, ConversationId("cnv_2")), {"type": "direct_opened", "conversation_id": "cnv_2"}),
    (DirectClosed(E1, AT, ConversationId("cnv_2")), {"type": "direct_closed", "conversation_id": "cnv_2"}),
]


@pytest.mark.requirement("8.5-02", "8.5-03", "8.5-05")
@pytest.mark.parametrize(("event", "members"), EVENTS, ids=[type(event).__name__ for event, _ in EVENTS])
def test_events_have_the_members_of_their_type(event: Event, members: dict[str, object]) -> None:
    """8.5's table, with id, type and an RFC 3339 time on each; read back as written."""
    document = {"id": "evt_1", "created_at": "2026-10-08T19:03:00.120Z"} | members
    assert write_event(event, {}) == document
    assert read_event(document) == event


@pytest.mark.requirement("8.4-22", "8.4-23", "8.4-24")
def test_an_authors_members_are_optional() -> None:
    """Absent ones are left out, never null; those that are there are the Company's (8.4)."""
    bare = MessageAdded(E1, AT, replace(REPLY, author=Author(AuthorType.AGENT)))
    message = write_event(bare, {})["message"]
    assert isinstance(message, dict)
    assert message["author"] == {"type": "agent"}
    read = read_event(write_event(MessageAdded(E1, AT, REPLY), {}))
    assert isinstance(read, MessageAdded)
    assert (read.message.author.id, read.message.author.name) == ("aut_alex", "Alex")
    assert read.message.author.image == "https://x.example/a.png"


@pytest.mark.requirement("8.4-02", "8.5-03", "ca-67")
def test_c9_a_message_comes_back_as_it_was_sent() -> None:
    """With its unknown members and null context fields; the role is added."""
    sent = write_said(SAID)
    assert "role" not in sent
    assert read_said(shape(WireMessage, sent)) == SAID
    event = write_event(MessageAdded(E1, AT, SAID), {"links": "1", "gift": "2"})
    assert event["message"] == {**sent, "role": "user"}
    assert read_event(event) == MessageAdded(E1, AT, SAID)


@pytest.mark.parametrize(
    ("declared", "shown"),
    [({}, None), ({"other": "1"}, None), ({"gift": "1"}, {"gift": {"wrap": True}})],
)
def test_c93_extension_content_is_for_those_who_declared_it(
    declared: dict[str, str], shown: dict[str, object] | None
) -> None:
    """The rest is left out, and so is the member when nothing is left (readings 9)."""
    expected = write_said(SAID) | {"role": "user", "extensions": shown}
    if shown is None:
        del expected["extensions"]
    assert write_event(MessageAdded(E1, AT, SAID), declared)["message"] == expected


def test_a_message_may_have_no_text() -> None:
    """Absent members are left out in both directions."""
    bare = Message(MessageId("m"), Author(AuthorType.AGENT), data={"size": "M"})
    assert write_said(bare) == {"id": "m", "author": {"type": "agent"}, "data": {"size": "M"}}
    assert read_said(shape(WireMessage, write_said(bare))) == bare


def test_a_said_message_is_checked() -> None:
    """Id, content and size, besides the shape that pydantic has seen."""
    author = {"type": "agent"}
    with pytest.raises(InvalidRequest) as bad_id:
        read_said(shape(WireMessage, {"id": "", "author": author, "text": "Hi"}))
    assert bad_id.value.rule == "conversation.id-alphabet"
    with pytest.raises(InvalidRequest) as empty:
        read_said(shape(WireMessage, {"id": "m", "author": author, "data": {}}))
    assert empty.value.rule == "message.content"
    with pytest.raises(PayloadTooLarge) as large:
        read_said(shape(WireMessage, {"id": "m", "author": author, "text": "x" * 65_537}))
    assert large.value.rule == "message.text-size"


@pytest.mark.requirement("8.5-09")
@pytest.mark.parametrize("kind", ["confetti", "Message", "text-delta", ""])
def test_unknown_types_are_skipped(kind: str) -> None:
    """None, whatever else the event holds; types are compared exactly."""
    assert read_event({"type": kind}) is None


HEAD: dict[str, object] = {"id": "evt_1", "created_at": "2026-10-08T19:03:00Z"}
MESSAGE: dict[str, object] = {"id": "m", "role": "company", "author": {"type": "agent"}, "text": "Hi"}


BAD_EVENTS: list[tuple[dict[str, object], str]] = [
    ({}, "event.type"),
    ({"type": 7}, "event.type"),
    ({"type": "message"}, "event.message"),
    ({"type": "message", "message": MESSAGE | {"author": {}}}, "event.message"),
    ({"type": "message", "message": MESSAGE | {"author": {"type": "robot"}}}, "event.message"),
    ({"type": "message", "message": MESSAGE | {"role": "narrator"}}, "event.message"),
    ({"type": "message", "message": MESSAGE | {"text": []}}, "event.message"),
    ({"type": "message", "message": MESSAGE | {"id": "a b"}}, "answer.id-alphabet"),
    ({"type": "state", "status": "idle"}, "event.state"),
    ({"type": "authorization", "scope": "a"}, "event.authorization"),
    ({"type": "user_requested"}, "event.user-requested"),
    ({"type": "direct_opened"}, "event.direct"),
    ({"type": "direct_closed", "conversation_id": "a/b"}, "answer.id-alphabet"),
    ({"type": "state", "status": "idle", "responder": "agent", "id": ""}, "answer.id-alphabet"),
    ({"type": "state", "status": "idle", "responder": "agent", "created_at": "now"}, "event.created-at"),
]


@pytest.mark.requirement("8.7-14")
@pytest.mark.parametrize(("members", "rule"), BAD_EVENTS)
def test_a_malformed_event_is_misbehaviour(members: dict[str, object], rule: str) -> None:
    """A known type without its members: the Company broke the form, and the rule says which."""
    with pytest.raises(Misbehaved) as refused:
        read_event(HEAD | members)
    assert refused.value.rule == rule


@pytest.mark.requirement("8.7-08")
def test_statuses_are_mapped() -> None:
    """Known ones as they are, others to `working`."""
    assert [read_status(value) for value in ("idle", "closed", "Idle", "")] == [
        Status.IDLE,
        Status.CLOSED,
        Status.WORKING,
        Status.WORKING,
    ]


@pytest.mark.requirement("8.7-09")
def test_responders_are_mapped() -> None:
    """Known ones as they are, others to `human`."""
    assert [read_responder(value) for value in ("agent", "human", "robot")] == [
        Responder.AGENT,
        Responder.HUMAN,
        Responder.HUMAN,
    ]


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("2026-10-08T19:03:00Z", AT.replace(microsecond=0)),
        ("2026-10-08t21:03:00.12+02:00", AT),
        ("2026-10-08T12:03:00.1200009-07:00", AT),
        ("2016-12-31T23:59:60z", datetime(2016, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2026-10-08T19:03:00-00:00", AT.replace(microsecond=0)),
    ],
)
def test_times_are_read(text: str, at: datetime) -> None:
    """RFC 3339 in all its forms, in UTC."""
    assert read_time(text) == at
    assert read_time(text).tzinfo is UTC


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2026-10-08",
        "2026-10-08T19:03:00",
        "2026-10-08 19:03:00Z",
        "2026-13-08T19:03:00Z",
        "2026-10-08T25:03:00Z",
        "2026-10-08T19:03:00+99:00",
        "0001-01-01T00:00:00+01:00",
        "2026-10-08T19:03:00Zx",
        "\u0662026-10-08T19:03:00Z",
        "1791486180",
    ],
)
def test_other_times_are_misbehaviour(text: str) -> None:
    """What is no RFC 3339 time, or no time at all."""
    with pytest.raises(Misbehaved) as refused:
        read_time(text)
    assert refused.value.rule == "event.created-at"


@given(at=st.datetimes(timezones=st.just(UTC)), hours=st.integers(-12, 12))
def test_times_read_as_written(at: datetime, hours: int) -> None:
    """In UTC, to the millisecond, from whatever zone."""
    to_the_millisecond = at.replace(microsecond=at.microsecond // 1000 * 1000)
    if 1 < at.year < 9999:
        assert read_time(write_time(at.astimezone(timezone(timedelta(hours=hours))))) == to_the_millisecond
