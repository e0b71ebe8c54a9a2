"""Metadata of authorization servers (RFC 8414) and of protected resources (RFC 9728): read, written, checked.

Identifiers stay the strings they arrived as and are compared character for character; only a host's case is ignored,
and only where the protocol says so (3.1, 3.2; readings 53).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple, TypeVar, cast

import msgspec

from papaver.oauth.errors import InvalidMetadata
from papaver.values.rules import rule
from papaver.web.urls import UrlError, check_https, read_url

__all__ = [
    "IssuerMetadata",
    "MissingMember",
    "ResourceMetadata",
    "ServerMetadata",
    "check_issuer_identifier",
    "check_issuer_urls",
    "check_resource",
    "check_resource_urls",
    "check_server_issuer",
    "check_server_lists_resource",
    "check_server_urls",
    "fold_host",
    "missing_members",
    "read_issuer_metadata",
    "read_resource_metadata",
    "read_server_metadata",
    "write_resource_metadata",
    "write_server_metadata",
]

M = TypeVar("M", bound=msgspec.Struct)


class ResourceMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """A protected resource's metadata (RFC 9728 2), as far as the protocol uses it.

    `resource`               the resource's identifier, an https URL
    `authorization_servers`  issuers, in the document's order; empty when there is none
    """

    resource: str
    authorization_servers: tuple[str, ...] = ()


class ServerMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """An authorization server's metadata (RFC 8414 2), as far as the protocol uses it (3.2). None where absent."""

    issuer: str
    protected_resources: tuple[str, ...]
    token_endpoint: str | None = None
    revocation_endpoint: str | None = None
    authorization_endpoint: str | None = None
    device_authorization_endpoint: str | None = None
    grant_types_supported: tuple[str, ...] | None = None
    scopes_supported: tuple[str, ...] | None = None
    token_endpoint_auth_signing_alg_values_supported: tuple[str, ...] | None = None
    dpop_signing_alg_values_supported: tuple[str, ...] | None = None


class IssuerMetadata(ServerMetadata, frozen=True, omit_defaults=True):
    """The whole of what an issuer says of itself: what Personal Agents use, and what OAuth clients know beside it.

    Personal Agents read `ServerMetadata`, so that nothing the protocol does not use can fail them (3.2).
    """

    response_types_supported: tuple[str, ...] | None = None
    response_modes_supported: tuple[str, ...] | None = None
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    revocation_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    revocation_endpoint_auth_signing_alg_values_supported: tuple[str, ...] | None = None
    code_challenge_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool | None = None
    client_id_metadata_document_supported: bool | None = None
    jwks_uri: str | None = None
    introspection_endpoint: str | None = None
    service_documentation: str | None = None


class MissingMember(NamedTuple):
    """A member, or a value of a list, that an issuer's metadata lacks; `clause` is the one that asks for it."""

    member: str
    clause: str


def read_resource_metadata(document: object) -> ResourceMetadata:
    """A decoded document; members that the protocol does not use are ignored.

    Raises `InvalidMetadata` for wrong types (null included) and for a URL that is not https.
    """
    metadata = _convert(document, ResourceMetadata, "oauth.resource-metadata-shape")
    check_resource_urls(metadata)
    return metadata


def read_server_metadata(document: object) -> ServerMetadata:
    """A decoded document; members that the protocol does not use are ignored.

    Raises `InvalidMetadata` for wrong types, a missing `issuer` or `protected_resources`, and for an endpoint that is
    not https.
    """
    metadata = _convert(document, ServerMetadata, "oauth.server-metadata-shape")
    check_server_urls(metadata)
    return metadata


def read_issuer_metadata(document: object) -> IssuerMetadata:
    """A Company's own issuer, all of it: as `read_server_metadata`, and `jwks_uri`, `introspection_endpoint` are https.

    Raises `InvalidMetadata`.
    """
    metadata = _convert(document, IssuerMetadata, "oauth.server-metadata-shape")
    check_server_urls(metadata)
    check_issuer_urls(metadata)
    return metadata


def missing_members(document: object) -> tuple[MissingMember, ...]:
    """What a decoded metadata document lacks to be a Company's issuer (3.2), in the order of that list. Never raises.

    Empty and of another type counts as missing, because no Personal Agent can use it.
    """
    members: Mapping[str, object] = cast("dict[str, object]", document) if isinstance(document, dict) else {}
    listed = members.get("grant_types_supported")
    grants = cast("list[object]", listed) if isinstance(listed, list) else []
    missing = [MissingMember(name, clause) for name, kind, clause in _REQUIRED if not _there(members.get(name), kind)]
    if grants and "refresh_token" not in grants:
        missing.append(MissingMember("grant_types_supported: refresh_token", "3.2, 4.4"))
    for grant, name, clause in _REQUIRED_BY_GRANT:
        if grant in grants and not _there(members.get(name), str):
            missing.append(MissingMember(name, clause))
    return tuple(missing)


def write_resource_metadata(metadata: ResourceMetadata) -> dict[str, object]:
    """The document to publish, without absent members."""
    return _write(metadata)


