"""What the Company's side changes: a turn's answer, its failure, a handoff nobody takes, closing after inactivity."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from papaver.protocol.conversation.change import Note, NoteKind
from papaver.protocol.conversation.model import Author, AuthorType, MessageAdded, Responder, Role, Status, UserRequested
from papaver.protocol.conversation.operations import (
    Answer,
    Close,
    Expire,
    Fail,
    HandOff,
    Join,
    Joined,
    LeaseLost,
    Leave,
    Park,
    Post,
    Queued,
    Read,
    Settled,
    Supersede,
    TurnCommand,
    Unavailable,
)
from papaver.protocol.conversation.state import Access
from papaver.protocol.errors import ConversationNotFound, InvalidRequest
from papaver.protocol.terms import ConversationId
from tests.unit.protocol.conversation.world import DANA, NOW, World, lease, said, signed_in


def _answer(here: ConversationId, until: int, *texts: str) -> Answer:
    return Answer(lease(here), until, tuple(said(f"reply_{until}_{n}", text) for n, text in enumerate(texts)))


@pytest.mark.requirement("8.7-02", "8.7-11", "8.4-02")
def test_c7_an_answer_is_the_message_then_idle() -> None:
    """Readers see the reply before `idle` (readings 20), and its role is the Company's."""
    world = World()
    here = world.start()
    settled = world.do(_answer(here, 1, "On its way."))
    assert settled == Settled(here, Status.IDLE, Responder.AGENT, 3)
    assert world.story(here) == ["user: Where is my order?", "company: On its way.", "idle/agent"]
    event = world.log[here][1]
    assert isinstance(event, MessageAdded)
    assert event.message.role is Role.COMPANY
    assert not world.heads[here].turn_due
    assert world.ended == 1


def test_an_answer_may_be_several_messages_or_none() -> None:
    """Each is an event of its own; a turn that says nothing still ends in `idle`."""
    world = World()
    here = world.start()
    world.do(_answer(here, 1, "One.", "Two."))
    world.say(here, said("msg_2"))
    world.do(_answer(here, 5))
    assert world.story(here)[1:] == [
        "company: One.",
        "company: Two.",
        "idle/agent",
        "user: Where is my order?",
        "working/agent",
        "idle/agent",
    ]


@pytest.mark.requirement("8.4-26", "8.4-22")
def test_several_personas_may_speak() -> None:
    """Each message names its own author (8.4)."""
    world = World()
    here = world.start()
    authors = [Author(AuthorType.AGENT, "aut_1", "Robin"), Author(AuthorType.AGENT, "aut_2", "Kim")]
    messages = tuple(replace(said(f"reply_{author.name}"), author=author) for author in authors)
    world.do(Answer(lease(here), 1, messages))
    spoken = [event.message.author for event in world.log[here][1:] if isinstance(event, MessageAdded)]
    assert spoken == authors


@pytest.mark.requirement("ca-104")
def test_what_came_during_the_turn_stays_due() -> None:
    """A turn answers up to the event it was fixed at; with more to answer the status stays `working`, with no event."""
    world = World()
    here = world.start()
    world.say(here, said("msg_2", "It is #1042."))
    settled = world.do(_answer(here, 1, "Which one?"))
    assert settled.status is Status.WORKING
    assert world.story(here)[-1] == "company: Which one?"
    assert world.heads[here].turn_due
    world.do(_answer(here, 2, "On its way."))
    assert world.story(here)[-2:] == ["company: On its way.", "idle/agent"]


def test_context_that_came_during_the_turn_needs_no_other() -> None:
    """A message of mere context does not keep the conversation working (readings 21)."""
    world = World()
    here = world.start()
    world.say(here, said("msg_2", None, context={"user_available": False}))
    assert world.do(_answer(here, 1, "On its way.")).status is Status.IDLE


def test_an_answer_counts_no_further_than_the_log() -> None:
    """A turn cannot have answered what nobody has said yet."""
    world = World()
    here = world.start()
    world.do(_answer(here, 99, "On its way."))
    assert world.say(here, said("msg_2")).status is Status.WORKING
    assert world.heads[here].turn_due


@pytest.mark.requirement("8.12-05")
@pytest.mark.parametrize("kind", ["answer", "fail", "unavailable"])
def test_c77_nothing_is_said_after_the_close(kind: str) -> None:
    """A conversation closed during the turn takes no reply; only the turn ends."""
    world = World()
    here = world.start()
    world.do(Close(DANA, here))
    command: TurnCommand = {
        "answer": _answer(here, 1, "On its way."),
        "fail": Fail(lease(here), 1, said("m", "Sorry.")),
        "unavailable": Unavailable(lease(here), said("m", "Nobody is here.")),
    }[kind]
    assert world.do(command) == Settled(here, Status.CLOSED, Responder.AGENT, 2, recorded=False)
    assert world.story(here)[-1] == "closed/agent"
    assert world.ended == 1


