"""What an access token says, whatever its shape: a JWT (RFC 9068), an introspected one (RFC 7662), or our own."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["AccessToken"]


@dataclass(frozen=True, slots=True)
class AccessToken:
    """A verified access token; the token itself is not in it.

    `client_id`   whom it was issued to (`client_id`, or `azp`; never `act.client_id`)
    `subject`     the account
    `expires_at`  Unix seconds; None when the issuer does not say
    `audience`    as issued; empty for a token that names none
    `jkt`         thumbprint of the DPoP key it is bound to (RFC 9449 6); None for a Bearer token
    """

    client_id: str
    subject: str
    scopes: frozenset[str]
    expires_at: float | None = None
    audience: tuple[str, ...] = ()
    jkt: str | None = None
