"""A service's own metadata (4.5): what it may say, what is kept, and what stops a signed-in call."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.personal_agent.flows.resources import resource_of
from papaver.personal_agent.services import Service
from papaver.ports.system import FetchFailed
from papaver.protocol.destinations import Destination
from papaver.protocol.errors import Misbehaved
from papaver.testing.rules import switched_off
from papaver.web.messages import Response
from tests.house.agent_issuer import AccountWorld
from tests.house.agent_world import DOMAIN, ENDPOINT, refused, unreachable

METADATA = "https://api.shop.example/.well-known/oauth-protected-resource/poppy/conversations"
SERVICE = Service(ENDPOINT, (Destination(ENDPOINT),))


def named(world: AccountWorld, said: Any, service: Service = SERVICE, live: Any = None) -> str | None:
    """The resource, when the metadata says this."""
    world.shop.documents[METADATA] = said
    live = live or world.live()
    opened = world.run(live.opened())
    return world.run(resource_of(live, opened, service))


@pytest.mark.parametrize(
    ("resource", "found"),
    [
        (ENDPOINT, ENDPOINT),
        ("https://API.shop.example/poppy/conversations", "https://API.shop.example/poppy/conversations"),
        (f"https://{DOMAIN}", None),
        (f"https://{DOMAIN.upper()}", None),
    ],
)
def test_a_service_names_itself_or_the_domain(resource: str, found: str | None) -> None:
    """But for the case of the host; what is asked for is what it wrote."""
    assert named(AccountWorld(), {"resource": resource}) == found


@pytest.mark.requirement("papaver-88")
@pytest.mark.parametrize(
    "resource", ["https://evil.example", f"https://{DOMAIN}/", f"{ENDPOINT}/", f"https://auth.{DOMAIN}"]
)
def test_a_service_that_names_another_gets_no_token(resource: str) -> None:
    """Else it could ask for the tokens of that one."""
    with pytest.raises(Misbehaved) as caught:
        named(AccountWorld(), {"resource": resource})
    assert caught.value.rule == "service.resource-is-its-own"
    with switched_off("service.resource-is-its-own"):
        assert named(AccountWorld(), {"resource": resource}) == resource


@pytest.mark.requirement("papaver-88")
@pytest.mark.parametrize(
    ("said", "failure"),
    [
        (500, FetchFailed),
        (302, FetchFailed),
        (403, FetchFailed),
        (unreachable(METADATA), FetchFailed),
        (refused(METADATA), FetchFailed),
        ([], Misbehaved),
        ({"resource": "http://api.shop.example"}, Misbehaved),
        (Response(200, body=b"<html>"), Misbehaved),
    ],
)
def test_what_is_neither_metadata_nor_none_stops_the_call(said: Any, failure: type[Exception]) -> None:
    """Readings 12: no token is sent on a guess, and nothing of it is kept."""
    world = AccountWorld()
    with pytest.raises(failure):
        named(world, said)
    assert world.of_kind("service") == []
    assert named(world, 404) is None


def test_what_a_service_said_is_kept_for_hours_and_through_a_restart() -> None:
    """One fetch; then again when it is old."""
    world = AccountWorld(service_fresh=100)
    assert named(world, {"resource": ENDPOINT}) == ENDPOINT
    live = world.live()
    assert named(world, 404, live=live) == ENDPOINT
    assert named(world, 404, live=live) == ENDPOINT
    world.clock.advance(101)
    assert named(world, 404, live=live) is None
    assert [request.url for request in world.fetched].count(METADATA) == 2


def test_an_mcp_servers_token_is_always_its_own() -> None:
    """Section 7: its `url` is the resource, whether or not it publishes metadata."""
    service = Service(ENDPOINT, (Destination(ENDPOINT),), own_token=True)
    assert named(AccountWorld(), 404, service) == ENDPOINT
