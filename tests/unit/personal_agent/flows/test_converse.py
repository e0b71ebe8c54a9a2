"""Conversations as flows: accepted once whatever happens in between, read in pages, refused in clear words."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.personal_agent.content import compose
from papaver.personal_agent.flows.converse import close, deliver, deliver_pending, hand_off, read, write
from papaver.personal_agent.flows.effects import Flow, Keep, Send
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.live import LiveSession, NotOffered
from papaver.protocol.conversation.model import Message, Responder, Status
from papaver.protocol.dialect import Wanted
from papaver.protocol.errors import (
    CursorExpired,
    InvalidRequest,
    Misbehaved,
    RateLimited,
    Refused,
    SignInNeeded,
    TemporarilyUnavailable,
)
from papaver.protocol.terms import ConversationId, EventId
from papaver.testing.rules import switched_off
from papaver.values.errors import PapaverError
from tests.house.agent_world import (
    DOMAIN,
    ENDPOINT,
    Crash,
    ScriptedCompany,
    World,
    answer,
    document,
    error,
    refused,
    unreachable,
)

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
CHALLENGE = 'Bearer scope="orders:read"'


def message(world: World, text: str = "Hello", **more: Any) -> Message:
    """A message with an id of its own."""
    return compose(message_id(world.ids), text, **more)


def sent(live: LiveSession, said: Message, target: str | None = None, wanted: Wanted | None = None) -> Flow[Any]:
    """A message through the outbox."""
    row = yield from write(live, said, None if target is None else ConversationId(target))
    return (yield from deliver(live, row, wanted or Wanted()))


def start(world: World, live: LiveSession) -> ConversationId:
    """A conversation."""
    return ConversationId(world.run(sent(live, message(world))).row.conversation_id)


def test_a_message_is_stored_before_it_is_sent_and_cleared_after() -> None:
    """The order of the durable steps is the order that loses and doubles nothing."""
    world = World()
    live = world.live()
    said = message(world, locale="en-US")
    world.done.clear()
    delivered = world.run(sent(live, said, wanted=Wanted()))
    steps = [
        effect.kind if isinstance(effect, Keep) else "send" for effect in world.done if isinstance(effect, Keep | Send)
    ]
    assert steps == ["user-id", "outbox", "delegated-key", "send", "conversation", "outbox"]
    assert world.of_kind("outbox") == []
    assert delivered.row.conversation_id == "cnv_1"
    body = json.loads(world.company.requests[0].body)
    assert body == {
        "message": {
            "id": said.id,
            "author": {"type": "agent"},
            "text": "Hello",
            "context": {"locale": "en-US"},
        }
    }


@pytest.mark.requirement("8.3-05")
@pytest.mark.parametrize("target", [None, "cnv_1"], ids=["start", "say"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_crash_at_any_step_never_sends_two(target: str | None, moment: str) -> None:
    """Stopped before or after each step, the next process sends the same again; the Company has it once."""
    steps = 0
    while True:
        world = World()
        earlier = world.live()
        if target is not None:
            start(world, earlier)
        known = len(world.company.accepted)
        said = message(world, "Once, please")
        live = world.live()
        try:
            world.run(sent(live, said, target), **{moment: steps})
        except Crash:
            pass
        else:
            break
        stored = world.of_kind("outbox")
        world.run(deliver_pending(world.live()))
        assert world.of_kind("outbox") == []
        if stored or len(world.company.accepted) > known:
            conversation, _ = world.company.accepted[said.id]
            assert len(world.company.accepted) == known + 1
            texts = [event["message"]["text"] for event in world.company.events[conversation] if "message" in event]
            assert texts.count("Once, please") == 1
            assert conversation in {row["conversation_id"] for row in world.of_kind("conversation")}
        steps += 1
    assert steps >= 7


def test_no_answer_is_tried_again_with_the_same_id() -> None:
    """A Company that took the message before the connection broke takes it no second time."""
    world = World()
    live = world.live()
    world.company.script = [unreachable(), answer(502), None]
    said = message(world)
    world.run(sent(live, said))
    bodies = {request.body for request in world.company.requests}
    assert len(world.company.requests) == 3
    assert len(bodies) == 1
    assert len({proven.jti for proven in world.company.proven}) == 3
    assert world.waits == [1, 2]


def test_trying_ends_and_the_message_stays() -> None:
    """After the last try the error is the caller's; whether the message was accepted is not known."""
    world = World(attempts=3)
    live = world.live()
    world.company.script = [unreachable()] * 3
    with pytest.raises(PapaverError) as caught:
        world.run(sent(live, message(world)))
    assert caught.value.code == "fetch_failed"
    assert len(world.of_kind("outbox")) == 1
    world.company.script = [answer(503)] * 3
    with pytest.raises(Refused) as refusal:
        world.run(deliver_pending(world.live()))
    assert refusal.value.code == "http_503"
    assert len(world.of_kind("outbox")) == 1
    [delivered] = world.run(deliver_pending(world.live()))
    assert delivered.row.conversation_id == "cnv_1"


