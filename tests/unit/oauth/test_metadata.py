"""Metadata of servers and resources: read strictly, written plainly, compared character for character."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.oauth.errors import InvalidMetadata
from papaver.oauth.metadata import (
    IssuerMetadata,
    MissingMember,
    ResourceMetadata,
    ServerMetadata,
    check_issuer_identifier,
    check_resource,
    check_server_issuer,
    check_server_lists_resource,
    fold_host,
    missing_members,
    read_issuer_metadata,
    read_resource_metadata,
    read_server_metadata,
    write_resource_metadata,
    write_server_metadata,
)

ISSUER = "https://auth.example.com"
SERVER: dict[str, Any] = {
    "issuer": ISSUER,
    "token_endpoint": "https://auth.example.com/oauth/token",
    "revocation_endpoint": "https://auth.example.com/oauth/revoke",
    "authorization_endpoint": "https://auth.example.com/oauth/authorize",
    "device_authorization_endpoint": "https://auth.example.com/oauth/device",
    "grant_types_supported": ["refresh_token", "authorization_code", "urn:ietf:params:oauth:grant-type:device_code"],
    "scopes_supported": ["orders:read", "orders:write", "addresses"],
    "protected_resources": ["https://example.com", "https://example.co.uk", "https://mcp.example.com/mcp"],
}
RESOURCE: dict[str, Any] = {"resource": "https://example.com", "authorization_servers": [ISSUER]}


def test_the_specifications_examples_read_and_write_back() -> None:
    """Both documents of 3.2."""
    assert write_server_metadata(read_server_metadata(SERVER)) == SERVER
    assert write_resource_metadata(read_resource_metadata(RESOURCE)) == RESOURCE


def test_absent_members_stay_absent() -> None:
    """None is read for them, and nothing is written."""
    metadata = read_server_metadata({"issuer": ISSUER, "protected_resources": []})
    assert (metadata.token_endpoint, metadata.grant_types_supported, metadata.protected_resources) == (None, None, ())
    assert write_server_metadata(metadata) == {"issuer": ISSUER, "protected_resources": []}
    assert write_resource_metadata(ResourceMetadata("https://example.com")) == {"resource": "https://example.com"}


def test_unfamiliar_members_are_ignored() -> None:
    """Of any type (3.2)."""
    assert read_server_metadata({**SERVER, "jwks_uri": 5, "x": [7]}) == read_server_metadata(SERVER)
    assert read_resource_metadata({**RESOURCE, "x": None}) == read_resource_metadata(RESOURCE)


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        "https://example.com",
        {},
        {"resource": None},
        {"resource": ["https://example.com"]},
        {"resource": "https://example.com", "authorization_servers": None},
        {"resource": "https://example.com", "authorization_servers": {}},
        {"resource": "https://example.com", "authorization_servers": [7]},
    ],
)
def test_resource_metadata_of_another_shape_is_refused(document: object) -> None:
    """Null is no absence here: an unreadable list is never an empty one."""
    with pytest.raises(InvalidMetadata) as caught:
        read_resource_metadata(document)
    assert caught.value.rule == "oauth.resource-metadata-shape"


@pytest.mark.parametrize(
    "document",
    [
        None,
        [],
        {},
        {"issuer": ISSUER},
        {"protected_resources": ["https://example.com"]},
        {**SERVER, "issuer": 5},
        {**SERVER, "protected_resources": "https://example.com"},
        {**SERVER, "grant_types_supported": [None]},
        {**SERVER, "token_endpoint": {}},
    ],
)
def test_server_metadata_of_another_shape_is_refused(document: object) -> None:
    """`issuer` and `protected_resources` are needed, and every known member has its type."""
    with pytest.raises(InvalidMetadata) as caught:
        read_server_metadata(document)
    assert caught.value.rule == "oauth.server-metadata-shape"


@pytest.mark.requirement("3-12")
@pytest.mark.parametrize("url", ["http://x.example", "ws://x.example", "javascript:x", "x.example", ""])
@pytest.mark.parametrize(
    "member",
    ["issuer", "token_endpoint", "revocation_endpoint", "authorization_endpoint", "device_authorization_endpoint"],
)
def test_every_url_of_a_servers_metadata_is_https(member: str, url: str) -> None:
    """Section 3."""
    with pytest.raises(InvalidMetadata) as caught:
        read_server_metadata({**SERVER, member: url})
    assert (caught.value.rule, caught.value.found) == ("oauth.server-metadata-https", url)


@pytest.mark.requirement("3-12")
@pytest.mark.parametrize(
    "document",
    [
        {"resource": "http://example.com"},
        {"resource": "https://example.com", "authorization_servers": [ISSUER, "http://auth.example.com"]},
    ],
)
def test_every_url_of_a_resources_metadata_is_https(document: object) -> None:
    """Section 3."""
    with pytest.raises(InvalidMetadata) as caught:
        read_resource_metadata(document)
    assert caught.value.rule == "oauth.resource-metadata-https"


@pytest.mark.requirement("papaver-12")
@pytest.mark.parametrize(
    "issuer", ["http://a.example", "https://a.example?x", "https://a.example/?", "https://a.example#"]
)
def test_an_issuer_is_an_https_url_without_query_and_fragment(issuer: str) -> None:
    """RFC 8414 2."""
    check_issuer_identifier("https://a.example/shop-a")
    with pytest.raises(InvalidMetadata) as caught:
        check_issuer_identifier(issuer)
    assert caught.value.rule == "oauth.issuer-identifier"


@pytest.mark.parametrize(
    ("url", "folded"),
    [
        ("HTTPS://Example.COM/Path?Query#Part", "https://example.com/Path?Query#Part"),
        ("https://Example.COM", "https://example.com"),
        ("https://Example.COM?Q", "https://example.com?Q"),
        ("https://Example.COM#F", "https://example.com#F"),
        ("https://Example.COM:443", "https://example.com:443"),
        ("Example.COM", "example.com"),
    ],
)
def test_only_scheme_and_host_lose_their_case(url: str, folded: str) -> None:
    """RFC 3986 6.2.2.1, and no other normalization."""
    assert fold_host(url) == folded


@pytest.mark.parametrize("resource", ["https://example.com/", "https://example.com:443", "https://b.example"])
def test_metadata_is_of_the_resource_that_was_asked_for(resource: str) -> None:
    """Equal but for the host's case (RFC 9728 3.3)."""
    check_resource(ResourceMetadata("https://Example.com"), "https://example.COM")
    with pytest.raises(InvalidMetadata) as caught:
        check_resource(ResourceMetadata(resource), "https://example.com")
    assert (caught.value.rule, caught.value.expected, caught.value.found) == (
        "oauth.resource-is-requested",
        "https://example.com",
        resource,
    )


