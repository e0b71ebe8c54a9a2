"""The stored form: read as written, for ever. The golden files hold what earlier versions of this package wrote."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

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
from papaver.protocol.conversation.record import RecordError, read, read_head, write, write_head
from papaver.protocol.conversation.state import Access, Asker, Head
from papaver.protocol.terms import AccountId, AgentId, ClientId, ConversationId, EventId, MessageId, UserId

GOLDEN = Path(__file__).parent / "golden"
AT = datetime(2026, 10, 8, 19, 3, 0, 123456, tzinfo=UTC)
SAID = MessageAdded(
    EventId("evt_1"),
    AT,
    Message(
        MessageId("msg_1"),
        Author(AuthorType.HUMAN, extra={"device": "phone"}),
        Role.USER,
        "Wo ist meine Bestellung? ☃",
        {"order": 1042, "total": 70.5, "big": 10**30, "lines": [None, True, {"sku": "a"}]},
        {"locale": "de", "user_available": None},
        {"links": {"items": []}},
        {"mood": ["curious"]},
    ),
)
REPLY = MessageAdded(
    EventId("evt_2"),
    AT,
    Message(
        MessageId("msg_2"), Author(AuthorType.AGENT, "aut_1", "Robin", "https://x.example/r.png"), Role.COMPANY, "Hm."
    ),
)
EVENTS: dict[str, Event] = {
    "said": SAID,
    "reply": REPLY,
    "state": StateChanged(EventId("evt_3"), AT, Status.IDLE, Responder.HUMAN),
    "authorization": AuthorizationNeeded(EventId("evt_4"), AT, "orders:read orders:write"),
    "user_requested": UserRequested(EventId("evt_5"), AT, "A specialist needs to confirm."),
    "direct_opened": DirectOpened(EventId("evt_6"), AT, ConversationId("cnv_2")),
    "direct_closed": DirectClosed(EventId("evt_7"), AT, ConversationId("cnv_2")),
}
BARE = Head(ConversationId("cnv_1"), ClientId("https://agent.example/a.json"), UserId("dana"), AT, AT)
FULL = Head(
    ConversationId("cnv_1"),
    ClientId("https://agent.example/a.json"),
    UserId("dana"),
    AT,
    AT + timedelta(days=1),
    AccountId("acc_1"),
    Status.QUEUED,
    Responder.AGENT,
    {"locale": "de", "units": {"length": "cm"}},
    last_seq=9,
    first_seq=2,
    answered_seq=4,
    asked_seq=8,
    failures=1,
    handoff_pending=True,
    parent=ConversationId("cnv_0"),
    open_direct=ConversationId("cnv_2"),
)
SIGNED_IN = replace(
    BARE,
    account_id=AccountId("acc_1"),
    access=Access(("orders:read", "orders:write"), 1791403380.5),
    scope="orders:read",
    parked=True,
    asked_by=Asker(AgentId("agt_1"), "0.4", {"links": "1.2"}),
)
HASHED = replace(SIGNED_IN, access=Access(("orders:read",), None, "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU"))
ASKED = replace(BARE, access=Access(()), asked_by=Asker(version="0.4"))
ATTENDED = replace(
    BARE,
    status=Status.QUEUED,
    responder=Responder.HUMAN,
    last_seq=9,
    first_seq=4,
    person=Author(AuthorType.HUMAN, "per_1", "Robin", "https://x.example/r.png", {"team": "returns"}),
    queued_at=AT + timedelta(hours=1),
    kept_from=AT + timedelta(microseconds=1),
)
"""As no head ever is, for a person who has joined is not waited for."""
HEADS = {"bare": BARE, "full": FULL, "signed-in": SIGNED_IN, "hashed": HASHED, "asked": ASKED, "attended": ATTENDED}


@pytest.mark.parametrize("name", EVENTS)
def test_the_golden_events_read_as_ever(name: str) -> None:
    """What was once written is read for ever, and is still what is written."""
    record = (GOLDEN / f"event-{name}.json").read_bytes().rstrip(b"\n")
    assert read(record) == EVENTS[name]
    assert json.loads(write(EVENTS[name])) == json.loads(record)


@pytest.mark.parametrize("name", HEADS)
def test_the_golden_heads_read_as_ever(name: str) -> None:
    """As for events."""
    record = (GOLDEN / f"head-{name}.json").read_bytes().rstrip(b"\n")
    assert read_head(record) == HEADS[name]
    assert json.loads(write_head(HEADS[name])) == json.loads(record)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.none() | st.dictionaries(st.text(), JSON, max_size=3)


@given(text=st.none() | st.text(), data=OBJECTS, context=OBJECTS, extra=st.dictionaries(st.text(), JSON, max_size=2))
def test_messages_read_as_written(
    text: str | None, data: dict[str, object] | None, context: dict[str, object] | None, extra: dict[str, object]
) -> None:
    """Whatever JSON the User's side sent comes back as it was sent (8.5)."""
    event = replace(SAID, message=replace(SAID.message, text=text, data=data, context=context, extra=extra))
    assert read(write(event)) == event


@given(at=st.datetimes(timezones=st.just(UTC)), seq=st.integers(0, 2**63 - 1))
def test_heads_read_as_written(at: datetime, seq: int) -> None:
    """Every microsecond and every number."""
    head = replace(FULL, created_at=at, changed_at=at, last_seq=seq, asked_seq=seq)
    assert read_head(write_head(head)) == head


def test_a_later_member_is_no_fault() -> None:
    """An older process of the same deployment reads what a newer one wrote."""
    later = json.loads(write(REPLY)) | {"later": 1}
    assert read(json.dumps(later).encode()) == REPLY
    later = json.loads(write_head(FULL)) | {"later": 1}
    assert read_head(json.dumps(later).encode()) == FULL


@pytest.mark.parametrize(
    "record",
    [
        b"",
        b"[]",
        b"{}",
        b'{"t":"unheard"}',
        b'{"t":"state","event":"evt_1","at":1,"status":"unheard","responder":"agent"}',
        b'{"t":"state","event":"evt_1","at":1e40,"status":"idle","responder":"agent"}',
        b'{"t":"state","event":"evt_1","at":9223372036854775807,"status":"idle","responder":"agent"}',
        b'{"t":"message","event":"evt_1","at":1,"id":"m","role":"user","author":{"type":"unheard"}}',
        b"\xff",
    ],
)
def test_what_is_no_record_is_an_error_of_our_own(record: bytes) -> None:
    """A damaged store never comes out as another exception."""
    with pytest.raises(RecordError):
        read(record)
    with pytest.raises(RecordError):
        read_head(record)


@pytest.mark.parametrize(
    "row",
    [{"access": {}}, {"status": "unheard"}, {"changed_at": 9223372036854775807}, {"created_at": "x"}, {"id": None}],
)
def test_a_damaged_head_is_an_error_of_our_own(row: dict[str, object]) -> None:
    """As for events."""
    damaged = json.loads(write_head(FULL)) | row
    with pytest.raises(RecordError):
        read_head(json.dumps(damaged).encode())


def test_what_is_no_json_is_not_written() -> None:
    """The store is told before anything is half written."""
    with pytest.raises(RecordError):
        write(replace(SAID, message=replace(SAID.message, data={"at": object()})))
    with pytest.raises(RecordError):
        write(replace(SAID, message=replace(SAID.message, text="\ud800")))
    with pytest.raises(RecordError):
        write_head(replace(FULL, context={"x": object()}))
