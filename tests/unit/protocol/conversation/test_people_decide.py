"""People who join, speak and leave, what the Company posts and asks, closing, and pruning (8.7-8.12)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from papaver.protocol.conversation.change import Change, Loaded, Note, NoteKind
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import Author, AuthorType, Message, Responder, Role, Status, UserRequested
from papaver.protocol.conversation.operations import (
    Answer,
    AskForScopes,
    AskForUser,
    Close,
    Decline,
    End,
    Expire,
    HandOff,
    Join,
    Leave,
    Park,
    PeopleCommand,
    Post,
    Prune,
    Queued,
    Refer,
    Settled,
    Start,
)
from papaver.protocol.conversation.people_decide import DirectRefused, NotJoined, PersonRefused, Taken
from papaver.protocol.errors import ConversationClosed, ConversationNotFound
from papaver.protocol.terms import ClientId, ConversationId, MessageId, UserId
from tests.unit.protocol.conversation.world import DANA, NOW, World, lease, said

ALEX = Author(AuthorType.HUMAN, "aut_alex", "Alex")
KIM = Author(AuthorType.HUMAN, "aut_kim", "Kim")


def _by(author: Author, text: str, message_id: str = "p_1") -> Message:
    return replace(said(message_id, text), author=author)


def _queued() -> tuple[World, ConversationId]:
    """A conversation with one unanswered message, and somebody will come."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    world.do(Queued(lease(here)))
    world.notes.clear()
    return world, here


@pytest.mark.requirement("8.7-07", "8.9-03", "ca-73")
def test_c32_a_person_joins_speaks_and_leaves() -> None:
    """One state event each way; the person's words answer what was said; the Company Agent has nothing left to do."""
    world, here = _queued()
    world.do(Join(here, ALEX))
    world.do(Post(here, _by(ALEX, "Hi, I am Alex."), ALEX.id))
    world.do(Leave(here, ALEX.id))
    assert world.story(here)[1:] == ["queued/agent", "idle/human", "company: Hi, I am Alex.", "idle/agent"]
    head = world.heads[here]
    assert (head.person, head.queued_at, head.turn_due) == (None, None, False)


@pytest.mark.requirement("ca-75")
def test_what_the_person_left_unanswered_is_the_agents() -> None:
    """Back to the agent and to work in one state event."""
    world, here = _queued()
    world.do(Join(here, ALEX))
    world.do(Leave(here))
    assert world.story(here)[-1] == "working/agent"
    assert world.heads[here].turn_due


def test_what_waits_for_a_token_waits_on_after_the_person() -> None:
    """A parked turn is not due because somebody has left (8.11)."""
    world = World()
    here = world.start()
    world.do(Park(lease(here), 1, ("orders:read",)))
    world.do(Join(here, ALEX))
    world.do(Leave(here))
    assert (world.story(here)[-1], world.heads[here].parked) == ("idle/agent", True)


@pytest.mark.requirement("8.9-07", "ca-70")
def test_c82_what_is_said_while_waiting_is_told_and_changes_no_state() -> None:
    """Each message of the User's side is a note, context alone too; the conversation stays queued (8.9)."""
    world, here = _queued()
    world.say(here, said("msg_2", "It is urgent."))
    world.say(here, said("msg_3", None, context={"user_available": False}))
    world.do(Join(here, ALEX))
    world.say(here, said("msg_4", "Hello?"))
    assert world.story(here)[2:] == ["user: It is urgent.", "user: ", "idle/human", "user: Hello?"]
    assert world.notes == [Note(NoteKind.MESSAGE, here, seq, seq) for seq in (3, 4, 6)]


def test_who_joins_out_of_turn_is_told_what_is_unanswered() -> None:
    """Nobody had asked for a person, so nothing was noted before."""
    world = World()
    here = world.start()
    world.say(here, said("msg_2", "It is #1042."))
    world.do(Join(here, ALEX))
    assert world.notes == [Note(NoteKind.MESSAGE, here, 2, 1)]
    assert world.story(here)[-1] == "idle/human"


def test_who_joins_when_all_is_answered_is_told_nothing() -> None:
    """There is nothing to answer."""
    world = World()
    here = world.start()
    world.do(Answer(lease(here), 1, (said("r", "Done."),)))
    world.do(Join(here, ALEX))
    assert world.notes == []