@pytest.mark.parametrize("issuer", ["https://Auth.example.com", f"{ISSUER}/", "https://b.example"])
def test_metadata_is_of_the_issuer_that_was_asked_for(issuer: str) -> None:
    """Character for character (RFC 8414 3.3)."""
    check_server_issuer(ServerMetadata(ISSUER, ()), ISSUER)
    with pytest.raises(InvalidMetadata) as caught:
        check_server_issuer(ServerMetadata(issuer, ()), ISSUER)
    assert (caught.value.rule, caught.value.expected, caught.value.found) == (
        "oauth.issuer-is-requested",
        ISSUER,
        issuer,
    )


@pytest.mark.parametrize("listed", [(), ("https://example.com/",), ("https://example.com:443", "https://b.example")])
def test_an_issuer_has_to_list_the_resource(listed: tuple[str, ...]) -> None:
    """Equal but for the host's case (RFC 9728 4)."""
    check_server_lists_resource(
        ServerMetadata(ISSUER, ("https://b.example", "https://EXAMPLE.com")), "https://example.com"
    )
    with pytest.raises(InvalidMetadata) as caught:
        check_server_lists_resource(ServerMetadata(ISSUER, listed), "https://example.com")
    assert caught.value.rule == "oauth.issuer-lists-resource"
    assert caught.value.found == (", ".join(listed) or "(none)")


def test_an_issuer_publishes_what_oauth_clients_know() -> None:
    """Beside what Personal Agents use; they read past all of it."""
    more: dict[str, Any] = {
        "response_types_supported": ["code"],
        "code_challenge_methods_supported": ["S256"],
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "authorization_response_iss_parameter_supported": True,
        "client_id_metadata_document_supported": True,
        "jwks_uri": f"{ISSUER}/jwks.json",
        "introspection_endpoint": f"{ISSUER}/introspect",
    }
    metadata = read_issuer_metadata({**SERVER, **more})
    assert isinstance(metadata, IssuerMetadata)
    assert write_server_metadata(metadata) == {**SERVER, **more}
    assert read_server_metadata({**SERVER, **more}) == read_server_metadata(SERVER)
    assert read_issuer_metadata(SERVER).jwks_uri is None


@pytest.mark.requirement("papaver-49")
@pytest.mark.parametrize("member", ["jwks_uri", "introspection_endpoint"])
def test_where_a_company_checks_tokens_is_https(member: str) -> None:
    """Section 3 holds for its own issuer too."""
    with pytest.raises(InvalidMetadata) as refusal:
        read_issuer_metadata({**SERVER, member: "http://auth.example.com/x"})
    assert refusal.value.rule == "oauth.issuer-metadata-https"
    with pytest.raises(InvalidMetadata) as shape:
        read_issuer_metadata({**SERVER, member: 5})
    assert shape.value.rule == "oauth.server-metadata-shape"


@pytest.mark.requirement("papaver-49")
@pytest.mark.parametrize(
    ("spoiled", "missing"),
    [
        ({}, ()),
        ({"token_endpoint": None}, (MissingMember("token_endpoint", "3.2, 4.4"),)),
        ({"revocation_endpoint": ""}, (MissingMember("revocation_endpoint", "3.2, 4.6"),)),
        ({"grant_types_supported": "refresh_token"}, (MissingMember("grant_types_supported", "3.2, 4.4"),)),
        (
            {"grant_types_supported": ["authorization_code"]},
            (MissingMember("grant_types_supported: refresh_token", "3.2, 4.4"),),
        ),
        ({"authorization_endpoint": 5}, (MissingMember("authorization_endpoint", "3.2, 4.2"),)),
        ({"device_authorization_endpoint": None}, (MissingMember("device_authorization_endpoint", "3.2, 4.3"),)),
        ({"device_authorization_endpoint": None, "grant_types_supported": ["refresh_token"]}, ()),
    ],
)
def test_what_an_issuer_lacks_is_named(spoiled: dict[str, Any], missing: tuple[MissingMember, ...]) -> None:
    """Each member of 3.2 with its clause."""
    assert missing_members({**SERVER, **spoiled}) == missing


def test_what_is_no_document_lacks_everything() -> None:
    """And nothing is raised."""
    named = ["issuer", "protected_resources", "token_endpoint", "revocation_endpoint", "grant_types_supported"]
    assert [lack.member for lack in missing_members([])] == named
