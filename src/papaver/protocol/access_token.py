"""The access token of a request (4.5; RFC 6750 2.1, RFC 9449 7.1), and that without an issuer none is valid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from papaver.protocol.errors import InvalidRequest, InvalidToken
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.messages import Headers

__all__ = ["AUTHORIZATION", "check_authorization_once", "check_no_token", "read_access_token"]

AUTHORIZATION: Final = "authorization"
SCHEMES: Final = frozenset({"bearer", "dpop"})


def read_access_token(headers: Headers) -> Secret | None:
    """The access token, not believed; None for a request without one, which is signed out (5.4).

    Credentials of any other scheme are no access token, and are left to whoever asked for them (readings 66).
    Raises InvalidRequest.
    """
    values = headers.all(AUTHORIZATION)
    if not values:
        return None
    check_authorization_once(values)
    scheme, _, token = values[0].strip().partition(" ")
    return Secret(token.strip()) if scheme.lower() in SCHEMES else None


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
def check_no_token(token: Secret | None) -> None:
    """Nobody issues tokens of a Company without an issuer: whatever a request carries is none of them (readings 6)."""
    if token is not None:
        raise InvalidToken(
            "this Company has no sign-in, so no access token is valid here; continue signed out",
            rule="token.needs-issuer",
        )
