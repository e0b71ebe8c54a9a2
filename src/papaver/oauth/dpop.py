"""DPoP (RFC 9449): proofs made by a client and verified by a server, and the nonces that a server may ask for.

    header values ─ read_proof ─► ProofJwt, parsed ─ verify_proof ─► VerifiedProof; its `jti` is the caller's to spend

The key in a proof's header is only ever compared: with the thumbprint that a token is bound to, or it becomes that.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
from msgspec import UNSET, UnsetType

from papaver.jose.claims import ClaimsError, ClaimsReader
from papaver.jose.jws import CompactJws, JwsError, read_compact, read_header
from papaver.jose.keys import BadSignature, KeyRefused, PrivateKey, PublicKey
from papaver.oauth.errors import InvalidDpopProof, UseDpopNonce
from papaver.values.base64url import encode
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.values.strict_json import dumps
from papaver.web.urls import UrlError, htu

__all__ = [
    "ALGS",
    "HEADER",
    "NONCE_HEADER",
    "TYP",
    "Nonces",
    "ProofJwt",
    "VerifiedProof",
    "check_proof_alg",
    "check_proof_ath",
    "check_proof_claims",
    "check_proof_htm",
    "check_proof_htu",
    "check_proof_iat",
    "check_proof_key",
    "check_proof_nonce",
    "check_proof_once",
    "check_proof_signature",
    "check_proof_typ",
    "make_proof",
    "read_proof",
    "verify_proof",
]

HEADER: Final = "dpop"
NONCE_HEADER: Final = "dpop-nonce"
TYP: Final = "dpop+jwt"
ALGS: Final = ("ES256", "PS384")
"""What a proof may be signed with here; published as `dpop_signing_alg_values_supported` (RFC 9449 5.1)."""

WINDOW: Final = 60
"""Seconds that `iat` may be from now, to either side (limits.md)."""
LIFETIME: Final = 300
"""Seconds that a nonce is good for, at least (limits.md)."""
MAX_BYTES: Final = 8192
MAX_ID: Final = 256


class ProofClaims(msgspec.Struct, frozen=True, gc=False):
    """A proof's payload (RFC 9449 4.2). An empty text and 0 stand for absent required claims."""

    jti: str = ""
    htm: str = ""
    htu: str = ""
    iat: int = 0
    ath: str | UnsetType = UNSET
    nonce: str | UnsetType = UNSET


CLAIMS: Final = ClaimsReader(ProofClaims)


@dataclass(frozen=True, slots=True)
class ProofJwt:
    """A DPoP proof as received: parsed, not believed. It hides itself."""

    header: dict[str, object] = field(repr=False)
    claims: ProofClaims = field(repr=False)
    compact: CompactJws = field(repr=False)


@dataclass(frozen=True, slots=True)
class VerifiedProof:
    """A proof whose key, signature and claims hold. `jti` has to be refused a second time until `until`."""

    jkt: str
    jti: str
    until: float


