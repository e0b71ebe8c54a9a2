"""The Session header goes where the Company's document says, and nowhere else."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.protocol.company import (
    Api,
    CompanyAgent,
    CompanyDocument,
    ConversationProtocol,
    ExtensionEntry,
    Organization,
    Web,
)
from papaver.protocol.destinations import Destination, Destinations, check_destination, session_destinations
from papaver.protocol.dialect import Version
from papaver.protocol.errors import NotADestination

TALK = "https://api.example.com/poppy/conversations"
DOCUMENT = CompanyDocument(
    organization=Organization("Example Company", "example.com", "https://example.com/logo.png"),
    protocol_version=Version(0, 4),
    agent=CompanyAgent((ConversationProtocol("poppy", TALK), ConversationProtocol("other", "https://other.example/x"))),
    apis=(
        Api("openapi", "https://api.example.com/openapi.json", "Orders"),
        Api("mcp", "https://mcp.example.com/mcp", "Search"),
        Api("mcp", "https://mcp.example.com/shop?tenant=a", "Shop"),
        Api("unknown", "https://api.example.com/unknown", "?"),
    ),
    web=Web("https://example.com/poppy/browser-session"),
    feedback="https://api.example.com/poppy/feedback",
    excluded_tasks="https://example.com/poppy/excluded-tasks.json",
    extensions={"example.com/x": (ExtensionEntry("1", {"endpoint": "https://api.example.com/poppy/x"}),)},
)
BARE = CompanyDocument(Organization("Bare", "bare.example"), Version(0, 4), web=Web())
ORDERS = Destination("https://api.example.com", "/orders/{id}/exchanges", frozenset({"POST"}))
LISTED = session_destinations(DOCUMENT, (ORDERS,))


@pytest.mark.requirement("5.2-02")
@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("POST", TALK),
        ("POST", f"{TALK}?wait=10"),
        ("POST", f"{TALK}/cnv_8f3Kd2/messages"),
        ("GET", f"{TALK}/cnv_8f3Kd2/events?cursor=evt_1&wait=10"),
        ("POST", f"{TALK}/cnv_8f3Kd2/handoff"),
        ("POST", f"{TALK}/{'x' * 256}/close"),
        ("POST", "https://API.example.com:443/poppy/conversations"),
        ("POST", "https://mcp.example.com/mcp"),
        ("DELETE", "https://mcp.example.com/mcp"),
        ("GET", "https://mcp.example.com/shop?tenant=a"),
        ("POST", "https://example.com/poppy/browser-session/authorize"),
        ("POST", "https://api.example.com/poppy/feedback"),
        ("POST", "https://api.example.com/orders/ord_7Hk2/exchanges"),
    ],
)
def test_what_the_document_names_is_a_destination(method: str, url: str) -> None:
    """Endpoints, their routes, MCP servers and described operations (5.2)."""
    check_destination(url, method, LISTED)


@pytest.mark.requirement("5.2-03", "5.2-04")
@pytest.mark.parametrize(
    ("method", "url"),
    [
        ("GET", TALK),
        ("POST", f"{TALK}/"),
        ("POST", f"{TALK}/cnv_1"),
        ("GET", f"{TALK}/cnv_1/messages"),
        ("post", TALK),
        ("POST", f"{TALK}/cnv.1/messages"),
        ("POST", f"{TALK}//messages"),
        ("POST", f"{TALK}/{'x' * 257}/messages"),
        ("POST", f"{TALK}/a/b/messages"),
        ("POST", f"{TALK}/a/messages/"),
        ("POST", f"{TALK}/../admin"),
        ("POST", f"{TALK}/%2e%2e/messages"),
        ("POST", f"{TALK}/a%2Fb/messages"),
        ("POST", "http://api.example.com/poppy/conversations"),
        ("POST", "https://api.example.com:8443/poppy/conversations"),
        ("POST", "https://api.example.com.evil.example/poppy/conversations"),
        ("POST", "https://api.example.com@evil.example/poppy/conversations"),
        ("POST", "https://api.example.com/other"),
        ("POST", "https://api.example.com/Poppy/Conversations"),
        ("GET", "https://api.example.com/openapi.json"),
        ("GET", "https://api.example.com/unknown"),
        ("POST", "https://other.example/x"),
        ("POST", "https://mcp.example.com/mcp/"),
        ("POST", "https://mcp.example.com/shop"),
        ("POST", "https://mcp.example.com/shop?tenant=b"),
        ("GET", "https://example.com/poppy/browser-session"),
        ("POST", "https://example.com/poppy/browser-session"),
        ("GET", "https://example.com/poppy/excluded-tasks.json"),
        ("GET", "https://example.com/logo.png"),
        ("GET", "https://example.com/.well-known/poppy.json"),
        ("POST", "https://auth.example.com/oauth/token"),
        ("POST", "https://api.example.com/poppy/x"),
        ("POST", "https://api.example.com/orders//exchanges"),
        ("POST", "https://api.example.com/orders/a/b/exchanges"),
        ("GET", "https://api.example.com/orders/ord_7Hk2/exchanges"),
        ("POST", "not a url"),
        ("POST", ""),
    ],
)
def test_nothing_else_is_a_destination(method: str, url: str) -> None:
    """A shared host, a similar path, another method or a trick of spelling makes none (5.2)."""
    with pytest.raises(NotADestination) as caught:
        check_destination(url, method, LISTED)
    assert caught.value.rule == "destination.listed"


def test_a_website_without_join_has_no_destination() -> None:
    """Its pages are browsed, not called (section 6)."""
    assert session_destinations(BARE) == Destinations(())


@pytest.mark.requirement("3-13")
def test_a_url_that_is_not_https_never_becomes_a_destination() -> None:
    """However it came into a document (section 3)."""
    document = replace(BARE, feedback="http://bare.example/f", apis=(Api("mcp", "http://bare.example/mcp", "M"),))
    destinations = session_destinations(document)
    assert not destinations.accept("http://bare.example/f", "POST")
    assert not destinations.accept("http://bare.example/mcp", "POST")


def test_an_endpoint_at_the_root_of_a_host_takes_routes() -> None:
    """As appending makes them (readings 44)."""
    root = replace(BARE, agent=CompanyAgent((ConversationProtocol("poppy", "https://c.example"),)))
    destinations = session_destinations(root)
    assert destinations.accept("https://c.example", "POST")
    assert destinations.accept("https://c.example/cnv_1/messages", "POST")


def test_an_endpoint_with_a_trailing_slash_is_appended_to_as_it_is() -> None:
    """Agents strip nothing (readings 44)."""
    slash = replace(BARE, agent=CompanyAgent((ConversationProtocol("poppy", f"{TALK}/"),)))
    destinations = session_destinations(slash)
    assert destinations.accept(f"{TALK}//cnv_1/messages", "POST")
    assert not destinations.accept(f"{TALK}/cnv_1/messages", "POST")


@pytest.mark.requirement("3.2-30")
def test_each_domain_has_its_own_destinations() -> None:
    """Two domains may share an issuer; requests go by the document of the domain in use (3.2)."""
    there = replace(BARE, feedback="https://bare.example/feedback")
    assert session_destinations(there).accept("https://bare.example/feedback", "POST")
    assert not session_destinations(there).accept("https://api.example.com/poppy/feedback", "POST")
    assert not LISTED.accept("https://bare.example/feedback", "POST")


@pytest.mark.requirement("papaver-104")
def test_no_description_makes_a_destination_of_what_never_is_one() -> None:
    """Its own URL, excluded tasks, the logo, OAuth's endpoints (5.2); what the document itself names stays one."""
    everything = Destination("https://api.example.com", "/{a}")
    below = Destination("https://example.com", "/{a}/{b}")
    token = "https://auth.example.com/oauth/token"
    oauth = Destination("https://auth.example.com", "/oauth/{a}")
    listed = session_destinations(DOCUMENT, (everything, below, oauth), (token, "no url"))
    assert listed.accept("https://api.example.com/orders", "GET")
    assert listed.accept("https://auth.example.com/oauth/other", "POST")
    for url in (
        "https://api.example.com/openapi.json",
        "https://API.example.com/openapi.json?x=1",
        "https://example.com/poppy/excluded-tasks.json",
        token,
    ):
        assert not listed.accept(url, "POST")
    own = session_destinations(DOCUMENT, (), ("https://mcp.example.com/mcp",))
    assert own.accept("https://mcp.example.com/mcp", "POST")


