"""What an access token says, whatever its shape: a JWT (RFC 9068), an introspected one (RFC 7662), or our own."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final, NamedTuple

import msgspec

from papaver.jose.claims import ClaimsError, ClaimsReader
from papaver.jose.issuer_keys import IssuerKeySet, verify_issuer_jws
from papaver.jose.jws import JwsError
from papaver.oauth.answers import read_answer, read_error
from papaver.oauth.assertions import ASSERTION_TYPE
from papaver.oauth.errors import InvalidAccessToken, InvalidOAuthResponse, InvalidScope
from papaver.oauth.forms import FORM, write_form
from papaver.oauth.scopes import read_scope
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.values.told import told
from papaver.web.messages import Headers, Request, Response

__all__ = [
    "AT_JWT",
    "AccessToken",
    "TokenClaims",
    "TokenProfile",
    "check_active",
    "check_audience",
    "check_client",
    "check_exp",
    "check_issuer",
    "check_scope",
    "check_size",
    "check_subject",
    "check_times",
    "check_typ",
    "introspection_request",
    "read_introspection",
    "read_jwt_access_token",
]

MAX_SIZE: Final = 8192


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


class Confirmation(msgspec.Struct, frozen=True):
    """RFC 9449 6.1."""

    jkt: str | None = None


class TokenClaims(msgspec.Struct, frozen=True):
    """The claims of a JWT access token (RFC 9068 2.2), and of an introspection answer (RFC 7662 2.2)."""

    iss: str = ""
    sub: str = ""
    client_id: str = ""
    azp: str = ""
    aud: str | list[str] = ""
    exp: float | None = None
    nbf: float | None = None
    scope: str | list[str] | None = None
    cnf: Confirmation | None = None


@dataclass(frozen=True, slots=True)
class TokenProfile:
    """How one issuer writes its JWT access tokens.

    `typs`       RFC 9068 2.1's; an issuer that writes plain `JWT` is named here, and its tokens need a `scope`, which
                 an ID token of the same issuer does not have
    `audiences`  one of them has to be in `aud`; None where the audience is judged elsewhere (4.5)
    `skew`       how far two clocks may differ, in seconds
    """

    typs: tuple[str, ...] = ("at+jwt", "application/at+jwt")
    audiences: Collection[str] | None = None
    skew: int = 5


AT_JWT: Final = TokenProfile()
"""RFC 9068, as oidc-provider and others write it."""


class Expected(NamedTuple):
    """What a token's claims are checked against; `typ` is the JWT's, None for an introspected token."""

    issuer: str | None
    now: float
    profile: TokenProfile
    typ: object


def read_jwt_access_token(
    token: Secret | str, keys: IssuerKeySet, *, issuer: str, now: float, profile: TokenProfile = AT_JWT
) -> AccessToken:
    """Believe a JWT access token of `issuer`, whose key set is `keys`. Raises `InvalidAccessToken`.

    Its rule is `jws.kid` when no key of its name is known, so that the caller can ask for newer ones. The claims are
    those of RFC 9068 2.2; `iat` and `jti` may be missing.
    """
    text = token.reveal() if isinstance(token, Secret) else token
    check_size(text)
    try:
        jws, header = verify_issuer_jws(text, keys)
        claims = _CLAIMS.read(jws.payload)
    except (JwsError, ClaimsError) as error:
        raise InvalidAccessToken(rule=error.rule, detail=error.detail) from None
    return _believe(claims, Expected(issuer, now, profile, header.get("typ")), JWT_CHECKS)


def introspection_request(
    endpoint: str,
    token: Secret,
    *,
    authorization: Secret | None = None,
    client_id: str | None = None,
    assertion: Secret | None = None,
) -> Request:
    """Ask an issuer about a token (RFC 7662 2.1).

    The Company authenticates as its issuer wants it: `authorization` is a whole field value, such as `Bearer …`, or
    `client_id` and `assertion` are sent.
    """
    pairs = [("token", token.reveal()), ("token_type_hint", "access_token")]
    if client_id is not None:
        pairs.append(("client_id", client_id))
    if assertion is not None:
        pairs += [("client_assertion_type", ASSERTION_TYPE), ("client_assertion", assertion.reveal())]
    headers = [("content-type", FORM), ("accept", "application/json")]
    if authorization is not None:
        headers.append(("authorization", authorization.reveal()))
    return Request("POST", endpoint, Headers(headers), write_form(pairs))


def read_introspection(
    response: Response, now: float, *, issuer: str | None = None, profile: TokenProfile = AT_JWT
) -> AccessToken:
    """Believe an issuer's answer about a token. `issuer` is compared with the answer's `iss` where that is there.

    Raises `InvalidAccessToken` for a token that does not stand, the endpoint's own error where it did not answer the
    question, and `InvalidOAuthResponse` for an answer that says nothing.
    """
    if response.status != 200:
        raise read_error(response)
    document = read_answer(response)
    check_active(document)
    try:
        claims = msgspec.convert({name: value for name, value in document.items() if value is not None}, TokenClaims)
    except msgspec.ValidationError as error:
        raise InvalidOAuthResponse(rule="oauth.answer-member", detail=str(error)) from None
    return _believe(claims, Expected(issuer if claims.iss else None, now, profile, None), CHECKS)


@rule("oauth.token-size")
def check_size(token: str) -> None:
    """Bounded before anything is parsed."""
    if len(token) > MAX_SIZE:
        raise InvalidAccessToken(rule="oauth.token-size", detail=f"{len(token)} characters")


@rule("oauth.token-active")
def check_active(document: dict[str, object]) -> None:
    """RFC 7662 2.2: `active` is true, and not merely something like it."""
    if document.get("active") is not True:
        raise InvalidAccessToken(rule="oauth.token-active", detail=f"active {document.get('active')!r:.40}")


@rule("oauth.token-typ")
def check_typ(claims: TokenClaims, expected: Expected) -> None:
    """RFC 9068 4: an access token says that it is one, so that no other JWT of the issuer passes for it."""
    typ = expected.typ.lower() if isinstance(expected.typ, str) else ""
    if typ not in [one.lower() for one in expected.profile.typs] or (typ == "jwt" and claims.scope is None):
        raise InvalidAccessToken(rule="oauth.token-typ", detail=f"typ {expected.typ!r:.80}")


@rule("oauth.token-issuer")
def check_issuer(claims: TokenClaims, expected: Expected) -> None:
    """RFC 9068 4: `iss` is the Company's issuer, character for character."""
    if expected.issuer is not None and claims.iss != expected.issuer:
        raise InvalidAccessToken(
            rule="oauth.token-issuer", detail=f"expected {expected.issuer}, found {told(claims.iss)}"
        )


