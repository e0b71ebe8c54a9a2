"""DPoP proofs (RFC 9449, 4.5): made, read, verified; and the nonces that a server may ask for."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Never, cast

import msgspec
from msgspec import UNSET, UnsetType

from papaver.jose import jws
from papaver.jose.claims import ClaimsError, ClaimsReader
from papaver.jose.keys import PRIVATE_MEMBERS, BadSignature, KeyRefused, PrivateKey, PublicKey
from papaver.oauth.errors import InvalidDpopProof, UseDpopNonce
from papaver.values.base64url import encode
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.values.strict_json import dumps
from papaver.web.urls import UrlError, htu

__all__ = [
    "CHECKS",
    "TYP",
    "Nonces",
    "ProofClaims",
    "ProofJwt",
    "VerifiedProof",
    "check_alg",
    "check_ath",
    "check_htm",
    "check_htu",
    "check_iat",
    "check_jkt",
    "check_jti",
    "check_jwk",
    "check_nonce",
    "check_proof_once",
    "check_proof_size",
    "check_signature",
    "check_typ",
    "make_proof",
    "read_proof",
    "verify_proof",
]

TYP: Final = "dpop+jwt"
ALGS: Final = ("ES256", "PS384")
WINDOW: Final = 60
"""How far `iat` may be from now, in seconds to either side."""
NONCE_LIFETIME: Final = 300
MAX_SIZE: Final = 8192


class ProofClaims(msgspec.Struct, frozen=True, gc=False):
    """The payload (RFC 9449 4.2). `` and 0 stand for absent claims, which a check refuses."""

    jti: str = ""
    htm: str = ""
    htu: str = ""
    iat: float = 0
    ath: str | UnsetType = UNSET
    nonce: str | UnsetType = UNSET


class ProofJwt(msgspec.Struct, frozen=True, gc=False):
    """A proof taken apart, not believed. `key` is the public key in its `jwk`."""

    claims: ProofClaims
    header: dict[str, object]
    compact: jws.CompactJws
    key: PublicKey

    def __repr__(self) -> str:
        return "ProofJwt(…)"

    def __reduce__(self) -> Never:
        raise TypeError("a DPoP proof is never pickled")


@dataclass(frozen=True, slots=True)
class VerifiedProof:
    """A proof that stands, of the key with this thumbprint. Its `jti` has to be remembered up to `until`."""

    jkt: str
    jti: str
    until: float


@dataclass(frozen=True, slots=True)
class Nonces:
    """Nonces that need no memory: a MAC over the time, by a secret that all servers of an issuer share (RFC 9449 8).

    A nonce is good for the rest of its `lifetime` (seconds) and for the next one. ValueError below 32 octets of secret.
    """

    secret: bytes = field(repr=False)
    lifetime: int = NONCE_LIFETIME

    def __post_init__(self) -> None:
        if len(self.secret) < 32:
            raise ValueError("a secret for nonces has at least 32 octets")

    def current(self, now: float) -> str:
        """The nonce to hand out."""
        return self._at(int(now // self.lifetime))

    def check(self, nonce: str | None, now: float) -> None:
        """Raises `UseDpopNonce` with the current nonce, unless this is it or the one before."""
        window = int(now // self.lifetime)
        given = (nonce or "").encode("utf-8", "surrogatepass")
        good = [hmac.compare_digest(given, self._at(index).encode()) for index in (window, window - 1)]
        if not any(good):
            raise UseDpopNonce(
                self._at(window), rule="dpop.nonce", detail="no nonce" if nonce is None else "an old or foreign nonce"
            )

    def _at(self, window: int) -> str:
        return encode(hmac.digest(self.secret, b"dpop-nonce %d" % window, "sha256")[:18])


class Expected(NamedTuple):
    """What a proof is checked against. `url` is in the form of `htu`; times in seconds."""

    method: str
    url: str
    now: float
    window: int
    ath: str | None
    jkt: str | None
    nonces: Nonces | None


Check = Callable[[ProofJwt, Expected], None]


def make_proof(
    key: PrivateKey,
    *,
    method: str,
    url: str,
    now: float,
    jti: str,
    nonce: str | None = None,
    access_token: Secret | None = None,
) -> Secret:
    """The value of the `DPoP` header for one request (RFC 9449 4.2). `jti` must be unique. Raises `UrlError`."""
    claims: dict[str, object] = {"jti": jti, "htm": method, "htu": htu(url), "iat": int(now)}
    if access_token is not None:
        claims["ath"] = encode(hashlib.sha256(access_token.reveal().encode("utf-8", "surrogatepass")).digest())
    if nonce is not None:
        claims["nonce"] = nonce
    header = {"typ": TYP, "alg": key.alg, "jwk": key.public.jwk()}
    signing_input = f"{encode(dumps(header))}.{encode(dumps(claims))}"
    return Secret(f"{signing_input}.{encode(key.sign(signing_input.encode()))}")


def read_proof(values: Sequence[str]) -> ProofJwt:
    """The proof of a request's `DPoP` fields, taken apart. Raises `InvalidDpopProof`."""
    check_proof_once(values)
    token = values[0]
    check_proof_size(token)
    try:
        compact = jws.read_compact(token.encode("ascii"))
        header = jws.read_header(compact.header_segment)
        return ProofJwt(_CLAIMS.read(compact.payload), header, compact, _key_of(header))
    except UnicodeEncodeError:
        raise InvalidDpopProof("the DPoP proof is malformed", rule="dpop.form", detail="not ASCII") from None
    except (jws.JwsError, ClaimsError) as error:
        raise InvalidDpopProof(
            f"the DPoP proof is malformed: {error.description}", rule=error.rule, detail=error.detail
        ) from None
    except KeyRefused as error:
        raise InvalidDpopProof(
            f"the DPoP proof's jwk is refused: {error.description}", rule="dpop.key", detail=error.detail
        ) from None