def write_server_metadata(metadata: ServerMetadata) -> dict[str, object]:
    """The document to publish, without absent members."""
    return _write(metadata)


def fold_host(url: str) -> str:
    """`url` with scheme and authority in lowercase and every other character as it is (RFC 3986 6.2.2.1)."""
    scheme, mark, rest = url.partition("://")
    authority = rest
    for delimiter in "/?#":
        authority = authority.partition(delimiter)[0]
    return scheme.lower() + mark + authority.lower() + rest[len(authority) :]


@rule("oauth.resource-metadata-https")
def check_resource_urls(metadata: ResourceMetadata) -> None:
    """Section 3: the resource and each authorization server is an https URL."""
    _https("resource", metadata.resource, "oauth.resource-metadata-https")
    for issuer in metadata.authorization_servers:
        _https("authorization_servers", issuer, "oauth.resource-metadata-https")


@rule("oauth.server-metadata-https")
def check_server_urls(metadata: ServerMetadata) -> None:
    """Section 3: the issuer and each endpoint is an https URL. `protected_resources` is only compared, never used."""
    _https("issuer", metadata.issuer, "oauth.server-metadata-https")
    for name in ("token", "revocation", "authorization", "device_authorization"):
        endpoint: str | None = getattr(metadata, f"{name}_endpoint")
        if endpoint is not None:
            _https(f"{name}_endpoint", endpoint, "oauth.server-metadata-https")


@rule("oauth.issuer-metadata-https")
def check_issuer_urls(metadata: IssuerMetadata) -> None:
    """Section 3: where the Company's own token checks go is https too."""
    for name in ("jwks_uri", "introspection_endpoint"):
        url: str | None = getattr(metadata, name)
        if url is not None:
            _https(name, url, "oauth.issuer-metadata-https")


@rule("oauth.issuer-identifier")
def check_issuer_identifier(issuer: str) -> None:
    """RFC 8414 2: an issuer is an https URL without query and fragment."""
    _https("issuer", issuer, "oauth.issuer-identifier")
    parts = read_url(issuer)
    if parts.query is not None or parts.fragment is not None:
        raise InvalidMetadata(
            "an issuer has no query and no fragment", rule="oauth.issuer-identifier", found=issuer, detail=issuer
        )


@rule("oauth.resource-is-requested")
def check_resource(metadata: ResourceMetadata, resource: str) -> None:
    """RFC 9728 3.3, 3.2: `resource` is the one whose metadata was asked for, but for the case of its host."""
    if fold_host(metadata.resource) != fold_host(resource):
        raise InvalidMetadata(
            "the metadata is of another resource",
            rule="oauth.resource-is-requested",
            expected=resource,
            found=metadata.resource,
        )


@rule("oauth.issuer-is-requested")
def check_server_issuer(metadata: ServerMetadata, issuer: str) -> None:
    """RFC 8414 3.3, 3.2: the metadata's `issuer` is the one it was looked up for, character for character."""
    if metadata.issuer != issuer:
        raise InvalidMetadata(
            "the metadata is of another issuer",
            rule="oauth.issuer-is-requested",
            expected=issuer,
            found=metadata.issuer,
        )


@rule("oauth.issuer-lists-resource")
def check_server_lists_resource(metadata: ServerMetadata, resource: str) -> None:
    """RFC 9728 4, 3.2: `protected_resources` has this resource, equal but for the case of its host."""
    wanted = fold_host(resource)
    if all(fold_host(listed) != wanted for listed in metadata.protected_resources):
        raise InvalidMetadata(
            "the issuer does not list the resource",
            rule="oauth.issuer-lists-resource",
            expected=resource,
            found=_listing(metadata.protected_resources),
        )


_REQUIRED: Final[tuple[tuple[str, type, str], ...]] = (
    ("issuer", str, "3.2, RFC 8414 2"),
    ("protected_resources", list, "3.2, RFC 9728 4"),
    ("token_endpoint", str, "3.2, 4.4"),
    ("revocation_endpoint", str, "3.2, 4.6"),
    ("grant_types_supported", list, "3.2, 4.4"),
)
_REQUIRED_BY_GRANT: Final = (
    ("authorization_code", "authorization_endpoint", "3.2, 4.2"),
    ("urn:ietf:params:oauth:grant-type:device_code", "device_authorization_endpoint", "3.2, 4.3"),
)


def _there(value: object, kind: type) -> bool:
    return isinstance(value, kind) and bool(value)


def _listing(values: Iterable[str]) -> str:
    return ", ".join(values) or "(none)"


def _https(member: str, url: str, rule_id: str) -> None:
    try:
        check_https(url)
    except UrlError as error:
        raise InvalidMetadata(
            f"{member} is not an https URL", rule=rule_id, found=url, detail=error.description
        ) from None


def _convert(document: object, kind: type[M], rule_id: str) -> M:
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise InvalidMetadata("a member is missing or has another type", rule=rule_id, detail=str(error)) from None


def _write(metadata: msgspec.Struct) -> dict[str, object]:
    return msgspec.json.decode(msgspec.json.encode(metadata), type=dict[str, object])
