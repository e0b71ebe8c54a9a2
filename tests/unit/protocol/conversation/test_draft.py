"""A change while it is decided: numbers, times, and one state event per change."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from papaver.protocol.conversation.change import Note, NoteKind
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    AuthorType,
    DirectClosed,
    DirectOpened,
    Responder,
    StateChanged,
    Status,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Access, Asker, Head
from papaver.protocol.terms import ConversationId
from tests.unit.protocol.conversation.world import DANA, NOW, said, signed_in

IDS = EventIds(b"secret")
HEAD = Head(ConversationId("cnv_1"), DANA.client_id, DANA.user_id, NOW, NOW, last_seq=7, asked_seq=5)


def test_events_go_on_from_the_head() -> None:
    """Numbers without a gap, ids that prove them, and a head that counts them."""
    draft = Draft(HEAD, NOW, IDS)
    draft.hear(said("m"))
    draft.speak(said("n"))
    draft.ask_for_user("to confirm")
    change = draft.change("done")
    assert [seq for _, seq, _ in change.events] == [8, 9, 10]
    assert [IDS.read(where, event.id) for where, _, event in change.events] == [8, 9, 10]
    assert (change.heads[0].last_seq, change.heads[0].asked_seq, draft.last_seq) == (10, 8, 10)


def test_nothing_done_is_nothing_written() -> None:
    """An empty draft writes neither head nor events."""
    assert Draft(HEAD, NOW, IDS).change(None).heads == ()


def test_a_change_without_events_leaves_the_time_of_change() -> None:
    """Binding an account is no activity; the first account stays."""
    draft = Draft(HEAD, NOW + timedelta(hours=1), IDS)
    draft.admit(DANA)
    draft.admit(signed_in("A", "orders:read"))
    draft.admit(signed_in("B", "orders:write"))
    (head,) = draft.change(None).heads
    assert (head.account_id, head.changed_at) == ("A", NOW)


def test_times_never_run_backwards() -> None:
    """A clock that was set back does not disorder the log."""
    draft = Draft(HEAD, NOW - timedelta(hours=1), IDS)
    draft.hear(said("m"))
    change = draft.change(None)
    assert (change.events[0][2].at, change.heads[0].changed_at) == (NOW, NOW)


def test_a_status_that_does_not_change_has_no_event() -> None:
    """One event per change, and none for turning to what it is."""
    draft = Draft(HEAD, NOW, IDS)
    draft.turn_to(Status.WORKING)
    draft.turn_to(Status.IDLE)
    draft.turn_to(Status.IDLE)
    events = [event for _, _, event in draft.change(None).events]
    assert [event.status for event in events if isinstance(event, StateChanged)] == [Status.IDLE]
    assert len(events) == 1


def test_answers_never_count_backwards() -> None:
    """An outcome of an older turn does not make answered messages due again."""
    draft = Draft(HEAD, NOW, IDS)
    assert draft.unanswered
    draft.answered_until(5)
    draft.answered_until(2)
    assert not draft.unanswered
    assert draft.change(None).heads[0].answered_seq == 5


def test_awaiting_a_person_and_stopping() -> None:
    """Queued with a state event; stopping leaves the status to the caller."""
    draft = Draft(HEAD, NOW, IDS)
    draft.await_person()
    (head,) = draft.change(None).heads
    assert (head.status, head.handoff_pending) == (Status.QUEUED, True)
    draft.stop_awaiting()
    assert draft.change(None).heads[0].handoff_pending is False


def test_mere_context_is_heard_and_asks_for_nothing() -> None:
    """It is recorded and merged, and what was asked stays as it was."""
    draft = Draft(HEAD, NOW, IDS)
    draft.hear(said("m", None, context={"locale": "de"}))
    (head,) = draft.change(None).heads
    assert (head.last_seq, head.asked_seq, head.context) == (8, 5, {"locale": "de"})


PARKED = replace(HEAD, status=Status.IDLE, scope="orders:read orders:write", parked=True)


def test_the_newest_token_is_the_one_that_counts() -> None:
    """A conversation has one account and tokens that come and go; whoever sends none changes nothing."""
    draft = Draft(HEAD, NOW, IDS)
    draft.admit(signed_in("A", "orders:read"))
    draft.admit(signed_in("A", "orders:read", "orders:write", until=5.0))
    draft.admit(DANA)
    (head,) = draft.change(None).heads
    assert (head.access, head.scope) == (Access(("orders:read", "orders:write"), 5.0), "orders:read")


def test_an_account_whose_token_says_nothing_binds_all_the_same() -> None:
    """Then there is nothing that a turn could run with."""
    draft = Draft(PARKED, NOW, IDS)
    draft.admit(replace(signed_in("A"), access=None))
    (head,) = draft.change(None).heads
    assert (head.account_id, head.access, head.scope, head.parked) == ("A", None, PARKED.scope, True)
    draft = Draft(HEAD, NOW, IDS)
    draft.admit(replace(signed_in("A"), access=None))
    assert draft.change(None).heads[0].scope == ""


def test_what_needs_the_account_waits_for_it() -> None:
    """The event names the scopes; what is parked is no work until a token covers them, all of them."""
    draft = Draft(HEAD, NOW, IDS)
    draft.park(("orders:read", "orders:write"), 5)
    assert not draft.has_work
    (event,) = [event for _, _, event in draft.change(None).events]
    assert isinstance(event, AuthorizationNeeded)
    assert (event.scope, event.error) == ("orders:read orders:write", "insufficient_scope")
    draft.admit(signed_in("A", "orders:read"))
    draft.admit(signed_in("A", "orders:read", "orders:write", until=NOW.timestamp()))
    assert not draft.has_work
    draft.admit(signed_in("A", "orders:read", "orders:write", until=NOW.timestamp() + 1))
    assert draft.has_work
    assert draft.change(None).heads[0].scope == "orders:read orders:write"


def test_what_was_heard_meanwhile_is_not_parked() -> None:
    """A newer message is looked at with all that is unanswered."""
    draft = Draft(HEAD, NOW, IDS)
    draft.park(("orders:read",), 4)
    assert draft.has_work
    draft = Draft(PARKED, NOW, IDS)
    draft.hear(said("m", None, context={"locale": "de"}), asker=Asker(version="0.4"))
    assert not draft.has_work
    draft.hear(said("n"), asker=Asker(version="0.4"))
    assert draft.has_work
    assert draft.change(None).heads[0].asked_by == Asker(version="0.4")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (replace(PARKED, parked=False), Status.WORKING),
        (PARKED, Status.IDLE),
        (replace(PARKED, parked=False, answered_seq=5), Status.IDLE),
        (replace(PARKED, parked=False, responder=Responder.HUMAN), Status.IDLE),
        (replace(PARKED, parked=False, status=Status.QUEUED), Status.QUEUED),
    ],
)
def test_work_goes_on_where_it_is_the_agents(head: Head, status: Status) -> None:
    """Not while a person answers or is waited for, nor while the account is."""
    draft = Draft(head, NOW, IDS)
    draft.go_on()
    assert draft.status is status


def test_nothing_stays_parked_that_is_answered_or_closed() -> None:
    """There is nothing left to run again."""
    draft = Draft(PARKED, NOW, IDS)
    draft.answered_until(5)
    assert draft.change(None).heads[0].parked is False
    draft = Draft(PARKED, NOW, IDS)
    draft.turn_to(Status.CLOSED)
    assert draft.change(None).heads[0].parked is False


ALEX = Author(AuthorType.HUMAN, "aut_alex", "Alex")
CHILD = ConversationId("cnv_2")


def test_who_joins_and_leaves_makes_one_event_each() -> None:
    """Status and responder change together (8.7); the head knows who it is, and since when one was waited for."""
    draft = Draft(HEAD, NOW, IDS)
    draft.await_person()
    assert draft.change(None).heads[0].queued_at == NOW
    draft.wait_for_person()
    draft.join(ALEX)
    assert draft.person == ALEX
    draft.leave()
    assert draft.person is None
    change = draft.change(None)
    states = [(e.status, e.responder) for _, _, e in change.events if isinstance(e, StateChanged)]
    assert states == [
        (Status.QUEUED, Responder.AGENT),
        (Status.IDLE, Responder.HUMAN),
        (Status.WORKING, Responder.AGENT),
    ]
    (head,) = change.heads
    assert (head.person, head.queued_at, head.handoff_pending) == (None, None, False)


def test_what_is_unanswered_is_noted_for_the_person_once() -> None:
    """When somebody will come, or when somebody joins at once, and never when all is answered."""
    waits = Draft(HEAD, NOW, IDS)
    waits.await_person()
    waits.wait_for_person()
    waits.join(ALEX)
    at_once = Draft(HEAD, NOW, IDS)
    at_once.join(ALEX)
    answered = Draft(replace(HEAD, answered_seq=5), NOW, IDS)
    answered.join(ALEX)
    answered.leave()
    note = Note(NoteKind.MESSAGE, HEAD.id, 5, 1)
    assert [one.change(None).notes for one in (waits, at_once, answered)] == [(note,), (note,), ()]
    assert answered.status is Status.IDLE


def test_what_is_said_to_a_person_is_noted() -> None:
    """Also what has no need of an answer; while it is not known whether somebody comes nothing is (8.9)."""
    pending = Draft(HEAD, NOW, IDS)
    pending.await_person()
    pending.hear(said("m"))
    joined = Draft(HEAD, NOW, IDS)
    joined.join(ALEX)
    joined.hear(said("m", None, context={"user_available": True}))
    assert pending.change(None).notes == ()
    assert joined.change(None).notes[-1] == Note(NoteKind.MESSAGE, HEAD.id, 9, 9)


def test_closing_tells_who_waits_and_whose_direct_conversation_it_is() -> None:
    """The notes name the event of the close (8.10, 8.12)."""
    plain, direct = Draft(HEAD, NOW, IDS), Draft(replace(HEAD, parent=CHILD), NOW, IDS)
    direct.join(ALEX)
    for draft in (plain, direct):
        draft.close()
        assert draft.status is Status.CLOSED
    assert plain.change(None).notes == ()
    kinds = [note.kind for note in direct.change(None).notes]
    assert kinds == [NoteKind.MESSAGE, NoteKind.CANCELLED, NoteKind.DIRECT_CLOSED]


def test_a_parent_knows_its_open_direct_conversation() -> None:
    """Two events, and the head between them (8.10)."""
    draft = Draft(HEAD, NOW, IDS)
    draft.opened_direct(CHILD)
    assert draft.change(None).heads[0].open_direct == CHILD
    draft.closed_direct(CHILD)
    change = draft.change(None)
    assert change.heads[0].open_direct is None
    assert [type(event) for _, _, event in change.events] == [DirectOpened, DirectClosed]


def test_the_first_word_may_be_the_companys() -> None:
    """A turn is due though nothing was said, or a person is waited for (8.10)."""
    agent, person = Draft(replace(HEAD, status=Status.IDLE, asked_seq=0), NOW, IDS), Draft(HEAD, NOW, IDS)
    agent.speak_first(Asker(version="0.4"), with_person=False)
    person.speak_first(None, with_person=True)
    (head,) = agent.change(None).heads
    assert (head.status, head.asked_seq, head.turn_due) == (Status.WORKING, 8, True)
    assert person.change(None).heads[0].handoff_pending


def test_several_drafts_are_one_change() -> None:
    """Heads, events and notes of those beside it come after its own; one that did not change has no head."""
    draft, beside, same = (
        Draft(HEAD, NOW, IDS),
        Draft(replace(HEAD, id=CHILD), NOW, IDS),
        Draft(replace(HEAD, id=ConversationId("cnv_3")), NOW, IDS),
    )
    draft.speak(said("n"))
    beside.close()
    change = draft.change("done", beside=(beside, same))
    assert [head.id for head in change.heads] == [draft.id, CHILD]
    assert [where for where, _, _ in change.events] == [HEAD.id, CHILD]
