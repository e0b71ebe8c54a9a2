"""Client assertions (4.1, RFC 7523 3): how a Personal Agent authenticates at the issuer. Made, read, verified."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, Never

import msgspec

from papaver.jose import jws
from papaver.jose.claims import ClaimsError, ClaimsReader
from papaver.jose.keys import BadSignature, KeySet, PrivateKey, PublicKey
from papaver.oauth.errors import InvalidClient
from papaver.oauth.forms import Form
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.values.strict_json import dumps

__all__ = [
    "ASSERTION_TYPE",
    "CHECKS",
    "AssertionClaims",
    "AssertionJwt",
    "VerifiedAssertion",
    "check_alg",
    "check_assertion_given",
    "check_aud",
    "check_client",
    "check_client_parameter",
    "check_jti",
    "check_lifetime",
    "check_not_expired",
    "check_nothing_else",
    "check_signature",
    "check_size",
    "check_times",
    "check_typ",
    "make_assertion",
    "read_assertion",
    "verify_assertion",
]

ASSERTION_TYPE: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
LIFETIME: Final = 60
"""How long ours are valid, in seconds."""
ACCEPTED: Final = 300
"""The longest lifetime that we accept, in seconds."""
SKEW: Final = 30
"""How far two clocks may differ, in seconds."""
MAX_SIZE: Final = 8192

_TYPS: Final = (None, "JWT", "client-authentication+jwt")
_ALGS: Final = ("ES256", "PS384")


class AssertionClaims(msgspec.Struct, frozen=True, gc=False):
    """The payload. `` and 0 stand for absent claims, which a check refuses. A list is read to be refused as `aud`."""

    iss: str = ""
    sub: str = ""
    aud: str | list[str] = ""
    exp: float = 0
    iat: float = 0
    jti: str = ""
    nbf: float | None = None


class AssertionJwt(msgspec.Struct, frozen=True, gc=False):
    """A client assertion taken apart, not believed. It hides itself, because it can be replayed."""

    claims: AssertionClaims
    header: dict[str, object]
    compact: jws.CompactJws

    @property
    def client_id(self) -> str:
        """Who it says it is: good for finding the key set to check it with, and for nothing else."""
        return self.claims.sub

    @property
    def kid(self) -> str | None:
        """The key that it says has signed it."""
        kid = self.header.get("kid")
        return kid if isinstance(kid, str) else None

    def __repr__(self) -> str:
        return "AssertionJwt(…)"

    def __reduce__(self) -> Never:
        raise TypeError("a client assertion is never pickled")


@dataclass(frozen=True, slots=True)
class VerifiedAssertion:
    """An assertion that stands. `jti` has to be remembered up to `until` (Unix seconds), to refuse it a second time."""

    client_id: str
    jti: str
    until: float


class Expected(NamedTuple):
    """What an assertion is checked against; times in seconds."""

    keys: KeySet
    client_id: str
    issuer: str
    now: float
    accepted: int
    skew: int


Check = Callable[[AssertionJwt, Expected], None]


def make_assertion(
    key: PrivateKey, *, client_id: str, issuer: str, now: float, jti: str, lifetime: int = LIFETIME
) -> Secret:
    """A client assertion for `issuer` alone, signed by a key of our `jwks_uri` (4.1).

    `jti` must be unique and unguessable. ValueError for a lifetime that no Company has to accept. Its `typ` is `JWT`,
    which servers understand that know no other.
    """
    if not 0 < lifetime <= ACCEPTED:
        raise ValueError(f"a client assertion lasts at most {ACCEPTED} s, got {lifetime}")
    iat = int(now)
    claims = {"iss": client_id, "sub": client_id, "aud": issuer, "jti": jti, "iat": iat, "exp": iat + lifetime}
    return Secret(jws.sign(dumps(claims), key, typ="JWT", alg=key.alg, kid=key.kid))


def read_assertion(form: Form) -> AssertionJwt:
    """The client assertion of a request to the issuer, taken apart. Raises `InvalidClient`, `InvalidOAuthRequest`."""
    token = form.one("client_assertion") or ""
    check_nothing_else(form)
    check_assertion_given(form.one("client_assertion_type"), token)
    check_size(token)
    try:
        compact = jws.read_compact(token.encode("ascii"))
        jwt = AssertionJwt(_CLAIMS.read(compact.payload), jws.read_header(compact.header_segment), compact)
    except UnicodeEncodeError:
        raise InvalidClient("the client assertion is malformed", rule="assertion.form", detail="not ASCII") from None
    except (jws.JwsError, ClaimsError) as error:
        raise InvalidClient(
            f"the client assertion is malformed: {error.description}", rule=error.rule, detail=error.detail
        ) from None
    check_client_parameter(form.one("client_id"), jwt)
    return jwt


def verify_assertion(
    jwt: AssertionJwt,
    keys: KeySet,
    *,
    client_id: str,
    issuer: str,
    now: float,
    accepted: int = ACCEPTED,
    skew: int = SKEW,
) -> VerifiedAssertion:
    """Believe an assertion: `keys` is the key set of `client_id`. Raises `InvalidClient` with the rule it breaks."""
    expected = Expected(keys, client_id, issuer, now, accepted, skew)
    for check in CHECKS:
        check(jwt, expected)
    return VerifiedAssertion(client_id, jwt.claims.jti, jwt.claims.exp + skew)


@rule("assertion.only-method")
def check_nothing_else(form: Form) -> None:
    """RFC 6749 2.3: one way to authenticate in one request; and a shared secret is none here (4.1)."""
    if "client_secret" in form:
        raise InvalidClient("authenticate with private_key_jwt and send no client_secret", rule="assertion.only-method")


@rule("assertion.given")
def check_assertion_given(assertion_type: str | None, token: str) -> None:
    """4.1, RFC 7521 4.2: every request to the issuer carries a client assertion and names its type."""
    if not token or assertion_type != ASSERTION_TYPE:
        raise InvalidClient(
            f"client_assertion is needed, with client_assertion_type {ASSERTION_TYPE}",
            rule="assertion.given",
            detail=f"type {assertion_type!r:.120}, assertion {'given' if token else 'missing'}",
        )


@rule("assertion.size")
def check_size(token: str) -> None:
    """Bounded before anything is parsed."""
    if len(token) > MAX_SIZE:
        raise InvalidClient("the client assertion is too long", rule="assertion.size", detail=f"{len(token)} long")


@rule("assertion.client-id-parameter")
def check_client_parameter(client_id: str | None, jwt: AssertionJwt) -> None:
    """RFC 7521 4.2: `client_id` may be left out beside an assertion; if given, it names the assertion's subject."""
    if client_id is not None and client_id != jwt.claims.sub:
        raise _mismatch(
            "assertion.client-id-parameter", "client_id is not the assertion's sub", client_id, jwt.client_id
        )