def test_one_destination_is_asked_alone() -> None:
    """For whoever wants to know to which service a request goes."""
    assert ORDERS.accepts("https://api.example.com/orders/ord_7Hk2/exchanges", "POST")
    assert not ORDERS.accepts("https://api.example.com/orders/ord_7Hk2/exchanges", "GET")
    assert not ORDERS.accepts("no url", "POST")


@pytest.mark.parametrize(
    ("path", "url", "accepted"),
    [
        ("/{a}.{b}", "x.y", True),
        ("/{a}.{b}", "x.y.z", True),
        ("/{a}.{b}", "x.", False),
        ("/{a}.{b}", ".x", False),
        ("/{a}...{b}/{c}", "x...y/z", True),
        ("/{a}{b}", "xy", True),
        ("/{a}{b}", "x", False),
        ("/v{a}-{b}.json", "v1-2-3.json", True),
        ("/v{a}-{b}.json", "v1-2-3.xml", False),
    ],
)
def test_a_segment_may_have_several_parts(path: str, url: str, accepted: bool) -> None:
    """Each of at least one character."""
    assert Destination("https://x.example", path).accepts(f"https://x.example/{url}", "GET") is accepted


def test_no_description_makes_a_url_slow_to_judge() -> None:
    """A path of many parts and a long URL that nearly fits: the time grows as the URL does, or this never ends."""
    path = "/" + "-".join("{a}" for _ in range(20)) + "!"
    assert not Destination("https://x.example", path).accepts("https://x.example/" + "-" * 8000, "GET")
