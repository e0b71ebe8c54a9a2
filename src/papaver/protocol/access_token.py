"""The access token of a request (4.5; RFC 6750 2.1, RFC 9449 7.1): how it is carried, and whether it is good here."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from papaver.protocol.errors import InvalidRequest, InvalidToken
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.messages import Headers

__all__ = [
    "AUTHORIZATION",
    "CarriedToken",
    "check_authorization_once",
    "check_for_this_service",
    "check_no_token",
    "check_not_expired",
    "check_scheme",
    "read_access_token",
]

AUTHORIZATION: Final = "authorization"
Scheme = Literal["Bearer", "DPoP"]
SCHEMES: Final[dict[str, Scheme]] = {"bearer": "Bearer", "dpop": "DPoP"}


@dataclass(frozen=True, slots=True)
class CarriedToken:
    """An access token as a request carries it, not believed."""

    scheme: Scheme
    token: Secret


def read_access_token(headers: Headers) -> CarriedToken | None:
    """The access token, not believed; None for a request without one, which is signed out (5.4).

    Credentials of any other scheme are no access token, and are left to whoever asked for them (readings 66).
    Raises InvalidRequest.
    """
    values = headers.all(AUTHORIZATION)
    if not values:
        return None
    check_authorization_once(values)
    named, _, token = values[0].strip().partition(" ")
    scheme = SCHEMES.get(named.lower())
    return None if scheme is None else CarriedToken(scheme, Secret(token.strip()))


@rule("token.authorization-once")
def check_authorization_once(values: Sequence[str]) -> None:
    """Of two, two readers could take two tokens."""
    if len(values) > 1:
        raise InvalidRequest(
            "the Authorization header is there more than once",
            rule="token.authorization-once",
            detail=f"{len(values)} fields",
        )


@rule("token.needs-issuer")
def check_no_token(token: object) -> None:
    """Nobody issues tokens of a Company without an issuer: whatever a request carries is none of them (readings 6)."""
    if token is not None:
        raise InvalidToken(
            "this Company has no sign-in, so no access token is valid here; continue signed out",
            rule="token.needs-issuer",
        )


@rule("token.not-expired")
def check_not_expired(expires_at: float | None, now: float) -> None:
    """Section 7: a token is good until its time is over, whatever was known of it before."""
    if expires_at is not None and now >= expires_at:
        raise InvalidToken(
            "the access token has expired", rule="token.not-expired", detail=f"at {expires_at:.0f}, now {now:.0f}"
        )


@rule("token.scheme-as-bound")
def check_scheme(scheme: Scheme, jkt: str | None) -> None:
    """4.5, RFC 9449 7.1, 7.2: a token that is bound to a key comes with DPoP, and never as a Bearer token."""
    expected = "Bearer" if jkt is None else "DPoP"
    if scheme != expected:
        raise InvalidToken(
            f"this access token goes with the scheme {expected}", rule="token.scheme-as-bound", detail=f"got {scheme}"
        )


@rule("token.for-this-service")
def check_for_this_service(audience: Collection[str], service: str | None, usual: Collection[str]) -> None:
    """4.5: a token issued for a service is good only there, and a service with tokens of its own takes no other.

    `audience`  of the token, empty for one that names none
    `service`   the `resource` of the service that is asked, None where the usual token is good
    `usual`     audiences that say no more than that the token is this Company's
    """
    if service is None:
        good = not audience or any(one in usual for one in audience)
        told = "the access token was issued for another service"
    else:
        good = service in audience
        told = "this service takes only access tokens that were issued for it; ask with its resource"
    if not good:
        raise InvalidToken(
            told, rule="token.for-this-service", detail=f"for {', '.join(audience) or 'none'}, here {service or 'all'}"
        )
