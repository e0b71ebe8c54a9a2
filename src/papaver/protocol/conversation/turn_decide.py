"""What the Company's side changes: a turn's end, a handoff that nobody takes, closing after inactivity (8.7-8.12)."""

from __future__ import annotations

from datetime import datetime

from papaver.protocol.conversation.change import Change, Loaded
from papaver.protocol.conversation.content import as_company_message
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Expire,
    Fail,
    LeaseLost,
    Park,
    Settled,
    TurnCommand,
    Unavailable,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Head
from papaver.protocol.errors import ConversationNotFound
from papaver.values.rules import rule

__all__ = ["check_lease", "decide_turn"]


@rule("turn.lease-newest")
def check_lease(loaded: Loaded) -> None:
    """Only the newest holder of a turn says how it ended: a paused one's word is refused. Raises LeaseLost."""
    if loaded.lease_lost:
        raise LeaseLost(rule="turn.lease-newest")


def decide_turn(command: TurnCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Settled]:
    """See `decide`. In a conversation that was closed meanwhile only the turn ends: what it says is dropped (8.12)."""
    check_lease(loaded)
    head = loaded.head
    if head is None:
        raise ConversationNotFound(detail="there is none")
    draft = Draft(head, now, events)
    ended = not isinstance(command, Expire)
    if head.status is Status.CLOSED:
        return draft.change(_settled(draft, head), ended=ended)
    match command:
        case Answer():
            _answer(command, draft)
        case Fail():
            _answer(Answer(command.lease, command.until_seq, (command.message,)), draft)
        case Park():
            _park(command, draft, head, now)
        case Unavailable():
            _unavailable(command, draft, head)
        case _:
            if head.changed_at <= command.idle_since:
                draft.stop_awaiting()
                draft.turn_to(Status.CLOSED)
    return draft.change(_settled(draft, head), ended=ended)


def _settled(draft: Draft, head: Head) -> Settled:
    return Settled(head.id, draft.status, draft.responder, draft.last_seq, recorded=draft.last_seq > head.last_seq)


def _answer(command: Answer, draft: Draft) -> None:
    """Messages first, then the state, so that a reader sees the reply before `idle` (readings 20)."""
    for message in command.messages:
        draft.speak(as_company_message(message))
    if command.user_requested is not None:
        draft.ask_for_user(command.user_requested)
    draft.answered_until(command.until_seq)
    if draft.responder is not Responder.AGENT or draft.status is Status.QUEUED:
        return
    if command.handoff:
        draft.await_person()
    elif not draft.unanswered:
        draft.turn_to(Status.IDLE)


def _park(command: Park, draft: Draft, head: Head, now: datetime) -> None:
    """The event first, then `idle`, and the messages stay unanswered (8.11; ADR 0031).

    A token that covers may have come while the turn ran: then it runs again with that, and nobody is asked.
    """
    draft.answered_until(head.answered_seq)
    if not draft.unanswered:
        return
    access = head.access
    if access is not None and access != command.access and access.covers(command.scopes, now.timestamp()):
        return
    draft.park(command.scopes, command.until_seq)
    if draft.status is Status.WORKING and not draft.has_work:
        draft.turn_to(Status.IDLE)


def _unavailable(command: Unavailable, draft: Draft, head: Head) -> None:
    """Back to `idle`, with the reason; then to work on what was said while waiting (8.9; readings 38).

    Nothing when the handoff is no longer pending: a person came, or a late runner repeats itself.
    """
    draft.answered_until(head.answered_seq)
    if not head.handoff_pending:
        return
    draft.stop_awaiting()
    draft.turn_to(Status.IDLE)
    draft.speak(as_company_message(command.message))
    if draft.has_work:
        draft.turn_to(Status.WORKING)