@rule("assertion.alg")
def check_alg(jwt: AssertionJwt, expected: Expected) -> None:
    """4.1: ES256 or PS384."""
    alg = jwt.header.get("alg")
    if alg not in _ALGS:
        raise _mismatch("assertion.alg", "the client assertion's alg is not ES256 or PS384", _ALGS, alg)


@rule("assertion.signed-by-jwks-key")
def check_signature(jwt: AssertionJwt, expected: Expected) -> None:
    """4.1: a key of the client's `jwks_uri` made the signature, by that key's own algorithm."""
    key = _key_of(jwt, expected.keys)
    if key is None:
        raise InvalidClient(
            "the client assertion's kid and alg name no usable key in jwks_uri",
            rule="assertion.signed-by-jwks-key",
            detail=f"kid {jwt.header.get('kid')!r:.200}, has {sorted(expected.keys.keys)!r:.200}",
        )
    try:
        key.verify(jwt.compact.signature, jwt.compact.signing_input)
    except BadSignature as error:
        raise InvalidClient(
            "the client assertion's signature does not verify",
            rule="assertion.signed-by-jwks-key",
            detail=f"kid {key.kid!r:.200} {error.detail}",
        ) from None


@rule("assertion.typ")
def check_typ(jwt: AssertionJwt, expected: Expected) -> None:
    """RFC 8725 3.11: no `typ`, a general one, or the assertion's own; a delegation or a proof is no assertion."""
    typ = jwt.header.get("typ")
    if typ not in _TYPS:
        raise _mismatch("assertion.typ", "the client assertion is a JWT of another typ", _TYPS, typ)


