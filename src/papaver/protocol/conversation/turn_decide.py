"""What a turn of the Company Agent changes at its end, and what is said to a handoff (8.7-8.11)."""

from __future__ import annotations

from datetime import datetime

from papaver.protocol.conversation.change import Change, Loaded
from papaver.protocol.conversation.content import as_company_message
from papaver.protocol.conversation.direct import close
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.model import Message, Responder, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Fail,
    Joined,
    LeaseLost,
    Park,
    Queued,
    Settled,
    Supersede,
    TurnCommand,
    Unavailable,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Head
from papaver.protocol.errors import ConversationNotFound
from papaver.values.rules import rule

__all__ = ["check_lease", "decide_turn", "nobody_comes", "superseded"]


@rule("turn.lease-newest")
def check_lease(loaded: Loaded) -> None:
    """Only the newest holder of a turn says how it ended: a paused one's word is refused. Raises LeaseLost."""
    if loaded.lease_lost:
        raise LeaseLost(rule="turn.lease-newest")


def superseded(head: Head, until_seq: int) -> bool:
    """Whether a turn that answers up to `until_seq` has nothing to say any more.

    The conversation was closed, a person joined, or a person answered all of it meanwhile (8.7, 8.12).
    """
    answered = head.answered_seq >= min(until_seq, head.asked_seq)
    return answered or head.status is Status.CLOSED or head.responder is Responder.HUMAN


def decide_turn(command: TurnCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Settled]:
    """See `decide`. Of a turn that is superseded only the end is written: what it says is dropped."""
    check_lease(loaded)
    head = loaded.head
    if head is None:
        raise ConversationNotFound(detail="there is none")
    draft = Draft(head, now, events)
    beside: tuple[Draft, ...] = ()
    match command:
        case Answer() | Fail() | Park() if superseded(head, command.until_seq):
            _end(command.done, draft, head)
        case Supersede():
            _end(command.done, draft, head)
        case Answer():
            _answer(command, draft)
            if command.close:
                beside = close(draft, loaded, now, events)
        case Fail():
            _answer(Answer(command.lease, command.until_seq, (command.message,)), draft)
        case Park():
            _park(command, draft, head, now)
        case _:
            draft.answered_until(head.answered_seq)
            if head.handoff_pending and head.status is not Status.CLOSED:
                _desk(command, draft)
    settled = Settled(head.id, draft.status, draft.responder, draft.last_seq, recorded=draft.last_seq > head.last_seq)
    return draft.change(settled, ended=True, beside=beside)


def _end(done: Message | None, draft: Draft, head: Head) -> None:
    """Nothing is said but what was done, and nothing at all once the conversation is closed (8.12)."""
    draft.answered_until(head.answered_seq)
    if done is not None and head.status is not Status.CLOSED:
        draft.speak(as_company_message(done))


def _desk(command: Unavailable | Queued | Joined, draft: Draft) -> None:
    """What a pending handoff comes to; nothing once it is not pending any more, as when a late runner repeats it."""
    match command:
        case Unavailable():
            nobody_comes(draft, command.message)
        case Queued():
            draft.wait_for_person()
        case _:
            draft.join(command.person)


def nobody_comes(draft: Draft, message: Message) -> None:
    """The reason, then back to `idle`, then to work on what was said while waiting (8.9; readings 38).

    A reader who stops at `idle` has read the reason.
    """
    draft.stop_awaiting()
    draft.speak(as_company_message(message))
    draft.turn_to(Status.IDLE)
    draft.go_on()


def _answer(command: Answer, draft: Draft) -> None:
    """Messages first, then the state, so that a reader sees the reply before `idle` (readings 20)."""
    for message in command.messages:
        draft.speak(as_company_message(message))
    if command.user_requested is not None:
        draft.ask_for_user(command.user_requested)
    draft.answered_until(command.until_seq)
    if draft.status is Status.QUEUED:
        return
    if command.handoff:
        draft.await_person()
    elif not draft.unanswered and not command.close:
        draft.turn_to(Status.IDLE)


def _park(command: Park, draft: Draft, head: Head, now: datetime) -> None:
    """The event first, then `idle`, and the messages stay unanswered (8.11; ADR 0031).

    A token that covers may have come while the turn ran: then it runs again with that, and nobody is asked.
    """
    draft.answered_until(head.answered_seq)
    if command.done is not None:
        draft.speak(as_company_message(command.done))
    access = head.access
    if access is not None and access != command.access and access.covers(command.scopes, now.timestamp()):
        return
    if command.message is not None:
        draft.speak(as_company_message(command.message))
    draft.park(command.scopes, command.until_seq)
    if draft.status is Status.WORKING and not draft.has_work:
        draft.turn_to(Status.IDLE)
