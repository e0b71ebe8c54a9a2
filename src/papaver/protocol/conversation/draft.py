"""A change while it is being decided: numbers the events, keeps the head in step, one state event per change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TypeVar

from papaver.protocol.conversation.change import Change, Note, NoteKind
from papaver.protocol.conversation.content import MAX_CONTEXT_BYTES, check_context_size, merged_context, needs_answer
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    DirectClosed,
    DirectOpened,
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
        "_notes",
        "_open_direct",
        "_parked",
        "_pending",
        "_person",
        "_queued_at",
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
        self._open_direct = head.open_direct
        self._person, self._queued_at = head.person, head.queued_at
        self._notes: list[Note] = []
        self.status = head.status
        self.responder = head.responder

    @property
    def id(self) -> ConversationId:
        return self._head.id

    @property
    def person(self) -> Author | None:
        """Who handles it, when a person does."""
        return self._person if self.responder is Responder.HUMAN else None

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
        self.ask_for_scopes(scopes)
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
        if self.responder is Responder.HUMAN or (self.status is Status.QUEUED and not self._pending):
            self.note(NoteKind.MESSAGE, first_seq=self._seq)

    def speak_first(self, asker: Asker | None, *, with_person: bool) -> None:
        """The Company's side has the first word, though nothing was said (8.10)."""
        self._asked, self._asked_by = self._seq + 1, asker
        if with_person:
            self.await_person()
        else:
            self.turn_to(Status.WORKING)

    def speak(self, message: Message) -> None:
        """Record a message of the Company's side."""
        self._add(MessageAdded(self._next_id(), self._at, message))

    def ask_for_user(self, reason: str) -> EventId:
        """Record that the Company asks to talk with the User; changes neither status nor responder (8.10)."""
        event_id = self._next_id()
        self._add(UserRequested(event_id, self._at, reason))
        return event_id

    def ask_for_scopes(self, scopes: tuple[str, ...]) -> None:
        """Record that the account is needed, with these scopes (8.11)."""
        self._scope = " ".join(scopes)
        self._add(AuthorizationNeeded(self._next_id(), self._at, self._scope))

    def turn_to(self, status: Status, responder: Responder | None = None) -> None:
        """Change status and responder, with the one state event that 8.7 wants; no event when both are so already."""
        responder = responder or self.responder
        if status is self.status and responder is self.responder:
            return
        if status is not self.status:
            self._queued_at = self._at if status is Status.QUEUED else None
        self.status, self.responder = status, responder
        self._add(StateChanged(self._next_id(), self._at, status, responder))

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

    def wait_for_person(self) -> None:
        """Somebody will come: it stays `queued`, and what was said is told to whoever that is (8.9)."""
        self._pending = False
        self._hand_over()

    def join(self, person: Author) -> None:
        """A person handles it from now on; what the Company Agent still works on is for them (8.7, 8.9)."""
        told = self.status is Status.QUEUED and not self._pending
        self._pending, self._person = False, person
        self.turn_to(Status.IDLE, Responder.HUMAN)
        if not told:
            self._hand_over()

    def leave(self) -> None:
        """The Company Agent handles it again, and what the person left unanswered (8.9; readings 38)."""
        self._person = None
        self.turn_to(Status.WORKING if self.has_work else Status.IDLE, Responder.AGENT)

    def _hand_over(self) -> None:
        if self.unanswered:
            self.note(NoteKind.MESSAGE, first_seq=self._answered + 1, seq=self._asked)

    def opened_direct(self, child: ConversationId) -> None:
        """A Direct Conversation of this one was opened (8.10)."""
        self._open_direct = child
        self._add(DirectOpened(self._next_id(), self._at, child))

    def closed_direct(self, child: ConversationId) -> None:
        """Its Direct Conversation is closed, and it takes messages again (8.10)."""
        self._open_direct = None
        self._add(DirectClosed(self._next_id(), self._at, child))

    def close(self) -> None:
        """Whoever was waited for or had joined is told (8.12). Only of one that is open."""
        if self.status is Status.QUEUED or self.responder is Responder.HUMAN:
            self.note(NoteKind.CANCELLED, seq=self._seq + 1)
        self._pending = False
        self.turn_to(Status.CLOSED)
        if self._head.parent is not None:
            self.note(NoteKind.DIRECT_CLOSED)

    def note(self, kind: NoteKind, *, first_seq: int = 0, seq: int | None = None) -> None:
        """Something for the Company's own code, told once this is durable."""
        self._notes.append(Note(kind, self._head.id, self._seq if seq is None else seq, first_seq))

    def change(
        self,
        result: R,
        *,
        receipt: Receipt | None = None,
        ended: bool = False,
        acceptance: Receipt | None = None,
        beside: Sequence[Draft] = (),
    ) -> Change[R]:
        """Everything, to be written, with what changes `beside` it. A head is left out when it is as it was."""
        drafts = (self, *beside)
        return Change(
            result,
            tuple([head for draft in drafts for head in draft._changed()]),
            tuple([event for draft in drafts for event in draft._events]),
            receipt,
            ended,
            acceptance,
            tuple([note for draft in drafts for note in draft._notes]),
        )

    def _changed(self) -> tuple[Head, ...]:
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
            open_direct=self._open_direct,
            person=self._person,
            queued_at=self._queued_at,
        )
        return () if not self._events and head == self._head else (head,)

    def _next_id(self) -> EventId:
        return self._ids.write(self._head.id, self._seq + 1)

    def _add(self, event: Event) -> None:
        self._seq += 1
        self._events.append((self._head.id, self._seq, event))
