"""What the User's side changes: start, messages, retries, handoff, close, and in which order a request is refused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.protocol.conversation.change import Loaded
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import Author, AuthorType, Message, MessageAdded, Responder, Role, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Answered,
    Close,
    HandOff,
    Park,
    Read,
    Say,
    Start,
    Unavailable,
)
from papaver.protocol.conversation.state import Asker
from papaver.protocol.errors import (
    ConversationClosed,
    DirectConversationOpen,
    InvalidRequest,
    MessageIdConflict,
)
from papaver.protocol.terms import ClientId, ConversationId, EventId, MessageId, UserId
from papaver.testing.rules import switched_off
from tests.unit.protocol.conversation.world import DANA, World, lease, said, signed_in

SAM = replace(DANA, user_id=UserId("sam"))
NOWHERE = ConversationId("cnv_nowhere")


def _answer(world: World, here: ConversationId, text: str = "On its way.") -> None:
    until = world.heads[here].last_seq
    world.do(Answer(lease(here), until, (said(f"reply_{until}", text),)))


@pytest.mark.requirement("8.3-02", "8.5-03", "8.2-02")
def test_c7_a_start_records_the_message_and_no_state() -> None:
    """201 tells the first status; the log holds the message alone, with the role set (readings 20)."""
    world = World()
    answered = world.do(Start(DANA, ConversationId("cnv_1"), said("msg_1")))
    assert answered == Answered(201, ConversationId("cnv_1"), Status.WORKING, Responder.AGENT, 1)
    assert world.story(answered.conversation_id) == ["user: Where is my order?"]
    assert world.heads[answered.conversation_id].turn_due


@pytest.mark.requirement("8.3-03", "8.5-05", "8.7-11")
def test_c7_continuing_records_the_message_then_working() -> None:
    """202; the message comes first, then the change of state (readings 20)."""
    world = World()
    here = world.start()
    _answer(world, here)
    answered = world.say(here, said("msg_2", "Thanks. And the other one?"))
    assert answered == Answered(202, here, Status.WORKING, Responder.AGENT, 5)
    assert world.story(here) == [
        "user: Where is my order?",
        "company: On its way.",
        "idle/agent",
        "user: Thanks. And the other one?",
        "working/agent",
    ]


@pytest.mark.requirement("8.5-01", "ca-58")
def test_c81_messages_while_working_add_no_state() -> None:
    """Nothing is refused as busy: what comes while the Company works is recorded and waits its turn (readings 21)."""
    world = World()
    here = world.start()
    assert world.say(here, said("msg_2", "It is #1042.")).status is Status.WORKING
    assert world.story(here) == ["user: Where is my order?", "user: It is #1042."]


@pytest.mark.requirement("8.4-18", "8.5-04", "ca-53")
def test_a_message_of_mere_context_is_recorded_and_leaves_idle() -> None:
    """It updates the context and asks for nothing (readings 21)."""
    world = World()
    here = world.start(said("msg_1", "Hi", context={"locale": "en-US", "user_available": True}))
    _answer(world, here)
    answered = world.say(here, said("msg_2", None, context={"user_available": False}))
    assert answered.status is Status.IDLE
    assert world.story(here)[-1] == "user: "
    assert world.heads[here].context == {"locale": "en-US", "user_available": False}
    assert not world.heads[here].turn_due


@pytest.mark.requirement("8.4-10", "8.4-17", "ca-51")
def test_the_head_holds_the_effective_context() -> None:
    """What a turn is given is merged over all messages (8.4)."""
    world = World()
    here = world.start(said("msg_1", "Hi", context={"locale": "en-US", "units": "metric"}))
    world.say(here, said("msg_2", "And?", context={"units": None, "time_zone": "UTC"}))
    assert world.heads[here].context == {"locale": "en-US", "time_zone": "UTC"}


def test_a_start_of_mere_context_is_idle() -> None:
    """Nothing was asked, so nothing is worked on: the conversation is open and idle from the start (readings 21)."""
    world = World()
    answered = world.do(Start(DANA, ConversationId("cnv_1"), said("msg_1", None, context={"locale": "de"})))
    assert (answered.status_code, answered.status) == (201, Status.IDLE)
    assert world.story(answered.conversation_id) == ["user: "]
    assert not world.heads[answered.conversation_id].turn_due


@pytest.mark.requirement("8.3-01", "8.13-09", "papaver-23")
@pytest.mark.parametrize(
    ("command", "rule"),
    [
        (Start(DANA, NOWHERE, None), "message.required"),
        (Start(DANA, NOWHERE, said("m", "")), "message.content"),
        (Start(DANA, NOWHERE, said("m"), user_requested=EventId("evt_0")), "direct.event-needs-parent"),
    ],
)
def test_a_start_needs_a_message_and_an_acceptance_its_parent(command: Start, rule: str) -> None:
    """Nothing is created when it is refused."""
    world = World()
    with pytest.raises(InvalidRequest) as refused:
        world.do(command)
    assert refused.value.rule == rule
    assert world.heads == {}


def test_a_start_without_message_is_refused_even_without_its_check() -> None:
    """The core never starts an empty conversation, though then no rule is named."""
    with switched_off("message.required"), pytest.raises(InvalidRequest) as refused:
        World().do(Start(DANA, NOWHERE, None))
    assert refused.value.rule == ""


@pytest.mark.requirement("8.3-06", "8.3-07", "8.3-05")
def test_c9_a_retried_start_returns_the_conversation_it_started() -> None:
    """Same status code, id and status; the fresh id of the retry is not used; nothing is added."""
    world = World()
    first = world.do(Start(DANA, ConversationId("cnv_1"), said("msg_1")))
    _answer(world, first.conversation_id)
    again = world.do(Start(DANA, ConversationId("cnv_2"), said("msg_1", extra={"unknown": [1]})))
    assert again == replace(first, last_seq=3, repeated=True)
    assert list(world.heads) == [first.conversation_id]
    assert len(world.log[first.conversation_id]) == 3


@pytest.mark.requirement("8.3-06", "8.3-05", "ca-65")
def test_c9_a_retried_message_is_accepted_once() -> None:
    """202 with the first answer's status, whatever happened since (readings 7)."""
    world = World()
    here = world.start()
    first = world.say(here, said("msg_2", "It is #1042."))
    _answer(world, here)
    again = world.say(here, said("msg_2", "It is #1042."))
    assert again == replace(first, last_seq=4, repeated=True)
    assert world.story(here).count("user: It is #1042.") == 1


