"""A message that was accepted before, sent again: its first answer, its cursor, its conflicts (8.3)."""

from __future__ import annotations

import pytest

from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.operations import Say, Start
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.retries import check_new_has_no_cursor, check_same_content, repeat
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.errors import ConversationNotFound, InvalidCursor, MessageIdConflict
from papaver.protocol.terms import ConversationId, EventId
from tests.unit.protocol.conversation.world import DANA, NOW, said

HERE = ConversationId("cnv_1")
IDS = EventIds(b"a secret of the Company")
HEAD = Head(HERE, DANA.client_id, DANA.user_id, NOW, NOW, status=Status.CLOSED, last_seq=4)
RECEIPT = Receipt("mark", HERE, 202, Status.WORKING, Responder.AGENT)


def test_a_retry_is_answered_as_the_first_time() -> None:
    """Status code, status and responder are the receipt's, whatever became of the conversation (readings 7)."""
    change = repeat(RECEIPT, "mark", Say(DANA, HERE, said("m")), HEAD, NOW, IDS)
    assert change.result.repeated
    assert (change.result.status_code, change.result.status, change.result.last_seq) == (202, Status.WORKING, 4)
    assert (change.heads, change.events, change.receipt) == ((), (), None)


def test_another_content_is_a_conflict() -> None:
    """8.3: the id was taken."""
    with pytest.raises(MessageIdConflict) as refused:
        check_same_content(RECEIPT, "another")
    assert refused.value.rule == "message.id-reuse"


def test_a_retrys_cursor_is_read() -> None:
    """One of this conversation is taken, another is not (readings 22)."""
    assert repeat(RECEIPT, "mark", Say(DANA, HERE, said("m"), IDS.write(HERE, 2)), HEAD, NOW, IDS).result.repeated
    with pytest.raises(InvalidCursor):
        repeat(RECEIPT, "mark", Say(DANA, HERE, said("m"), EventId("evt_x")), HEAD, NOW, IDS)


def test_a_new_conversation_has_no_cursor() -> None:
    """Whatever it is (readings 22)."""
    check_new_has_no_cursor(Start(DANA, HERE, said("m")))
    with pytest.raises(InvalidCursor) as refused:
        check_new_has_no_cursor(Start(DANA, HERE, said("m"), cursor=EventId("evt_1")))
    assert refused.value.rule == "cursor.new-conversation-has-none"


def test_a_retry_of_nothing_is_not_found() -> None:
    """A receipt whose conversation is gone names nothing."""
    with pytest.raises(ConversationNotFound):
        repeat(RECEIPT, "mark", Say(DANA, HERE, said("m")), None, NOW, IDS)
