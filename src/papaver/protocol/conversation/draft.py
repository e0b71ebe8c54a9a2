"""A change while it is being decided: numbers the events, keeps the head in step, one state event per change."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from papaver.protocol.conversation.change import Change
from papaver.protocol.conversation.content import MAX_CONTEXT_BYTES, check_context_size, merged_context, needs_answer
from papaver.protocol.conversation.model import (
    AuthorizationNeeded,
    Event,
    Message,
    MessageAdded,
    Responder,
    StateChanged,
    Status,
    UserRequested,
)
from papaver.protocol.conversation.operations import Caller
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Asker, Head, Receipt
from papaver.protocol.terms import ConversationId, EventId

__all__ = ["Draft"]

R = TypeVar("R")


class Draft:
    """What will be written of one conversation. Made, filled and turned into a Change within one decision.

    The times of a log never run backwards, whatever the clock does.
    """

    __slots__ = (
        "_access",
        "_account",
        "_answered",
        "_asked",
        "_asked_by",
        "_at",
        "_context",
        "_events",
        "_failures",
        "_head",
        "_ids",
        "_parked",
        "_pending",
        "_scope",
        "_seq",
        "responder",
        "status",
    )

    def __init__(self, head: Head, now: datetime, ids: EventIds) -> None:
        self._head = head
        self._ids = ids
        self._at = max(now, head.changed_at)
        self._seq = head.last_seq
        self._events: list[tuple[ConversationId, int, Event]] = []
        self._account, self._access, self._scope = head.account_id, head.access, head.scope
        self._parked, self._asked_by = head.parked, head.asked_by
        self._context = head.context
        self._asked = head.asked_seq
        self._answered = head.answered_seq
        self._failures = head.failures
        self._pending = head.handoff_pending
        self.status = head.status
        self.responder = head.responder

    @property
    def last_seq(self) -> int:
        """The newest event, those of this change included."""
        return self._seq

    @property
    def unanswered(self) -> bool:
        """Whether a message of the User's side still needs an answer."""
        return self._asked > self._answered

    @property
    def has_work(self) -> bool:
        """Whether an unanswered message waits for the Company alone."""
        return self.unanswered and not self._parked

    def admit(self, caller: Caller) -> None:
        """The conversation uses this caller's account from now on, when it has one (8.2).

        Its token is the one that turns run with, and what waits for one that covers as much is due again (8.11).
        """
        if caller.account_id is None:
            return
        access = caller.access
        if self._account is None:
            self._account = caller.account_id
            self._scope = self._scope or ("" if access is None else " ".join(access.scopes))
        if access is not None:
            self._access = access
            if self._parked and access.covers(self._scope.split(), self._at.timestamp()):
                self._parked = False

    def go_on(self) -> None:
        """Work on what is unanswered, where it is the agent's to answer and nothing is waited for (8.7)."""
        if self.has_work and self.status is Status.IDLE and self.responder is Responder.AGENT:
            self.turn_to(Status.WORKING)

    def park(self, scopes: tuple[str, ...], until_seq: int) -> None:
        """Record that what was said up to `until_seq` needs the account (8.11).

        It waits for that, unless more was said meanwhile: that is a reason to look at all of it again.
        """
        self._scope = " ".join(scopes)
        self._add(AuthorizationNeeded(self._next_id(), self._at, self._scope))
        self._parked = self._parked or self._asked <= until_seq

    def hear(self, message: Message, context_bytes: int = MAX_CONTEXT_BYTES, asker: Asker | None = None) -> None:
        """Record a message of the User's side, with its context (8.4). Raises PayloadTooLarge when that is too much.

        One that needs an answer is a reason to look at what is parked again.
        """
        if message.context:
            self._context = merged_context(self._context, message.context)
            check_context_size(self._context, context_bytes)
        self._add(MessageAdded(self._next_id(), self._at, message))
        if needs_answer(message):
            self._asked, self._parked, self._asked_by = self._seq, False, asker

    def speak(self, message: Message) -> None:
        """Record a message of the Company's side."""
        self._add(MessageAdded(self._next_id(), self._at, message))

    def ask_for_user(self, reason: str) -> None:
        """Record that the Company asks to talk with the User; changes neither status nor responder (8.10)."""
        self._add(UserRequested(self._next_id(), self._at, reason))

    def turn_to(self, status: Status) -> None:
        """Change the status, with the one state event that 8.7 wants; no event when it is the status already."""
        if status is not self.status:
            self.status = status
            self._add(StateChanged(self._next_id(), self._at, status, self.responder))

    def answered_until(self, seq: int) -> None:
        """The turn is over: everything up to `seq` is answered."""
        self._answered = max(self._answered, min(seq, self._head.last_seq))
        self._parked = self._parked and self.unanswered
        self._failures = 0

    def await_person(self) -> None:
        """A person is asked for (8.9)."""
        self._pending = True
        self.turn_to(Status.QUEUED)

    def stop_awaiting(self) -> None:
        """Nobody is asked for any more."""
        self._pending = False

    def change(self, result: R, *, receipt: Receipt | None = None, ended: bool = False) -> Change[R]:
        """Everything, to be written. The head is left out when it is as it was."""
        head = replace(
            self._head,
            changed_at=self._at if self._events else self._head.changed_at,
            account_id=self._account,
            status=self.status,
            responder=self.responder,
            context=self._context,
            last_seq=self._seq,
            answered_seq=self._answered,
            asked_seq=self._asked,
            failures=self._failures,
            handoff_pending=self._pending,
            access=self._access,
            scope=self._scope,
            parked=self._parked and self.status is not Status.CLOSED,
            asked_by=self._asked_by,
        )
        heads = () if not self._events and head == self._head else (head,)
        return Change(result, heads, tuple(self._events), receipt, ended)

    def _next_id(self) -> EventId:
        return self._ids.write(self._head.id, self._seq + 1)

    def _add(self, event: Event) -> None:
        self._seq += 1
        self._events.append((self._head.id, self._seq, event))
