"""The client metadata document of a Personal Agent (4.1, OAuth Client ID Metadata Document): read, written, checked.

Both sides use it: a Company on what it fetched from a `client_id`, a Personal Agent on what it is about to publish.
"Same domain" is the same host, ignoring ASCII case; ports may differ (readings 27).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

import msgspec

from papaver.jose.keys import PRIVATE_MEMBERS
from papaver.oauth.errors import InvalidClientMetadata, InvalidRedirectUri
from papaver.values.rules import rule
from papaver.web.urls import Url, UrlError, read_url, same_host

__all__ = [
    "AUTH_METHOD",
    "ClientMetadata",
    "check_auth_method",
    "check_client_id",
    "check_client_id_is_url",
    "check_jwks_uri",
    "check_no_secrets",
    "check_redirect_uris",
    "check_shown_urls",
    "read_client_metadata",
    "write_client_metadata",
]

AUTH_METHOD: Final = "private_key_jwt"
"""The one way in which a Personal Agent authenticates (4.1, RFC 7523)."""

LOOPBACK_HOSTS: Final = frozenset({"127.0.0.1", "[::1]"})
"""The literals of RFC 8252 7.3; `localhost` is none of them, because a resolver decides where it leads."""

SECRETS: Final = ("client_secret", "client_secret_expires_at")
SHOWN: Final = ("client_uri", "logo_uri", "policy_uri", "tos_uri")


class ClientMetadata(msgspec.Struct, frozen=True, omit_defaults=True):
    """A Personal Agent, as it describes itself (4.1; names of RFC 7591 2).

    `client_id`      the URL of this document
    `client_name`    for the User's eyes; the Personal Agent's own claim
    `jwks_uri`       https, on the host of `client_id`
    `redirect_uris`  https on that host, or loopback; empty without Direct Sign-In
    `logo_uri`, `client_uri`, `policy_uri`, `tos_uri`  https, any host
    """

    client_id: str
    jwks_uri: str
    token_endpoint_auth_method: str | None = None
    client_name: str | None = None
    redirect_uris: tuple[str, ...] = ()
    logo_uri: str | None = None
    client_uri: str | None = None
    policy_uri: str | None = None
    tos_uri: str | None = None


def read_client_metadata(url: str, document: object) -> ClientMetadata:
    """The document fetched from `url`, decoded. Members that the protocol does not use are ignored.

    Raises `InvalidClientMetadata` with the rule that it breaks (4.1).
    """
    check_client_id(url)
    try:
        metadata = msgspec.convert(document, ClientMetadata)
    except msgspec.ValidationError as error:
        raise InvalidClientMetadata(
            "a member is missing or has another type", rule="client.metadata-shape", detail=str(error)
        ) from None
    check_client_id_is_url(metadata, url)
    check_auth_method(metadata)
    check_jwks_uri(metadata)
    check_redirect_uris(metadata)
    check_shown_urls(metadata)
    check_no_secrets(cast("Mapping[str, object]", document))
    return metadata


def write_client_metadata(metadata: ClientMetadata) -> dict[str, object]:
    """The document to publish at `metadata.client_id`. Raises `InvalidClientMetadata` when no Company may accept it."""
    document = msgspec.json.decode(msgspec.json.encode(metadata), type=dict[str, object])
    read_client_metadata(metadata.client_id, document)
    return document


@rule("client.client-id-form")
def check_client_id(client_id: str) -> None:
    """4.1: a `client_id` is the https URL of a document: with a path, without dot segments and fragment.

    A query is advised against and allowed; a question mark alone would only be a second spelling, and is refused.
    """
    parts = _https("client_id", client_id, "client.client-id-form")
    if parts.path in ("", "/"):
        raise InvalidClientMetadata(
            "client_id is a bare origin; it has to be the URL of the metadata document, "
            f"such as {parts.origin}/agent.json",
            rule="client.client-id-form",
            detail=client_id,
        )
    if any(segment in (".", "..") for segment in parts.path.lower().replace("%2e", ".").split("/")):
        raise InvalidClientMetadata(
            "client_id has a dot segment in its path", rule="client.client-id-form", detail=client_id
        )
    if parts.fragment is not None or parts.query == "":
        raise InvalidClientMetadata(
            "client_id has a fragment or an empty query", rule="client.client-id-form", detail=client_id
        )


@rule("client.client-id-is-url")
def check_client_id_is_url(metadata: ClientMetadata, url: str) -> None:
    """4.1: `client_id` equals the URL that the document was fetched from, character for character."""
    if metadata.client_id != url:
        raise InvalidClientMetadata(
            "client_id is not the URL that the document was fetched from",
            rule="client.client-id-is-url",
            detail=f"expected {url}, found {metadata.client_id}",
        )


@rule("client.auth-method")
def check_auth_method(metadata: ClientMetadata) -> None:
    """4.1: the client authenticates with `private_key_jwt`, and says so (RFC 7591's default is a shared secret)."""
    if metadata.token_endpoint_auth_method != AUTH_METHOD:
        raise InvalidClientMetadata(
            f"token_endpoint_auth_method has to be {AUTH_METHOD}",
            rule="client.auth-method",
            detail=f"found {metadata.token_endpoint_auth_method}",
        )


@rule("client.jwks-uri-same-host")
def check_jwks_uri(metadata: ClientMetadata) -> None:
    """4.1: `jwks_uri` is https, without a fragment, on the host of `client_id` (readings 27)."""
    parts = _https("jwks_uri", metadata.jwks_uri, "client.jwks-uri-same-host")
    if parts.fragment is not None or not same_host(metadata.jwks_uri, metadata.client_id):
        raise InvalidClientMetadata(
            "jwks_uri is not on the host of client_id",
            rule="client.jwks-uri-same-host",
            detail=f"client_id {metadata.client_id}, jwks_uri {metadata.jwks_uri}",
        )


@rule("client.redirect-uris")
def check_redirect_uris(metadata: ClientMetadata) -> None:
    """4.1, RFC 8252 7.3: each entry is https on the host of `client_id`, or http on a loopback address literal."""
    for uri in metadata.redirect_uris:
        try:
            parts = read_url(uri)
        except UrlError as error:
            raise InvalidRedirectUri(rule="client.redirect-uris", detail=f"{uri}: {error.description}") from None
        if parts.scheme == "https":
            allowed = same_host(uri, metadata.client_id)
        else:
            allowed = parts.host in LOOPBACK_HOSTS
        if not allowed or parts.fragment is not None:
            raise InvalidRedirectUri(rule="client.redirect-uris", detail=f"{uri}, client_id {metadata.client_id}")


@rule("client.shown-urls-https")
def check_shown_urls(metadata: ClientMetadata) -> None:
    """Section 3: the URLs that are shown to Users are https too."""
    for name in SHOWN:
        url: str | None = getattr(metadata, name)
        if url is not None:
            _https(name, url, "client.shown-urls-https")


@rule("client.no-secrets")
def check_no_secrets(document: Mapping[str, object]) -> None:
    """4.1: a public document holds no shared secret and, in a `jwks` of its own, no private key.

    Whoever can read the document could sign as this client, so the client is refused although `jwks` is not used.
    """
    held = [name for name in SECRETS if name in document]
    jwks = document.get("jwks")
    keys = cast("Mapping[object, object]", jwks).get("keys") if isinstance(jwks, Mapping) else None
    for key in cast("list[object]", keys) if isinstance(keys, list) else ():
        if isinstance(key, Mapping):
            held.extend(PRIVATE_MEMBERS.intersection(cast("Mapping[str, object]", key)))
    if held:
        raise InvalidClientMetadata(
            "the document publishes a secret", rule="client.no-secrets", detail=f"members {sorted(held)}"
        )


def _https(member: str, url: str, rule_id: str) -> Url:
    try:
        parts = read_url(url)
    except UrlError as error:
        raise InvalidClientMetadata(
            f"{member} is not an https URL", rule=rule_id, detail=f"{url}: {error.description}"
        ) from None
    if parts.scheme != "https":
        raise InvalidClientMetadata(f"{member} is not an https URL", rule=rule_id, detail=url)
    return parts