def verify_proof(
    jwt: ProofJwt,
    *,
    method: str,
    url: str,
    now: float,
    window: int = WINDOW,
    access_token_ath: str | None = None,
    jkt: str | None = None,
    nonces: Nonces | None = None,
) -> VerifiedProof:
    """Believe a proof of this request (RFC 9449 4.3).

    `access_token_ath`  hash of the access token that comes with it, None where none does
    `jkt`               the key that token, code or refresh token is bound to, None where it is not
    `nonces`            given where a nonce is demanded

    Raises `InvalidDpopProof` with the rule it breaks, or `UseDpopNonce`; UrlError when `url` is none.
    """
    expected = Expected(method, htu(url), now, window, access_token_ath, jkt, nonces)
    for check in CHECKS:
        check(jwt, expected)
    return VerifiedProof(jwt.key.thumbprint, jwt.claims.jti, jwt.claims.iat + window)


@rule("dpop.header-once")
def check_proof_once(values: Sequence[str]) -> None:
    """RFC 9449 4.3, step 1: a proof is there, and one."""
    if len(values) != 1:
        raise InvalidDpopProof(
            "the DPoP header is there more than once" if values else "the DPoP header is missing",
            rule="dpop.header-once",
        )


@rule("dpop.size")
def check_proof_size(token: str) -> None:
    """Bounded before anything is parsed."""
    if len(token) > MAX_SIZE:
        raise InvalidDpopProof("the DPoP proof is too long", rule="dpop.size", detail=f"{len(token)} characters")


