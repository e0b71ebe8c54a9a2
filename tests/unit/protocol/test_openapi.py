"""An OpenAPI description is read as far as it goes, whatever is wrong with the rest."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.protocol.openapi import (
    MAX_BYTES,
    InvalidDescription,
    Need,
    OpenApi,
    Parameter,
    check_openapi_version,
    read_openapi,
)
from tests.unit.protocol.describing import SHOP, URL, changed, octets

ROOT = "https://api.example.com"


def shop(*path: Any, value: Any = None) -> OpenApi:
    """The shop's description, with one value of it changed."""
    return read_openapi(octets(changed(path, value) if path else SHOP), URL)


def test_operations_have_their_urls_and_what_they_take() -> None:
    """Servers of the whole, of a path and of an operation; parameters of both; the body's types."""
    read = shop()
    assert (read.url, read.title, read.findings) == (URL, "Orders", ())
    listing, ordering, line, drop = read.operations
    assert (listing.method, listing.path, listing.summary) == ("GET", "/orders", "Your orders")
    assert listing.servers == (ROOT, "https://eu.api.example/shop/")
    assert listing.parameters == (
        Parameter("state", "query", required=True),
        Parameter("tag", "query", exploded=False),
        Parameter("X-Trace", "header", description="for support", exploded=False),
    )
    assert ordering.deprecated
    assert ordering.body_required
    assert ordering.body_types == ("text/plain", "application/json; charset=utf-8")
    assert line.servers == ("https://api.example.com/lines",)
    assert [one.name for one in line.parameters] == ["id", "line"]
    assert drop.servers == ("https://us.api.example",)
    assert [one.description for one in drop.parameters] == ["which", ""]


@pytest.mark.requirement("4.7-01")
def test_scopes_are_described_where_the_api_describes_them() -> None:
    """Of every flow; the first description of a scope stays, an empty one does not (4.7)."""
    assert shop().scopes == {"orders:read": "See your orders", "orders:write": "Order for you"}


def test_security_is_ways_of_which_one_will_do() -> None:
    """An operation's own list in place of the whole's; `{}` asks for nothing, `[]` for nothing at all."""
    listing, ordering, line, _ = shop().operations
    assert listing.needs == (Need(True, ("orders:read",)),)
    assert ordering.needs == (Need(True, ("orders:write", "orders:read")), Need(others=("key",)), Need())
    assert line.needs == ()


WAYS: list[Any] = [
    ([{"token": []}], (Need(True),)),
    ([{"oidc": ["profile"], "account": ["a", "profile"], "key": []}], (Need(True, ("profile", "a"), ("key",)),)),
    ("account", ()),
    (["account"], ()),
    ([{"unknown": []}], ()),
    ([{"account": "orders:read"}], ()),
    ([{"account": ["two words"]}], ()),
    ([{"account": [3]}], ()),
    ([{"account": [3]}, {"token": []}], (Need(True),)),
]


@pytest.mark.parametrize(("security", "needs"), WAYS)
def test_a_way_in_that_cannot_be_read_is_none(security: Any, needs: tuple[Need, ...]) -> None:
    """A scheme that is not there, a scope that is none, a wrong type."""
    read = shop("security", value=security).operations[0]
    assert read.needs == needs


BROKEN: list[Any] = [
    (("paths", "orders"), {"get": {}}, "/paths/orders", "no path below a server"),
    (("paths", "/x"), [], "/paths/~1x", "no path item that can be read"),
    (("paths", "/x"), {"$ref": "x.json"}, "/paths/~1x", "no path item that can be read"),
    (("paths", "/orders", "get"), [], "/paths/~1orders/get", "no operation"),
    (
        ("paths", "/orders", "get", "parameters", 0),
        {"$ref": "#/nowhere"},
        "/paths/~1orders/get/parameters/0",
        "no parameter that can be read",
    ),
    (
        ("paths", "/orders", "get", "parameters", 0),
        {"name": "c", "in": "cookie"},
        "/paths/~1orders/get/parameters/0",
        "no parameter that can be read",
    ),
    (
        ("paths", "/orders", "get", "parameters", 0),
        {"name": "", "in": "query"},
        "/paths/~1orders/get/parameters/0",
        "no parameter that can be read",
    ),
    (
        ("paths", "/orders", "get", "parameters", 0),
        {"name": "id", "in": "path"},
        "/paths/~1orders/get/parameters/0",
        "a parameter of the path that the path does not have",
    ),
    (
        ("paths", "/orders", "post", "requestBody"),
        {"$ref": "#/circle"},
        "/paths/~1orders/post/requestBody",
        "no request body that can be read",
    ),
    (
        ("paths", "/orders", "post", "security"),
        [{"gone": []}],
        "/paths/~1orders/post/security/0",
        "a requirement of a security scheme that cannot be read",
    ),
    (("servers", 0), {"url": "http://x.example"}, "/servers/0", "its url is not https"),
    (
        ("components", "securitySchemes", "spare"),
        3,
        "/components/securitySchemes/spare",
        "no scheme that can be read",
    ),
    (
        ("components", "securitySchemes", "spare"),
        {"type": "oauth2", "flows": {"implicit": {"scopes": {"two words": ""}}}},
        "/components/securitySchemes/spare",
        "a scope that is none (RFC 6749 3.3)",
    ),
]


