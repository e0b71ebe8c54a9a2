"""Discovery from the domain to the Company: which requests are made, and where a document may come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from papaver.protocol.dialect import Version
from papaver.protocol.discovery import (
    issuer_metadata_request,
    poppy_json_request,
    resource_metadata_request,
    version_document_request,
)
from papaver.protocol.errors import DiscoveryFailed
from papaver.web.messages import Response
from tests.unit.protocol.discovering import (
    DOCUMENT,
    DOMAIN,
    ISSUER,
    POPPY,
    RESOURCE,
    V0_3_AT,
    answer,
    answers,
    at,
    discover,
    refused,
    with_issuer,
)


@pytest.mark.requirement("3.4-17")
def test_the_first_request_is_the_well_known_document() -> None:
    """Plainly asked for: no Session header, no version."""
    request = poppy_json_request("Example.COM")
    assert (request.method, request.url) == ("GET", POPPY)
    assert [name for name, _ in request.headers] == ["accept"]


def test_a_renewed_discovery_asks_past_the_caches() -> None:
    """After `version_unsupported` no cached copy is used (3.4)."""
    document = discover(with_issuer()).document
    for request in (
        poppy_json_request(DOMAIN, uncached=True),
        version_document_request(V0_3_AT, uncached=True),
        resource_metadata_request(document, uncached=True),
        issuer_metadata_request(ISSUER, uncached=True),
    ):
        assert request.headers.first("cache-control") == "no-cache"


@pytest.mark.requirement("3.2-06")
def test_the_issuer_is_looked_up_at_the_domain() -> None:
    """At the well-known place of RFC 9728 (3.2)."""
    assert resource_metadata_request(discover(answers()).document).url == RESOURCE


@pytest.mark.parametrize(
    "text", ["https://example.com", "example.com/x", "example.com:444", "1.2.3.4", "", "ä.example"]
)
def test_what_is_asked_for_is_a_domain(text: str) -> None:
    """Readings 13."""
    with pytest.raises(DiscoveryFailed) as caught:
        poppy_json_request(text)
    assert (caught.value.rule, caught.value.found) == ("discovery.domain-name", text)


def test_a_company_without_an_issuer_is_its_domain() -> None:
    """Its identifier is the domain's URL, and every check that was made is told."""
    company = discover(answers())
    assert (company.identifier, company.issuer, company.server) == ("https://example.com", None, None)
    assert company.version == Version(0, 4)
    assert company.url == POPPY
    assert all(made.ok for made in company.checks)
    assert [made.rule for made in company.checks] == [
        "discovery.hops-https",
        "discovery.host-is-a-name",
        "discovery.final-path",
        "discovery.document-served",
        "version.newest-compatible",
        "discovery.domain-is-host",
        "discovery.resource-status",
        "discovery.no-issuer-no-sign-in",
    ]


@pytest.mark.requirement("3-05", "3-08")
def test_a_redirect_to_another_host_leads_to_that_hosts_company() -> None:
    """A document speaks for the host that serves it, never for the one that was asked first."""
    moved = "https://b.example/.well-known/poppy.json"
    document = {**DOCUMENT, "organization": {"name": "B", "domain": "b.example"}}
    web = {**at(moved, document), "https://b.example/.well-known/oauth-protected-resource": Response(404)}
    company = discover(web)
    assert (company.domain, company.identifier, company.url) == (DOMAIN, "https://b.example", moved)


@pytest.mark.requirement("3-07")
@pytest.mark.parametrize("query", ["?domain=example.com", "?x=1", "?"])
def test_b6_a_last_url_with_a_query_is_refused(query: str) -> None:
    """An empty query too (section 3)."""
    assert refused(at(POPPY + query)).rule == "discovery.final-no-query"


@pytest.mark.requirement("3-06")
@pytest.mark.parametrize(
    "path", ["/uploads/poppy.json", "/.well-known/poppy.json/", "/.well-known//poppy.json", "/", ""]
)
def test_b6_a_last_url_with_another_path_is_refused(path: str) -> None:
    """Whoever may upload a file does not speak for the domain (section 3)."""
    assert refused(at(f"https://example.com{path}")).rule == "discovery.final-path"


@pytest.mark.requirement("3-04")
@pytest.mark.parametrize("url", ["http://example.com/.well-known/poppy.json", "", "ftp://example.com/"])
def test_a_last_url_that_is_not_https_is_refused(url: str) -> None:
    """Section 3."""
    assert refused({**answers(), POPPY: answer(DOCUMENT, url or "x")}).rule == "discovery.hops-https"


