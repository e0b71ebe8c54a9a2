"""A message that was accepted before, sent again: answered as the first time, and added no more (8.3)."""

from __future__ import annotations

from datetime import datetime

from papaver.protocol.conversation.change import Change
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.operations import Answered, Say, Start
from papaver.protocol.conversation.pages import EventIds, read_cursor
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.errors import ConversationNotFound, InvalidCursor, MessageIdConflict
from papaver.values.rules import rule

__all__ = ["check_new_has_no_cursor", "check_same_content", "repeat"]


@rule("cursor.new-conversation-has-none")
def check_new_has_no_cursor(command: Start) -> None:
    """A conversation that does not exist yet knows no cursor (readings 22). Raises InvalidCursor."""
    if command.cursor is not None:
        raise InvalidCursor(rule="cursor.new-conversation-has-none")


@rule("message.id-reuse")
def check_same_content(receipt: Receipt, mark: str) -> None:
    """A message id that was accepted is used again for the same message only (8.3; readings 8)."""
    if receipt.fingerprint != mark:
        raise MessageIdConflict(rule="message.id-reuse")


def repeat(
    receipt: Receipt, mark: str, command: Start | Say, head: Head | None, now: datetime, events: EventIds
) -> Change[Answered]:
    """A retry, from the conversation's owner; being accepted, it may still bind it to an account (readings 2, 7).

    Raises MessageIdConflict for another content, InvalidCursor or CursorExpired.
    """
    if head is None:
        raise ConversationNotFound(detail="there is none")
    if command.cursor is not None:
        read_cursor(events, head, command.cursor)
    check_same_content(receipt, mark)
    draft = Draft(head, now, events)
    draft.admit(command.caller)
    draft.go_on()
    return draft.change(
        Answered(
            receipt.accepted_as,
            receipt.conversation_id,
            receipt.status,
            receipt.responder,
            draft.last_seq,
            repeated=True,
        )
    )