@pytest.mark.requirement("papaver-108")
def test_two_who_join_one_has_it() -> None:
    """The other is told who; again by the same one changes nothing."""
    world, here = _queued()
    world.do(Join(here, ALEX))
    with pytest.raises(Taken) as refused:
        world.do(Join(here, KIM))
    assert (refused.value.rule, refused.value.person) == ("people.one-at-a-time", ALEX)
    assert "Alex" in refused.value.description
    assert world.do(Join(here, ALEX)).recorded is False


@pytest.mark.parametrize("person", [Author(AuthorType.AGENT, "aut_1"), Author(AuthorType.HUMAN)])
def test_who_joins_is_a_person_with_an_id(person: Author) -> None:
    """8.7: `human` means a person; the id tells them from others."""
    world, here = _queued()
    with pytest.raises(PersonRefused) as refused:
        world.do(Join(here, person))
    assert refused.value.rule == "people.person-has-id"


def test_nobody_speaks_or_leaves_in_anothers_place() -> None:
    """The seat is a person's own; the error says who has it."""
    world, here = _queued()
    with pytest.raises(NotJoined, match="nobody does"):
        world.do(Post(here, _by(KIM, "Hi"), KIM.id))
    world.do(Join(here, ALEX))
    for command in (Post(here, _by(KIM, "Hi"), KIM.id), Leave(here, KIM.id)):
        with pytest.raises(NotJoined, match="Alex does") as refused:
            world.do(command)
        assert (refused.value.rule, refused.value.person) == ("people.seated", ALEX)


@pytest.mark.requirement("ca-74")
def test_the_company_posts_of_its_own_accord() -> None:
    """It answers nothing and changes no state; with a key it is said once."""
    world = World()
    here = world.start()
    key = (ClientId("company"), UserId(""), MessageId("msg_k"))
    world.do(Post(here, said("msg_k", "Your parcel has left."), key=key))
    again = world.do(Post(here, said("msg_k", "Your parcel has left."), key=key))
    assert world.story(here) == ["user: Where is my order?", "company: Your parcel has left."]
    assert (again.recorded, world.heads[here].turn_due) == (False, True)


@pytest.mark.requirement("8.9-05", "ca-77", "8.9-06")
def test_the_company_hands_off_by_itself() -> None:
    """Queued, once; with a person there it changes nothing (8.9)."""
    world = World()
    here = world.start()
    world.do(Refer(here))
    world.do(Refer(here))
    assert world.story(here)[1:] == ["queued/agent"]
    world.do(Join(here, ALEX))
    assert world.do(Refer(here)).recorded is False


@pytest.mark.requirement("8.9-04", "ca-76")
def test_c33_nobody_comes_after_all() -> None:
    """Idle with the agent, why, and on to what was asked; unless it is queued it changes nothing (8.9)."""
    world, here = _queued()
    world.do(Decline(here, said("n", "We are closed.")))
    assert world.story(here)[2:] == ["company: We are closed.", "idle/agent", "working/agent"]
    assert world.do(Decline(here, said("n2", "We are closed."))).recorded is False


@pytest.mark.requirement("8.10-10", "8.10-11", "8.5-07")
def test_the_user_is_asked_for() -> None:
    """An event with the reason, whose id is returned; neither status nor responder changes (8.10)."""
    world = World()
    here = world.start()
    settled = world.do(AskForUser(here, "to confirm"))
    event = world.log[here][-1]
    assert isinstance(event, UserRequested)
    assert (settled.event_id, event.reason, settled.status) == (event.id, "to confirm", Status.WORKING)


def test_the_user_is_not_asked_for_where_they_are() -> None:
    """In a Direct Conversation it is refused (readings 40)."""
    world = World()
    here = world.start()
    child = world.do(Start(DANA, ConversationId("cnv_d"), said("m"), parent=here)).conversation_id
    with pytest.raises(DirectRefused) as refused:
        world.do(AskForUser(child, "to confirm"))
    assert refused.value.rule == "people.asks-outside-direct"


def test_scopes_are_asked_for() -> None:
    """The event names them, and a challenge of this conversation does from then on (8.11)."""
    world = World()
    here = world.start()
    world.do(AskForScopes(here, ("orders:read", "orders:write")))
    assert world.story(here)[-1] == "needs orders:read orders:write"
    assert world.heads[here].scope == "orders:read orders:write"


