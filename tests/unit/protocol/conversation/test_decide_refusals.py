"""Who may change a conversation, and with which cursor, Session and JWT: refusals come in readings 5's order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.protocol.conversation.change import Loaded, SessionRow
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.operations import Caller, Close, HandOff, Read, RequestCommand, Say, Start
from papaver.protocol.errors import (
    AccountNeeded,
    ConversationClosed,
    ConversationNotFound,
    InvalidCursor,
    InvalidSession,
    PoppyError,
    SessionEnded,
)
from papaver.protocol.terms import AgentId, ClientId, ConversationId, EventId, SessionId, UserId
from papaver.testing.rules import switched_off
from tests.unit.protocol.conversation.world import DANA, World, said, signed_in

SAM = replace(DANA, user_id=UserId("sam"))
NOWHERE = ConversationId("cnv_nowhere")
KINDS = ["say", "read", "hand off", "close"]


def _command(kind: str, caller: Caller, where: ConversationId, name: str = "msg_1") -> RequestCommand:
    commands: dict[str, RequestCommand] = {
        "start": Start(caller, where, said(name)),
        "say": Say(caller, where, said(name)),
        "read": Read(caller, where),
        "hand off": HandOff(caller, where),
        "close": Close(caller, where),
    }
    return commands[kind]


@pytest.mark.requirement("8.2-09")
@pytest.mark.parametrize("caller", [SAM, replace(DANA, client_id=ClientId("https://other.example/a.json"))])
@pytest.mark.parametrize("kind", KINDS)
def test_c28_requests_of_others_are_refused_first(caller: Caller, kind: str) -> None:
    """Before the retry, the cursor and the state, a stranger learns nothing but `conversation_not_found`."""
    world = World()
    here = world.start()
    world.do(Close(DANA, here))
    for target in (here, NOWHERE):
        with pytest.raises(ConversationNotFound) as refused:
            world.do(_command(kind, caller, target))
        assert refused.value.rule == "conversation.owner"
    assert len(world.log[here]) == 2


def test_an_unknown_conversation_is_not_found_even_without_its_check() -> None:
    """There is nothing to change, though then no rule is named."""
    with switched_off("conversation.owner"), pytest.raises(ConversationNotFound) as refused:
        World().do(Read(DANA, NOWHERE))
    assert refused.value.rule == ""


def test_c74_the_first_accepted_request_with_a_token_binds() -> None:
    """Any of the five kinds, a retry included, makes the conversation the account's; then the table applies."""
    a = signed_in("A")
    for command in (Read, HandOff, Close):
        world = World()
        here = world.start()
        events = len(world.log[here])
        world.do(command(a, here))
        assert world.heads[here].account_id == "A"
        assert len(world.log[here]) == events + (command is not Read)
    world = World()
    here = world.start()
    assert world.do(Start(a, ConversationId("cnv_2"), said("msg_1"))).repeated
    with pytest.raises(AccountNeeded):
        world.say(here, said("msg_2"))
    with pytest.raises(ConversationNotFound):
        world.say(here, said("msg_2"), caller=signed_in("B"))
    with pytest.raises(AccountNeeded):
        world.do(Start(DANA, ConversationId("cnv_2"), said("msg_1")))
    assert world.say(here, said("msg_2"), caller=a).status_code == 202
    assert world.heads[world.start(said("msg_3"), caller=a, name="cnv_3")].account_id == "A"


def test_a_refused_request_does_not_bind() -> None:
    """Only what is accepted makes the conversation the account's (readings 2)."""
    world = World()
    here = world.start()
    world.do(Close(DANA, here))
    with pytest.raises(ConversationClosed):
        world.say(here, said("msg_2"), caller=signed_in("A"))
    assert world.heads[here].account_id is None


def test_a_read_that_binds_nothing_writes_nothing() -> None:
    """A signed-out read leaves even the head alone."""
    world = World()
    here = world.start()
    change = decide(Read(DANA, here), Loaded(head=world.heads[here]), world.now, world.ids)
    assert (change.heads, change.events, change.receipt) == ((), (), None)
    assert change.result.status_code == 200


@pytest.mark.requirement("8.13-07", "ca-10")
def test_c17_a_bad_cursor_is_refused_before_anything_is_recorded() -> None:
    """An error means that the message was not accepted (readings 22)."""
    world = World()
    here = world.start()
    foreign = world.ids.write(ConversationId("cnv_2"), 1)
    for cursor in (EventId("evt_unknown"), foreign, world.ids.write(here, 2)):
        with pytest.raises(InvalidCursor):
            world.do(Say(DANA, here, said("msg_2"), cursor))
    assert len(world.log[here]) == 1
    assert world.do(Say(DANA, here, said("msg_2"), world.ids.write(here, 1))).status_code == 202


@pytest.mark.requirement("8.13-07")
def test_a_new_conversation_knows_no_cursor_but_its_retry_does() -> None:
    """The cursor of a start is checked after the retry lookup (readings 22)."""
    world = World()
    with pytest.raises(InvalidCursor) as refused:
        world.do(
            Start(DANA, ConversationId("cnv_1"), said("msg_1"), cursor=world.ids.write(ConversationId("cnv_1"), 1))
        )
    assert refused.value.rule == "cursor.new-conversation-has-none"
    assert world.heads == {}
    here = world.start()
    again = Start(DANA, ConversationId("cnv_2"), said("msg_1"), cursor=world.ids.write(here, 1))
    assert world.do(again).repeated
    with pytest.raises(InvalidCursor):
        world.do(replace(again, cursor=world.ids.write(here, 2)))


@pytest.mark.requirement("5.3-23")
@pytest.mark.parametrize("kind", ["start", *KINDS])
def test_a_replayed_session_jwt_changes_nothing(kind: str) -> None:
    """`invalid_session`, before everything else (readings 5, 49)."""
    world = World()
    here = world.start()
    world.replayed = True
    with pytest.raises(InvalidSession) as refused:
        world.do(_command(kind, DANA, here, "msg_2"))
    assert refused.value.rule == "session.jti-once"
    assert len(world.log[here]) == 1


OPENED = SessionRow("key", DANA.client_id, SessionId("sid"), DANA.user_id, None, 0.0)


@pytest.mark.requirement("5.3-14")
@pytest.mark.parametrize(
    ("found", "error", "rule"),
    [
        (replace(OPENED, ended_at=9.0), SessionEnded, "session.not-ended"),
        (replace(OPENED, user_id=UserId("sam")), InvalidSession, "session.unchanged"),
        (replace(OPENED, agent_id=AgentId("helper"), ended_at=9.0), InvalidSession, "session.unchanged"),
    ],
)
def test_a_session_that_changed_meanwhile_is_noticed(found: SessionRow, error: type[PoppyError], rule: str) -> None:
    """The Session is looked at again in the transaction that writes (readings 3)."""
    world = World()
    here = world.start()
    caller = replace(DANA, session=OPENED)
    world.session = OPENED
    world.do(Read(caller, here))
    world.session = found
    with pytest.raises(error) as refused:
        world.do(Say(caller, here, said("msg_2")))
    assert refused.value.rule == rule
    assert len(world.log[here]) == 1
