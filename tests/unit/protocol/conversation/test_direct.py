"""Direct Conversations: whose they are, how one opens, is accepted again, ends with or without its parent (8.10)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from papaver.protocol.conversation.change import Note, NoteKind
from papaver.protocol.conversation.model import Author, AuthorType, DirectClosed, DirectOpened, Responder, Status
from papaver.protocol.conversation.operations import (
    Answer,
    Answered,
    AskForUser,
    Caller,
    Close,
    Expire,
    HandOff,
    Join,
    Park,
    Read,
    Start,
    Unavailable,
)
from papaver.protocol.errors import (
    AccountNeeded,
    ConversationClosed,
    ConversationNotFound,
    DirectConversationOpen,
    InvalidCursor,
    InvalidRequest,
    MessageIdConflict,
)
from papaver.protocol.terms import ConversationId, EventId, UserId
from papaver.testing.rules import switched_off
from tests.unit.protocol.conversation.world import DANA, NOW, World, lease, said, signed_in

SAM = replace(DANA, user_id=UserId("sam"))
CHILD, OTHER = ConversationId("cnv_direct"), ConversationId("cnv_other")
ALEX = Author(AuthorType.HUMAN, "aut_alex", "Alex")


def _asked() -> tuple[World, ConversationId, EventId]:
    """A conversation that is idle, and in which the Company has asked for the User."""
    world = World()
    here = world.start()
    world.do(Answer(lease(here), 1, (said("reply_1", "One moment."),)))
    event = world.do(AskForUser(here, "to confirm")).event_id
    assert event is not None
    return world, here, event


def _accept(parent: ConversationId, event: EventId, caller: Caller = DANA, name: ConversationId = CHILD) -> Start:
    return Start(caller, name, None, parent, event, invited=True)


@pytest.mark.requirement("8.10-04", "8.10-24", "ca-82")
def test_c35_a_direct_conversation_opens_under_its_parent() -> None:
    """A new conversation with its message; the parent is told its id, and only that changes there (8.10)."""
    world = World()
    here = world.start(said("msg_1", "Hi", context={"locale": "de"}))
    world.do(Answer(lease(here), 1, (said("reply_1", "Hello."),)))
    answered = world.do(Start(DANA, CHILD, said("msg_2", "Hi, it is me."), parent=here))
    assert answered == Answered(201, CHILD, Status.WORKING, Responder.AGENT, 1)
    assert world.story(CHILD) == ["user: Hi, it is me."]
    opened = world.log[here][-1]
    assert isinstance(opened, DirectOpened)
    assert opened.conversation_id == CHILD
    child, parent = world.heads[CHILD], world.heads[here]
    assert (child.parent, child.context, child.turn_due) == (here, {"locale": "de"}, True)
    assert (parent.open_direct, parent.status) == (CHILD, Status.IDLE)
    assert world.notes == [Note(NoteKind.DIRECT_OPENED, CHILD, 1)]


@pytest.mark.requirement("8.10-13", "8.10-16", "papaver-20")
def test_an_acceptance_without_message_lets_the_company_speak_first() -> None:
    """Its first event is the state, so that there is a cursor (readings 19); a turn is due without a message (8.10)."""
    world, here, event = _asked()
    answered = world.do(_accept(here, event))
    assert answered == Answered(201, CHILD, Status.WORKING, Responder.AGENT, 1)
    assert world.story(CHILD) == ["working/agent"]
    assert world.heads[CHILD].turn_due
    world.do(Answer(lease(CHILD), 1, (said("reply_2", "Hello Dana."),)))
    assert world.story(CHILD) == ["working/agent", "company: Hello Dana.", "idle/agent"]


@pytest.mark.requirement("8.10-16")
@pytest.mark.parametrize("says", [True, False])
def test_whoever_handles_the_parent_is_asked_for(says: bool) -> None:
    """A person asked for the User: the Direct Conversation waits for a person, with or without a message (8.10)."""
    world, here, event = _asked()
    world.do(Join(here, ALEX))
    command = replace(_accept(here, event), message=said("msg_2", "Here I am.") if says else None)
    answered = world.do(command)
    assert (answered.status, answered.responder) == (Status.QUEUED, Responder.AGENT)
    assert world.story(CHILD)[-1] == "queued/agent"
    assert world.heads[CHILD].handoff_pending
    world.do(Unavailable(lease(CHILD), said("n", "Nobody is here.")))
    assert world.story(CHILD)[-3:] == ["company: Nobody is here.", "idle/agent", "working/agent"]


def test_a_first_message_of_mere_context_leaves_it_idle() -> None:
    """Nothing was asked (readings 21)."""
    world = World()
    here = world.start()
    answered = world.do(Start(DANA, CHILD, said("m", None, context={"user_available": True}), parent=here))
    assert answered.status is Status.IDLE
    assert not world.heads[CHILD].turn_due


@pytest.mark.requirement("8.10-07", "8.10-18", "8.10-05")
def test_c28_the_parent_has_to_be_the_callers() -> None:
    """Unknown, another User's, or of an account that the request has no token for (8.2, 8.10)."""
    world = World()
    here = world.start()
    for parent, caller in ((OTHER, DANA), (here, SAM)):
        with pytest.raises(ConversationNotFound) as refused:
            world.do(Start(caller, CHILD, said("m"), parent=parent))
        assert refused.value.rule == "conversation.owner"
    account = world.start(name="cnv_2", message=said("msg_2"), caller=signed_in("A", "orders:read"))
    with pytest.raises(AccountNeeded):
        world.do(Start(DANA, CHILD, said("m"), parent=account))
    with pytest.raises(ConversationNotFound):
        world.do(Start(signed_in("B"), CHILD, said("m"), parent=account))
    assert CHILD not in world.heads


