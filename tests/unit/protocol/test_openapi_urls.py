"""Servers and paths of a description become the URLs that requests have."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.protocol.openapi_urls import read_path, read_servers

AT = "https://api.example.com/v1/openapi.json"


def servers(*listed: Any) -> tuple[tuple[str, ...] | None, list[tuple[str, str]]]:
    """What is read, and what is said about the rest."""
    findings: list[tuple[str, str]] = []
    return read_servers(list(listed), AT, lambda where, what: findings.append((where, what))), findings


@pytest.mark.parametrize(
    ("server", "base"),
    [
        ({"url": "/"}, "https://api.example.com"),
        ({"url": "."}, "https://api.example.com/v1/"),
        ({"url": "v2"}, "https://api.example.com/v1/v2"),
        ({"url": "../x/"}, "https://api.example.com/x/"),
        ({"url": "https://other.example/"}, "https://other.example"),
        ({"url": "//other.example/y"}, "https://other.example/y"),
        ({"url": "https://other.example:8443"}, "https://other.example:8443"),
        (
            {
                "url": "https://{a}.example/{b}",
                "variables": {"a": {"default": "eu", "enum": ["eu", "us"]}, "b": {"default": "shop"}},
            },
            "https://eu.example/shop",
        ),
    ],
)
def test_a_server_is_an_absolute_url(server: dict[str, Any], base: str) -> None:
    """Relative to where the description was found, variables at their defaults, on any host (10.3)."""
    assert servers(server) == ((base,), [])


@pytest.mark.parametrize(
    ("server", "wrong"),
    [
        ("https://x.example", "a server without a url"),
        ({"url": 3}, "a server without a url"),
        ({"url": "http://x.example"}, "its url is not https"),
        ({"url": "https://x.example?tenant=a"}, "its url has a query or a fragment"),
        ({"url": "https://x.example#a"}, "its url has a query or a fragment"),
        ({"url": "https://user@x.example"}, "its url cannot be used: not an acceptable URL"),
        ({"url": "ftp://x.example"}, "its url cannot be used: the URL has to begin with https://"),
        ({"url": "https://{a}.example"}, "a variable of its url has no default"),
        ({"url": "https://{a}.example", "variables": {"a": {"default": 3}}}, "a variable of its url has no default"),
        ({"url": "https://x.example/" + "{a}" * 21}, "a variable of its url has no default"),
        ({"url": "https://{a"}, "its url cannot be used: not an acceptable URL"),
        ({"url": "https://x.example/a b"}, "its url cannot be used: not an acceptable reference"),
    ],
)
def test_a_server_that_cannot_be_used_is_left_out(server: Any, wrong: str) -> None:
    """With a finding; the others stay (section 3: https)."""
    assert servers(server, {"url": "/"}) == (("https://api.example.com",), [("0", wrong)])


def test_without_a_list_of_servers_the_one_above_applies() -> None:
    """An empty list says nothing either."""
    assert servers() == (None, [])
    assert read_servers({"url": "/"}, AT, lambda _, __: None) is None


def test_one_server_is_named_once_and_their_number_is_bounded() -> None:
    """A document cannot make us keep a thousand."""
    read, findings = servers(*({"url": f"/{number % 3}"} for number in range(30)))
    assert read == tuple(f"https://api.example.com/{number}" for number in range(3))
    assert findings == [("", "only the first 10 servers are read")]


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ("/", "/"),
        ("/orders/{id}", "/orders/{id}"),
        ("/a/{b}.{c}/d", "/a/{b}.{c}/d"),
        ("/gr\u00f6\u00dfe", "/gr%C3%B6%C3%9Fe"),
        ("/a b", "/a%20b"),
        ("/caf%c3%a9/%7Eme/100%", "/caf%C3%A9/~me/100%25"),
        ("/a@b:c/!$&'()*+,;=", "/a@b:c/!$&'()*+,;="),
    ],
)
def test_a_path_has_its_one_form(template: str, path: str) -> None:
    """As the URL of a request has it when it is compared."""
    assert read_path(template) == path


@pytest.mark.parametrize(
    "template",
    [
        "", "orders", "/a?b=1", "/a#b", "/a/{b", "/a/b}", "/{}", "/{a{b}}", "/../x", "/a/./b", "/%2e%2E/x",
        "/" + "{a}" * 21,
    ],
)  # fmt: skip
def test_what_can_be_no_path_is_none(template: str) -> None:
    """It would be another URL than it seems."""
    assert read_path(template) is None
