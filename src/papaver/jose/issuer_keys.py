"""The key set of an authorization server that is not ours: what existing servers sign access tokens with (RFC 9068 4).

Personal Agents sign with two algorithms and no other (4.1); an issuer has whatever its vendor chose, most often RS256.
A key verifies the algorithms of its type, or only the one that its `alg` names; the token's header picks among these.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, cast

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256, SHA384, SHA512, HashAlgorithm

from papaver.jose.jws import CompactJws, JwsError, read_compact, read_header
from papaver.jose.keys import BadSignature, KeyRefused, KeySetError, read_entries, read_number
from papaver.values.base64url import Base64Error, decode
from papaver.values.rules import rule

__all__ = ["ALGS", "IssuerKey", "IssuerKeySet", "check_issuer_alg", "verify_issuer_jws"]

_RSA_BITS: Final = range(2048, 8193)
_EXPONENTS: Final = range(3, 2**32, 2)
_CURVES: Final[Mapping[str, tuple[ec.EllipticCurve, int, str]]] = MappingProxyType(
    {
        "P-256": (ec.SECP256R1(), 32, "ES256"),
        "P-384": (ec.SECP384R1(), 48, "ES384"),
        "P-521": (ec.SECP521R1(), 66, "ES512"),
    }
)
_HASHES: Final[Mapping[str, HashAlgorithm]] = MappingProxyType({"256": SHA256(), "384": SHA384(), "512": SHA512()})
_RSA_ALGS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
ALGS: Final = frozenset({*_RSA_ALGS, "ES256", "ES384", "ES512", "EdDSA", "Ed25519"})
"""The algorithms of RFC 7518 3 and RFC 8037 3.1 that a public key verifies; `none` and HMACs are not among them."""

Verify = Callable[[bytes, bytes], None]
"""(signature, message) → None; raises BadSignature."""


@dataclass(frozen=True, slots=True)
class IssuerKey:
    """One key of an issuer. `verify` has an entry for each algorithm that the key may be used with."""

    kid: str | None
    verify: Mapping[str, Verify] = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True, eq=False)
class IssuerKeySet:
    """The usable keys of an issuer's `jwks_uri` document, in its order."""

    keys: tuple[IssuerKey, ...]

    @classmethod
    def read(cls, document: object) -> IssuerKeySet:
        """A decoded key set (RFC 7517 5). Keys of other types and uses are left out. Raises KeySetError."""
        found: list[IssuerKey] = []
        for entry in read_entries(document):
            try:
                found.append(_key(entry))
            except KeyRefused:
                continue
        if not found:
            raise KeySetError("the key set has no key that is usable here", rule="jwks.usable")
        return cls(tuple(found))

    def find(self, kid: object, alg: str) -> Verify | None:
        """What verifies `alg` under this name; without a name, the only key that can. None when there is none."""
        fitting = [key.verify[alg] for key in self.keys if alg in key.verify and (kid is None or key.kid == kid)]
        return fitting[0] if fitting and (kid is not None or len(fitting) == 1) else None


@rule("issuer.alg")
def check_issuer_alg(alg: object, algs: Collection[str]) -> None:
    """RFC 8725 3.1: the algorithm is one of a public key, and one of those that are expected."""
    if not isinstance(alg, str) or alg not in algs or alg not in ALGS:
        raise JwsError("the JWS has another alg", rule="issuer.alg", detail=f"expected {sorted(algs)}, got {alg!r:.80}")


def verify_issuer_jws(
    token: str, keys: IssuerKeySet, *, algs: Collection[str] = ALGS
) -> tuple[CompactJws, Mapping[str, object]]:
    """The JWS and its header, once a key of the issuer verified it; `typ` and the claims are the caller's to judge.

    Raises JwsError; its rule is `jws.kid` when no key of that name is known, so that the caller can ask for newer ones.
    """
    try:
        jws = read_compact(token.encode("ascii"))
    except UnicodeEncodeError:
        raise JwsError(rule="jws.compact-form", detail="not ASCII") from None
    header = read_header(jws.header_segment)
    alg = header.get("alg")
    check_issuer_alg(alg, algs)
    verify = keys.find(header.get("kid"), str(alg))
    if verify is None:
        raise JwsError(
            "no key of this kid and alg is published",
            rule="jws.kid",
            detail=f"kid {header.get('kid')!r:.200}, alg {alg!r}",
        )
    try:
        verify(jws.signature, jws.signing_input)
    except BadSignature as error:
        raise JwsError("the signature does not verify", rule="jws.signature", detail=error.detail) from None
    return jws, header


