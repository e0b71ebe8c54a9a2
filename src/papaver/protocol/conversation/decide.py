"""What a request changes: the one pure decision between what is stored and what is written (8.2-8.4, 8.9, 8.12).

The order is readings 5's: replay, Session, what is not offered, owner, cursor, retry, state. So a retry gets its first
answer even after the close, and whoever may not see the conversation learns nothing of it.
"""

from __future__ import annotations

from datetime import datetime
from typing import overload

from papaver.protocol.conversation.change import Change, Loaded
from papaver.protocol.conversation.content import check_content, fingerprint, needs_answer
from papaver.protocol.conversation.direct import check_no_open_direct, check_not_closed, close, open_direct
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Answered,
    Caller,
    Close,
    Command,
    CompanyCommand,
    Fail,
    HandOff,
    Joined,
    Park,
    Queued,
    Read,
    RequestCommand,
    Say,
    Settled,
    Start,
    Supersede,
    Unavailable,
)
from papaver.protocol.conversation.ownership import check_owner
from papaver.protocol.conversation.pages import EventIds, read_cursor
from papaver.protocol.conversation.people_decide import decide_people
from papaver.protocol.conversation.retries import check_new_has_no_cursor, repeat
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.conversation.turn_decide import decide_turn
from papaver.protocol.errors import ConversationNotFound, InvalidRequest, InvalidSession
from papaver.protocol.session import check_not_ended
from papaver.values.rules import rule

__all__ = [
    "check_message_first",
    "check_not_replayed",
    "check_parent_named",
    "check_session_owner",
    "decide",
]

_STARTED = 201
_ACCEPTED = 202
_DONE = 200


@overload
def decide(command: RequestCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered]: ...
@overload
def decide(command: CompanyCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Settled]: ...
def decide(command: Command, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered] | Change[Settled]:
    """The change that `command` makes of what was loaded for `keys(command)`; `now` is aware, UTC.

    Raises the PoppyError that the request is refused with, LeaseLost, or what `decide_people` says. Whatever is raised,
    nothing is written.
    """
    match command:
        case Start() | Say() | Read() | HandOff() | Close():
            return _decide_request(command, loaded, now, events)
        case Answer() | Fail() | Park() | Unavailable() | Queued() | Joined() | Supersede():
            return decide_turn(command, loaded, now, events)
        case _:
            return decide_people(command, loaded, now, events)


def _decide_request(command: RequestCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Answered]:
    _check_session(command.caller, loaded)
    if isinstance(command, Start):
        return _start(command, loaded, now, events)
    check_owner(loaded.head, command.caller)
    head = _existing(loaded)
    draft = Draft(head, now, events)
    match command:
        case Say():
            return _say(command, loaded, head, draft, now, events)
        case HandOff():
            return _hand_off(command, head, draft)
        case Close():
            draft.admit(command.caller)
            beside = close(draft, loaded, now, events)
            return draft.change(_answered(draft, head, _DONE), beside=beside)
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
    check_parent_named(command)
    if command.parent is not None:
        return open_direct(command, loaded, now, events)
    check_message_first(command)
    caller, message = command.caller, command.message
    if message is None:
        raise InvalidRequest(detail="a start without a message came past its check")
    check_content(message)
    mark = fingerprint(message, None)
    if loaded.receipt is not None:
        check_owner(loaded.head, caller)
        return repeat(loaded.receipt, mark, command, loaded.head, now, events)
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


def _say(command: Say, loaded: Loaded, head: Head, draft: Draft, now: datetime, events: EventIds) -> Change[Answered]:
    check_content(command.message)
    mark = fingerprint(command.message, head.id)
    if loaded.receipt is not None:
        return repeat(loaded.receipt, mark, command, head, now, events)
    if command.cursor is not None:
        read_cursor(events, head, command.cursor)
    check_not_closed(head)
    check_no_open_direct(head)
    draft.admit(command.caller)
    draft.hear(command.message, command.context_bytes, command.caller.asker)
    draft.go_on()
    return _accept(draft, head, _ACCEPTED, mark)


def _accept(draft: Draft, head: Head, status_code: int, mark: str) -> Change[Answered]:
    receipt = Receipt(mark, head.id, status_code, draft.status, draft.responder)
    return draft.change(_answered(draft, head, status_code), receipt=receipt)


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


@rule("direct.event-needs-parent")
def check_parent_named(command: Start) -> None:
    """A `user_requested` event is accepted together with the conversation that it is in (8.10)."""
    if command.user_requested is not None and command.parent is None:
        raise InvalidRequest(
            "user_requested_event_id needs the parent_conversation_id of its conversation",
            rule="direct.event-needs-parent",
        )


@rule("message.required")
def check_message_first(command: Start) -> None:
    """A conversation starts with its first message (8.3). Raises InvalidRequest."""
    if command.message is None:
        raise InvalidRequest("a conversation starts with a message", rule="message.required")
