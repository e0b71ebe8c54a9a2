"""Who a Personal Agent is to Companies: its `client_id`, its keys, and the two documents that it publishes (4.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from papaver.jose.keys import PrivateKey, PublicKey, write_key_set
from papaver.oauth.client_metadata import (
    AUTH_METHOD,
    ClientMetadata,
    check_client_id,
    write_client_metadata,
)
from papaver.oauth.errors import OAuthError
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ClientId
from papaver.values.rules import rule
from papaver.values.strict_json import dumps
from papaver.web.urls import resolve

__all__ = ["Identity", "IdentityKeys", "check_assertion_key"]


class IdentityKeys(Protocol):
    """The keys that a Personal Agent's `jwks_uri` publishes. `papaver.KeyFile` is one."""

    @property
    def current(self) -> PrivateKey:
        """The key that signs delegations."""
        ...

    @property
    def keys(self) -> Sequence[PrivateKey]:
        """Every key that may sign, the current one first."""
        ...

    @property
    def public_keys(self) -> Sequence[PublicKey]:
        """Every key that is published."""
        ...


@dataclass(frozen=True, slots=True)
class Identity:
    """A Personal Agent's identity. `documents` is what has to be found at its URLs before a Company can know it.

    `client_id`      the https URL of the metadata document
    `keys`           ES256 or PS384; they sign delegations, never a Session JWT (5.2)
    `jwks_uri`       on the host of `client_id`; None for `jwks.json` beside the document
    `name`, `logo_uri`, `redirect_uris`  as in the metadata document

    Raises ConfigurationError for a `client_id` that no Company may accept.
    """

    client_id: ClientId
    keys: IdentityKeys
    jwks_uri: str | None = None
    name: str | None = None
    logo_uri: str | None = None
    redirect_uris: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        try:
            check_client_id(self.client_id)
        except OAuthError as error:
            raise ConfigurationError(error.description, rule=error.rule, detail=error.detail) from None

    @property
    def published_jwks_uri(self) -> str:
        """Where the key set is."""
        return self.jwks_uri or resolve(self.client_id, "jwks.json")

    def signer_of(self, algorithms: Sequence[str] | None) -> PrivateKey:
        """The key for client assertions: the first whose algorithm the token endpoint accepts; None for any (3.2).

        Delegations are always signed by the current one. Raises ConfigurationError.
        """
        usable = [key for key in self.keys.keys if algorithms is None or key.alg in algorithms]
        check_assertion_key(usable, algorithms or ())
        return usable[0]

    def metadata(self) -> dict[str, object]:
        """The client metadata document. Raises ConfigurationError when no Company may accept it."""
        try:
            return write_client_metadata(
                ClientMetadata(
                    client_id=self.client_id,
                    jwks_uri=self.published_jwks_uri,
                    token_endpoint_auth_method=AUTH_METHOD,
                    client_name=self.name,
                    redirect_uris=self.redirect_uris,
                    logo_uri=self.logo_uri,
                )
            )
        except OAuthError as error:
            raise ConfigurationError(error.description, rule=error.rule, detail=error.detail) from None

    def key_set(self) -> dict[str, list[dict[str, str]]]:
        """The key-set document: public keys only (4.1)."""
        return write_key_set(self.keys.public_keys)

    def documents(self) -> Mapping[str, bytes]:
        """URL → body, to be served as `application/json`. Raises ConfigurationError."""
        return {self.client_id: dumps(self.metadata()), self.published_jwks_uri: dumps(self.key_set())}


@rule("assertion.algorithm-accepted")
def check_assertion_key(usable: Sequence[PrivateKey], algorithms: Sequence[str]) -> None:
    """3.2, RFC 8414 2: a client assertion is signed with an algorithm that the token endpoint lists.

    Raises ConfigurationError.
    """
    if not usable:
        raise ConfigurationError(
            f"the Company takes client assertions signed with {', '.join(algorithms)}; no key here is of that kind",
            rule="assertion.algorithm-accepted",
        )
