"""What an access token says, whatever its shape: a JWT (RFC 9068), an introspected one (RFC 7662), or our own."""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote_plus

import msgspec

from papaver.jose.claims import ClaimsError, ClaimsReader
from papaver.jose.issuer_keys import ALGS, IssuerKeySet, verify_issuer_jws
from papaver.oauth.errors import OAuthError
from papaver.oauth.forms import FORM, write_form
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.values.strict_json import JsonError, loads_object
from papaver.web.messages import Headers, Request, Response

__all__ = [
    "AccessToken",
    "AccessTokenRefused",
    "IntrospectionFailed",
    "check_token_active",
    "check_token_audience",
    "check_token_client",
    "check_token_issuer",
    "check_token_subject",
    "check_token_times",
    "check_token_typ",
    "introspection_request",
    "read_introspection",
    "read_jwt_access_token",
]

TYPES: Final = ("at+jwt", "application/at+jwt")
"""RFC 9068 4; compared ignoring case, as media types are."""

LEEWAY: Final = 5
"""Seconds after `exp` (readings 17)."""
SKEW: Final = 60
"""Seconds that `nbf` and `iat` may be ahead."""
MAX_BYTES: Final = 16_384


class AccessTokenRefused(OAuthError):
    """An access token that is not good here: malformed, forged, expired, or for somebody else."""

    code = "invalid_token"
    description = "the access token is expired, revoked or invalid"


class IntrospectionFailed(OAuthError):
    """The introspection endpoint gave no usable answer: whether the token is good is not known."""

    code = "introspection_failed"
    description = "the introspection endpoint gave no usable answer"


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


class _Confirmation(msgspec.Struct, frozen=True):
    jkt: str | None = None


class _Claims(msgspec.Struct, frozen=True):
    """What both shapes say (RFC 9068 2.2, RFC 7662 2.2). `scp` and a list are what some servers write for `scope`."""

    iss: str = ""
    sub: str = ""
    aud: str | tuple[str, ...] = ()
    client_id: str | None = None
    azp: str | None = None
    scope: str | tuple[str, ...] = ""
    scp: str | tuple[str, ...] = ""
    exp: float | None = None
    nbf: float | None = None
    iat: float | None = None
    cnf: _Confirmation = _Confirmation()
    active: bool = False


CLAIMS: Final = ClaimsReader(_Claims)


def read_jwt_access_token(
    token: str,
    keys: IssuerKeySet,
    *,
    issuer: str,
    now: float,
    audience: Collection[str] | None = None,
    typed: bool = True,
    algs: Collection[str] = ALGS,
) -> AccessToken:
    """Believe a JWT access token of an issuer, in the order of RFC 9068 4.

    `audience`  of which one has to be in `aud`; None leaves that to the caller
    `typed`     False for an issuer whose tokens do not say `at+jwt`

    Raises AccessTokenRefused, and JwsError, whose rule is `jws.kid` when newer keys may help.
    """
    if len(token) > MAX_BYTES:
        raise AccessTokenRefused(rule="token.jwt", detail=f"{len(token)} characters")
    jws, header = verify_issuer_jws(token, keys, algs=algs)
    if typed:
        check_token_typ(header)
    try:
        claims = CLAIMS.read(jws.payload)
    except ClaimsError as error:
        raise AccessTokenRefused(rule="token.jwt", detail=error.detail) from None
    check_token_issuer(claims.iss, issuer)
    if claims.exp is None:
        raise AccessTokenRefused(rule="token.times", detail="it has no exp (RFC 9068 2.2)")
    return _access_token(claims, now, audience)


def introspection_request(
    endpoint: str, token: Secret, *, client_id: str | None = None, client_secret: Secret | None = None
) -> Request:
    """Ask whether a token is good (RFC 7662 2.1), as a client of the Company's own with HTTP Basic (RFC 6749 2.3.1)."""
    fields = {"content-type": FORM, "accept": "application/json"}
    if client_id is not None and client_secret is not None:
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret.reveal())}".encode()
        fields["authorization"] = f"Basic {base64.b64encode(pair).decode('ascii')}"
    body = write_form([("token", token.reveal()), ("token_type_hint", "access_token")])
    return Request("POST", endpoint, Headers(fields), body)