@rule("oauth.token-audience")
def check_audience(claims: TokenClaims, expected: Expected) -> None:
    """RFC 9068 4: the token is for this Company, where its profile says how the issuer writes that."""
    audiences = expected.profile.audiences
    if audiences is not None and not any(one in audiences for one in _audience(claims)):
        raise InvalidAccessToken(
            rule="oauth.token-audience", detail=f"expected one of {audiences}, found {claims.aud!r:.200}"
        )


@rule("oauth.token-exp")
def check_exp(claims: TokenClaims, expected: Expected) -> None:
    """RFC 9068 2.2: a JWT says when it ends."""
    if claims.exp is None:
        raise InvalidAccessToken(rule="oauth.token-exp", detail="no exp")


@rule("oauth.token-times")
def check_times(claims: TokenClaims, expected: Expected) -> None:
    """RFC 7519 4.1: neither over nor not begun, but for two clocks that differ."""
    now, skew = expected.now, expected.profile.skew
    if (claims.exp is not None and now >= claims.exp + skew) or (claims.nbf is not None and now < claims.nbf - skew):
        raise InvalidAccessToken(rule="oauth.token-times", detail=f"now {now:.0f}, nbf {claims.nbf}, exp {claims.exp}")


@rule("oauth.token-client")
def check_client(claims: TokenClaims, expected: Expected) -> None:
    """5.3: whom it was issued to is `client_id`, else `azp`; two names are none, and an actor's never counts."""
    if not (claims.client_id or claims.azp) or (claims.client_id and claims.azp and claims.client_id != claims.azp):
        raise InvalidAccessToken(
            rule="oauth.token-client", detail=f"client_id {told(claims.client_id)}, azp {told(claims.azp)}"
        )


@rule("oauth.token-subject")
def check_subject(claims: TokenClaims, expected: Expected) -> None:
    """5.4: a token is of an account."""
    if not 1 <= len(claims.sub) <= 256:
        raise InvalidAccessToken(rule="oauth.token-subject", detail=f"sub has {len(claims.sub)} characters")


@rule("oauth.token-scope")
def check_scope(claims: TokenClaims, expected: Expected) -> None:
    """RFC 9068 2.2.3: `scope` is a scope text, or the list that some issuers write."""
    try:
        _scopes(claims)
    except InvalidScope as error:
        raise InvalidAccessToken(rule="oauth.token-scope", detail=error.detail) from None


Check = Callable[[TokenClaims, Expected], None]

CHECKS: Final[tuple[Check, ...]] = (
    check_issuer,
    check_audience,
    check_times,
    check_client,
    check_subject,
    check_scope,
)
"""Of every token."""

JWT_CHECKS: Final[tuple[Check, ...]] = (check_typ, check_exp, *CHECKS)
"""Of a JWT (RFC 9068 4)."""


def _believe(claims: TokenClaims, expected: Expected, checks: tuple[Check, ...]) -> AccessToken:
    for check in checks:
        check(claims, expected)
    return AccessToken(
        client_id=claims.client_id or claims.azp,
        subject=claims.sub,
        scopes=frozenset(_scopes(claims)),
        expires_at=claims.exp,
        audience=_audience(claims),
        jkt=None if claims.cnf is None else claims.cnf.jkt,
    )


def _audience(claims: TokenClaims) -> tuple[str, ...]:
    if isinstance(claims.aud, str):
        return (claims.aud,) if claims.aud else ()
    return tuple(claims.aud)


def _scopes(claims: TokenClaims) -> tuple[str, ...]:
    scope = claims.scope
    if not scope:
        return ()
    return read_scope(scope if isinstance(scope, str) else " ".join(scope))


_CLAIMS: Final = ClaimsReader(TokenClaims)
