"""What a request changes: the one pure decision between what is stored and what is written (8.2-8.4, 8.9, 8.12).

The order is readings 5's: replay, Session, what is not offered, owner, cursor, retry, state. So a retry gets its first
answer even after the close, and whoever may not see the conversation learns nothing of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import overload

from papaver.protocol.conversation.change import Change, Loaded
from papaver.protocol.conversation.content import check_content, fingerprint, needs_answer
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Answered,
    Caller,
    Close,
    Command,
    Expire,
    Fail,
    HandOff,
    Park,
    RequestCommand,
    Say,
    Settled,
    Start,
    TurnCommand,
    Unavailable,
)
from papaver.protocol.conversation.ownership import check_owner
from papaver.protocol.conversation.pages import EventIds, read_cursor
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.conversation.turn_decide import decide_turn
from papaver.protocol.errors import (
    ConversationClosed,
    ConversationNotFound,
    DirectConversationOpen,
    InvalidCursor,
    InvalidRequest,
    InvalidSession,
    MessageIdConflict,
)
from papaver.protocol.session import check_not_ended
from papaver.values.rules import rule

__all__ = [
    "check_message_first",
    "check_new_has_no_cursor",
    "check_no_direct",
    "check_no_open_direct",
    "check_not_closed",
    "check_not_replayed",
    "check_same_content",
    "check_session_owner",
    "decide",
]

_STARTED = 201
_ACCEPTED = 202
_DONE = 200


@overload
def decide(command: RequestCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered]: ...
@overload
def decide(command: TurnCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Settled]: ...
def decide(command: Command, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered] | Change[Settled]:
    """The change that `command` makes of what was loaded for `keys(command)`; `now` is aware, UTC.

    Raises the PoppyError that the request is refused with, or LeaseLost. Whatever is raised, nothing is written.
    """
    if isinstance(command, Answer | Fail | Park | Unavailable | Expire):
        return decide_turn(command, loaded, now, events)
    _check_session(command.caller, loaded)
    if isinstance(command, Start):
        return _start(command, loaded, now, events)
    check_owner(loaded.head, command.caller)
    head = _existing(loaded)
    draft = Draft(head, now, events)
    match command:
        case Say():
            return _say(command, head, loaded.receipt, draft, events)
        case HandOff():
            return _hand_off(command, head, draft)
        case Close():
            return _close(command, head, draft)
        case _:
            draft.admit(command.caller)
            draft.go_on()
            return draft.change(_answered(draft, head, _DONE))


def _existing(loaded: Loaded) -> Head:
    """The head, for a caller that came past the owner check. Without that check, as in a test, there may be none."""
    if loaded.head is None:
        raise ConversationNotFound(detail="there is none")
    return loaded.head


def _check_session(caller: Caller, loaded: Loaded) -> None:
    check_not_replayed(loaded)
    check_session_owner(caller, loaded)
    if loaded.session is not None:
        check_not_ended(loaded.session)


def _start(command: Start, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered]:
    check_no_direct(command)
    check_message_first(command)
    caller, message = command.caller, command.message
    if message is None:
        raise InvalidRequest(detail="a start without a message came past its check")
    check_content(message)
    mark = fingerprint(message, None)
    if loaded.receipt is not None:
        check_owner(loaded.head, caller)
        head = _existing(loaded)
        if command.cursor is not None:
            read_cursor(events, head, command.cursor)
        return _repeat(loaded.receipt, mark, Draft(head, now, events), caller)
    check_new_has_no_cursor(command)
    head = Head(
        id=command.conversation_id,
        client_id=caller.client_id,
        user_id=caller.user_id,
        created_at=now,
        changed_at=now,
        status=Status.WORKING if needs_answer(message) else Status.IDLE,
    )
    draft = Draft(head, now, events)
    draft.admit(caller)
    draft.hear(message, command.context_bytes, caller.asker)
    return _accept(draft, head, _STARTED, mark)


def _hand_off(command: HandOff, head: Head, draft: Draft) -> Change[Answered]:
    """Whoever waits for a person or has one is told so, and nothing changes (8.9)."""
    check_not_closed(head)
    check_no_open_direct(head)
    draft.admit(command.caller)
    if draft.status is not Status.QUEUED and draft.responder is Responder.AGENT:
        draft.await_person()
    return draft.change(_answered(draft, head, _ACCEPTED))


def _close(command: Close, head: Head, draft: Draft) -> Change[Answered]:
    """Closing again is answered alike and adds nothing; a pending handoff is cancelled (8.12)."""
    draft.admit(command.caller)
    draft.stop_awaiting()
    draft.turn_to(Status.CLOSED)
    return draft.change(_answered(draft, head, _DONE))


def _say(command: Say, head: Head, receipt: Receipt | None, draft: Draft, events: EventIds) -> Change[Answered]:
    check_content(command.message)
    if command.cursor is not None:
        read_cursor(events, head, command.cursor)
    mark = fingerprint(command.message, head.id)
    if receipt is not None:
        return _repeat(receipt, mark, draft, command.caller)
    check_not_closed(head)
    check_no_open_direct(head)
    draft.admit(command.caller)
    draft.hear(command.message, command.context_bytes, command.caller.asker)
    draft.go_on()
    return _accept(draft, head, _ACCEPTED, mark)


def _accept(draft: Draft, head: Head, status_code: int, mark: str) -> Change[Answered]:
    receipt = Receipt(mark, head.id, status_code, draft.status, draft.responder)
    return draft.change(_answered(draft, head, status_code), receipt=receipt)


def _repeat(receipt: Receipt, mark: str, draft: Draft, caller: Caller) -> Change[Answered]:
    """A retry adds no message and is answered as the first time; being accepted, it may still bind (readings 2, 7)."""
    check_same_content(receipt, mark)
    draft.admit(caller)
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


def _answered(draft: Draft, head: Head, status_code: int) -> Answered:
    return Answered(status_code, head.id, draft.status, draft.responder, draft.last_seq)


@rule("session.jti-once")
def check_not_replayed(loaded: Loaded) -> None:
    """A Session JWT changes something once (5.3; readings 49). Raises InvalidSession."""
    if loaded.replayed:
        raise InvalidSession("this Session JWT was used before; sign a new one", rule="session.jti-once")


@rule("session.unchanged")
def check_session_owner(caller: Caller, loaded: Loaded) -> None:
    """The Session is still the one that was verified: its `sid` was not begun anew by another (5.3, step 4)."""
    opened, found = caller.session, loaded.session
    if opened and found and (opened.user_id, opened.agent_id) != (found.user_id, found.agent_id):
        raise InvalidSession(rule="session.unchanged", detail="the sid has another owner meanwhile")


@rule("direct.not-offered")
def check_no_direct(command: Start) -> None:
    """This Company opens no Direct Conversations (8.10). Raises InvalidRequest."""
    if command.parent is not None or command.user_requested is not None:
        raise InvalidRequest("Direct Conversations are not offered here", rule="direct.not-offered")


@rule("message.required")
def check_message_first(command: Start) -> None:
    """A conversation starts with its first message (8.3). Raises InvalidRequest."""
    if command.message is None:
        raise InvalidRequest("a conversation starts with a message", rule="message.required")


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


@rule("conversation.not-closed")
def check_not_closed(head: Head) -> None:
    """A closed conversation takes no messages and no handoff (8.12, 8.13)."""
    if head.status is Status.CLOSED:
        raise ConversationClosed(rule="conversation.not-closed")


@rule("conversation.no-open-direct")
def check_no_open_direct(head: Head) -> None:
    """While its Direct Conversation is open, a conversation takes no messages and no handoff (8.10, 8.13)."""
    if head.open_direct is not None:
        raise DirectConversationOpen(head.open_direct, rule="conversation.no-open-direct")
