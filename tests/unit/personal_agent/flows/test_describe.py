"""OpenAPI descriptions are loaded once, kept, and make exactly what they describe a destination."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.personal_agent.flows.describe import describe
from papaver.personal_agent.flows.request import signed
from papaver.personal_agent.live import LiveSession
from papaver.protocol.errors import NotADestination
from papaver.web.messages import Headers, Request, Response
from tests.house.agent_world import DOMAIN, World, answer, document, unreachable

AT = f"https://api.{DOMAIN}/openapi.json"
OTHER = "https://stock.example/openapi.json"
POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
ORDERS = Request("GET", f"https://api.{DOMAIN}/orders?state=open")
STOCK = Request("GET", "https://stock.example/stock/a1")
LISTED = [
    {"type": "openapi", "url": AT, "description": "Orders"},
    {"type": "mcp", "url": f"https://mcp.{DOMAIN}/mcp", "description": "Search"},
    {"type": "openapi", "url": OTHER, "description": "Stock"},
]


def described(**paths: Any) -> dict[str, Any]:
    """A description that has these paths, with GET."""
    return {"openapi": "3.1.0", "paths": {path: {"get": {"operationId": name}} for name, path in paths.items()}}


def world() -> World:
    """A Company that lists two described APIs."""
    made = World()
    made.company.documents |= {
        POPPY: document(apis=LISTED),
        AT: described(orders="/orders", own="/openapi.json"),
        OTHER: described(stock="/stock/{sku}"),
    }
    return made


def fetches(made: World, url: str) -> int:
    """How often a document was fetched."""
    return [request.url for request in made.fetched].count(url)


def call(made: World, live: LiveSession, request: Request = ORDERS) -> int:
    """One signed request."""
    made.company.script = [answer(200, {})]
    return made.run(signed(live, lambda _: request)).response.status


@pytest.mark.requirement("5.2-02", "papaver-102")
def test_a_described_url_is_called_after_one_load() -> None:
    """It is loaded for the first request that needs it, kept, and never carries a credential itself."""
    made = world()
    live = made.live()
    assert [call(made, live), call(made, live), call(made, live, STOCK)] == [200, 200, 200]
    assert (fetches(made, AT), fetches(made, OTHER)) == (1, 1)
    loaded = next(request for request in made.fetched if request.url == AT)
    assert [name for name, _ in loaded.headers] == ["accept"]
    assert [request.url for request in made.company.requests] == [ORDERS.url, ORDERS.url, STOCK.url]


@pytest.mark.requirement("papaver-102")
def test_listed_endpoints_load_nothing() -> None:
    """Only a URL that is refused otherwise does."""
    made = world()
    call(made, made.live(), Request("POST", f"https://mcp.{DOMAIN}/mcp"))
    assert fetches(made, AT) == 0


@pytest.mark.requirement("5.2-02", "5.2-03", "papaver-104")
@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", f"https://api.{DOMAIN}/other"),
        ("POST", f"https://api.{DOMAIN}/orders"),
        ("GET", f"https://{DOMAIN}/orders"),
        ("GET", "https://evil.example/orders"),
        ("GET", AT),
    ],
)
def test_what_no_description_has_is_refused_unsent(method: str, url: str) -> None:
    """After one load, however often it is tried; a description is none of its own destinations."""
    made = world()
    live = made.live()
    for _ in range(2):
        with pytest.raises(NotADestination) as caught:
            call(made, live, Request(method, url))
        assert caught.value.rule == "destination.listed"
    assert made.company.requests == []
    assert fetches(made, AT) == 1


def test_a_company_without_described_apis_is_asked_for_nothing() -> None:
    """There is nothing to load."""
    made = World()
    with pytest.raises(NotADestination):
        call(made, made.live())
    assert [request.url for request in made.fetched if request.url != POPPY][1:] == []


def test_a_description_is_kept_while_it_is_fresh_and_for_every_session() -> None:
    """Five minutes without a word of the Company; `no-store` keeps nothing."""
    made = world()
    made.company.documents[OTHER] = Response(
        200, Headers([("cache-control", "no-store")]), json.dumps(described(stock="/stock/{sku}")).encode()
    )
    for seconds in (0.0, 200.0, 200.0):
        made.clock.advance(seconds)
        call(made, made.live())
    assert (fetches(made, AT), fetches(made, OTHER)) == (2, 3)


@pytest.mark.parametrize(
    ("served", "failure"),
    [
        (503, "description.served"),
        (unreachable(), ""),
        (Response(200, Headers(), b"openapi: 3.1.0"), "openapi.json"),
        ({"swagger": "2.0"}, "openapi.version"),
    ],
)
def test_one_that_fails_leaves_the_others_and_is_tried_again_later(served: object, failure: str) -> None:
    """The refusal says why; after half a minute it is asked for again, and then its URLs are called."""
    made = world()
    good = made.company.documents[AT]
    made.company.documents[AT] = served
    live = made.live()
    assert call(made, live, STOCK) == 200
    for _ in range(2):
        with pytest.raises(NotADestination) as caught:
            call(made, live)
        assert AT in caught.value.found
        assert OTHER not in caught.value.found
    apis = live.descriptions.apis if live.descriptions is not None else ()
    assert [None if one.failure is None else one.failure.rule for one in apis] == [failure, None]
    before = fetches(made, AT)
    made.clock.advance(31)
    made.company.documents[AT] = good
    if isinstance(served, Response | dict):
        made.clock.advance(300)  # what was had is kept, good or not
    assert call(made, live) == 200
    assert fetches(made, AT) == before + 1


def test_the_base_of_relative_servers_is_where_the_description_was_found() -> None:
    """After a redirect, the last URL (RFC 3986 5.1.3)."""
    made = world()
    body = json.dumps(described(orders="/orders")).encode()
    made.company.documents[AT] = Response(200, Headers(), body, "https://cdn.example/v1/openapi.json")
    assert call(made, made.live(), Request("GET", "https://cdn.example/orders")) == 200


def test_what_is_loaded_is_told() -> None:
    """Each listed description, in order, as `Session.apis` returns it."""
    made = world()
    apis = made.run(describe(made.live()))
    assert [one.api.url for one in apis] == [AT, OTHER]
    descriptions = [one.description for one in apis]
    assert [None if one is None else [each.operation_id for each in one.operations] for one in descriptions] == [
        ["orders", "own"],
        ["stock"],
    ]


def test_another_document_is_described_anew() -> None:
    """What an API described that is no longer listed is no destination any more."""
    made = world()
    live = made.live()
    assert call(made, live, STOCK) == 200
    opened = live.current
    assert opened is not None
    made.company.documents[POPPY] = document(apis=LISTED[:1])
    made.clock.advance(400)
    live.leave(opened, made.live().found)
    with pytest.raises(NotADestination):
        call(made, live, STOCK)
    assert call(made, live) == 200
