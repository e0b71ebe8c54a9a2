"""Direct Conversations: how one opens, what its end does to its parent, and the other way round (8.10, 8.12)."""

from __future__ import annotations

from datetime import datetime

from papaver.protocol.conversation.change import Change, Loaded, NoteKind
from papaver.protocol.conversation.content import check_content, fingerprint, needs_answer
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.operations import Answered, Start
from papaver.protocol.conversation.ownership import check_owner
from papaver.protocol.conversation.pages import EventIds, read_cursor
from papaver.protocol.conversation.retries import check_new_has_no_cursor, repeat
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.errors import ConversationClosed, ConversationNotFound, DirectConversationOpen, InvalidRequest
from papaver.values.rules import rule

__all__ = [
    "check_invited",
    "check_no_open_direct",
    "check_not_closed",
    "check_not_direct",
    "close",
    "open_direct",
]

_STARTED = 201


@rule("conversation.not-closed")
def check_not_closed(head: Head) -> None:
    """A closed conversation takes no messages, no handoff and no Direct Conversation (8.10, 8.12, 8.13)."""
    if head.status is Status.CLOSED:
        raise ConversationClosed(rule="conversation.not-closed")


@rule("conversation.no-open-direct")
def check_no_open_direct(head: Head) -> None:
    """While its Direct Conversation is open, a conversation takes no messages, no handoff and no other (8.10, 8.13)."""
    if head.open_direct is not None:
        raise DirectConversationOpen(head.open_direct, rule="conversation.no-open-direct")


@rule("direct.parent-is-not-direct")
def check_not_direct(parent: Head) -> None:
    """A Direct Conversation is the parent of none (8.10). Raises InvalidRequest."""
    if parent.parent is not None:
        raise InvalidRequest(
            "the parent is a Direct Conversation itself; name the conversation it belongs to",
            rule="direct.parent-is-not-direct",
        )


@rule("direct.event-is-invitation")
def check_invited(command: Start) -> None:
    """What is accepted is a `user_requested` event of that very parent (8.10). Raises InvalidRequest."""
    if command.user_requested is not None and not command.invited:
        raise InvalidRequest(
            "user_requested_event_id names no user_requested event of the parent", rule="direct.event-is-invitation"
        )


def open_direct(command: Start, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered]:
    """A start that names a parent: its owner first, then what was accepted before, then the parent's state.

    An acceptance that is repeated is answered with its Direct Conversation as that stands, and records nothing, also
    no message that comes with it (readings 23). Raises what the request is refused with.
    """
    caller, message = command.caller, command.message
    check_owner(loaded.parent, caller)
    if loaded.parent is None:
        raise ConversationNotFound(detail="the parent came past its check")
    if loaded.acceptance is not None:
        check_owner(loaded.accepted, caller)
        return _accepted(command, loaded, now, events)
    if message is not None:
        check_content(message)
        mark = fingerprint(message, None, parent=command.parent, accepts=command.user_requested)
        if loaded.receipt is not None:
            check_owner(loaded.head, caller)
            return repeat(loaded.receipt, mark, command, loaded.head, now, events)
    else:
        mark = ""
    check_new_has_no_cursor(command)
    check_invited(command)
    check_not_closed(loaded.parent)
    check_not_direct(loaded.parent)
    check_no_open_direct(loaded.parent)
    return _opened(command, loaded.parent, mark, now, events)


def _accepted(command: Start, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered]:
    head = loaded.accepted
    if head is None:
        raise ConversationNotFound(detail="the Direct Conversation came past its check")
    if command.cursor is not None:
        read_cursor(events, head, command.cursor)
    draft = Draft(head, now, events)
    draft.admit(command.caller)
    draft.go_on()
    return draft.change(
        Answered(
            _STARTED, head.id, draft.status, draft.responder, draft.last_seq, repeated=draft.last_seq == head.last_seq
        )
    )


def _opened(command: Start, parent: Head, mark: str, now: datetime, events: EventIds) -> Change[Answered]:
    """The Company speaks first where there is no message, and whoever asked for the User is told of it at once.

    The User's situation is known from the parent (readings 35). What is parked there and is covered now goes on at
    once, as it does after a read: an open Direct Conversation keeps requests from the parent, not its turns (8.11).
    """
    message, caller = command.message, command.caller
    with_person = parent.responder is Responder.HUMAN
    begins = Status.WORKING if message is not None and needs_answer(message) and not with_person else Status.IDLE
    head = Head(
        id=command.conversation_id,
        client_id=caller.client_id,
        user_id=caller.user_id,
        created_at=now,
        changed_at=now,
        status=begins,
        context=parent.context,
        parent=parent.id,
    )
    draft, above = Draft(head, now, events), Draft(parent, now, events)
    draft.admit(caller)
    above.admit(caller)
    if message is not None:
        draft.hear(message, command.context_bytes, caller.asker)
        if with_person:
            draft.await_person()
    else:
        draft.speak_first(caller.asker, with_person=with_person)
    draft.note(NoteKind.DIRECT_OPENED)
    above.opened_direct(head.id)
    above.go_on()
    answered = Answered(_STARTED, head.id, draft.status, draft.responder, draft.last_seq)
    receipt = Receipt(mark, head.id, _STARTED, draft.status, draft.responder)
    return draft.change(
        answered,
        receipt=receipt if message is not None else None,
        acceptance=receipt if command.user_requested is not None else None,
        beside=(above,),
    )


def close(draft: Draft, loaded: Loaded, now: datetime, events: EventIds) -> tuple[Draft, ...]:
    """Close it, once, and what hangs on it: its open Direct Conversation before it, or its parent's wait for it.

    Those that changed besides. The order is that of readings 39.
    """
    if draft.status is Status.CLOSED:
        return ()
    beside: list[Draft] = []
    child = loaded.direct
    if child is not None and child.status is not Status.CLOSED:
        below = Draft(child, now, events)
        below.close()
        draft.closed_direct(child.id)
        beside.append(below)
    draft.close()
    parent = loaded.parent
    if parent is not None and parent.open_direct == draft.id:
        above = Draft(parent, now, events)
        above.closed_direct(draft.id)
        beside.append(above)
    return tuple(beside)