def _key(members: Mapping[str, object]) -> IssuerKey:
    """Raises KeyRefused for a key that verifies nothing here. A private member is ignored: only their owner suffers."""
    if members.get("use", "sig") != "sig" or "verify" not in _operations(members):
        raise KeyRefused("the key is for something else", rule="jwk.usable")
    try:
        verify = _verifiers(members)
    except (ValueError, UnsupportedAlgorithm, Base64Error):
        raise KeyRefused("the numbers are no key", rule="jwk.usable") from None
    only = members.get("alg")
    if only is not None:
        verify = {alg: one for alg, one in verify.items() if alg == only}
    if not verify:
        raise KeyRefused("the key is of another algorithm", rule="jwk.usable", detail=f"alg {only!r:.80}")
    kid = members.get("kid")
    return IssuerKey(kid if isinstance(kid, str) else None, MappingProxyType(verify))


def _operations(members: Mapping[str, object]) -> Collection[object]:
    operations = members.get("key_ops", ["verify"])
    return cast("list[object]", operations) if isinstance(operations, list) else ()


def _verifiers(members: Mapping[str, object]) -> dict[str, Verify]:
    kty, crv = members.get("kty"), members.get("crv")
    if kty == "RSA":
        n, e = read_number(members, "n"), read_number(members, "e")
        if n.bit_length() not in _RSA_BITS or e not in _EXPONENTS:
            raise KeyRefused("the RSA key has a size or exponent that is not used here", rule="jwk.usable")
        key = rsa.RSAPublicNumbers(e, n).public_key()
        return {alg: _rsa(key, alg) for alg in _RSA_ALGS}
    if kty == "EC" and isinstance(crv, str) and crv in _CURVES:
        curve, size, alg = _CURVES[crv]
        x, y = read_number(members, "x", size), read_number(members, "y", size)
        return {alg: _ecdsa(ec.EllipticCurvePublicNumbers(x, y, curve).public_key(), size, alg)}
    if kty == "OKP" and crv == "Ed25519":
        x = members.get("x")
        verify = _eddsa(ed25519.Ed25519PublicKey.from_public_bytes(decode(x if isinstance(x, str) else "")))
        return {"EdDSA": verify, "Ed25519": verify}
    raise KeyRefused("the key is of another type", rule="jwk.usable", detail=f"kty {kty!r:.80}, crv {crv!r:.80}")


def _rsa(key: rsa.RSAPublicKey, alg: str) -> Verify:
    digest = _HASHES[alg[2:]]
    pss = padding.PSS(mgf=padding.MGF1(digest), salt_length=digest.digest_size)
    scheme = pss if alg.startswith("PS") else padding.PKCS1v15()
    return _checked(lambda signature, message: key.verify(signature, message, scheme, digest))


def _ecdsa(key: ec.EllipticCurvePublicKey, size: int, alg: str) -> Verify:
    scheme = ec.ECDSA(_HASHES[alg[2:]])

    def verify(signature: bytes, message: bytes) -> None:
        if len(signature) != 2 * size:
            raise BadSignature(detail=f"an {alg} signature has {2 * size} octets, got {len(signature)}")
        r, s = (int.from_bytes(half, "big") for half in (signature[:size], signature[size:]))
        key.verify(encode_dss_signature(r, s), message, scheme)

    return _checked(verify)


def _eddsa(key: ed25519.Ed25519PublicKey) -> Verify:
    return _checked(key.verify)


def _checked(verify: Verify) -> Verify:
    def checked(signature: bytes, message: bytes) -> None:
        try:
            verify(signature, message)
        except InvalidSignature:
            raise BadSignature from None

    return checked