def test_a_refusal_of_our_own_is_not_tried_again() -> None:
    """A private address stays private."""
    world = World()
    live = world.live()
    world.company.script = [refused()]
    with pytest.raises(PapaverError):
        world.run(sent(live, message(world)))
    assert len(world.company.requests) == 1


@pytest.mark.parametrize(
    ("response", "raised", "code"),
    [
        (error("message_id_conflict", 409), Refused, "message_id_conflict"),
        (error("conversation_closed", 409), Refused, "conversation_closed"),
        (error("invalid_session"), Refused, "invalid_session"),
        (error("extension_required", 403), Refused, "extension_required"),
        (answer(404), Refused, "http_404"),
        (answer(302, None, Location="https://evil.example/"), Refused, "http_302"),
        (answer(401, None, WWW_Authenticate=CHALLENGE), SignInNeeded, "sign_in_needed"),
        (
            answer(403, None, WWW_Authenticate=f'{CHALLENGE}, error="insufficient_scope"'),
            SignInNeeded,
            "sign_in_needed",
        ),
        (answer(429, None, Retry_After="99"), RateLimited, "rate_limited"),
        (error("temporarily_unavailable", 503, Retry_After="99"), TemporarilyUnavailable, "temporarily_unavailable"),
    ],
)
def test_a_refused_message_leaves_the_outbox(response: Any, raised: type[PapaverError], code: str) -> None:
    """The Company said no: nothing will be sent again behind the caller's back."""
    world = World()
    live = world.live()
    world.company.script = [response]
    with pytest.raises(raised) as caught:
        world.run(sent(live, message(world)))
    assert caught.value.code == code
    assert world.of_kind("outbox") == []
    if isinstance(caught.value, SignInNeeded):
        assert caught.value.scope == "orders:read"
    if isinstance(caught.value, Refused):
        assert caught.value.response.status == response.status


@pytest.mark.parametrize(
    "response", [answer(500), answer(408), answer(201, {"nonsense": 1})], ids=["500", "408", "body"]
)
def test_an_undecided_message_stays(response: Any) -> None:
    """It may have been accepted."""
    world = World()
    live = world.live()
    world.company.script = [response]
    with pytest.raises(PapaverError):
        world.run(sent(live, message(world)))
    assert len(world.of_kind("outbox")) == 1


def test_what_is_left_is_sent_in_order_and_the_refused_dropped() -> None:
    """One refusal does not hold up the rest; other Users' messages and those in flight are left alone."""
    world = World()
    live, other = world.live(), world.live("sam")
    first, second, third = (message(world, text) for text in ("1", "2", "3"))
    for said in (first, second, third):
        world.run(write(live, said))
        world.clock.advance(1)
    world.run(write(other, message(world, "Sam's")))
    world.company.script = [error("invalid_request")]
    delivered = world.run(deliver_pending(world.live(), frozenset({third.id})))
    assert [one.row.conversation_id for one in delivered] == ["cnv_1"]
    assert list(world.company.accepted) == [second.id]
    assert [row["text"] for row in world.of_kind("outbox")] == ["3", "Sam's"]


def test_what_is_too_old_is_dropped() -> None:
    """A message from days ago would only surprise."""
    world = World()
    world.run(write(world.live(), message(world)))
    world.clock.advance(world.limits.outbox_kept + 1)
    assert world.run(deliver_pending(world.live("sam"))) == ()
    assert world.of_kind("outbox") == []


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