@pytest.mark.requirement("papaver-02")
@pytest.mark.parametrize("origin", ["https://192.0.2.1", "https://example.com:8443"])
def test_a_document_from_an_address_or_another_port_is_refused(origin: str) -> None:
    """Identity is a host name at the port of https (readings 13)."""
    assert refused(at(f"{origin}/.well-known/poppy.json")).rule == "discovery.host-is-a-name"


@pytest.mark.requirement("papaver-01")
@pytest.mark.parametrize("status", [404, 500, 302, 204])
def test_a_domain_without_the_document_is_told(status: int) -> None:
    """Nothing but 200 is the document."""
    error = refused({**answers(), POPPY: answer(DOCUMENT, POPPY, status)})
    assert (error.rule, error.found) == ("discovery.document-served", f"HTTP {status}")


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"", b'{"a":1,"a":1}', b"\xff"])
def test_a_document_that_is_no_json_object_is_refused(body: bytes) -> None:
    """A page is no document, nor is one with two members of a name."""
    assert refused({**answers(), POPPY: Response(200, body=body, url=POPPY)}).rule == "discovery.document-json"


@pytest.mark.requirement("3-10", "3.1-07")
def test_b8_a_document_about_another_domain_is_refused() -> None:
    """A copy on another host speaks for nobody (section 3)."""
    error = refused(at("https://evil.example/.well-known/poppy.json"))
    assert (error.rule, error.found) == ("discovery.domain-is-host", DOMAIN)
    assert "evil.example" in error.expected


@pytest.mark.requirement("3.1-08")
@pytest.mark.parametrize("domain", ["example.com.", "www.example.com", "example.com:443", "exämple.com"])
def test_domains_are_compared_ignoring_case_and_nothing_else(domain: str) -> None:
    """No dot, no port, no other label form is folded away (3.1)."""
    document = {**DOCUMENT, "organization": {"name": "X", "domain": domain}}
    assert refused(answers(document)).rule == "discovery.domain-is-host"
    upper = {**DOCUMENT, "organization": {"name": "X", "domain": "Example.COM"}}
    assert discover(answers(upper)).identifier == "https://example.com"


def test_what_was_left_out_of_the_document_is_told() -> None:
    """A finding is no failure, and is not hidden either."""
    document = {**DOCUMENT, "feedback": {"endpoint": "http://example.com/f"}}
    company = discover(answers(document))
    assert [(made.rule, made.ok) for made in company.checks if not made.ok] == [("document.https", False)]


@pytest.mark.parametrize(
    "offer",
    [
        {"agent": {"protocols": [{"type": "poppy", "endpoint": "https://example.com/c", "access": "signed_in"}]}},
        {"extensions": {"mediated-sign-in": [{"version": "1"}]}},
    ],
    ids=["signed-in", "mediated"],
)
def test_a_document_that_offers_sign_in_and_turns_it_off_is_told(offer: dict[str, Any]) -> None:
    """`auth.disabled` decides, and the contradiction is shown (3.2)."""
    company = discover(with_issuer({**DOCUMENT, **offer, "auth": {"disabled": True}}))
    assert company.document.auth.disabled
    assert [made.rule for made in company.checks if not made.ok] == ["discovery.disabled-offers-nothing"]


@pytest.mark.requirement("3.1-14", "3.2-16")
def test_sign_in_that_is_turned_off_leaves_the_issuer_as_identifier() -> None:
    """3.2."""
    company = discover(with_issuer({**DOCUMENT, "auth": {"disabled": True}}))
    assert company.identifier == ISSUER
    assert all(made.ok for made in company.checks)


STEPS: list[Callable[[], object]] = [
    lambda: discover(
        answers({**DOCUMENT, "x": {"y": [1, None, "z"]}, "organization": {**DOCUMENT["organization"], "z": 1}})
    ),
    lambda: discover(with_issuer(jwks_uri=7, ui_locales=[7])),
    lambda: discover(answers(resource={"resource": "https://example.com", "bearer_methods_supported": 5})),
]


@pytest.mark.requirement("3.3-09", "3.2-49")
@pytest.mark.parametrize("step", STEPS, ids=["poppy.json", "issuer", "resource"])
def test_unfamiliar_members_change_nothing(step: Callable[[], object]) -> None:
    """In none of the three documents, whatever their type."""
    step()
