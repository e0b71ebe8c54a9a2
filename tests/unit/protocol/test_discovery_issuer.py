"""Discovery finds the Company's issuer and has it confirm the link; nothing falls back (3.2)."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.protocol.discovery import (
    document_unavailable,
    identifier_changed,
    issuer_metadata_request,
)
from papaver.protocol.terms import CompanyId
from papaver.web.messages import Response
from tests.unit.protocol.discovering import (
    DOCUMENT,
    ISSUER,
    ISSUER_AT,
    METADATA,
    RESOURCE,
    answer,
    answers,
    discover,
    refused,
    with_issuer,
)


@pytest.mark.requirement("3.2-09")
@pytest.mark.parametrize(
    "resource",
    [None, {"resource": "https://example.com"}, {"resource": "https://example.com", "authorization_servers": []}],
    ids=["404", "absent", "empty"],
)
def test_b9_only_404_or_metadata_without_servers_means_no_issuer(resource: object) -> None:
    """The three forms of "none" (3.2)."""
    assert discover(answers(resource=resource)).identifier == "https://example.com"


@pytest.mark.requirement("3.2-11")
@pytest.mark.parametrize("status", [500, 503, 403, 401, 410, 301, 302, 204, 429])
def test_b9_another_status_is_no_reason_to_fall_back(status: int) -> None:
    """Not even 410 or a redirect (3.2, readings 51)."""
    error = refused({**answers(), RESOURCE: Response(status)})
    assert (error.rule, error.found) == ("discovery.resource-status", f"HTTP {status}")


@pytest.mark.requirement("3.2-11")
@pytest.mark.parametrize(
    "body",
    [
        b"<html>404</html>",
        b"",
        b"[]",
        b"{}",
        b'{"resource":7}',
        b'{"resource":"https://example.com","authorization_servers":null}',
        b'{"resource":"https://example.com","authorization_servers":"https://auth.example.com"}',
        b'{"resource":"https://example.com","authorization_servers":["http://auth.example.com"]}',
        b'{"resource":"https://example.com","authorization_servers":[],"authorization_servers":[]}',
    ],
)
def test_b9_invalid_metadata_is_no_reason_to_fall_back(body: bytes) -> None:
    """Nothing is skipped: what cannot be read fails (3.2)."""
    assert refused({**answers(), RESOURCE: Response(200, body=body)}).rule in {
        "oauth.resource-metadata-shape",
        "oauth.resource-metadata-https",
    }


@pytest.mark.requirement("3.2-11")
def test_b9_no_answer_at_all_is_no_reason_to_fall_back() -> None:
    """A timeout has its own failure, with the URL and the reason (3.2)."""
    error = document_unavailable("the protected resource metadata", RESOURCE, "timed out after 5 s")
    assert (error.rule, error.found) == ("discovery.fetched", "timed out after 5 s")
    assert RESOURCE in error.expected
    assert error.remedy


@pytest.mark.requirement("3.2-11")
@pytest.mark.parametrize(
    "resource", ["https://example.com/", "https://example.com:443", "https://b.example", "https://example.com/x"]
)
def test_metadata_of_another_resource_is_invalid(resource: str) -> None:
    """Not a slash more (3.2)."""
    error = refused(answers(resource={"resource": resource}))
    assert (error.rule, error.expected, error.found) == ("oauth.resource-is-requested", "https://example.com", resource)


def test_the_resource_may_spell_the_host_in_another_case() -> None:
    """Lowercased on both sides before the comparison (readings 53)."""
    assert discover(answers(resource={"resource": "https://EXAMPLE.com"})).issuer is None


@pytest.mark.requirement("3.2-10")
@pytest.mark.parametrize(
    "offer",
    [
        {"auth": {"issuer": ISSUER}},
        {"agent": {"protocols": [{"type": "poppy", "endpoint": "https://example.com/c", "access": "signed_in"}]}},
        {"extensions": {"mediated-sign-in": [{"version": "1"}]}},
    ],
    ids=["issuer", "signed-in", "mediated"],
)
def test_a_document_that_offers_sign_in_without_an_issuer_is_refused(offer: dict[str, Any]) -> None:
    """3.2."""
    assert refused(answers({**DOCUMENT, **offer})).rule == "discovery.no-issuer-no-sign-in"


@pytest.mark.requirement("3.2-13")
@pytest.mark.parametrize("auth", [{}, {"issuer": ISSUER}])
def test_the_one_server_is_the_issuer(auth: dict[str, Any]) -> None:
    """Whether or not the document repeats it (3.2)."""
    company = discover(with_issuer({**DOCUMENT, "auth": auth}))
    assert (company.identifier, company.issuer) == (ISSUER, ISSUER)
    assert company.server is not None
    assert company.server.token_endpoint == f"{ISSUER}/token"


def test_a_server_that_is_listed_twice_is_one() -> None:
    """It is no choice between two."""
    resource = {"resource": "https://example.com", "authorization_servers": [ISSUER, ISSUER]}
    assert discover(answers(resource=resource)).issuer == ISSUER


@pytest.mark.requirement("3.2-14")
@pytest.mark.parametrize("issuer", [f"{ISSUER}/", "https://AUTH.example.com", "https://other.example"])
def test_auth_issuer_is_the_listed_server_character_for_character(issuer: str) -> None:
    """Not a slash more, and no fallback (3.2)."""
    error = refused(with_issuer({**DOCUMENT, "auth": {"issuer": issuer}}))
    assert (error.rule, error.expected, error.found) == ("discovery.issuer-is-listed", ISSUER, issuer)


@pytest.mark.requirement("3.2-15")
def test_of_several_servers_auth_issuer_names_the_one() -> None:
    """Never the first one by itself (3.2)."""
    resource = {"resource": "https://example.com", "authorization_servers": ["https://staff.example", ISSUER]}
    assert discover(answers({**DOCUMENT, "auth": {"issuer": ISSUER}}, resource)).issuer == ISSUER
    error = refused(answers(resource=resource))
    assert (error.rule, error.found) == ("discovery.issuer-is-named", "nothing")
    assert refused(answers({**DOCUMENT, "auth": {"issuer": "https://x.example"}}, resource)).rule == (
        "discovery.issuer-is-listed"
    )


@pytest.mark.parametrize("issuer", [f"{ISSUER}?x=1", f"{ISSUER}#x"])
def test_an_issuer_with_a_query_or_fragment_is_refused(issuer: str) -> None:
    """Its metadata would have no place (RFC 8414)."""
    resource = {"resource": "https://example.com", "authorization_servers": [issuer]}
    assert refused(answers(resource=resource)).rule == "oauth.issuer-identifier"


def test_an_issuer_with_a_path_has_its_metadata_between_host_and_path() -> None:
    """RFC 8414 3.1."""
    assert issuer_metadata_request("https://provider.example/shop-a").url == (
        "https://provider.example/.well-known/oauth-authorization-server/shop-a"
    )


@pytest.mark.requirement("3.2-36")
@pytest.mark.parametrize("issuer", [f"{ISSUER}/", "https://AUTH.example.com", "https://other.example"])
def test_the_issuers_metadata_names_the_issuer_character_for_character(issuer: str) -> None:
    """3.2."""
    error = refused(with_issuer(issuer=issuer))
    assert (error.rule, error.expected, error.found) == ("oauth.issuer-is-requested", ISSUER, issuer)


@pytest.mark.requirement("3-11", "3.2-37")
@pytest.mark.parametrize(
    "resources", [[], ["https://example.com/"], ["https://example.com:443"], ["https://b.example", "https://x.example"]]
)
def test_b8_an_issuer_that_does_not_list_the_domain_is_refused(resources: list[str]) -> None:
    """Otherwise any domain could claim another Company's issuer (3.2)."""
    error = refused(with_issuer(protected_resources=resources))
    assert (error.rule, error.expected) == ("oauth.issuer-lists-resource", "https://example.com")