def test_a_signed_in_opening_binds_both() -> None:
    """The request is one on the parent, too (8.2; readings 2, 40)."""
    world = World()
    here = world.start()
    world.do(Start(signed_in("A"), CHILD, said("m"), parent=here))
    assert (world.heads[here].account_id, world.heads[CHILD].account_id) == ("A", "A")


def _parked(*scopes: str) -> tuple[World, ConversationId]:
    """A conversation whose question waits for a token with these scopes."""
    world = World()
    here = world.start()
    world.do(Park(lease(here), 1, scopes))
    assert (world.heads[here].status, world.heads[here].parked) == (Status.IDLE, True)
    return world, here


@pytest.mark.requirement("8.11-03", "8.7-01")
def test_a_signed_in_opening_has_the_parents_parked_turn_go_on() -> None:
    """At once, as a read with that token would: nothing that is unanswered stays behind in an idle parent (8.11)."""
    world, here = _parked("orders:read")
    world.do(Start(signed_in("A", "orders:read"), CHILD, said("m"), parent=here))
    assert world.story(here)[-2:] == ["DirectOpened", "working/agent"]
    assert world.heads[here].turn_due
    world.do(Answer(lease(here, 2), 1, (said("reply_1", "On its way."),)))
    assert world.story(here)[-2:] == ["company: On its way.", "idle/agent"]
    assert world.heads[here].open_direct == CHILD


@pytest.mark.requirement("8.11-03")
def test_an_opening_whose_token_covers_too_little_leaves_the_parent_parked() -> None:
    """It waits on, also after the Direct Conversation, for a token that covers."""
    world, here = _parked("orders:read", "orders:write")
    reads, writes = signed_in("A", "orders:read"), signed_in("A", "orders:read", "orders:write")
    world.do(Start(reads, CHILD, said("m"), parent=here))
    world.do(Close(writes, CHILD))
    assert world.story(here)[-2:] == ["DirectOpened", "DirectClosed"]
    assert world.heads[here].parked
    world.do(Read(writes, here))
    assert world.story(here)[-1] == "working/agent"


