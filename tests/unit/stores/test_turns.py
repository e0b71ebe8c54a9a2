"""The rules about turns that every store follows."""

from __future__ import annotations

from dataclasses import replace

from papaver.protocol.conversation.change import Change
from papaver.protocol.conversation.model import Status
from papaver.protocol.conversation.state import Head, Lease
from papaver.protocol.terms import ConversationId, TurnId
from papaver.stores.turns import begun, continues, due_since, given_back, makes_due
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
