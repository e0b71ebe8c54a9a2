"""Cursors that prove their place, pages, and when a held request is answered."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from papaver.protocol.conversation.change import Slice
from papaver.protocol.conversation.content import is_id
from papaver.protocol.conversation.model import (
    AuthorizationNeeded,
    DirectClosed,
    DirectOpened,
    Event,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
    UserRequested,
)
from papaver.protocol.conversation.pages import EventIds, need, page, read_cursor, should_hold
from papaver.protocol.conversation.state import Head
from papaver.protocol.dialect import Wanted
from papaver.protocol.errors import CursorExpired, InvalidCursor
from papaver.protocol.terms import ConversationId, EventId, MessageId
from tests.unit.protocol.conversation.world import DANA, NOW, said

HERE = ConversationId("cnv_1")
IDS = EventIds(b"a secret of the Company")
HEAD = Head(HERE, DANA.client_id, DANA.user_id, NOW, NOW, last_seq=9)
OWN = MessageId("own")


def _message(message_id: str, role: Role) -> Event:
    return MessageAdded(EventId(f"evt_{message_id}"), NOW, said(message_id, role=role))


def _state(status: Status, responder: Responder = Responder.AGENT) -> Event:
    return StateChanged(EventId(f"evt_{status}"), NOW, status, responder)


MINE = _message("own", Role.USER)
ANOTHER = _message("another", Role.USER)
REPLY = _message("reply", Role.COMPANY)
WORKING = _state(Status.WORKING)


@given(seq=st.integers(1, 2**48 - 1), name=st.from_regex(r"[A-Za-z0-9_-]{1,256}", fullmatch=True))
@example(seq=1, name="c")
def test_an_event_id_is_its_place(seq: int, name: str) -> None:
    """It reads as what was written, the same each time, and it is a legal id."""
    event_id = IDS.write(ConversationId(name), seq)
    assert is_id(event_id)
    assert IDS.write(ConversationId(name), seq) == event_id
    assert IDS.read(ConversationId(name), event_id) == seq


@pytest.mark.requirement("8.5-11", "8.2-16", "ca-59")
def test_every_event_id_is_a_cursor() -> None:
    """Reading goes on after it; the Company alone can make one."""
    assert read_cursor(IDS, HEAD, IDS.write(HERE, 4)) == 4
    assert read_cursor(IDS, HEAD, IDS.write(HERE, 9)) == 9


@pytest.mark.requirement("8.13-07", "ca-59")
@pytest.mark.parametrize(
    "cursor",
    [
        EventIds(b"another Company's").write(HERE, 4),
        IDS.write(ConversationId("cnv_2"), 4),
        IDS.write(HERE, 4)[:-1],
        IDS.write(HERE, 4) + "AAAA",
        IDS.write(HERE, 4).replace("evt_", "msg_"),
        IDS.write(HERE, 4).removeprefix("evt_"),
        "evt_AAAAAAAF" + IDS.write(HERE, 4)[12:],
        "evt_",
        "evt_A",
        "x",
        "evt_!",
    ],
)
def test_c17_unknown_and_foreign_cursors_are_invalid(cursor: str) -> None:
    """Another conversation's, another Company's, and what nobody made: one error."""
    with pytest.raises(InvalidCursor) as refused:
        read_cursor(IDS, HEAD, EventId(cursor))
    assert refused.value.rule in ("cursor.of-this-conversation", "cursor.recorded")


@given(st.from_regex(r"evt_[A-Za-z0-9_-]{24}", fullmatch=True))
def test_a_guessed_cursor_is_invalid(cursor: str) -> None:
    """Whatever has the right form but no proof is refused, and nothing else comes out."""
    with pytest.raises(InvalidCursor):
        IDS.read(HERE, EventId(cursor))


@pytest.mark.requirement("8.13-07")
def test_c17_a_cursor_ahead_of_the_log_is_invalid() -> None:
    """As after a restored backup: the event is not known here (8.13)."""
    with pytest.raises(InvalidCursor) as refused:
        read_cursor(IDS, HEAD, IDS.write(HERE, 10))
    assert refused.value.rule == "cursor.recorded"


@pytest.mark.requirement("8.13-08")
def test_c17_a_cursor_before_pruned_events_has_expired() -> None:
    """Only where an event after it may be gone; the newest pruned event is still a good cursor (readings 42)."""
    pruned = replace(HEAD, first_seq=5)
    assert read_cursor(IDS, pruned, IDS.write(HERE, 4)) == 4
    with pytest.raises(CursorExpired) as refused:
        read_cursor(IDS, pruned, IDS.write(HERE, 3))
    assert refused.value.rule == "cursor.kept"


@pytest.mark.requirement("8.5-12", "8.3-11")
def test_without_a_cursor_a_read_starts_at_the_beginning() -> None:
    """At the oldest event that is still kept."""
    assert read_cursor(IDS, HEAD, None) == 0
    assert read_cursor(IDS, replace(HEAD, first_seq=5), None) == 4


@pytest.mark.requirement("8.5-17", "8.5-18", "8.5-19")
def test_c16_a_page_ends_in_its_cursor() -> None:
    """The last event returned; an empty page echoes what was asked with, and nothing when nothing was."""
    full = page(Slice(HEAD, (MINE, REPLY), True), Wanted(EventId("evt_before")))
    assert (full.cursor, full.has_more, full.events) == (REPLY.id, True, (MINE, REPLY))
    assert (full.conversation_id, full.status, full.responder) == (HERE, HEAD.status, HEAD.responder)
    empty = page(Slice(HEAD, (), False), Wanted(EventId("evt_before"), 5))
    assert (empty.cursor, empty.has_more, empty.events) == ("evt_before", False, ())
    assert page(Slice(HEAD, (), False), Wanted()).cursor is None


@pytest.mark.requirement("8.5-15")
@pytest.mark.parametrize("event", [MINE, REPLY, WORKING])
def test_any_event_ends_a_read(event: Event) -> None:
    """A GET is held while there is nothing at all to return (readings 1)."""
    assert should_hold(Slice(HEAD, (), False))
    assert should_hold(Slice(replace(HEAD, status=Status.IDLE), (), False))
    assert not should_hold(Slice(HEAD, (event,), False))


@pytest.mark.parametrize("own", [None, OWN])
def test_nothing_is_held_when_nothing_can_come_or_more_is_there(own: MessageId | None) -> None:
    """A closed conversation has no more events, and a full page is read on at once."""
    assert not should_hold(Slice(replace(HEAD, status=Status.CLOSED), (), False), own)
    assert not should_hold(Slice(HEAD, (MINE,), True), own)


@pytest.mark.requirement("8.3-10")
@pytest.mark.parametrize(
    "events",
    [(), (MINE,), (MINE, WORKING), (REPLY, MINE, WORKING), (MINE, ANOTHER), (ANOTHER, WORKING)],
    ids=["none", "own", "own-and-working", "an-older-reply", "anothers", "own-before-the-page"],
)
def test_c18_a_post_waits_for_more_than_its_own(events: tuple[Event, ...]) -> None:
    """Its message, the `working` it causes, what was there before, other messages of the User (readings 1)."""
    assert should_hold(Slice(HEAD, events, False), OWN)


@pytest.mark.requirement("8.3-10")
@pytest.mark.parametrize(
    "event",
    [
        REPLY,
        AuthorizationNeeded(EventId("evt_a"), NOW, "orders:read"),
        UserRequested(EventId("evt_u"), NOW, "to confirm"),
        DirectOpened(EventId("evt_o"), NOW, ConversationId("cnv_2")),
        DirectClosed(EventId("evt_c"), NOW, ConversationId("cnv_2")),
        _state(Status.QUEUED),
        _state(Status.WORKING, Responder.HUMAN),
    ],
)
def test_c18_what_the_company_does_ends_a_post(event: Event) -> None:
    """After the own message, or on a page that begins behind it."""
    assert not should_hold(Slice(HEAD, (MINE, WORKING, event), False), OWN)
    assert not should_hold(Slice(HEAD, (event, ANOTHER), False), OWN)


def test_idle_ends_a_post() -> None:
    """With nothing in progress there is nothing to wait for, as after a message of mere context."""
    assert not should_hold(Slice(replace(HEAD, status=Status.IDLE), (MINE,), False), OWN)


@pytest.mark.parametrize(
    ("parked", "events", "scope"),
    [
        (True, ("a", "b"), "b"),
        (True, (), ""),
        (False, ("a", "b"), ""),
    ],
)
def test_a_need_is_told_while_it_stands(parked: bool, events: tuple[str, ...], scope: str) -> None:
    """The newest among these events; none once nobody waits for it any more."""
    needs = [AuthorizationNeeded(EventId(f"evt_{name}"), NOW, name) for name in events]
    assert need(Slice(replace(HEAD, parked=parked), (*needs, WORKING), more=False)) == scope