@pytest.mark.requirement("ca-105")
def test_c78_the_word_of_an_older_holder_is_refused() -> None:
    """Fencing: a runner that was paused until its lease was given to another writes nothing."""
    world = World(lease_lost=True)
    here = world.start()
    with pytest.raises(LeaseLost) as lost:
        world.do(_answer(here, 1, "On its way."))
    assert lost.value.rule == "turn.lease-newest"
    assert (world.story(here), world.ended) == (["user: Where is my order?"], 0)


def test_a_turn_of_no_conversation_is_refused() -> None:
    """A conversation that was deleted has nothing to answer."""
    with pytest.raises(ConversationNotFound):
        World().do(_answer(ConversationId("cnv_gone"), 1, "Hello?"))


def test_an_answer_says_something() -> None:
    """A reply without content is the Company's own fault and is not recorded."""
    world = World()
    here = world.start()
    with pytest.raises(InvalidRequest) as refused:
        world.do(_answer(here, 1, ""))
    assert refused.value.rule == "message.content"
    assert len(world.log[here]) == 1


def test_c15_a_failed_turn_is_a_worded_message_and_idle() -> None:
    """The messages it was to answer count as answered, so that it is not begun again."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], failures=3)
    assert world.do(Fail(lease(here), 1, said("m", "Sorry."))).status is Status.IDLE
    assert world.story(here)[1:] == ["company: Sorry.", "idle/agent"]
    assert (world.heads[here].failures, world.heads[here].turn_due) == (0, False)


def test_an_answer_may_hand_off() -> None:
    """The Company Agent asks for a person: its message, then `queued` (8.9)."""
    world = World()
    here = world.start()
    world.do(Answer(lease(here), 1, (said("m", "Let me find someone."),), handoff=True))
    assert world.story(here)[1:] == ["company: Let me find someone.", "queued/agent"]
    assert world.heads[here].handoff_pending
    assert world.heads[here].turn_due


@pytest.mark.parametrize("handoff", [True, False])
def test_an_answer_that_comes_while_a_person_is_waited_for_changes_no_state(handoff: bool) -> None:
    """The reply is recorded, and the conversation stays queued (8.9)."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    settled = world.do(Answer(lease(here), 1, (said("m", "On its way."),), handoff))
    assert (settled.status, settled.responder) == (Status.QUEUED, Responder.AGENT)
    assert world.story(here)[1:] == ["queued/agent", "company: On its way."]


ALEX = Author(AuthorType.HUMAN, "aut_alex", "Alex")


@pytest.mark.requirement("8.7-07", "8.7-12")
@pytest.mark.parametrize("kind", ["answer", "fail", "park", "supersede"])
def test_a_person_who_joins_supersedes_the_turn(kind: str) -> None:
    """What the turn would have said is dropped, its lease ends, and its messages are the person's to answer (8.7)."""
    world = World()
    here = world.start()
    world.do(Join(here, ALEX))
    command: TurnCommand = {
        "answer": _answer(here, 1, "On its way."),
        "fail": Fail(lease(here), 1, said("m", "Sorry.")),
        "park": Park(lease(here), 1, ("orders:read",)),
        "supersede": Supersede(lease(here)),
    }[kind]
    settled = world.do(command)
    assert settled == Settled(here, Status.IDLE, Responder.HUMAN, 2, recorded=False)
    assert world.story(here) == ["user: Where is my order?", "idle/human"]
    assert world.ended == 1
    assert world.heads[here].answered_seq == 0


def test_a_turn_whose_messages_a_person_answered_says_nothing() -> None:
    """The person came, answered and left while it ran (8.7)."""
    world = World()
    here = world.start()
    world.do(Join(here, ALEX))
    world.do(Post(here, replace(said("p", "I have it."), author=ALEX), ALEX.id))
    world.do(Leave(here))
    assert world.do(_answer(here, 1, "On its way.")).recorded is False
    assert world.story(here)[-1] == "idle/agent"


def test_an_answer_may_close() -> None:
    """The messages, then `closed`: no `idle` between them (8.12)."""
    world = World()
    here = world.start()
    settled = world.do(replace(_answer(here, 1, "Bye."), close=True))
    assert world.story(here)[1:] == ["company: Bye.", "closed/agent"]
    assert settled.status is Status.CLOSED


