"""What a description lets one send: destinations, needs, requests."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from papaver.protocol.destinations import Destinations
from papaver.protocol.openapi import Need, Operation, Parameter, read_openapi
from papaver.protocol.openapi_requests import (
    BadCall,
    check_parameters,
    described_destinations,
    needed,
    operation_request,
)
from tests.unit.protocol.describing import SHOP, URL, octets

API = read_openapi(octets(SHOP), URL)
LISTING, ORDERING, LINE, _ = API.operations
DESCRIBED = Destinations((), sum(described_destinations(API).values(), ()))
AT = "https://api.example.com"


@pytest.mark.requirement("5.2-02")
@pytest.mark.parametrize(
    ("method", "url", "described"),
    [
        ("GET", f"{AT}/orders", True),
        ("GET", f"{AT}/orders?state=open", True),
        ("POST", "https://eu.api.example/shop/orders", True),
        ("GET", f"{AT}/lines/orders/o1/lines/2.json", True),
        ("DELETE", "https://us.api.example/orders/o1/lines/2.json", True),
        ("DELETE", f"{AT}/orders", False),
        ("GET", f"{AT}/orders/", False),
        ("GET", f"{AT}/v1/orders", False),
        ("GET", f"{AT}/orders/o1/lines/2.json", False),
        ("GET", f"{AT}/lines/orders/o1/lines/2xjson", False),
        ("DELETE", "https://eu.api.example/orders/o1/lines/2.json", False),
        ("GET", URL, False),
        ("GET", f"{AT}/", False),
    ],
)
def test_exactly_what_is_described_is_a_destination(method: str, url: str, described: bool) -> None:
    """Each path, below its own servers, by its own methods (5.2)."""
    assert DESCRIBED.accept(url, method) is described


def test_the_number_of_destinations_is_bounded() -> None:
    """Many servers times many paths; another method of one that is kept adds none."""
    servers = tuple(f"https://h{number}.example" for number in range(10))
    many = [Operation("GET", f"/{number}", servers) for number in range(600)]
    api = replace(API, operations=(*many, Operation("PUT", "/0", servers)))
    kept = described_destinations(api)
    assert tuple(kept) == servers
    assert sum(map(len, kept.values())) == 5000
    assert kept[servers[0]][0].methods == frozenset({"GET", "PUT"})


def test_a_slash_at_the_end_of_a_server_is_not_one_more() -> None:
    """The server keeps its name, for its own metadata (4.5); its requests have one slash."""
    api = replace(API, operations=(Operation("GET", "/a", ("https://x.example/shop/",)),))
    assert operation_request(api.operations[0], {}).url == "https://x.example/shop/a"
    (one,) = described_destinations(api)["https://x.example/shop/"]
    assert one.accepts("https://x.example/shop/a", "GET")


@pytest.mark.parametrize(
    ("needs", "held", "chosen"),
    [
        ((), (), Need()),
        ((Need(True, ("a", "b")), Need(True, ("c",))), (), Need(True, ("c",))),
        ((Need(True, ("a", "b")), Need(True, ("c",))), ("a", "b"), Need(True, ("a", "b"))),
        ((Need(True, ("a",)), Need()), (), Need()),
        ((Need(others=("key",)), Need(True, ("a",))), (), Need(True, ("a",))),
    ],
)
def test_the_way_in_that_asks_for_least_is_chosen(needs: tuple[Need, ...], held: tuple[str, ...], chosen: Need) -> None:
    """What is held already costs nothing; a scheme that nobody here can serve costs most."""
    assert needed(replace(LISTING, needs=needs), held) == chosen


@pytest.mark.parametrize(
    ("operation", "parameters", "url"),
    [
        (LISTING, {"state": "open"}, f"{AT}/orders?state=open"),
        (LISTING, {"state": ["a", "b&c"], "tag": ["x", "y,z"]}, f"{AT}/orders?state=a&state=b%26c&tag=x,y%2Cz"),
        (LISTING, {"state": True, "tag": 3}, f"{AT}/orders?state=true&tag=3"),
        (LISTING, {"state": False, "tag": 1.5}, f"{AT}/orders?state=false&tag=1.5"),
        (LISTING, {"state": [], "X-Trace": "t"}, f"{AT}/orders"),
        (
            LINE,
            {"id": "a/b ?#{line}", "line": "\u00e4"},
            f"{AT}/lines/orders/a%2Fb%20%3F%23%7Bline%7D/lines/%C3%A4.json",
        ),
        (LINE, {"id": (1, 2), "line": 2}, f"{AT}/lines/orders/1,2/lines/2.json"),
    ],
)
def test_parameters_stand_where_they_belong(operation: Operation, parameters: dict[str, Any], url: str) -> None:
    """Escaped so that none can become another path or another parameter."""
    request = operation_request(operation, parameters)
    assert request.url == url
    assert request.body == b""
    assert DESCRIBED.accept(url, operation.method)


def test_a_header_parameter_is_a_header() -> None:
    """Its texts joined by commas."""
    request = operation_request(LISTING, {"state": "open", "X-Trace": ["a", "b"]})
    assert request.headers.first("x-trace") == "a,b"


def test_a_body_is_json() -> None:
    """Of the content type that the description names, without its parameters."""
    request = operation_request(ORDERING, {}, {"sku": "a"})
    assert (request.method, request.body) == ("POST", b'{"sku":"a"}')
    assert request.headers.first("content-type") == "application/json"


@pytest.mark.parametrize(
    ("described", "sent"),
    [("application/merge-patch+json", "application/merge-patch+json"), ("*/*", "application/json")],
)
def test_a_body_may_be_another_json(described: str, sent: str) -> None:
    """Or anything, then it is plain JSON."""
    request = operation_request(replace(ORDERING, body_types=("text/plain", described)), {}, [1])
    assert request.headers.first("content-type") == sent


@pytest.mark.requirement("papaver-101")
@pytest.mark.parametrize(
    ("operation", "parameters", "body", "said"),
    [
        (LISTING, {}, None, "these parameters are missing: state"),
        (LISTING, {"state": None}, None, "these parameters are missing: state"),
        (LISTING, {"state": "x", "stat": "y"}, None, "these are not among its parameters: stat"),
        (LISTING, {"state": "x"}, {}, "it takes no body"),
        (ORDERING, {}, None, "the body is missing"),
        (replace(LINE, parameters=()), {}, None, "these parameters are missing: id, line"),
    ],
)
def test_a_call_has_what_is_required_and_nothing_unknown(
    operation: Operation, parameters: dict[str, Any], body: Any, said: str
) -> None:
    """The error names what is missing or too much."""
    with pytest.raises(BadCall, match=said) as caught:
        check_parameters(operation, parameters, body)
    assert caught.value.rule == "openapi.parameters"
    with pytest.raises(BadCall):
        operation_request(operation, parameters, body)


@pytest.mark.parametrize(
    ("operation", "parameters", "body", "rule"),
    [
        (LISTING, {"state": {}}, None, "openapi.value"),
        (LISTING, {"state": [None]}, None, "openapi.value"),
        (LINE, {"id": "", "line": "1"}, None, "openapi.value"),
        (LINE, {"id": [], "line": "1"}, None, "openapi.value"),
        (LINE, {"id": "..", "line": "1"}, None, "openapi.dot-segment"),
        (LISTING, {"state": "x", "X-Trace": "a\r\nb: c"}, None, "openapi.value"),
        (LISTING, {"state": "x", "X-Trace": "\u00e4"}, None, "openapi.value"),
        (
            replace(LISTING, parameters=(Parameter("a b", "header"),)),
            {"a b": "x"},
            None,
            "openapi.value",
        ),
        (
            replace(LISTING, parameters=(Parameter("\u00e4", "header"),)),
            {"\u00e4": "x"},
            None,
            "openapi.value",
        ),
        (LISTING, {"state": "\ud800"}, None, "openapi.text"),
        (ORDERING, {}, {"x": float("nan")}, "openapi.text"),
        (replace(ORDERING, body_types=("text/plain",)), {}, {}, "openapi.body-json"),
        (replace(ORDERING, servers=()), {}, {}, "openapi.server"),
    ],
)
def test_what_cannot_be_written_is_refused(
    operation: Operation, parameters: dict[str, Any], body: Any, rule: str
) -> None:
    """Before anything is sent."""
    with pytest.raises(BadCall) as caught:
        operation_request(operation, parameters, body)
    assert caught.value.rule == rule
