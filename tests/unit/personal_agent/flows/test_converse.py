"""Conversations as flows: where they go, read in pages, handed off, closed, refused in clear words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.personal_agent.content import compose
from papaver.personal_agent.flows.converse import close, deliver, hand_off, read, write
from papaver.personal_agent.flows.effects import Flow
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.live import LiveSession, NotOffered
from papaver.personal_agent.outbox import Target
from papaver.protocol.conversation.model import Message, Responder, Status
from papaver.protocol.dialect import Wanted
from papaver.protocol.errors import (
    CursorExpired,
    InvalidRequest,
    Misbehaved,
    Refused,
)
from papaver.protocol.terms import ConversationId, EventId
from papaver.testing.rules import switched_off
from tests.house.agent_world import (
    DOMAIN,
    ENDPOINT,
    ScriptedCompany,
    World,
    answer,
    document,
    error,
    unreachable,
)

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
CHALLENGE = 'Bearer scope="orders:read"'


def message(world: World, text: str = "Hello", **more: Any) -> Message:
    """A message with an id of its own."""
    return compose(message_id(world.ids), text, **more)


def sent(live: LiveSession, said: Message, target: str | None = None, wanted: Wanted | None = None) -> Flow[Any]:
    """A message through the outbox."""
    row = yield from write(live, said, Target(None if target is None else ConversationId(target)))
    return (yield from deliver(live, row, wanted or Wanted()))


def start(world: World, live: LiveSession) -> ConversationId:
    """A conversation."""
    return ConversationId(world.run(sent(live, message(world))).row.conversation_id)


@pytest.mark.requirement("8.1-02")
def test_the_first_protocol_that_we_speak_is_used() -> None:
    """Unfamiliar types are skipped; a Company without ours offers no conversation."""
    world = World()
    protocols = [{"type": "a2a", "endpoint": "https://a2a.example"}, {"type": "poppy", "endpoint": ENDPOINT}]
    world.company.documents[POPPY] = document(agent={"protocols": protocols})
    start(world, world.live())
    assert world.company.requests[0].url == ENDPOINT
    world = World()
    world.company.documents[POPPY] = document(agent={"protocols": protocols[:1]})
    live = world.live()
    with pytest.raises(NotOffered) as caught:
        world.run(write(live, message(world)))
    assert caught.value.rule == "conversation.offered"
    assert world.of_kind("outbox") == []


@pytest.mark.requirement("8.4-29")
def test_c93_undeclared_extension_content_is_never_sent() -> None:
    """It goes only where the Session uses the extension (8.4)."""
    world = World()
    world.extensions = {"links": ("1",)}
    said = message(world, extensions={"links": {"items": []}})
    with pytest.raises(InvalidRequest) as caught:
        world.run(write(world.live(), said))
    assert caught.value.rule == "message.extensions-shared"
    world.company.documents[POPPY] = document(extensions={"links": [{"version": "1"}]})
    world.rows.clear()
    world.run(sent(world.live(), said))
    assert json.loads(world.company.requests[0].body)["message"]["extensions"] == {"links": {"items": []}}


# ── reading, handing off, closing ─────────────────────────────────────────────────────────────────────────────────────


def test_a_page_is_read_after_the_cursor() -> None:
    """Cursor and wait are in the query, and nowhere else."""
    world = World()
    live = world.live()
    conversation = start(world, live)
    world.company.say(conversation, "Hi")
    page = world.run(read(live, conversation, Wanted(EventId("evt_1"), 5)))
    assert [event.id for event in page.events] == ["evt_2", "evt_3"]
    assert world.company.requests[-1].url == f"{ENDPOINT}/{conversation}/events?cursor=evt_1&wait=5"


def test_a_read_outlives_a_company_that_is_away() -> None:
    """A restart of the Company takes some tries."""
    world = World()
    live = world.live()
    conversation = start(world, live)
    world.company.script = [unreachable(), answer(503), answer(504), unreachable()]
    assert world.run(read(live, conversation, Wanted())).events
    assert world.waits == [1, 2, 4, 8]


def test_refused_reads_say_why() -> None:
    """An expired cursor has its own error; the rest has the Company's code."""
    world = World()
    live = world.live()
    conversation = start(world, live)
    world.company.script = [error("cursor_expired", 410)]
    with pytest.raises(CursorExpired):
        world.run(read(live, conversation, Wanted(EventId("evt_0"))))
    for flow in (read(live, conversation, Wanted()), hand_off(live, conversation), close(live, conversation)):
        world.company.script = [error("conversation_not_found", 404)]
        with pytest.raises(Refused) as caught:
            world.run(flow)
        assert caught.value.code == "conversation_not_found"


@pytest.mark.requirement("papaver-19")
def test_an_answer_about_another_conversation_is_none() -> None:
    """Neither a page nor an acceptance of another conversation counts."""
    world = World()
    live = world.live()
    conversation = start(world, live)
    other: dict[str, object] = {"conversation_id": "cnv_9", "status": "idle", "responder": "agent"}
    page: dict[str, object] = {**other, "events": (), "cursor": None, "has_more": False}
    for status, body, flow in (
        (200, page, lambda: read(live, conversation, Wanted())),
        (202, other, lambda: sent(live, message(world), conversation)),
    ):
        world.company.script = [answer(status, body)]
        with pytest.raises(Misbehaved) as caught:
            world.run(flow())
        assert caught.value.rule == "answer.same-conversation"
    world.company.script = [answer(200, page)]
    with switched_off("answer.same-conversation"):
        assert world.run(read(live, conversation, Wanted())).conversation_id == "cnv_9"


@pytest.mark.requirement("8.9-01", "8.12-01")
def test_handoff_and_close_send_an_empty_object() -> None:
    """Both answer with the state."""
    world = World()
    live = world.live()
    conversation = start(world, live)
    assert world.run(hand_off(live, conversation)) == (Status.QUEUED, Responder.AGENT)
    assert world.run(close(live, conversation)) == (Status.CLOSED, Responder.AGENT)
    asked = [(request.url.rpartition("/")[2], request.body) for request in world.company.requests[-2:]]
    assert asked == [("handoff", b"{}"), ("close", b"{}")]


def test_a_conversation_goes_on_in_another_session() -> None:
    """A conversation outlives its Session: after `session_ended` the same message is accepted in the new one."""
    company = ScriptedCompany()
    world = World(company)
    live = world.live()
    conversation = start(world, live)
    company.script = [error("session_ended")]
    delivered = world.run(sent(live, message(world), conversation))
    assert delivered.row.conversation_id == conversation
    assert len({proven.sid for proven in company.proven}) == 2
    assert len({proven.user_id for proven in company.proven}) == 1
