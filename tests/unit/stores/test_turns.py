"""The rules about turns that every store follows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.protocol.conversation.change import Change, Keys, Loaded
from papaver.protocol.conversation.model import Author, AuthorType, Status
from papaver.protocol.conversation.state import Head, Lease
from papaver.protocol.terms import ConversationId, TurnId
from papaver.stores.faults import StoreMisused
from papaver.stores.turns import attends, begun, check_change, continues, due_since, given_back, makes_due, prunable
from papaver.testing.stores.samples import CLIENT, NOW, USER, at

HEAD = Head(ConversationId("cnv_a"), CLIENT, USER, at(), at(5), last_seq=3, asked_seq=3)
IDLE = replace(HEAD, answered_seq=3, status=Status.IDLE)
LEASE = Lease(HEAD.id, TurnId("trn_1"), 1, "runner", NOW + 30)


def test_waiting_begins_with_the_change_that_made_it_due() -> None:
    """Later messages do not move it; an ended turn that leaves another one due does."""
    assert due_since(IDLE, NOW, ended=False) is None
    assert due_since(HEAD, None, ended=False) == NOW + 5
    assert due_since(HEAD, NOW, ended=False) == NOW
    assert due_since(HEAD, NOW, ended=True) == NOW + 5


def test_a_turn_goes_on_while_it_has_something_to_answer() -> None:
    """Or a handoff to see to."""
    assert continues(HEAD, 3)
    assert not continues(replace(HEAD, answered_seq=3, asked_seq=4), 3)
    assert continues(replace(IDLE, handoff_pending=True), 3)


def test_failures_count_what_was_begun_and_not_given_back() -> None:
    """Never below zero."""
    assert begun(HEAD).failures == 1
    assert given_back(begun(HEAD)).failures == 0
    assert given_back(HEAD).failures == 0


def test_runners_are_woken_by_what_may_be_due() -> None:
    """Not by what a turn says while it goes on."""
    assert makes_due(Change(None, (HEAD,)), None)
    assert not makes_due(Change(None, (IDLE,)), None)
    assert not makes_due(Change(None, (HEAD,)), LEASE)
    assert makes_due(Change(None, (HEAD,), ended=True), LEASE)


def test_whoever_waits_or_has_somebody_is_attended() -> None:
    """Waiting counts before having; a closed conversation needs nobody."""
    waits, has = replace(IDLE, queued_at=at(7)), replace(IDLE, person=Author(AuthorType.HUMAN, "per_1"))
    assert [attends(head) for head in (IDLE, waits, has)] == [(None, None), (1, NOW + 7), (2, 0.0)]
    assert attends(replace(waits, person=has.person)) == (1, NOW + 7)
    assert attends(replace(waits, status=Status.CLOSED)) == (None, None)


def test_what_may_go_one_day_is_as_old_as_the_oldest_event() -> None:
    """Of which there is always one that stays."""
    assert prunable(HEAD) == NOW
    assert prunable(replace(HEAD, first_seq=2, kept_from=at(3))) == NOW + 3
    assert prunable(replace(HEAD, first_seq=3, kept_from=at(3))) is None


KEPT = replace(HEAD, first_seq=2)


@pytest.mark.parametrize("which", ["head", "parent", "direct", "accepted"])
@pytest.mark.parametrize(("first_seq", "prune"), [(2, False), (2, True), (3, True)])
def test_a_head_may_be_pruned_forward(which: str, first_seq: int, prune: bool) -> None:
    """Whichever of the loaded ones it is, up to the newest event."""
    assert not _misused(which, first_seq, prune=prune)


@pytest.mark.parametrize("which", ["head", "parent", "direct", "accepted"])
@pytest.mark.parametrize(("first_seq", "prune"), [(1, True), (1, False), (3, False), (4, True)])
def test_a_head_is_not_pruned_back_unsaid_or_empty(which: str, first_seq: int, prune: bool) -> None:
    """Backwards, without saying so, beyond the newest event."""
    assert _misused(which, first_seq, prune=prune)


def _misused(which: str, first_seq: int, *, prune: bool) -> bool:
    loaded = replace(Loaded(), **{which: KEPT})
    change = Change(None, (replace(KEPT, first_seq=first_seq),), prune=prune)
    try:
        check_change(change, Keys(), loaded, lambda _: KEPT.last_seq)
    except StoreMisused:
        return True
    return False