@rule("dpop.typ")
def check_typ(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 4: a proof says that it is one."""
    if jwt.header.get("typ") != TYP:
        raise _mismatch("dpop.typ", f"the DPoP proof's typ is not {TYP}", TYP, jwt.header.get("typ"))


@rule("dpop.alg")
def check_alg(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 5: an asymmetric algorithm that the metadata lists."""
    if jwt.header.get("alg") not in ALGS:
        raise _mismatch("dpop.alg", "the DPoP proof's alg is not ES256 or PS384", ALGS, jwt.header.get("alg"))


@rule("dpop.jwk-public")
def check_jwk(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, steps 6 and 7: `jwk` is a key of the proof's algorithm, and has no private member."""
    held = PRIVATE_MEMBERS.intersection(cast("dict[str, object]", jwt.header.get("jwk")))
    if held:
        raise InvalidDpopProof(
            "the DPoP proof's jwk has private members", rule="dpop.jwk-public", detail=f"members {sorted(held)}"
        )
    if jwt.key.alg != jwt.header.get("alg"):
        raise _mismatch(
            "dpop.jwk-public", "the DPoP proof's jwk is no key for its alg", jwt.key.alg, jwt.header.get("alg")
        )


@rule("dpop.signature")
def check_signature(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 6: the key in `jwk` made the signature."""
    try:
        jwt.key.verify(jwt.compact.signature, jwt.compact.signing_input)
    except BadSignature as error:
        raise InvalidDpopProof(
            "the DPoP proof's signature does not verify", rule="dpop.signature", detail=error.detail
        ) from None


@rule("dpop.htm-is-method")
def check_htm(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 8: the method of this request, in its letter case."""
    if jwt.claims.htm != expected.method:
        raise _mismatch(
            "dpop.htm-is-method", "the DPoP proof's htm is not the request's method", expected.method, jwt.claims.htm
        )


@rule("dpop.htu-is-url")
def check_htu(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 9: the URL of this request without query and fragment, normalised alike (readings 28)."""
    if jwt.claims.htu != expected.url and _normal(jwt.claims.htu) != expected.url:
        raise _mismatch(
            "dpop.htu-is-url", "the DPoP proof's htu is not the request's URL", expected.url, jwt.claims.htu
        )


@rule("dpop.nonce")
def check_nonce(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 10: the nonce that the server handed out, where it demands one."""
    if expected.nonces is not None:
        expected.nonces.check(jwt.claims.nonce or None, expected.now)


@rule("dpop.iat-in-window")
def check_iat(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 11: made just now, by clocks that may differ a little either way."""
    now, window = expected.now, expected.window
    if not now - window <= jwt.claims.iat <= now + window:
        raise _mismatch(
            "dpop.iat-in-window",
            "the DPoP proof's iat is too far from now",
            f"{now:.0f} ± {window} s",
            jwt.claims.iat,
        )


@rule("dpop.ath")
def check_ath(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 12: with an access token, its hash."""
    ath, found = expected.ath, jwt.claims.ath
    if ath is not None and not (
        isinstance(found, str) and hmac.compare_digest(found.encode("utf-8", "surrogatepass"), ath.encode())
    ):
        raise InvalidDpopProof("the DPoP proof's ath is not the access token's hash", rule="dpop.ath")


@rule("dpop.key-is-bound")
def check_jkt(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.3, step 12, and 5: the key that the token or code is bound to, and no other."""
    found = jwt.key.thumbprint
    if expected.jkt is not None and found != expected.jkt:
        raise _mismatch("dpop.key-is-bound", "the DPoP proof is of another key", expected.jkt, found)


@rule("dpop.jti")
def check_jti(jwt: ProofJwt, expected: Expected) -> None:
    """RFC 9449 4.2: an id is there, and bounded, because it is remembered."""
    if not 1 <= len(jwt.claims.jti) <= 256:
        raise _mismatch(
            "dpop.jti", "the DPoP proof needs a jti of 1 to 256 characters", "1 to 256", len(jwt.claims.jti)
        )


CHECKS: Final[tuple[Check, ...]] = (
    check_typ,
    check_alg,
    check_jwk,
    check_signature,
    check_htm,
    check_htu,
    check_nonce,
    check_iat,
    check_ath,
    check_jkt,
    check_jti,
)
"""In the order of RFC 9449 4.3."""


def _key_of(header: dict[str, object]) -> PublicKey:
    """The key in `jwk`; private members are the business of `check_jwk`."""
    jwk = header.get("jwk")
    members = cast("dict[str, object]", jwk) if isinstance(jwk, dict) else {}
    return PublicKey.read({name: value for name, value in members.items() if name not in PRIVATE_MEMBERS})


def _normal(url: str) -> str | None:
    try:
        return htu(url)
    except UrlError:
        return None


def _mismatch(rule_id: str, description: str, expected: object, got: object) -> InvalidDpopProof:
    return InvalidDpopProof(description, rule=rule_id, detail=f"expected {repr(expected)[:200]}, got {repr(got)[:200]}")


def _quotes(claims: ProofClaims) -> int:
    """The quotation marks of a payload with the four required claims, three of them strings, and the optional two."""
    return 14 + 4 * ((claims.ath is not UNSET) + (claims.nonce is not UNSET))


_CLAIMS: Final = ClaimsReader(ProofClaims, quotes=_quotes)