@pytest.mark.requirement("8.9-03", "8.9-02")
def test_c32_who_is_queued_for_stays_queued_until_a_person_joins() -> None:
    """The desk says that somebody will come: nothing changes; what waits unanswered is told to them (8.9)."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    assert world.do(Queued(lease(here))).recorded is False
    head = world.heads[here]
    assert (head.status, head.handoff_pending, head.turn_due) == (Status.QUEUED, False, False)
    assert world.notes == [Note(NoteKind.MESSAGE, here, 1, 1)]
    assert head.queued_at == NOW + timedelta(seconds=1)


def test_a_person_may_join_at_once() -> None:
    """Queued, then the person, in one state event; an answer that repeats it changes nothing (8.9)."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    world.do(Joined(lease(here), ALEX))
    world.do(Joined(lease(here), ALEX))
    assert world.story(here)[1:] == ["queued/agent", "idle/human"]
    assert world.heads[here].person == ALEX
    assert world.heads[here].queued_at is None


def test_a_handoff_that_is_superseded_waits_on() -> None:
    """A turn that only ends says nothing to a pending handoff: the next one asks."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    world.do(Supersede(lease(here)))
    assert world.heads[here].handoff_pending


@pytest.mark.requirement("ca-38")
def test_c37_where_the_user_reads_the_account_is_asked_for_in_words_too() -> None:
    """The message, then the event (8.10, 8.11)."""
    world = World()
    here = world.start()
    world.do(Park(lease(here), 1, ("orders:read",), None, said("m", "Please sign in.")))
    assert world.story(here)[1:] == ["company: Please sign in.", "needs orders:read", "idle/agent"]


@pytest.mark.requirement("papaver-133")
@pytest.mark.parametrize("covered", [False, True])
def test_what_a_turn_did_before_it_was_parked_is_said(covered: bool) -> None:
    """Also when a token that covers came meanwhile and nobody is asked: the run that follows has to know of it."""
    world = World()
    here = world.start()
    if covered:
        world.heads[here] = replace(world.heads[here], access=Access(("orders:read",)))
    park = Park(lease(here), 1, ("orders:read",), None, said("ask", "Please sign in."), said("done", "It is sent."))
    world.do(park)
    asked = [] if covered else ["company: Please sign in.", "needs orders:read", "idle/agent"]
    assert world.story(here)[1:] == ["company: It is sent.", *asked]
    assert world.heads[here].answered_seq == 0


@pytest.mark.requirement("papaver-133")
@pytest.mark.parametrize("kind", ["answer", "fail", "park", "supersede"])
def test_what_a_superseded_turn_did_is_all_that_it_says(kind: str) -> None:
    """And once the conversation is closed it says nothing."""
    for closed in (False, True):
        world = World()
        here = world.start()
        done, until = said("done", "It is sent."), 1
        commands: dict[str, TurnCommand] = {
            "answer": Answer(lease(here), until, (said("m", "Sent!"),), done=done),
            "fail": Fail(lease(here), until, said("m", "Sorry."), done),
            "park": Park(lease(here), until, ("orders:read",), None, said("m", "Please sign in."), done),
            "supersede": Supersede(lease(here), done),
        }
        world.do(Close(DANA, here) if closed else Join(here, Author(AuthorType.HUMAN, "p")))
        before = world.story(here)
        world.do(commands[kind])
        assert world.story(here) == [*before, *([] if closed else ["company: It is sent."])]
        assert world.heads[here].answered_seq == 0 or closed


def test_an_answer_may_ask_for_the_user() -> None:
    """A `user_requested` event after the messages, before the state (8.10)."""
    world = World()
    here = world.start()
    world.do(Answer(lease(here), 1, (said("m", "One moment."),), user_requested="to confirm the exchange"))
    event = world.log[here][2]
    assert isinstance(event, UserRequested)
    assert event.reason == "to confirm the exchange"
    assert world.story(here)[1:] == ["company: One moment.", "UserRequested", "idle/agent"]


@pytest.mark.requirement("ca-68")
def test_c33_nobody_comes() -> None:
    """Queued, then idle with the agent, and the Company Agent says why (8.9; readings 38)."""
    world = World()
    here = world.start()
    world.do(_answer(here, 1, "On its way."))
    world.do(HandOff(DANA, here))
    settled = world.do(Unavailable(lease(here), said("m", "Nobody is here.")))
    assert settled == Settled(here, Status.IDLE, Responder.AGENT, 6)
    assert world.story(here)[3:] == ["queued/agent", "company: Nobody is here.", "idle/agent"]
    assert not world.heads[here].turn_due


def test_what_was_said_while_waiting_is_answered_then() -> None:
    """With something unanswered the Company goes back to work, each change with its event."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    world.say(here, said("msg_2", "It is #1042."))
    assert world.do(Unavailable(lease(here), said("m", "Nobody is here."))).status is Status.WORKING
    assert world.story(here)[1:] == [
        "queued/agent",
        "user: It is #1042.",
        "company: Nobody is here.",
        "idle/agent",
        "working/agent",
    ]
    assert world.heads[here].turn_due


