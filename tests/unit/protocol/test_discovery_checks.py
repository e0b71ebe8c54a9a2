"""Each check of discovery alone: what it lets through, and what it says about the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from papaver.protocol import discovery_checks as check
from papaver.protocol.company import (
    MEDIATED_SIGN_IN,
    Access,
    Auth,
    CompanyAgent,
    CompanyDocument,
    ConversationProtocol,
    ExtensionEntry,
    Organization,
    Web,
)
from papaver.protocol.dialect import Version
from papaver.protocol.discovery_checks import VersionUnavailable, shown
from papaver.protocol.errors import DiscoveryFailed
from papaver.web.messages import Response

V0_3 = Version(0, 3)
A, B = "https://a.example", "https://b.example"
URL = "https://example.com/.well-known/poppy.json"
PLAIN = CompanyDocument(Organization("Example Company", "example.com"), Version(0, 4), web=Web())
SIGNED_IN = CompanyAgent((ConversationProtocol("poppy", "https://example.com/c", Access.SIGNED_IN),))

PASSES: dict[str, Callable[[], None]] = {
    "hop": lambda: check.check_hop_https("https://www.example.com/anything?x=1"),
    "path": lambda: check.check_final_path(URL),
    "query": lambda: check.check_final_no_query(URL),
    "host": lambda: check.check_serving_host(URL),
    "default-port": lambda: check.check_serving_host("https://example.com:443/"),
    "served": lambda: check.check_document_served(Response(200)),
    "domain": lambda: check.check_domain_is_host("Example.COM", "example.com"),
    "version-url": lambda: check.check_version_url("https://EXAMPLE.com/any/0.3.json", "example.com"),
    "no-redirect": lambda: check.check_version_not_redirected(Response(200), V0_3),
    "available": lambda: check.check_version_available(Response(200), V0_3),
    "as-listed": lambda: check.check_version_as_listed({"protocol_version": "0.3"}, V0_3),
    "leaf": lambda: check.check_version_is_leaf({}, V0_3),
    "same-domain": lambda: check.check_same_domain("Example.com", "example.COM"),
    "unknown-domain": lambda: check.check_same_domain("example.com", None),
    "resource-200": lambda: check.check_resource_status(Response(200)),
    "resource-404": lambda: check.check_resource_status(Response(404)),
    "never-known": lambda: check.check_known_issuer_survives(None),
    "no-sign-in": lambda: check.check_no_issuer_no_sign_in(PLAIN),
    "one-server": lambda: check.check_issuer_is_named(None, (A,)),
    "named": lambda: check.check_issuer_is_named(B, (A, B)),
    "unnamed": lambda: check.check_issuer_is_listed(None, (A,)),
    "listed": lambda: check.check_issuer_is_listed(B, (A, B)),
    "same-issuer": lambda: check.check_same_issuer(A, A),
    "unsaid-issuer": lambda: check.check_same_issuer(A, None),
    "metadata": lambda: check.check_issuer_served(Response(200)),
}

FAILS: list[tuple[str, Callable[[], None], str, str]] = [
    (
        "discovery.hops-https",
        lambda: check.check_hop_https("http://example.com/"),
        "an https URL",
        "http://example.com/",
    ),
    ("discovery.final-path", lambda: check.check_final_path(A), "/.well-known/poppy.json", "/"),
    (
        "discovery.final-path",
        lambda: check.check_final_path(f"{URL}/"),
        check.WELL_KNOWN_PATH,
        f"{check.WELL_KNOWN_PATH}/",
    ),
    ("discovery.final-no-query", lambda: check.check_final_no_query(f"{URL}?"), "no query", "?"),
    ("discovery.final-no-query", lambda: check.check_final_no_query(f"{URL}?x=1"), "no query", "?x=1"),
    (
        "discovery.host-is-a-name",
        lambda: check.check_serving_host("https://[2001:db8::1]/"),
        "",
        "https://[2001:db8::1]",
    ),
    ("discovery.host-is-a-name", lambda: check.check_serving_host("https://a.example:8443/"), "", f"{A}:8443"),
    ("discovery.document-served", lambda: check.check_document_served(Response(404, url=URL)), URL, "HTTP 404"),
    ("discovery.domain-is-host", lambda: check.check_domain_is_host("www.a.example", "a.example"), "a.example", "www."),
    ("discovery.domain-is-host", lambda: check.check_domain_is_host("a.example.", "a.example"), "a.example", "."),
    (
        "discovery.domain-is-host",
        lambda: check.check_domain_is_host("\u212a.example", "k.example"),
        "k.example",
        "\u212a",
    ),
    ("version.url-on-host", lambda: check.check_version_url("http://a.example/x", "a.example"), "a.example", "http:"),
    ("version.url-on-host", lambda: check.check_version_url("https://b.a.example/x", "a.example"), "a.example", "b.a"),
    ("version.url-on-host", lambda: check.check_version_url(7, "a.example"), "a.example", "7"),
    ("version.as-listed", lambda: check.check_version_as_listed({"protocol_version": "0.2"}, V0_3), "0.3", '"0.2"'),
    ("version.as-listed", lambda: check.check_version_as_listed({"protocol_version": 0.3}, V0_3), "0.3", "0.3"),
    ("version.as-listed", lambda: check.check_version_as_listed({}, V0_3), "0.3", "nothing"),
    ("version.no-further-versions", lambda: check.check_version_is_leaf({"supported_versions": {}}, V0_3), "no ", "{}"),
    ("version.same-domain", lambda: check.check_same_domain("b.example", "a.example"), "a.example", "b.example"),
    ("discovery.resource-status", lambda: check.check_resource_status(Response(410)), "404", "HTTP 410"),
    ("discovery.known-issuer-survives", lambda: check.check_known_issuer_survives(A), A, "HTTP 404"),
    ("discovery.issuer-is-named", lambda: check.check_issuer_is_named(None, (A, B)), f"{A}, {B}", "nothing"),
    ("discovery.issuer-is-listed", lambda: check.check_issuer_is_listed(f"{A}/", (A,)), A, f"{A}/"),
    ("version.same-issuer", lambda: check.check_same_issuer(A, B), B, A),
    ("version.same-issuer", lambda: check.check_same_issuer(None, B), B, "no issuer"),
    ("discovery.issuer-metadata-served", lambda: check.check_issuer_served(Response(302)), "HTTP 200", "HTTP 302"),
]


@pytest.mark.parametrize("name", PASSES)
def test_a_check_lets_good_values_through(name: str) -> None:
    """And says nothing."""
    PASSES[name]()


@pytest.mark.parametrize(("rule", "make", "expected", "found"), FAILS)
def test_a_failed_check_shows_both_values_and_a_remedy(
    rule: str, make: Callable[[], None], expected: str, found: str
) -> None:
    """What was expected, what came, and what to do (cli.md)."""
    with pytest.raises(DiscoveryFailed) as caught:
        make()
    assert caught.value.rule == rule
    assert expected in caught.value.expected
    assert found in caught.value.found
    assert caught.value.expected
    assert caught.value.found
    assert caught.value.remedy


@pytest.mark.requirement("3.4-03")
def test_a_version_document_that_redirects_makes_the_version_unavailable() -> None:
    """The redirect is not followed (3.4)."""
    with pytest.raises(VersionUnavailable) as caught:
        check.check_version_not_redirected(Response(302), V0_3)
    assert (caught.value.rule, caught.value.found) == ("version.no-redirect", "HTTP 302")


def test_a_version_document_that_is_not_there_makes_the_version_unavailable() -> None:
    """An error is told from a redirect."""
    check.check_version_available(Response(302), V0_3)
    with pytest.raises(VersionUnavailable) as caught:
        check.check_version_available(Response(404), V0_3)
    assert (caught.value.rule, caught.value.found) == ("version.available", "HTTP 404")


@pytest.mark.parametrize(
    ("document", "found"),
    [
        (replace(PLAIN, auth=Auth(issuer=A)), f"auth.issuer {A}"),
        (replace(PLAIN, agent=SIGNED_IN), "access signed_in"),
        (replace(PLAIN, extensions={MEDIATED_SIGN_IN: (ExtensionEntry("1"),)}), f"the extension {MEDIATED_SIGN_IN}"),
        (replace(PLAIN, auth=Auth(issuer=A), agent=SIGNED_IN), f"auth.issuer {A}, access signed_in"),
    ],
    ids=["issuer", "access", "mediated", "two"],
)
def test_sign_in_without_an_issuer_names_what_offers_it(document: CompanyDocument, found: str) -> None:
    """Each of them contradicts a domain without an issuer (3.2)."""
    with pytest.raises(DiscoveryFailed) as caught:
        check.check_no_issuer_no_sign_in(document)
    assert (caught.value.rule, caught.value.found) == ("discovery.no-issuer-no-sign-in", found)


def test_long_values_are_cut_short() -> None:
    """A hostile document does not fill the screen."""
    assert shown(None) == "nothing"
    assert shown({"a": [1, "b"]}) == '{"a":[1,"b"]}'
    assert len(shown("x" * 1000)) == 80
    assert shown("x" * 1000).endswith("…")
