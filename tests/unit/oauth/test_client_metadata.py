"""A Personal Agent's own document: what a Company accepts, and what it must refuse (4.1)."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.oauth.client_metadata import (
    AUTH_METHOD,
    ClientMetadata,
    check_client_id,
    read_client_metadata,
    write_client_metadata,
)
from papaver.oauth.errors import InvalidClientMetadata

CLIENT = "https://agent.example/agent.json"
DOCUMENT: dict[str, Any] = {
    "client_id": CLIENT,
    "client_name": "Example Agent",
    "logo_uri": "https://agent.example/logo.png",
    "jwks_uri": "https://agent.example/jwks.json",
    "redirect_uris": ["https://agent.example/oauth/callback"],
    "token_endpoint_auth_method": "private_key_jwt",
}
EC = {"kty": "EC", "crv": "P-256", "x": "x", "y": "y"}


def refused(url: str = CLIENT, **members: object) -> InvalidClientMetadata:
    """Why a document is refused; None leaves a member out."""
    document = {name: value for name, value in {**DOCUMENT, **members}.items() if value is not None}
    with pytest.raises(InvalidClientMetadata) as caught:
        read_client_metadata(url, document)
    return caught.value


@pytest.mark.requirement("4.1-01")
def test_the_specifications_example_reads_and_writes_back() -> None:
    """The document of 4.1."""
    metadata = read_client_metadata(CLIENT, DOCUMENT)
    assert metadata.jwks_uri == "https://agent.example/jwks.json"
    assert write_client_metadata(metadata) == DOCUMENT


def test_unfamiliar_members_are_ignored() -> None:
    """Of any type."""
    assert read_client_metadata(CLIENT, {**DOCUMENT, "x": {}, "jwks": 5}) == read_client_metadata(CLIENT, DOCUMENT)


def test_a_document_without_redirect_uris_is_good() -> None:
    """Not every Personal Agent offers Direct Sign-In."""
    metadata = ClientMetadata(CLIENT, "https://agent.example:8443/jwks.json", AUTH_METHOD)
    assert read_client_metadata(CLIENT, write_client_metadata(metadata)).redirect_uris == ()


@pytest.mark.parametrize(
    "document", [None, [], "x", {}, {**DOCUMENT, "client_id": 5}, {**DOCUMENT, "redirect_uris": "x"}]
)
def test_a_document_of_another_shape_is_refused(document: object) -> None:
    """A member is missing or has another type."""
    with pytest.raises(InvalidClientMetadata) as caught:
        read_client_metadata(CLIENT, document)
    assert caught.value.rule == "client.metadata-shape"


@pytest.mark.requirement("4.1-01", "3-14")
@pytest.mark.parametrize("client_id", ["http://agent.example/agent.json", "agent.example/agent.json", "", "urn:x:y"])
def test_c62_a_client_id_that_is_not_https_is_refused_before_any_fetch(client_id: str) -> None:
    """The check needs no document (4.1)."""
    with pytest.raises(InvalidClientMetadata) as caught:
        check_client_id(client_id)
    assert caught.value.rule == "client.client-id-form"


@pytest.mark.parametrize("client_id", ["https://agent.example", "https://agent.example/"])
def test_b19_a_client_id_that_is_a_bare_origin_gets_a_clear_error(client_id: str) -> None:
    """It says what a `client_id` looks like."""
    with pytest.raises(InvalidClientMetadata) as caught:
        read_client_metadata(client_id, {**DOCUMENT, "client_id": client_id})
    assert caught.value.rule == "client.client-id-form"
    assert "bare origin" in caught.value.description
    assert "https://agent.example/agent.json" in caught.value.description


@pytest.mark.parametrize(
    "client_id",
    [
        "https://agent.example/../agent.json",
        "https://agent.example/./agent.json",
        "https://agent.example/a/%2E%2e/agent.json",
        "https://agent.example/agent.json#x",
        "https://agent.example/agent.json?",
        "https://user@agent.example/agent.json",
    ],
)
def test_a_client_id_has_one_spelling(client_id: str) -> None:
    """No dot segments, fragment, empty query or userinfo."""
    with pytest.raises(InvalidClientMetadata) as caught:
        check_client_id(client_id)
    assert caught.value.rule == "client.client-id-form"


@pytest.mark.parametrize("client_id", [CLIENT, "https://agent.example:8443/a?v=1", "https://agent.example/a.b/c..json"])
def test_a_client_id_may_have_a_port_and_a_query(client_id: str) -> None:
    """Advised against, and allowed."""
    check_client_id(client_id)


@pytest.mark.requirement("4.1-02")
@pytest.mark.parametrize(
    "client_id",
    ["https://agent.example/other.json", "https://AGENT.example/agent.json", "https://evil.example/agent.json"],
)
def test_c44_client_id_equals_the_url_it_was_fetched_from(client_id: str) -> None:
    """Character for character (4.1)."""
    error = refused(client_id=client_id)
    assert (error.rule, error.code) == ("client.client-id-is-url", "invalid_client_metadata")
    assert client_id in error.detail


@pytest.mark.requirement("4.1-03", "3-14")
@pytest.mark.parametrize(
    "jwks_uri",
    [
        "https://evil.example/jwks.json",
        "https://keys.agent.example/jwks.json",
        "http://agent.example/jwks.json",
        "https://agent.example.evil.example/jwks.json",
        "https://agent.example/jwks.json#x",
        "/jwks.json",
    ],
)
def test_c44_jwks_uri_is_https_on_the_clients_host(jwks_uri: str) -> None:
    """The same host; a subdomain is another (readings 27)."""
    assert refused(jwks_uri=jwks_uri).rule == "client.jwks-uri-same-host"


@pytest.mark.requirement("4.1-03")
@pytest.mark.parametrize("jwks_uri", ["https://AGENT.example/jwks.json", "https://agent.example:8443/jwks.json"])
def test_jwks_uri_may_differ_in_case_and_port(jwks_uri: str) -> None:
    """Readings 27."""
    assert read_client_metadata(CLIENT, {**DOCUMENT, "jwks_uri": jwks_uri}).jwks_uri == jwks_uri


@pytest.mark.requirement("4.1-03")
def test_a_document_without_jwks_uri_is_refused() -> None:
    """An inline key set is no substitute (4.1)."""
    assert refused(jwks_uri=None, jwks={"keys": []}).rule == "client.metadata-shape"


@pytest.mark.requirement("4.1-05", "3-16")
@pytest.mark.parametrize(
    "uri",
    [
        "https://agent.example/oauth/callback",
        "https://AGENT.example:444/cb?x=1",
        "http://127.0.0.1/cb",
        "http://127.0.0.1:53211/cb",
        "http://[::1]:53211/cb",
        "http://[0:0:0:0:0:0:0:1]/cb",
    ],
)
def test_a_redirect_uri_is_on_the_clients_host_or_loopback(uri: str) -> None:
    """Loopback is the one exception from https (section 3, RFC 8252 7.3)."""
    assert read_client_metadata(CLIENT, {**DOCUMENT, "redirect_uris": [uri]}).redirect_uris == (uri,)


@pytest.mark.requirement("4.1-05")
@pytest.mark.parametrize(
    "uri",
    [
        "https://evil.example/cb",
        "https://sub.agent.example/cb",
        "http://agent.example/cb",
        "http://localhost:53211/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://127.0.0.2/cb",
        "https://127.0.0.1/cb",
        "com.example.app:/cb",
        "https://agent.example/cb#x",
        "http://127.0.0.1/cb#x",
        "https://agent.example@evil.example/cb",
        "",
    ],
)
def test_c44_any_other_redirect_uri_refuses_the_client(uri: str) -> None:
    """One bad entry among good ones is enough (4.1)."""
    error = refused(redirect_uris=["https://agent.example/oauth/callback", uri])
    assert (error.rule, error.code) == ("client.redirect-uris", "invalid_redirect_uri")


@pytest.mark.requirement("4.1-06")
@pytest.mark.parametrize("method", [None, "none", "client_secret_basic", "client_secret_post", "tls_client_auth", ""])
def test_c44_another_auth_method_is_refused(method: str | None) -> None:
    """Its absence means a shared secret (4.1, RFC 7591)."""
    assert refused(token_endpoint_auth_method=method).rule == "client.auth-method"


@pytest.mark.requirement("3-14")
@pytest.mark.parametrize("name", ["logo_uri", "client_uri", "policy_uri", "tos_uri"])
@pytest.mark.parametrize("url", ["http://agent.example/x", "javascript:alert(1)", "data:text/html,x"])
def test_a_url_that_is_shown_is_https(name: str, url: str) -> None:
    """On any host (section 3)."""
    assert refused(**{name: url}).rule == "client.shown-urls-https"
    read_client_metadata(CLIENT, {**DOCUMENT, name: "https://cdn.example/x"})


@pytest.mark.requirement("4.1-04")
@pytest.mark.parametrize("member", ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
def test_c44_a_private_key_in_the_document_refuses_the_client(member: str) -> None:
    """Whoever reads it could sign as this client (4.1)."""
    error = refused(jwks={"keys": [EC, {**EC, member: "secret-value"}]})
    assert error.rule == "client.no-secrets"
    assert "secret-value" not in f"{error} {error.detail}"


@pytest.mark.parametrize("name", ["client_secret", "client_secret_expires_at"])
def test_a_shared_secret_in_the_document_refuses_the_client(name: str) -> None:
    """The document is public."""
    assert refused(**{name: "secret-value"}).rule == "client.no-secrets"


@pytest.mark.parametrize("jwks", [{"keys": [EC]}, {"keys": 5}, {"keys": [5, None]}, [], {}])
def test_an_inline_key_set_without_private_keys_is_ignored(jwks: object) -> None:
    """Only `jwks_uri` counts (4.1)."""
    read_client_metadata(CLIENT, {**DOCUMENT, "jwks": jwks})


@pytest.mark.parametrize(
    ("metadata", "rule"),
    [
        pytest.param(
            ClientMetadata("https://agent.example", "https://agent.example/j", AUTH_METHOD),
            "client.client-id-form",
            marks=pytest.mark.requirement("4.1-01"),
        ),
        pytest.param(
            ClientMetadata(CLIENT, "https://other.example/j", AUTH_METHOD),
            "client.jwks-uri-same-host",
            marks=pytest.mark.requirement("4.1-03"),
        ),
        pytest.param(
            ClientMetadata(CLIENT, "https://agent.example/j", AUTH_METHOD, redirect_uris=("http://agent.example/",)),
            "client.redirect-uris",
            marks=pytest.mark.requirement("4.1-05"),
        ),
        (ClientMetadata(CLIENT, "https://agent.example/j"), "client.auth-method"),
    ],
    ids=["client-id", "jwks-uri", "redirect-uri", "auth-method"],
)
def test_a_personal_agent_writes_no_document_that_a_company_must_refuse(metadata: ClientMetadata, rule: str) -> None:
    """The same checks, before it publishes (4.1)."""
    with pytest.raises(InvalidClientMetadata) as caught:
        write_client_metadata(metadata)
    assert caught.value.rule == rule