@pytest.mark.requirement("3.2-37", "3.2-35")
def test_the_issuer_may_list_the_domain_in_another_case_and_other_resources() -> None:
    """Only the host's case is ignored (3.2)."""
    listed = ["https://mcp.example.com/mcp", "https://EXAMPLE.com"]
    assert discover(with_issuer(protected_resources=listed)).issuer == ISSUER


@pytest.mark.requirement("3.2-11")
@pytest.mark.parametrize(
    ("response", "rule"),
    [
        (Response(404), "discovery.issuer-metadata-served"),
        (Response(302), "discovery.issuer-metadata-served"),
        (Response(500), "discovery.issuer-metadata-served"),
        (Response(200, body=b"<html>"), "oauth.server-metadata-shape"),
        (answer({"issuer": ISSUER}), "oauth.server-metadata-shape"),
        (answer({**METADATA, "token_endpoint": "http://auth.example.com/token"}), "oauth.server-metadata-https"),
    ],
)
def test_an_issuer_that_cannot_be_verified_is_no_reason_to_fall_back(response: Response, rule: str) -> None:
    """3.2."""
    assert refused({**with_issuer(), ISSUER_AT: response}).rule == rule


@pytest.mark.requirement("3.2-12")
def test_a_known_issuer_survives_a_404() -> None:
    """A missing document removes nothing (readings 10)."""
    error = refused(answers(), known_issuer=ISSUER)
    assert (error.rule, error.found) == ("discovery.known-issuer-survives", "HTTP 404")
    assert ISSUER in error.expected


@pytest.mark.requirement("3.2-12")
@pytest.mark.parametrize("resource", [{}, {"authorization_servers": []}])
def test_a_known_issuer_is_removed_by_metadata_that_says_so(resource: dict[str, Any]) -> None:
    """A successful discovery establishes it (readings 10)."""
    company = discover(answers(resource={"resource": "https://example.com", **resource}), known_issuer=ISSUER)
    assert company.identifier == "https://example.com"


def test_another_issuer_than_the_known_one_is_found_as_any_issuer() -> None:
    """What changed is told by the identifier."""
    company = discover(with_issuer(), known_issuer="https://old.example")
    assert identifier_changed(CompanyId("https://old.example"), company.identifier)


@pytest.mark.parametrize(
    ("known", "changed"), [(None, False), (ISSUER, False), (f"{ISSUER}/", True), ("https://example.com", True)]
)
def test_a_changed_identifier_is_noticed(known: str | None, changed: bool) -> None:
    """Character for character; a Company seen for the first time has not changed (3.2)."""
    assert identifier_changed(None if known is None else CompanyId(known), CompanyId(ISSUER)) is changed
