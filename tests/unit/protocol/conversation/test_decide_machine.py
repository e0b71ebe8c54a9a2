"""Whatever is done in whatever order: what always holds of a conversation, as a state machine over `decide`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    MultipleResults,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from papaver.protocol.conversation.model import AuthorizationNeeded, Message, MessageAdded, StateChanged, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Answered,
    Caller,
    Close,
    Expire,
    Fail,
    HandOff,
    Park,
    Read,
    Say,
    Start,
    Unavailable,
)
from papaver.protocol.errors import (
    AccountNeeded,
    ConversationClosed,
    ConversationNotFound,
    DirectConversationOpen,
    MessageIdConflict,
)
from papaver.protocol.terms import ConversationId, UserId
from tests.unit.protocol.conversation.world import DANA, World, lease, said, signed_in

MESSAGES = st.sampled_from(
    [
        {"text": "Where is my order?"},
        {"text": None, "context": {"locale": "en-US"}},
        {"text": None, "context": {"locale": None, "user_available": False}},
        {"text": None, "data": {"size": "M"}},
        {"text": "Hi", "context": {"user_available": True}},
    ]
)
READS, WRITES = ("orders:read",), ("orders:read", "orders:write")
CALLERS = [DANA, signed_in("A"), signed_in("A", *READS), signed_in("A", *WRITES), signed_in("B", *WRITES)]
SAM = replace(DANA, user_id=UserId("sam"))


@dataclass(frozen=True)
class Sent:
    """A message that was accepted, with its answer."""

    command: Start | Say
    answered: Answered


class Conversation(RuleBasedStateMachine):
    """One conversation, both sides, retries, strangers and late turns."""

    sent = Bundle("sent")
    turns = Bundle("turns")

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.here = ConversationId("cnv_1")
        self.count = 0
        self.account: str | None = None
        self.needs = 0

    def _fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"

    @property
    def closed(self) -> bool:
        return self.world.heads[self.here].status is Status.CLOSED

    def _messages(self) -> list[str]:
        return [event.message.id for event in self.world.log[self.here] if isinstance(event, MessageAdded)]

    def _message(self, content: dict[str, object]) -> Message:
        return replace(said(self._fresh("msg"), None), **content)

    @initialize(target=sent, content=MESSAGES)
    def start(self, content: dict[str, object]) -> Sent:
        command = Start(DANA, self.here, self._message(content))
        return Sent(command, self.world.do(command))

    @property
    def owner(self) -> Caller:
        """Somebody who may go on."""
        return DANA if self.account is None else signed_in(self.account, *READS)

    @rule(caller=st.sampled_from(CALLERS))
    def read_as(self, caller: Caller) -> None:
        """8.2's table: the first account that comes stays the conversation's."""
        try:
            self.world.do(Read(caller, self.here))
        except AccountNeeded:
            assert caller.account_id is None
            assert self.account is not None
        except ConversationNotFound:
            assert caller.account_id not in (None, self.account)
        else:
            assert self.account in (None, caller.account_id)
            self.account = caller.account_id

    @rule(caller=st.sampled_from(CALLERS))
    def open_direct(self, caller: Caller) -> None:
        """8.10: it is a request of the parent as well, and has that one go on as a read has."""
        before = self.world.heads[self.here]
        name = ConversationId(self._fresh("direct"))
        try:
            self.world.do(Start(caller, name, said(self._fresh("msg")), parent=self.here))
        except (AccountNeeded, ConversationNotFound):
            assert caller.account_id != self.account
        except ConversationClosed:
            assert self.closed
        except DirectConversationOpen:
            assert before.open_direct is not None
        else:
            assert before.open_direct is None
            assert self.world.heads[self.here].open_direct == name
            self.account = caller.account_id

    @precondition(lambda self: self.world.heads[self.here].open_direct is not None)
    @rule()
    def close_direct(self) -> None:
        """And its parent takes messages again."""
        child = self.world.heads[self.here].open_direct
        assert child is not None
        self.world.do(Expire(child, self.world.now))
        assert self.world.heads[self.here].open_direct is None
        assert self.world.heads[child].status is Status.CLOSED

    @rule(until=consumes(turns), scopes=st.sampled_from([READS, WRITES]), knows=st.booleans())
    def need_the_account(self, until: int, scopes: tuple[str, ...], knows: bool) -> None:
        """One event at most, and what was unanswered stays so."""
        head = self.world.heads[self.here]
        unanswered, ended = head.asked_seq > head.answered_seq, self.world.ended
        self.world.do(Park(lease(self.here), until, scopes, head.access if knows else None))
        events = sum(isinstance(event, AuthorizationNeeded) for event in self.world.log[self.here])
        assert events - self.needs in ((0, 1) if unanswered else (0,))
        assert self.world.ended == ended + 1
        self.needs = events
        after = self.world.heads[self.here]
        assert (after.asked_seq > after.answered_seq) is unanswered

    @rule(target=sent, content=MESSAGES)
    def say(self, content: dict[str, object]) -> Sent | MultipleResults[Sent]:
        command, size = Say(self.owner, self.here, self._message(content)), len(self.world.log[self.here])
        try:
            return Sent(command, self.world.do(command))
        except ConversationClosed:
            assert self.closed
        except DirectConversationOpen:
            assert self.world.heads[self.here].open_direct is not None
        assert len(self.world.log[self.here]) == size
        return multiple()

    @rule(sent=sent)
    def retry(self, sent: Sent) -> None:
        """The same answer, and no message added, at any later time; a token in it may have a turn run again."""
        messages = self._messages()
        again = self.world.do(replace(sent.command, caller=self.owner))
        assert replace(again, last_seq=0) == replace(sent.answered, last_seq=0, repeated=True)
        assert self._messages() == messages

    @rule(sent=sent)
    def reuse_the_id(self, sent: Sent) -> None:
        """Other content under a known id is a conflict, at any later time."""
        assert sent.command.message is not None
        other = replace(sent.command, caller=self.owner, message=replace(sent.command.message, text="something else"))
        try:
            self.world.do(other)
        except MessageIdConflict:
            return
        raise AssertionError("an id was taken twice")

    @rule(kind=st.sampled_from([HandOff, Close]))
    def stranger(self, kind: type[HandOff] | type[Close]) -> None:
        try:
            self.world.do(kind(SAM, self.here))
        except ConversationNotFound:
            return
        raise AssertionError("a stranger got in")

    @rule()
    def hand_off(self) -> None:
        try:
            answered = self.world.do(HandOff(self.owner, self.here))
        except ConversationClosed:
            assert self.closed
        except DirectConversationOpen:
            assert self.world.heads[self.here].open_direct is not None
        else:
            assert answered.status is Status.QUEUED

    @rule(target=turns)
    def lease_a_turn(self) -> int:
        return self.world.heads[self.here].last_seq

    @rule(until=consumes(turns), texts=st.lists(st.just("On its way."), max_size=2), handoff=st.booleans())
    def answer(self, until: int, texts: list[str], handoff: bool) -> None:
        was_closed, size = self.closed, len(self.world.log[self.here])
        messages = tuple(said(self._fresh("reply"), text) for text in texts)
        settled = self.world.do(Answer(lease(self.here), until, messages, handoff))
        assert not (was_closed and (settled.recorded or len(self.world.log[self.here]) > size))

    @rule(until=consumes(turns))
    def fail(self, until: int) -> None:
        self.world.do(Fail(lease(self.here), until, said(self._fresh("reply"), "Sorry.")))

    @rule()
    def nobody_comes(self) -> None:
        pending = self.world.heads[self.here].handoff_pending
        settled = self.world.do(Unavailable(lease(self.here), said(self._fresh("reply"), "Nobody is here.")))
        assert settled.recorded is pending

    @precondition(lambda self: self.count > 12)
    @rule()
    def close(self) -> None:
        assert self.world.do(Close(self.owner, self.here)).status is Status.CLOSED

    @precondition(lambda self: self.count > 12)
    @rule()
    def expire(self) -> None:
        self.world.do(Expire(self.here, self.world.now))
        assert self.closed

    @invariant()
    def the_state_is_what_the_events_say(self) -> None:
        """Each state event is a change, and the last one is the head's state."""
        events, head = self.world.log.get(self.here, []), self.world.heads.get(self.here)
        if head is None:
            return
        states = [(event.status, event.responder) for event in events if isinstance(event, StateChanged)]
        assert all(one != following for one, following in pairwise(states))
        if states:
            assert states[-1] == (head.status, head.responder)

    @invariant()
    def nothing_follows_the_close(self) -> None:
        events = self.world.log.get(self.here, [])
        states = [event.status if isinstance(event, StateChanged) else None for event in events]
        closing = [place for place, status in enumerate(states) if status is Status.CLOSED]
        assert closing in ([], [len(events) - 1])

    @invariant()
    def times_and_ids_are_in_order(self) -> None:
        events = self.world.log.get(self.here, [])
        assert [event.at for event in events] == sorted(event.at for event in events)
        messages = [event.message.id for event in events if isinstance(event, MessageAdded)]
        assert len(messages) == len(set(messages))

    @invariant()
    def working_means_that_something_is_due(self) -> None:
        """Never stuck: while the Company's agent works there is a turn to lease, and an idle one has none."""
        head = self.world.heads.get(self.here)
        if head is None:
            return
        assert head.turn_due == (head.status in (Status.WORKING, Status.QUEUED))
        assert head.handoff_pending == (head.status is Status.QUEUED)

    @invariant()
    def the_account_never_changes(self) -> None:
        """Neither by a turn, nor by a person, nor by whoever comes later."""
        head = self.world.heads.get(self.here)
        if head is not None:
            assert head.account_id == self.account

    @invariant()
    def what_is_unanswered_is_due_or_waits_for_a_token(self) -> None:
        """A parked turn is never lost: either somebody works on it, or its event says what is needed."""
        head = self.world.heads.get(self.here)
        if head is None or head.status is Status.CLOSED:
            return
        unanswered = head.asked_seq > head.answered_seq
        assert not head.parked or unanswered
        if head.status is Status.IDLE:
            assert head.parked is unanswered
        if head.parked:
            needs = [event for event in self.world.log[self.here] if isinstance(event, AuthorizationNeeded)]
            assert needs[-1].scope == head.scope


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=40)
