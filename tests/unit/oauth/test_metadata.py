"""Metadata of servers and resources: read strictly, written plainly, compared character for character."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.oauth.errors import InvalidMetadata
from papaver.oauth.metadata import (
    ResourceMetadata,
    ServerMetadata,
    check_issuer_identifier,
    check_resource,
    check_server_issuer,
    check_server_lists_resource,
    fold_host,
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