def test_a_handoff_that_is_no_longer_pending_is_left_alone() -> None:
    """A person came, or the same was said before: nothing is recorded, and the turn ends."""
    world = World()
    here = world.start()
    world.heads[here] = replace(world.heads[here], status=Status.IDLE, responder=Responder.HUMAN)
    settled = world.do(Unavailable(lease(here), said("m", "Nobody is here.")))
    assert settled == Settled(here, Status.IDLE, Responder.HUMAN, 1, recorded=False)
    assert world.ended == 1


def test_an_inactive_conversation_is_closed_by_the_company() -> None:
    """One state event; a pending handoff is cancelled (8.12)."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    assert world.do(Expire(here, world.now)).status is Status.CLOSED
    assert world.story(here)[-1] == "closed/agent"
    assert not world.heads[here].turn_due
    assert world.ended == 0
    assert world.do(Expire(here, world.now)).recorded is False


def test_a_conversation_that_changed_meanwhile_is_not_closed() -> None:
    """What was chosen as inactive is looked at again in the transaction that closes it."""
    world = World()
    here = world.start()
    settled = world.do(Expire(here, NOW - timedelta(seconds=1)))
    assert (settled.status, settled.recorded) == (Status.WORKING, False)


def _parked() -> tuple[World, ConversationId]:
    """A signed-out question that needs the account."""
    world = World()
    here = world.start()
    world.do(Park(lease(here), 1, ("orders:read", "orders:write")))
    return world, here


@pytest.mark.requirement("8.11-01", "8.11-04")
def test_a_turn_that_needs_the_account_is_an_event_then_idle() -> None:
    """The conversation stays open, the message stays unanswered, and no turn is due."""
    world, here = _parked()
    assert world.story(here) == ["user: Where is my order?", "needs orders:read orders:write", "idle/agent"]
    head = world.heads[here]
    assert (head.answered_seq, head.asked_seq, head.parked, head.failures) == (0, 1, True, 0)
    assert not head.turn_due
    assert world.ended == 1


def test_what_was_said_while_the_turn_ran_is_a_reason_to_run_again() -> None:
    """One event of this turn; the next one sees all that is unanswered, and may need the account as well."""
    world = World()
    here = world.start()
    world.say(here, said("msg_2", "Or just your opening hours."))
    world.do(Park(lease(here), 1, ("orders:read",)))
    assert world.heads[here].turn_due
    world.do(Park(lease(here), 2, ("orders:read",)))
    assert world.story(here)[2:] == ["needs orders:read", "needs orders:read", "idle/agent"]
    assert not world.heads[here].turn_due


def test_a_token_that_came_while_the_turn_ran_is_not_asked_for() -> None:
    """The turn runs again with it; one that does not cover, or that the turn had, changes nothing."""
    world = World()
    here = world.start()
    world.do(Read(signed_in("A", "orders:read"), here))
    had = world.heads[here].access
    world.do(Park(lease(here), 1, ("orders:read",), None))
    assert world.story(here) == ["user: Where is my order?"]
    assert (world.heads[here].turn_due, world.ended) == (True, 1)
    world.do(Park(lease(here), 1, ("orders:read",), had))
    assert world.story(here)[1:] == ["needs orders:read", "idle/agent"]
    world.say(here, said("msg_2"), signed_in("A", "profile"))
    world.do(Park(lease(here), 4, ("orders:read",), had))
    assert world.story(here)[-2:] == ["needs orders:read", "idle/agent"]


def test_a_handoff_that_nobody_takes_leaves_a_parked_turn_parked() -> None:
    """Asking for a person is no token; what was said while waiting is looked at, as ever."""
    world, here = _parked()
    world.do(HandOff(DANA, here))
    world.do(Unavailable(lease(here), said("sorry", "Nobody.")))
    assert world.story(here)[3:] == ["queued/agent", "company: Nobody.", "idle/agent"]
    world.do(HandOff(DANA, here))
    world.say(here, said("msg_2"))
    world.do(Unavailable(lease(here), said("sorry_2", "Nobody.")))
    assert world.story(here)[-1] == "working/agent"


def test_a_turn_that_needs_the_account_after_a_handoff_stays_queued() -> None:
    """The event is recorded; who waits for a person goes on waiting."""
    world = World()
    here = world.start()
    world.do(HandOff(DANA, here))
    world.do(Park(lease(here), 1, ("orders:read",)))
    assert world.story(here)[1:] == ["queued/agent", "needs orders:read"]
    assert (world.heads[here].status, world.heads[here].parked) == (Status.QUEUED, True)


def test_a_turn_that_comes_when_all_is_answered_needs_nothing() -> None:
    """As when a person answered meanwhile: nobody has to sign in for that."""
    world = World()
    here = world.start()
    world.do(_answer(here, 1, "On its way."))
    assert world.do(Park(lease(here), 1, ("orders:read",))).recorded is False
