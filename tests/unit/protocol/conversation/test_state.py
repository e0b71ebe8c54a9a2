"""When the Company's side has something to do."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.state import Head
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