@pytest.mark.requirement("8.3-08", "8.13-06", "ca-66")
@pytest.mark.parametrize("where", ["start", "here", "elsewhere"])
def test_c10_id_reused_with_other_content_conflicts(where: str) -> None:
    """Other content, or the same content for another target, is another message (readings 8)."""
    world = World()
    here = world.start(said("msg_1", "One"))
    other = world.start(said("msg_2", "Two"), name="cnv_2")
    command = {
        "start": Start(DANA, ConversationId("cnv_3"), said("msg_1", "Three")),
        "here": Say(DANA, here, said("msg_1", "One")),
        "elsewhere": Say(DANA, other, said("msg_1", "One")),
    }[where]
    with pytest.raises(MessageIdConflict) as refused:
        world.do(command)
    assert refused.value.rule == "message.id-reuse"
    assert [len(events) for events in world.log.values()] == [1, 1]


@pytest.mark.requirement("8.3-04", "ca-64")
def test_c12_another_user_may_reuse_the_id() -> None:
    """Message ids are unique for a User, not for the Company."""
    world = World()
    here = world.start(said("msg_1", "One"))
    theirs = world.start(said("msg_1", "Two"), caller=SAM, name="cnv_2")
    assert here != theirs
    assert world.story(theirs) == ["user: Two"]


def test_c12_another_agent_may_reuse_the_id() -> None:
    """Nor does one Personal Agent's id stand in another's way."""
    world = World()
    world.start(said("msg_1", "One"))
    other = replace(DANA, client_id=ClientId("https://other.example/a.json"))
    assert world.story(world.start(said("msg_1", "Two"), caller=other, name="cnv_2")) == ["user: Two"]


@pytest.mark.requirement("8.3-06", "8.3-09")
@pytest.mark.parametrize("retry", ["start", "message"])
def test_c66_retry_after_close_returns_the_original_response(retry: str) -> None:
    """The retry is looked up before the state, so it never meets `conversation_closed` (readings 7)."""
    world = World()
    here = world.start()
    world.say(here, said("msg_2", "And?"))
    world.do(Close(DANA, here))
    if retry == "start":
        again = world.do(Start(DANA, ConversationId("cnv_9"), said("msg_1")))
        assert again == Answered(201, here, Status.WORKING, Responder.AGENT, 3, repeated=True)
    else:
        again = world.say(here, said("msg_2", "And?"))
        assert again == Answered(202, here, Status.WORKING, Responder.AGENT, 3, repeated=True)
    assert len(world.log[here]) == 3


