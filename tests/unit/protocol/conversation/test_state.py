"""When the Company's side has something to do."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.state import Access, Head
from papaver.protocol.terms import ConversationId
from tests.unit.protocol.conversation.world import DANA, NOW

ASKED = Head(ConversationId("cnv_1"), DANA.client_id, DANA.user_id, NOW, NOW, last_seq=1, asked_seq=1)


@pytest.mark.parametrize(
    ("head", "due"),
    [
        (ASKED, True),
        (replace(ASKED, answered_seq=1), False),
        (replace(ASKED, status=Status.IDLE), False),
        (replace(ASKED, status=Status.CLOSED), False),
        (replace(ASKED, status=Status.QUEUED), False),
        (replace(ASKED, responder=Responder.HUMAN), False),
        (replace(ASKED, status=Status.QUEUED, handoff_pending=True), True),
        (replace(ASKED, answered_seq=1, handoff_pending=True), True),
    ],
)
def test_a_turn_is_due(head: Head, due: bool) -> None:
    """While the agent works on something unanswered, or a handoff has to be seen to."""
    assert head.turn_due is due


@pytest.mark.parametrize(
    ("access", "scopes", "covered"),
    [
        (Access(("a", "b")), ("a",), True),
        (Access(("a", "b")), ("b", "a"), True),
        (Access(("a", "b")), ("a", "c"), False),
        (Access(("a",)), ("A",), False),
        (Access(("a:write",)), ("a",), False),
        (Access(()), (), True),
        (Access(("a",), 10.0), ("a",), False),
        (Access(("a",), 10.1), ("a",), True),
        (Access(("a",), 9.0), (), False),
    ],
)
def test_a_token_covers_what_it_names_until_it_expires(access: Access, scopes: tuple[str, ...], covered: bool) -> None:
    """Name by name, and at second 10 only what lives longer."""
    assert access.covers(scopes, 10.0) is covered


@pytest.mark.parametrize(
    ("head", "since"),
    [
        (ASKED, None),
        (replace(ASKED, last_seq=2), NOW),
        (replace(ASKED, last_seq=3, first_seq=3, kept_from=NOW), None),
        (replace(ASKED, last_seq=4, first_seq=3, kept_from=NOW + timedelta(days=1)), NOW + timedelta(days=1)),
    ],
)
def test_what_may_be_pruned_one_day(head: Head, since: datetime | None) -> None:
    """Everything but the newest event; since when the oldest of it is there (8.5)."""
    assert head.prunable_from == since
