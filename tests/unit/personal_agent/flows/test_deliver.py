"""Messages as flows: through the outbox, accepted once whatever happens in between, kept while that is not known."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.personal_agent.content import compose
from papaver.personal_agent.flows.converse import deliver, deliver_pending, write
from papaver.personal_agent.flows.effects import Flow, Keep, Send, Wait
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.outbox import Target
from papaver.protocol.conversation.model import Message
from papaver.protocol.dialect import Wanted
from papaver.protocol.errors import (
    RateLimited,
    Refused,
    SignInNeeded,
    TemporarilyUnavailable,
)
from papaver.protocol.terms import ConversationId
from papaver.values.errors import PapaverError
from tests.house.agent_world import (
    DOMAIN,
    ENDPOINT,
    Crash,
    World,
    answer,
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
    row = yield from write(live, said, Target(None if target is None else ConversationId(target)))
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


@pytest.mark.parametrize(
    ("response", "stays"),
    [
        (answer(429, None, Retry_After="99"), True),
        (error("temporarily_unavailable", 503, Retry_After="99"), True),
        (error("invalid_session"), True),
        (answer(401, None, WWW_Authenticate=CHALLENGE), True),
        (answer(404), True),
        (error("conversation_closed", 409), False),
        (error("invalid_request"), False),
    ],
)
def test_a_refusal_after_a_lost_answer_settles_little(response: Any, stays: bool) -> None:
    """The lost try may have been accepted: only a refusal of the message itself says that it was not."""
    world = World()
    live = world.live()
    world.company.script = [unreachable(), response]
    with pytest.raises(PapaverError):
        world.run(sent(live, message(world)))
    assert bool(world.of_kind("outbox")) is stays


def test_a_pause_that_is_too_long_ends_the_trying() -> None:
    """A message that was never sent is the author's again; one that may have arrived stays."""
    world = World()
    live = world.live()
    world.company.script = [answer(429, None, Retry_After="99")]
    for _ in range(2):
        with pytest.raises(RateLimited):
            world.run(sent(live, message(world)))
    assert len(world.company.requests) == 1
    assert world.of_kind("outbox") == []
    row = world.run(write(live, message(world)))
    with pytest.raises(RateLimited):
        world.run(deliver(live, row, later=True))
    assert len(world.of_kind("outbox")) == 1


@pytest.mark.parametrize("lost", [unreachable(), answer(502)], ids=["no answer", "gateway"])
def test_a_limit_learned_of_meanwhile_does_not_hide_a_lost_answer(lost: Any) -> None:
    """The error is the one of the try that was made, and the message stays."""
    world = World()
    live = world.live()
    row = world.run(write(live, message(world)))
    flow = deliver(live, row)
    world.company.script = [lost]

    def learn_meanwhile() -> Flow[Any]:
        effect, result = next(flow), None
        while True:
            if isinstance(effect, Wait):
                live.not_before[f"POST {ENDPOINT}"] = world.clock.monotonic() + 900
            try:
                result = yield effect
            except PapaverError as failure:
                effect = flow.throw(failure)
            else:
                effect = flow.send(result)

    with pytest.raises(PapaverError) as caught:
        world.run(learn_meanwhile())
    assert caught.value.code in ("fetch_failed", "http_502")
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