def test_retry_while_a_direct_conversation_is_open_returns_the_original_response() -> None:
    """The other state that refuses messages does not refuse a retry either (readings 7)."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], open_direct=ConversationId("cnv_direct"))
    assert world.do(Start(DANA, ConversationId("cnv_9"), said("msg_1"))).repeated


@pytest.mark.requirement("8.13-04", "8.12-05", "8.7-04")
@pytest.mark.parametrize("command", ["message", "handoff"])
def test_c34_closed_takes_no_message_and_no_handoff(command: str) -> None:
    """409, and nothing is recorded."""
    world = World()
    here = world.start()
    world.do(Close(DANA, here))
    with pytest.raises(ConversationClosed) as refused:
        world.do(Say(DANA, here, said("msg_2")) if command == "message" else HandOff(DANA, here))
    assert refused.value.rule == "conversation.not-closed"
    assert world.story(here) == ["user: Where is my order?", "closed/agent"]
    assert (DANA.client_id, DANA.user_id, MessageId("msg_2")) not in world.receipts


@pytest.mark.requirement("8.13-05")
@pytest.mark.parametrize("command", ["message", "handoff"])
def test_an_open_direct_conversation_refuses_messages_and_handoffs(command: str) -> None:
    """409 with the Direct Conversation's id (8.10)."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], open_direct=ConversationId("cnv_direct"))
    with pytest.raises(DirectConversationOpen) as refused:
        world.do(Say(DANA, here, said("msg_2")) if command == "message" else HandOff(DANA, here))
    assert (refused.value.rule, refused.value.conversation_id) == ("conversation.no-open-direct", "cnv_direct")


@pytest.mark.requirement("8.12-02", "8.12-03", "8.2-06")
def test_c34_close_is_one_event_however_often() -> None:
    """200 each time, the same answer, one state event."""
    world = World()
    here = world.start()
    first = world.do(Close(DANA, here))
    assert first == Answered(200, here, Status.CLOSED, Responder.AGENT, 2)
    assert world.do(Close(DANA, here)) == first
    assert world.story(here) == ["user: Where is my order?", "closed/agent"]
    assert not world.heads[here].turn_due


@pytest.mark.requirement("8.12-06")
def test_closing_touches_nothing_else() -> None:
    """What was recorded stays, and so does every other conversation of the User."""
    world = World()
    here, other = world.start(), world.start(said("msg_2"), name="cnv_2")
    before = world.heads[other], world.log[here][:]
    world.do(Close(DANA, here))
    assert (world.heads[other], world.log[here][:-1]) == before


@pytest.mark.requirement("8.2-17")
@pytest.mark.parametrize("name", ["1", "-", "evt_", "x" * 256])
def test_nothing_depends_on_how_a_message_id_looks(name: str) -> None:
    """The other side chose it, and its alphabet is all that is known (8.2)."""
    world = World()
    here = world.start(said(name))
    assert world.do(Start(DANA, ConversationId("cnv_2"), said(name))).conversation_id == here


@pytest.mark.requirement("8.7-13")
def test_a_closed_conversation_keeps_its_responder() -> None:
    """Whoever handled it last stays named."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], status=Status.IDLE, responder=Responder.HUMAN)
    assert world.do(Close(DANA, here)).responder is Responder.HUMAN
    assert world.story(here)[-1] == "closed/human"


@pytest.mark.requirement("8.7-05")
@pytest.mark.parametrize(
    ("status", "responder"),
    [
        (Status.WORKING, Responder.HUMAN),
        (Status.IDLE, Responder.HUMAN),
        (Status.QUEUED, Responder.AGENT),
        (Status.CLOSED, Responder.HUMAN),
    ],
)
def test_who_answers_is_independent_of_whether_anybody_does(status: Status, responder: Responder) -> None:
    """Neither moves the other: each pair stays as it is, and is answered so."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], status=status, responder=responder)
    if status is Status.CLOSED:
        answered = world.do(Close(DANA, here))
    else:
        answered = world.say(here, said("msg_2", "And?"))
    assert (answered.status, answered.responder) == (status, responder)
    assert (world.heads[here].status, world.heads[here].responder) == (status, responder)


@pytest.mark.requirement("8.12-02")
def test_close_cancels_a_pending_handoff() -> None:
    """Nothing is due any more (8.9, 8.12)."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    world.do(Close(DANA, here))
    assert not world.heads[here].handoff_pending
    assert not world.heads[here].turn_due


@pytest.mark.requirement("8.7-03", "8.7-06", "8.2-05")
def test_a_handoff_queues() -> None:
    """202 with `queued`, the responder stays the agent, and the handoff is due."""
    world = World()
    here = world.start()
    assert world.do(HandOff(DANA, here)) == Answered(202, here, Status.QUEUED, Responder.AGENT, 2)
    assert world.story(here)[-1] == "queued/agent"
    assert world.heads[here].handoff_pending
    assert world.heads[here].turn_due


@pytest.mark.parametrize(("status", "responder"), [(Status.QUEUED, Responder.AGENT), (Status.IDLE, Responder.HUMAN)])
def test_c83_a_handoff_when_queued_or_with_a_person_changes_nothing(status: Status, responder: Responder) -> None:
    """202 with the current values (8.9)."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], status=status, responder=responder)
    before = world.heads[here]
    assert world.do(HandOff(DANA, here)) == Answered(202, here, status, responder, 1)
    assert world.heads[here] == before