@pytest.mark.requirement("8.11-03", "8.9-04")
def test_a_signed_in_handoff_leaves_nothing_parked_behind() -> None:
    """Nobody comes: then the agent goes on with what the handoff's token covers (8.9, 8.11)."""
    world, here = _parked("orders:read")
    world.do(HandOff(signed_in("A", "orders:read"), here))
    world.do(Unavailable(lease(here, 2), said("n", "Nobody is here.")))
    assert world.story(here)[-3:] == ["company: Nobody is here.", "idle/agent", "working/agent"]


@pytest.mark.requirement("8.10-08", "8.10-21")
def test_c35_a_closed_parent_opens_none() -> None:
    """`conversation_closed`, also for an acceptance that has not started one yet (8.10)."""
    world, here, event = _asked()
    world.do(Close(DANA, here))
    for command in (Start(DANA, CHILD, said("m"), parent=here), _accept(here, event)):
        with pytest.raises(ConversationClosed) as refused:
            world.do(command)
        assert refused.value.rule == "conversation.not-closed"


@pytest.mark.requirement("8.10-09", "ca-86")
def test_c35_a_direct_conversation_is_no_parent() -> None:
    """`invalid_request` (8.10)."""
    world = World()
    here = world.start()
    world.do(Start(DANA, CHILD, said("m"), parent=here))
    with pytest.raises(InvalidRequest) as refused:
        world.do(Start(DANA, OTHER, said("n"), parent=CHILD))
    assert refused.value.rule == "direct.parent-is-not-direct"


@pytest.mark.requirement("8.10-06", "8.10-25", "ca-83")
def test_c35_one_direct_conversation_at_a_time() -> None:
    """While it is open, a second, a message and a handoff are refused with its id; after its end they are taken."""
    world = World()
    here = world.start()
    world.do(Start(DANA, CHILD, said("m"), parent=here))
    for command in (Start(DANA, OTHER, said("n"), parent=here), HandOff(DANA, here)):
        with pytest.raises(DirectConversationOpen) as refused:
            world.do(command)
        assert refused.value.rule == "conversation.no-open-direct"
    with pytest.raises(DirectConversationOpen):
        world.say(here, said("n"))
    world.do(Close(DANA, CHILD))
    assert world.say(here, said("n")).status_code == 202


@pytest.mark.requirement("8.10-14", "ca-79")
def test_what_is_accepted_is_an_invitation_of_that_parent() -> None:
    """`invited` is what the event is known to be; without it nothing opens (8.10)."""
    world, here, event = _asked()
    with pytest.raises(InvalidRequest) as refused:
        world.do(replace(_accept(here, event), invited=False))
    assert refused.value.rule == "direct.event-is-invitation"
    assert CHILD not in world.heads


@pytest.mark.requirement("8.10-19", "8.10-20", "ca-80")
def test_c70_an_acceptance_again_returns_the_same_one() -> None:
    """As it stands, also once it is closed, and no message is added nor its id taken (8.10; readings 23)."""
    world, here, event = _asked()
    world.do(_accept(here, event))
    again = world.do(replace(_accept(here, event, name=OTHER), message=said("late")))
    assert again == Answered(201, CHILD, Status.WORKING, Responder.AGENT, 1, repeated=True)
    world.do(Close(DANA, CHILD))
    closed = world.do(_accept(here, event, name=OTHER))
    assert (closed.conversation_id, closed.status, closed.repeated) == (CHILD, Status.CLOSED, True)
    assert world.story(CHILD) == ["working/agent", "closed/agent"]
    assert OTHER not in world.heads
    assert world.say(here, said("late")).status_code == 202


@pytest.mark.requirement("8.10-18")
def test_an_acceptance_again_is_checked_against_the_child_too() -> None:
    """The child uses an account meanwhile, the parent does not: signed out it is not returned (readings 40)."""
    world, here, event = _asked()
    world.do(_accept(here, event))
    world.heads[CHILD] = replace(world.heads[CHILD], account_id=signed_in("A").account_id)
    with pytest.raises(AccountNeeded):
        world.do(_accept(here, event))