@pytest.mark.parametrize(("path", "value", "where", "what"), BROKEN)
def test_what_is_broken_is_left_out_and_told(path: tuple[Any, ...], value: Any, where: str, what: str) -> None:
    """Everything else of the description is read."""
    read = shop(*path, value=value)
    assert read.findings == ((where, what),)
    assert len(read.operations) >= 3


def test_without_servers_the_host_of_the_description_serves() -> None:
    """As OpenAPI says: `/`, resolved like any other."""
    assert shop("servers").operations[0].servers == (ROOT,)


def test_servers_none_of_which_can_be_used_leave_no_url() -> None:
    """They are not replaced by a host that the description does not name."""
    assert shop("servers", value=[{"url": "http://x.example"}]).operations[0].servers == ()


@pytest.mark.parametrize("wrong", [3, [], "x", {"a": 3}])
@pytest.mark.parametrize("member", ["info", "paths", "components", "servers", "security"])
def test_any_member_may_be_of_any_type(member: str, wrong: Any) -> None:
    """A wrong type is as good as nothing."""
    read = shop(member, value=wrong)
    assert isinstance(read, OpenApi)


def test_extensions_among_the_paths_are_no_paths() -> None:
    """`x-…` may hold anything, and is no finding."""
    assert shop("paths", "x-note", value="?").findings == ()


@pytest.mark.parametrize(("given", "kept"), [("", None), (3, None), ("x" * 2001, None), ("x" * 2000, "x" * 2000)])
def test_an_operation_id_is_a_bounded_text(given: Any, kept: str | None) -> None:
    """Else the operation has none."""
    assert shop("paths", "/orders", "get", "operationId", value=given).operations[0].operation_id == kept


def test_an_operation_is_found_by_its_name() -> None:
    """The first of two of one name; None for another."""
    read = shop("paths", "/orders", "post", "operationId", value="listOrders")
    found = read.named("listOrders")
    assert found is not None
    assert found.method == "GET"
    assert read.named("nothing") is None


def test_counts_are_bounded() -> None:
    """Operations, parameters, scopes, findings and the length of a text."""
    many: dict[str, Any] = {
        "openapi": "3.0.3",
        "paths": {
            "/p": {"parameters": [{"name": f"n{number}", "in": "query"} for number in range(101)], "get": {}},
            **{f"bad{number}": {} for number in range(120)},
            **{f"/{number}": {"get": {"description": "x" * (2001 - number)}} for number in range(2001)},
        },
        "components": {
            "securitySchemes": {
                "a": {"type": "oauth2", "flows": {"x": {"scopes": {f"s{number}": "" for number in range(1001)}}}}
            }
        },
    }
    read = read_openapi(octets(many), URL)
    assert len(read.operations) == 2000
    assert len(read.operations[0].parameters) == 100
    assert len(read.scopes) == 1000
    assert len(read.findings) == 100
    assert len(read.operations[1].summary) == 2000


@pytest.mark.requirement("papaver-100")
@pytest.mark.parametrize("version", ["2.0", "3.2.0", "3.0", "3", "", None, 3.1, "4.0.0"])
def test_another_version_is_refused(version: Any) -> None:
    """Section 7 names 3.0 and 3.1."""
    with pytest.raises(InvalidDescription) as caught:
        read_openapi(octets({**SHOP, "openapi": version}), URL)
    assert caught.value.rule == "openapi.version"
    check_openapi_version({"openapi": "3.0.4"})
    check_openapi_version({"openapi": "3.1.0-rc1"})


@pytest.mark.parametrize(
    "body", [b"", b"openapi: 3.1.0\n", b"[]", b"\xff", b'{"openapi":"3.1.0"' + b" " * MAX_BYTES + b"}"]
)
def test_what_is_no_json_object_within_the_limit_is_refused(body: bytes) -> None:
    """YAML among it, and said so."""
    with pytest.raises(InvalidDescription) as caught:
        read_openapi(body, URL)
    assert caught.value.rule == "openapi.json"
    assert "YAML is not read" in caught.value.description