def test_c98_two_handoffs_at_once_are_one() -> None:
    """Whichever is second finds the conversation queued."""
    world = World()
    here = world.start()
    first, second = world.do(HandOff(DANA, here)), world.do(HandOff(DANA, here))
    assert first == second
    assert world.story(here).count("queued/agent") == 1


@pytest.mark.parametrize(("status", "responder"), [(Status.QUEUED, Responder.AGENT), (Status.IDLE, Responder.HUMAN)])
def test_c82_a_message_while_queued_keeps_queued(status: Status, responder: Responder) -> None:
    """Messages are taken while waiting for a person and while one is there, without a change of state (8.9)."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], status=status, responder=responder)
    answered = world.say(here, said("msg_2", "It is #1042."))
    assert (answered.status, answered.responder) == (status, responder)
    assert world.story(here)[1:] == ["user: It is #1042."]


@pytest.mark.requirement("8.4-02", "8.4-25")
def test_c94_c95_recorded_messages_are_the_users_side() -> None:
    """The event's role is ours; unknown members stay as sent (readings 36)."""
    world = World()
    here = world.start(said("msg_1", "Hi", extra={"mood": "curious"}))
    event = world.log[here][0]
    assert isinstance(event, MessageAdded)
    assert event.message == Message(
        MessageId("msg_1"), Author(AuthorType.AGENT), Role.USER, "Hi", extra={"mood": "curious"}
    )


def test_c96_receipt_and_event_are_one_change() -> None:
    """Whatever crashes, there is never the one without the other: both are in the same Change."""
    world = World()
    change = decide(Start(DANA, ConversationId("cnv_1"), said("m")), Loaded(), world.now, world.ids)
    assert change.receipt is not None
    assert (len(change.heads), len(change.events)) == (1, 1)


SIGNED_IN = signed_in("A", "orders:read", "orders:write")


def _parked() -> tuple[World, ConversationId]:
    """A signed-out question that needs `orders:read`."""
    world = World()
    here = world.start()
    world.do(Park(lease(here), 1, ("orders:read",)))
    return world, here


@pytest.mark.requirement("8.2-11", "papaver-95")
@pytest.mark.parametrize("request_", ["read", "retry", "context", "message"])
def test_the_first_request_with_a_token_that_covers_resumes_the_turn(request_: str) -> None:
    """Of whatever kind; the message is still unanswered, and the conversation is the account's."""
    world, here = _parked()
    match request_:
        case "read":
            world.do(Read(SIGNED_IN, here))
        case "retry":
            assert world.do(Start(SIGNED_IN, here, said("msg_1"))).repeated
        case "context":
            world.say(here, said("msg_2", None, context={"locale": "de"}), SIGNED_IN)
        case _:
            world.say(here, said("msg_2"), SIGNED_IN)
    head = world.heads[here]
    assert (head.turn_due, head.answered_seq, head.account_id) == (True, 0, "A")
    assert world.story(here)[-1] == "working/agent"
    assert world.story(here).count("working/agent") == 1


@pytest.mark.requirement("papaver-95")
def test_a_handoff_and_a_close_with_a_token_do_what_they_are_for() -> None:
    """The turn is due after the handoff; after the close nothing is. One state event each."""
    world, here = _parked()
    world.do(HandOff(SIGNED_IN, here))
    assert world.story(here)[-2:] == ["idle/agent", "queued/agent"]
    world.do(Unavailable(lease(here), said("sorry", "Nobody.")))
    assert world.story(here)[-1] == "working/agent"
    world, here = _parked()
    world.do(Close(SIGNED_IN, here))
    assert world.story(here)[-2:] == ["idle/agent", "closed/agent"]
    assert not world.heads[here].parked


@pytest.mark.requirement("papaver-95")
def test_a_token_that_does_not_cover_leaves_the_turn_parked() -> None:
    """Also an expired one; a message is looked at all the same."""
    world, here = _parked()
    world.do(Read(signed_in("A", "profile"), here))
    world.do(Read(signed_in("A", "orders:read", until=0.0), here))
    assert not world.heads[here].turn_due
    world.say(here, said("msg_2"), signed_in("A", "profile"))
    assert world.heads[here].turn_due


def test_a_start_with_a_token_is_the_accounts_from_the_beginning() -> None:
    """With what its token allows, and who asked."""
    world, asker = World(), Asker(version="0.4")
    here = world.start(caller=replace(SIGNED_IN, asker=asker))
    head = world.heads[here]
    assert (head.account_id, head.scope, head.asked_by) == ("A", "orders:read orders:write", asker)
    assert head.access == SIGNED_IN.access