def read_introspection(
    response: Response, *, issuer: str, now: float, audience: Collection[str] | None = None
) -> AccessToken:
    """The answer (RFC 7662 2.2). Raises IntrospectionFailed, and AccessTokenRefused for a token that is not active."""
    if response.status != 200:
        raise IntrospectionFailed(rule="token.introspection", detail=f"status {response.status}")
    try:
        claims = msgspec.convert(loads_object(response.body), _Claims)
    except (JsonError, msgspec.ValidationError) as error:
        raise IntrospectionFailed(rule="token.introspection", detail=str(error)) from None
    check_token_active(claims.active)
    if claims.iss:
        check_token_issuer(claims.iss, issuer)
    return _access_token(claims, now, audience)


@rule("token.typ")
def check_token_typ(header: Mapping[str, object]) -> None:
    """RFC 9068 4: `typ` says that it is an access token, so that no ID token or assertion passes for one."""
    typ = header.get("typ")
    if not isinstance(typ, str) or typ.lower() not in TYPES:
        raise AccessTokenRefused(rule="token.typ", detail=f"expected at+jwt, found {typ!r:.80}")


@rule("token.issuer")
def check_token_issuer(found: str, issuer: str) -> None:
    """RFC 9068 4: the Company's issuer issued it, compared character for character."""
    if found != issuer:
        raise AccessTokenRefused(rule="token.issuer", detail=f"expected {issuer}, found {found!r:.300}")


@rule("token.times")
def check_token_times(exp: float | None, nbf: float | None, iat: float | None, now: float) -> None:
    """RFC 9068 4, RFC 7519 4.1: it has not ended, and has begun."""
    if exp is not None and now >= exp + LEEWAY:
        raise AccessTokenRefused(rule="token.times", detail=f"ended at {exp:.0f}, now {now:.0f}")
    for name, begins in (("nbf", nbf), ("iat", iat)):
        if begins is not None and begins > now + SKEW:
            raise AccessTokenRefused(rule="token.times", detail=f"{name} {begins:.0f} is ahead of now, {now:.0f}")


@rule("token.client")
def check_token_client(client_id: str | None, azp: str | None) -> None:
    """5.3 step 3: it says whom it was issued to, in one way."""
    if not (client_id or azp):
        raise AccessTokenRefused(rule="token.client", detail="neither client_id nor azp")
    if client_id and azp and client_id != azp:
        raise AccessTokenRefused(rule="token.client", detail="client_id and azp differ")


@rule("token.subject")
def check_token_subject(subject: str, client_id: str) -> None:
    """5.3: it is for an account; a token that a client got for itself has the client as its subject (RFC 9068 5)."""
    if not subject or subject == client_id:
        raise AccessTokenRefused(rule="token.subject", detail="sub is missing, or is the client")


@rule("token.audience")
def check_token_audience(found: Collection[str], expected: Collection[str]) -> None:
    """RFC 9068 4: it is meant for this Company."""
    if not set(expected).intersection(found):
        raise AccessTokenRefused(
            rule="token.audience", detail=f"expected one of {sorted(expected)}, found {list(found)!r:.300}"
        )


@rule("token.active")
def check_token_active(active: bool) -> None:
    """RFC 7662 2.2: the issuer says that it is good."""
    if not active:
        raise AccessTokenRefused(rule="token.active", detail="the issuer says that it is not active")


def _access_token(claims: _Claims, now: float, audience: Collection[str] | None) -> AccessToken:
    check_token_times(claims.exp, claims.nbf, claims.iat, now)
    check_token_client(claims.client_id, claims.azp)
    client_id = claims.client_id or claims.azp or ""
    check_token_subject(claims.sub, client_id)
    found = (claims.aud,) if isinstance(claims.aud, str) else claims.aud
    if audience is not None:
        check_token_audience(found, audience)
    said = claims.scope or claims.scp
    scopes = said.split(" ") if isinstance(said, str) else said
    return AccessToken(
        client_id=client_id,
        subject=claims.sub,
        scopes=frozenset(scope for scope in scopes if scope),
        expires_at=claims.exp,
        audience=found,
        jkt=claims.cnf.jkt,
    )
