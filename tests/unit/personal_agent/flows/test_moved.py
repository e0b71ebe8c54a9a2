"""An endpoint that cannot be reached is looked up once more, past every cache."""

from __future__ import annotations

import pytest

from papaver.personal_agent.content import compose
from papaver.personal_agent.flows.converse import deliver, read, write
from papaver.personal_agent.flows.moved import found_elsewhere
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.live import LiveSession
from papaver.ports.system import FetchFailed
from papaver.protocol.dialect import Wanted
from papaver.protocol.terms import ConversationId
from tests.house.agent_world import DOMAIN, ENDPOINT, World, document, refused, unreachable

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
THERE = "https://new.shop.example/poppy/conversations"
MOVED = document(agent={"protocols": [{"type": "poppy", "endpoint": THERE}]})


def sent(world: World, live: LiveSession) -> str:
    """A message that is sent until it is accepted; the conversation."""
    row = world.run(write(live, compose(message_id(world.ids), "Hello")))
    return world.run(deliver(live, row)).row.conversation_id


@pytest.mark.parametrize("failure", [unreachable(), refused()], ids=["unreachable", "refused"])
def test_a_message_goes_to_where_the_endpoint_is_now(failure: FetchFailed) -> None:
    """Under its own id, in a new Session of the same User, and it is in no outbox afterwards."""
    world = World(attempts=2)
    live = world.live()
    world.company.documents[POPPY] = MOVED
    world.company.script = [failure] * (2 if failure.rule == "" else 1)
    assert sent(world, live) == "cnv_1"
    urls = [request.url for request in world.company.requests]
    assert (urls[0], urls[-1]) == (ENDPOINT, THERE)
    assert len({request.body for request in world.company.requests}) == 1
    first, last = world.company.proven[0], world.company.proven[-1]
    assert first.claims.sid != last.claims.sid
    assert first.claims.sub == last.claims.sub
    assert world.of_kind("outbox") == []
    asked = [request for request in world.fetched if request.url == POPPY]
    assert asked[-1].headers.first("cache-control") == "no-cache"


def test_an_endpoint_that_is_where_it_was_is_given_up() -> None:
    """It was looked for once; the message waits in the outbox."""
    world = World(attempts=1)
    live = world.live()
    world.company.script = [unreachable()]
    with pytest.raises(FetchFailed):
        sent(world, live)
    assert len(world.company.requests) == 1
    assert len(world.of_kind("outbox")) == 1


def test_the_new_place_is_looked_up_once() -> None:
    """Where it cannot be reached either, that is the answer."""
    world = World(attempts=1)
    live = world.live()
    world.company.documents[POPPY] = MOVED
    world.company.script = [unreachable(), unreachable(THERE)]
    with pytest.raises(FetchFailed):
        sent(world, live)
    assert [request.url for request in world.company.requests] == [ENDPOINT, THERE]
    assert len([request for request in world.fetched if request.url == POPPY]) == 2


@pytest.mark.parametrize(
    "served",
    [
        unreachable(POPPY),
        document(agent=None, web={}),
        document("other.example", agent={"protocols": [{"type": "poppy", "endpoint": THERE}]}),
    ],
    ids=["away", "no-endpoint", "another"],
)
def test_nothing_else_leads_elsewhere(served: object) -> None:
    """A failed discovery, a Company that stopped to talk, and one that is another."""
    world = World(attempts=1)
    live = world.live()
    world.run(live.opened())
    before = live.current
    world.company.documents[POPPY] = served
    assert not world.run(found_elsewhere(live))
    assert live.current is before


def test_another_company_at_the_domain_is_not_told_what_was_meant_for_this_one() -> None:
    """Its identifier differs, so the User is another one there (3.2)."""
    world = World(attempts=1)
    live = world.live()
    world.run(live.opened())
    issuer = "https://auth.shop.example"
    world.company.documents[POPPY] = MOVED
    world.company.documents[f"https://{DOMAIN}/.well-known/oauth-protected-resource"] = {
        "resource": f"https://{DOMAIN}",
        "authorization_servers": [issuer],
    }
    world.company.documents[f"{issuer}/.well-known/oauth-authorization-server"] = {
        "issuer": issuer,
        "protected_resources": [f"https://{DOMAIN}"],
    }
    assert not world.run(found_elsewhere(live))


def test_before_anything_was_sent_there_is_nothing_to_look_up() -> None:
    """No Session is in use."""
    world = World()
    assert not world.run(found_elsewhere(world.live()))


def test_events_are_read_from_where_the_endpoint_is_now() -> None:
    """A conversation goes on where the Company moved to."""
    world = World(attempts=1)
    live = world.live()
    conversation = sent(world, live)
    world.company.documents[POPPY] = MOVED
    world.company.script = [unreachable()]
    page = world.run(read(live, ConversationId(conversation), Wanted()))
    assert page.conversation_id == conversation
    assert world.company.requests[-1].url.startswith(THERE)