def test_an_acceptance_again_with_a_wait_has_its_cursor_checked() -> None:
    """A cursor of the child is one; another's is not (readings 22)."""
    world, here, event = _asked()
    world.do(_accept(here, event))
    assert world.do(replace(_accept(here, event), cursor=world.ids.write(CHILD, 1))).repeated
    with pytest.raises(InvalidCursor):
        world.do(replace(_accept(here, event), cursor=world.ids.write(here, 1)))


def test_c66_a_retried_opening_returns_the_first_answer() -> None:
    """By its message id, before the parent's state; for another content it is a conflict (8.3; readings 7, 8)."""
    world = World()
    here = world.start()
    command = Start(DANA, CHILD, said("m"), parent=here)
    first = world.do(command)
    world.do(Close(DANA, here))
    again = world.do(replace(command, conversation_id=OTHER))
    assert again.repeated
    assert (again.conversation_id, again.status) == (CHILD, first.status)
    with pytest.raises(MessageIdConflict):
        world.do(Start(DANA, OTHER, said("m", "other"), parent=here))


def test_an_opening_that_names_a_cursor_is_refused() -> None:
    """A conversation that does not exist yet knows none (readings 22)."""
    world = World()
    here = world.start()
    with pytest.raises(InvalidCursor) as refused:
        world.do(Start(DANA, CHILD, said("m"), parent=here, cursor=EventId("evt_1")))
    assert refused.value.rule == "cursor.new-conversation-has-none"


@pytest.mark.requirement("8.10-26", "ca-84", "8.5-08")
def test_closing_the_child_frees_the_parent() -> None:
    """`direct_closed` in the parent, in the same change (8.10)."""
    world = World()
    here = world.start()
    world.do(Start(DANA, CHILD, said("m"), parent=here))
    world.do(Close(DANA, CHILD))
    closed = world.log[here][-1]
    assert isinstance(closed, DirectClosed)
    assert closed.conversation_id == CHILD
    assert world.heads[here].open_direct is None
    assert world.notes[-1] == Note(NoteKind.DIRECT_CLOSED, CHILD, 2)
    size = len(world.log[here])
    world.do(Close(DANA, CHILD))
    assert len(world.log[here]) == size


@pytest.mark.requirement("8.10-28", "ca-85")
def test_closing_the_parent_closes_the_child_first() -> None:
    """Child `closed`, parent `direct_closed`, parent `closed` (readings 39)."""
    world = World()
    here = world.start()
    world.do(Start(DANA, CHILD, said("m"), parent=here))
    world.do(Close(DANA, here))
    assert world.story(CHILD)[-1] == "closed/agent"
    assert world.story(here)[-2:] == ["DirectClosed", "closed/agent"]


@pytest.mark.requirement("8.10-27", "8.12-04")
def test_the_company_closes_one_after_inactivity() -> None:
    """And the parent takes messages again (8.10, 8.12)."""
    world = World()
    here = world.start()
    world.do(Start(DANA, CHILD, said("m"), parent=here))
    world.do(Expire(CHILD, NOW + timedelta(hours=1)))
    assert world.heads[CHILD].status is Status.CLOSED
    assert world.story(here)[-1] == "DirectClosed"


def test_a_parent_whose_child_is_closed_already_closes_alone() -> None:
    """As after a change that another process saw first."""
    world = World()
    here = world.start()
    world.do(Start(DANA, CHILD, said("m"), parent=here))
    world.heads[CHILD] = replace(world.heads[CHILD], status=Status.CLOSED)
    world.do(Close(DANA, here))
    assert world.story(here)[-1] == "closed/agent"
    assert world.story(CHILD) == ["user: Where is my order?"]


def test_without_the_owners_check_nothing_opens_under_nothing() -> None:
    """The core needs a parent, and the child that was accepted, though then no rule is named."""
    world, here, event = _asked()
    with switched_off("conversation.owner"):
        with pytest.raises(ConversationNotFound) as refused:
            world.do(Start(DANA, CHILD, said("m"), parent=OTHER))
        assert refused.value.rule == ""
        world.do(_accept(here, event))
        del world.heads[CHILD]
        with pytest.raises(ConversationNotFound):
            world.do(_accept(here, event))
