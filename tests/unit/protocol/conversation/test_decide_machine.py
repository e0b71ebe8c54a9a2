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

from papaver.protocol.conversation.model import Message, MessageAdded, StateChanged, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Answered,
    Close,
    Expire,
    Fail,
    HandOff,
    Say,
    Start,
    Unavailable,
)
from papaver.protocol.errors import ConversationClosed, ConversationNotFound, MessageIdConflict
from papaver.protocol.terms import ConversationId, UserId
from tests.unit.protocol.conversation.world import DANA, World, lease, said

MESSAGES = st.sampled_from(
    [
        {"text": "Where is my order?"},
        {"text": None, "context": {"locale": "en-US"}},
        {"text": None, "context": {"locale": None, "user_available": False}},
        {"text": None, "data": {"size": "M"}},
        {"text": "Hi", "context": {"user_available": True}},
    ]
)
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

    def _fresh(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count}"

    @property
    def closed(self) -> bool:
        return self.world.heads[self.here].status is Status.CLOSED

    def _message(self, content: dict[str, object]) -> Message:
        return replace(said(self._fresh("msg"), None), **content)

    @initialize(target=sent, content=MESSAGES)
    def start(self, content: dict[str, object]) -> Sent:
        command = Start(DANA, self.here, self._message(content))
        return Sent(command, self.world.do(command))

    @rule(target=sent, content=MESSAGES)
    def say(self, content: dict[str, object]) -> Sent | MultipleResults[Sent]:
        command, size = Say(DANA, self.here, self._message(content)), len(self.world.log[self.here])
        try:
            return Sent(command, self.world.do(command))
        except ConversationClosed:
            assert self.closed
            assert len(self.world.log[self.here]) == size
            return multiple()

    @rule(sent=sent)
    def retry(self, sent: Sent) -> None:
        """The same answer, and nothing added, at any later time."""
        size = len(self.world.log[self.here])
        again = self.world.do(sent.command)
        assert again == replace(sent.answered, last_seq=size, repeated=True)
        assert len(self.world.log[self.here]) == size

    @rule(sent=sent)
    def reuse_the_id(self, sent: Sent) -> None:
        """Other content under a known id is a conflict, at any later time."""
        assert sent.command.message is not None
        other = replace(sent.command, message=replace(sent.command.message, text="something else"))
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
            answered = self.world.do(HandOff(DANA, self.here))
        except ConversationClosed:
            assert self.closed
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
        assert self.world.do(Close(DANA, self.here)).status is Status.CLOSED

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


TestConversation = Conversation.TestCase
TestConversation.settings = settings(max_examples=60, stateful_step_count=40)