@dataclass(frozen=True, slots=True)
class Nonces:
    """Nonces without a store (RFC 9449 8): a MAC over the time slot, so every replica knows the others'.

    `secret`  of the server; `lifetime` in seconds: a nonce is good for one to two of them
    """

    secret: bytes = field(repr=False)
    lifetime: int = LIFETIME

    def current(self, now: float) -> str:
        """The nonce to give out."""
        return self._at(int(now) // self.lifetime)

    def check(self, nonce: str | None, now: float) -> None:
        """Raises UseDpopNonce, with the current one, for a proof that has none, an old one or a forged one."""
        slot = int(now) // self.lifetime
        check_proof_nonce(nonce, (self._at(slot), self._at(slot - 1)))

    def _at(self, slot: int) -> str:
        return encode(hmac.digest(self.secret, b"dpop-nonce:%d" % slot, hashlib.sha256)[:18])


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
    """A proof for one request (RFC 9449 4.2). `access_token` is the one that the request carries. Raises UrlError."""
    claims: dict[str, object] = {"jti": jti, "htm": method, "htu": htu(url), "iat": int(now)}
    if access_token is not None:
        claims["ath"] = encode(hashlib.sha256(access_token.reveal().encode("utf-8", "surrogatepass")).digest())
    if nonce is not None:
        claims["nonce"] = nonce
    header = encode(dumps({"typ": TYP, "alg": key.alg, "jwk": key.public.jwk()})).encode()
    signing_input = header + b"." + encode(dumps(claims)).encode()
    return Secret(f"{signing_input.decode()}.{encode(key.sign(signing_input))}")


def read_proof(values: Sequence[str]) -> ProofJwt:
    """The proof of a request, from its `DPoP` fields. Raises InvalidDpopProof."""
    check_proof_once(values)
    try:
        compact = read_compact(values[0].encode("ascii"))
        return ProofJwt(read_header(compact.header_segment), CLAIMS.read(compact.payload), compact)
    except UnicodeEncodeError:
        raise InvalidDpopProof("the DPoP proof is malformed", rule="jws.compact-form", detail="not ASCII") from None
    except (JwsError, ClaimsError) as error:
        raise InvalidDpopProof(
            f"the DPoP proof is malformed: {error.description}", rule=error.rule, detail=error.detail
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
    """Believe a proof, in the order of RFC 9449 4.3.

    `url`               the request's public URL, never built from `Host`
    `access_token_ath`  the hash of the request's access token, at a resource; None at the token endpoint
    `jkt`               the thumbprint that the token is bound to; None where the proof's key becomes that
    `nonces`            when proofs have to have one

    Raises InvalidDpopProof, UseDpopNonce; UrlError for a `url` that is none.
    """
    claims = jwt.claims
    check_proof_claims(claims)
    check_proof_typ(jwt.header)
    check_proof_alg(jwt.header)
    key = _key(jwt)
    check_proof_signature(jwt, key)
    check_proof_htm(claims, method)
    check_proof_htu(claims, htu(url))
    if nonces is not None:
        nonces.check(None if isinstance(claims.nonce, UnsetType) else claims.nonce, now)
    check_proof_iat(claims, now, window)
    check_proof_ath(claims, access_token_ath)
    check_proof_key(key.thumbprint, jkt)
    return VerifiedProof(key.thumbprint, claims.jti, claims.iat + window + 1)


@rule("dpop.header-once")
def check_proof_once(values: Sequence[str]) -> None:
    """RFC 9449 4.3, 1: one `DPoP` field, of a length that a proof can have."""
    if len(values) != 1:
        reason = "the request has no DPoP proof" if not values else "the request has more than one DPoP proof"
        raise InvalidDpopProof(reason, rule="dpop.header-once", detail=f"{len(values)} fields")
    if len(values[0]) > MAX_BYTES:
        raise InvalidDpopProof("the DPoP proof is too long", rule="dpop.header-once", detail=f"{len(values[0])} octets")


@rule("dpop.claims")
def check_proof_claims(claims: ProofClaims) -> None:
    """RFC 9449 4.3, 3: `jti`, `htm`, `htu` and `iat` are there; `jti` has a length that can be remembered."""
    missing = [name for name in ("jti", "htm", "htu", "iat") if not getattr(claims, name)]
    if missing or len(claims.jti) > MAX_ID:
        raise InvalidDpopProof(
            f"the DPoP proof lacks {', '.join(missing)}" if missing else "the DPoP proof's jti is too long",
            rule="dpop.claims",
        )


@rule("dpop.typ")
def check_proof_typ(header: dict[str, object]) -> None:
    """RFC 9449 4.3, 4: `typ` says that it is a proof, so that no other JWT passes for one."""
    if header.get("typ") != TYP:
        raise InvalidDpopProof(f"typ has to be {TYP}", rule="dpop.typ", detail=f"found {header.get('typ')!r:.80}")


@rule("dpop.alg")
def check_proof_alg(header: dict[str, object]) -> None:
    """RFC 9449 4.3, 5: an asymmetric algorithm that is supported here."""
    alg = header.get("alg")
    if not isinstance(alg, str) or alg not in ALGS:
        raise InvalidDpopProof(f"alg has to be one of {', '.join(ALGS)}", rule="dpop.alg", detail=f"found {alg!r:.80}")


@rule("dpop.signature")
def check_proof_signature(jwt: ProofJwt, key: PublicKey) -> None:
    """RFC 9449 4.3, 6: the key of the header signed it, with the algorithm that the header says."""
    if key.alg != jwt.header.get("alg"):
        raise InvalidDpopProof("the DPoP proof's alg is not its key's", rule="dpop.signature")
    try:
        key.verify(jwt.compact.signature, jwt.compact.signing_input)
    except BadSignature as error:
        raise InvalidDpopProof(
            "the DPoP proof's signature does not verify", rule="dpop.signature", detail=error.detail
        ) from None


@rule("dpop.htm")
def check_proof_htm(claims: ProofClaims, method: str) -> None:
    """RFC 9449 4.3, 8: the proof is for this method, in its letter case."""
    if claims.htm != method:
        raise InvalidDpopProof(
            "the DPoP proof's htm is not the request's method",
            rule="dpop.htm",
            detail=f"expected {method}, found {claims.htm!r:.80}",
        )


@rule("dpop.htu")
def check_proof_htu(claims: ProofClaims, url: str) -> None:
    """RFC 9449 4.3, 9: the proof is for this URL; `url` is in the form of `htu` (readings 28)."""
    try:
        found = htu(claims.htu)
    except UrlError:
        found = ""
    if found != url:
        raise InvalidDpopProof(
            "the DPoP proof's htu is not the request's URL",
            rule="dpop.htu",
            detail=f"expected {url}, found {claims.htu!r:.300}",
        )


@rule("dpop.nonce")
def check_proof_nonce(nonce: str | None, good: tuple[str, str]) -> None:
    """RFC 9449 4.3, 10; 8: the proof has a nonce that this server gave out lately. `good`: the current one first."""
    if nonce is None or not any(hmac.compare_digest(nonce.encode("utf-8", "replace"), one.encode()) for one in good):
        raise UseDpopNonce(good[0], rule="dpop.nonce", detail="none" if nonce is None else "not one of the current two")


@rule("dpop.iat")
def check_proof_iat(claims: ProofClaims, now: float, window: int) -> None:
    """RFC 9449 4.3, 11: made just now."""
    if abs(now - claims.iat) > window:
        raise InvalidDpopProof(
            "the DPoP proof's iat is too far from now",
            rule="dpop.iat",
            detail=f"expected within {window} s of {now:.0f}, found {claims.iat}",
        )


@rule("dpop.ath")
def check_proof_ath(claims: ProofClaims, ath: str | None) -> None:
    """RFC 9449 4.3, 12: at a resource, `ath` is the hash of the request's access token."""
    if ath is not None and claims.ath != ath:
        raise InvalidDpopProof(
            "the DPoP proof's ath is not the access token's hash",
            rule="dpop.ath",
            detail="it has none" if isinstance(claims.ath, UnsetType) else "it is another token's",
        )


@rule("dpop.key")
def check_proof_key(thumbprint: str, jkt: str | None) -> None:
    """RFC 9449 4.3, 12; 6: the proof's key is the one that the token is bound to."""
    if jkt is not None and thumbprint != jkt:
        raise InvalidDpopProof(
            "the DPoP proof is by another key than the token is bound to",
            rule="dpop.key",
            detail=f"expected {jkt}, found {thumbprint}",
        )


def _key(jwt: ProofJwt) -> PublicKey:
    """RFC 9449 4.3, 7: a public key, and nothing private beside it."""
    try:
        return PublicKey.read(jwt.header.get("jwk"))
    except KeyRefused as error:
        raise InvalidDpopProof(
            f"the DPoP proof's jwk: {error.description}", rule=error.rule, detail=error.detail
        ) from None