@rule("assertion.iss-sub-are-client")
def check_client(jwt: AssertionJwt, expected: Expected) -> None:
    """RFC 7523 3: `iss` and `sub` are both the client."""
    if not jwt.claims.iss == jwt.claims.sub == expected.client_id:
        raise _mismatch(
            "assertion.iss-sub-are-client",
            "the client assertion's iss and sub have to be the client_id, both of them",
            expected.client_id,
            (jwt.claims.iss, jwt.claims.sub),
        )


@rule("assertion.aud-is-issuer")
def check_aud(jwt: AssertionJwt, expected: Expected) -> None:
    """4.1: `aud` is this issuer as one string, character for character. An endpoint's URL or a list is another aud."""
    if jwt.claims.aud != expected.issuer:
        raise _mismatch(
            "assertion.aud-is-issuer",
            "the client assertion's aud has to be the issuer, as one string; no endpoint and no list",
            expected.issuer,
            jwt.claims.aud,
        )


@rule("assertion.times")
def check_times(jwt: AssertionJwt, expected: Expected) -> None:
    """4.1, RFC 7523 3: `iat` and `exp` are there and in order, and neither `iat` nor `nbf` is ahead of us."""
    claims, latest = jwt.claims, expected.now + expected.skew
    if not 0 < claims.iat < claims.exp or claims.iat > latest or (claims.nbf is not None and claims.nbf > latest):
        raise _mismatch(
            "assertion.times",
            "the client assertion needs an iat that is not in the future, and a later exp",
            f"0 < iat < exp, iat and nbf at most {latest:.0f}",
            (claims.iat, claims.exp, claims.nbf),
        )


@rule("assertion.not-expired")
def check_not_expired(jwt: AssertionJwt, expected: Expected) -> None:
    """RFC 7523 3: not after `exp`, but for two clocks that differ."""
    if expected.now >= jwt.claims.exp + expected.skew:
        raise _mismatch(
            "assertion.not-expired",
            "the client assertion has expired",
            f"exp after {expected.now - expected.skew:.0f}",
            jwt.claims.exp,
        )


@rule("assertion.short-lived")
def check_lifetime(jwt: AssertionJwt, expected: Expected) -> None:
    """4.1: short-lived, whichever clock made it."""
    claims, accepted = jwt.claims, expected.accepted
    if claims.exp - claims.iat > accepted or claims.exp > expected.now + accepted + expected.skew:
        raise _mismatch(
            "assertion.short-lived",
            f"the client assertion may last at most {accepted} seconds",
            f"exp at most {accepted} s after iat and now",
            (claims.iat, claims.exp),
        )


@rule("assertion.jti")
def check_jti(jwt: AssertionJwt, expected: Expected) -> None:
    """4.1: an id is there, and bounded, because it is remembered."""
    if not 1 <= len(jwt.claims.jti) <= 256:
        raise _mismatch(
            "assertion.jti", "the client assertion needs a jti of 1 to 256 characters", "1 to 256", len(jwt.claims.jti)
        )


CHECKS: Final[tuple[Check, ...]] = (
    check_alg,
    check_signature,
    check_typ,
    check_client,
    check_aud,
    check_times,
    check_not_expired,
    check_lifetime,
    check_jti,
)
"""In the order in which they are made: nothing is said about claims that nobody proved."""


def _key_of(jwt: AssertionJwt, keys: KeySet) -> PublicKey | None:
    """The key that `kid` names; without a `kid`, which RFC 7515 allows, the only key of the algorithm."""
    alg, kid = jwt.header.get("alg"), jwt.header.get("kid")
    if kid is None:
        fitting = [key for key in keys.keys.values() if key.alg == alg]
        return fitting[0] if len(fitting) == 1 else None
    key = keys.find(kid) if isinstance(kid, str) else None
    return key if key is not None and key.alg == alg else None


def _mismatch(rule_id: str, description: str, expected: object, got: object) -> InvalidClient:
    return InvalidClient(description, rule=rule_id, detail=f"expected {repr(expected)[:200]}, got {repr(got)[:200]}")


def _quotes(claims: AssertionClaims) -> int:
    """The quotation marks of a payload with the six required claims, four of them strings, and perhaps `nbf`."""
    return 20 if claims.nbf is None else 22


_CLAIMS: Final = ClaimsReader(AssertionClaims, quotes=_quotes)