@pytest.mark.requirement("8.9-08", "ca-71", "8.12-04")
@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize("ours", [True, False])
def test_c32_closing_tells_the_person(joined: bool, ours: bool) -> None:
    """Whoever was waited for or had joined is told, once; the responder stays who it was (8.7, 8.12)."""
    world, here = _queued()
    if joined:
        world.do(Join(here, ALEX))
    for _ in range(2):
        if ours:
            world.do(End(here))
        else:
            world.do(Close(DANA, here))
    assert world.story(here)[-1] == ("closed/human" if joined else "closed/agent")
    assert world.notes == [Note(NoteKind.CANCELLED, here, len(world.log[here]))]
    assert not world.heads[here].handoff_pending


def test_closing_where_no_person_was_asked_for_tells_nobody() -> None:
    """There is nobody to tell."""
    world = World()
    here = world.start()
    world.do(End(here))
    assert world.notes == []


@pytest.mark.parametrize(
    "command",
    [
        Join(ConversationId("cnv_1"), ALEX),
        Refer(ConversationId("cnv_1")),
        Post(ConversationId("cnv_1"), said("p")),
        AskForUser(ConversationId("cnv_1"), "why"),
        AskForScopes(ConversationId("cnv_1"), ("a",)),
    ],
    ids=lambda command: type(command).__name__,
)
def test_c34_a_closed_conversation_takes_nothing(command: PeopleCommand) -> None:
    """`conversation_closed`, whoever it is from (8.12)."""
    world = World()
    world.do(Close(DANA, world.start()))
    with pytest.raises(ConversationClosed) as refused:
        world.do(command)
    assert refused.value.rule == "conversation.not-closed"


def test_leaving_and_declining_a_closed_one_changes_nothing() -> None:
    """A hook that comes late does no harm."""
    world, here = _queued()
    world.do(Join(here, ALEX))
    world.do(Close(DANA, here))
    assert world.do(Leave(here, KIM.id)).recorded is False
    assert world.do(Decline(here, said("n"))).recorded is False
    assert world.heads[here].responder is Responder.HUMAN


def test_nothing_is_done_to_what_there_is_not() -> None:
    """The same error as a request gets."""
    with pytest.raises(ConversationNotFound):
        World().do(Join(ConversationId("cnv_x"), ALEX))


def _pruned(world: World, here: ConversationId, first_seq: int) -> Change[Settled]:
    command = Prune(here, first_seq, NOW + timedelta(minutes=1))
    return decide(command, Loaded(head=world.heads[here]), world.now, world.ids)


@pytest.mark.requirement("8.5-23", "ca-60")
def test_what_is_old_is_pruned_forward() -> None:
    """`first_seq` moves on, nothing else, and the store is told to delete what lies before it (8.5)."""
    world = World()
    here = world.start()
    world.do(Answer(lease(here), 1, (said("r", "Done."),)))
    change = _pruned(world, here, 2)
    (head,) = change.heads
    assert (head.first_seq, head.kept_from) == (2, NOW + timedelta(minutes=1))
    assert replace(head, first_seq=1, kept_from=None) == world.heads[here]
    assert (change.prune, change.result.recorded) == (True, True)
    world.heads[here] = head
    again = _pruned(world, here, 2)
    assert (again.heads, again.prune) == ((), False)


def test_the_newest_event_and_what_is_unanswered_stay() -> None:
    """A reader needs a cursor, and a turn what it answers."""
    world = World()
    here = world.start()
    world.do(Answer(lease(here), 1, (said("r", "Done."),)))
    assert _pruned(world, here, 99).heads[0].first_seq == 3
    world.say(here, said("msg_2", "And?"))
    assert _pruned(world, here, 99).heads[0].first_seq == world.heads[here].answered_seq + 1 == 2


def test_a_post_is_of_the_company() -> None:
    """Whatever role the message came with (8.4)."""
    world = World()
    here = world.start()
    world.do(Post(here, said("p", "Hi", role=Role.USER)))
    assert world.story(here)[-1] == "company: Hi"


def test_what_has_not_been_idle_long_enough_stays_open() -> None:
    """Somebody wrote while the sweep was on its way (8.12)."""
    world = World()
    here = world.start()
    assert world.do(Expire(here, NOW - timedelta(seconds=1))).recorded is False
    assert world.do(Expire(here, world.now)).status is Status.CLOSED
