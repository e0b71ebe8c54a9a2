"""Keys: ES256 on P-256 and PS384 on RSA, key sets by `kid`, RFC 7638 thumbprints. Nothing else is usable here."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, Never, cast

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.hashes import SHA256, SHA384

from papaver.values.base64url import Base64Error, decode, encode
from papaver.values.errors import PapaverError

__all__ = [
    "Alg",
    "BadSignature",
    "KeyRefused",
    "KeySet",
    "KeySetError",
    "PrivateKey",
    "PublicKey",
    "read_entries",
    "read_number",
    "thumbprint",
    "write_key_set",
]

Alg = Literal["ES256", "PS384"]
"""The two signature algorithms of 4.1 and 5.2."""

PRIVATE_MEMBERS: Final = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})
"""JWK members that hold a secret (RFC 7518 6)."""

MAX_KEYS: Final = 100
"""A key set with more entries is refused: every entry costs a point check."""

_ES256: Final = ec.ECDSA(SHA256())
_PS384: Final = padding.PSS(mgf=padding.MGF1(SHA384()), salt_length=48)
_SHA384: Final = SHA384()
_COORDINATE: Final = 32
_RSA_BITS: Final = range(2048, 8193)
_EXPONENTS: Final = range(3, 2**32, 2)
_THUMBPRINT_MEMBERS: Final[Mapping[str, tuple[str, ...]]] = {"EC": ("crv", "kty", "x", "y"), "RSA": ("e", "kty", "n")}


class BadSignature(PapaverError):
    code = "bad_signature"
    description = "the signature does not verify"


class KeyRefused(PapaverError):
    """One JWK that cannot be used here."""

    code = "invalid_key"
    description = "the key cannot be used"


class KeySetError(PapaverError):
    """A document that is no key set, or one that must not be trusted."""

    code = "invalid_key_set"
    description = "the key set cannot be used"


@dataclass(frozen=True, slots=True)
class PublicKey:
    """A public key that verifies signatures of exactly one algorithm.

    `kid`         its name in the key set it came from, or its thumbprint
    `thumbprint`  RFC 7638, SHA-256, base64url
    `members`     the JWK members that make the key, and no other
    `verify`      (signature, message) → None; raises BadSignature. ES256 signatures are the 64 octets of RFC 7518 3.4
    """

    kid: str
    alg: Alg
    thumbprint: str
    members: Mapping[str, str] = field(compare=False, repr=False)
    verify: Callable[[bytes, bytes], None] = field(compare=False, repr=False)

    @classmethod
    def read(cls, jwk: object) -> PublicKey:
        """A public JWK (RFC 7517). Its `kid` may be missing. Raises KeyRefused, also for private members."""
        members = _members(jwk)
        if held := PRIVATE_MEMBERS.intersection(members):
            raise KeyRefused("the key has private members", rule="jwk.public", detail=f"members {sorted(held)}")
        return _public(members)

    def jwk(self) -> dict[str, str]:
        """The key as a JWK with its required members only, as `cnf.jwk` carries it."""
        return dict(self.members)

    def entry(self) -> dict[str, str]:
        """The key as an entry of a published key set."""
        return {**self.members, "kid": self.kid, "use": "sig", "alg": self.alg}


class PrivateKey:
    """A key that signs. It never shows itself: not in repr, not in a pickle; only `private_jwk` gives it out.

    `public`  the PublicKey that belongs to it
    `sign`    message → signature, in the form that `PublicKey.verify` takes
    """

    __slots__ = ("_key", "public", "sign")

    def __init__(self, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey, kid: str | None = None) -> None:
        self._key = key
        self.public = _public_of(key, kid)
        self.sign: Callable[[bytes], bytes] = _signer(key)

    @classmethod
    def generate(cls, alg: Alg = "ES256", *, kid: str | None = None) -> PrivateKey:
        """A new key from the operating system's randomness; RSA with 3072 bits. `kid` defaults to the thumbprint."""
        if alg == "ES256":
            return cls(ec.generate_private_key(ec.SECP256R1()), kid)
        return cls(rsa.generate_private_key(public_exponent=65537, key_size=3072), kid)

    @classmethod
    def read(cls, jwk: object) -> PrivateKey:
        """A private JWK, as `private_jwk` writes it. Raises KeyRefused; the key's values are in no error."""
        members = _members(jwk)
        try:
            public = _public_key(members)
            if isinstance(public, ec.EllipticCurvePublicKey):
                numbers = ec.EllipticCurvePrivateNumbers(
                    read_number(members, "d", _COORDINATE), public.public_numbers()
                )
                key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey = numbers.private_key()
            else:
                p, q, d, dp, dq, qi = (read_number(members, name) for name in ("p", "q", "d", "dp", "dq", "qi"))
                key = rsa.RSAPrivateNumbers(p, q, d, dp, dq, qi, public.public_numbers()).private_key()
        except ValueError:
            raise KeyRefused("the private key is not consistent", rule="jwk.private") from None
        return cls(key, _text(members, "kid"))

    @property
    def kid(self) -> str:
        return self.public.kid

    @property
    def alg(self) -> Alg:
        return self.public.alg

    def private_jwk(self) -> dict[str, str]:
        """The secret itself, for a key file or vault and nothing else."""
        secret = self._key.private_numbers()
        if isinstance(secret, ec.EllipticCurvePrivateNumbers):
            private = {"d": encode(secret.private_value.to_bytes(_COORDINATE, "big"))}
        else:
            parts = {"d": secret.d, "p": secret.p, "q": secret.q, "dp": secret.dmp1, "dq": secret.dmq1}
            private = {name: _encode_number(value) for name, value in {**parts, "qi": secret.iqmp}.items()}
        return {**self.public.members, **private, "kid": self.kid, "alg": self.alg}

    def __repr__(self) -> str:
        return f"PrivateKey(kid={self.kid!r}, alg={self.alg!r})"

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError("a PrivateKey is never pickled")


@dataclass(frozen=True, slots=True, eq=False)
class KeySet:
    """The usable keys of a key-set document, by `kid`.

    `generation` is another object for each document read, so that what was derived from a key set can tell whether
    it still stands on the same one.
    """

    keys: Mapping[str, PublicKey]
    generation: object = field(default_factory=object, repr=False)

    @classmethod
    def read(cls, document: object) -> KeySet:
        """A decoded `jwks_uri` document (RFC 7517 5; readings 50).

        Left out as not usable: keys without `kid`, of other types, curves, uses or algorithms, with malformed
        coordinates, RSA below 2048 bits. Raises KeySetError for a document of another shape, for a `kid` that two
        usable keys share, and for a private member anywhere (4.1).
        """
        keys: dict[str, PublicKey] = {}
        for entry in read_entries(document):
            if held := PRIVATE_MEMBERS.intersection(entry):
                raise KeySetError(
                    "the key set contains a private key", rule="jwks.public-keys-only", detail=f"members {sorted(held)}"
                )
            try:
                key = _public(entry) if _text(entry, "kid") else None
            except KeyRefused:
                continue
            if key is None:
                continue
            if key.kid in keys:
                raise KeySetError(
                    "the key set has two keys of one kid", rule="jwks.kid-unique", detail=f"kid {key.kid!r}"
                )
            keys[key.kid] = key
        return cls(MappingProxyType(keys))

    def find(self, kid: str) -> PublicKey | None:
        """The key of this name, or None."""
        return self.keys.get(kid)


def write_key_set(keys: Sequence[PublicKey]) -> dict[str, list[dict[str, str]]]:
    """The key-set document that a Personal Agent publishes at `jwks_uri` (4.1)."""
    return {"keys": [key.entry() for key in keys]}


def thumbprint(jwk: Mapping[str, object]) -> str:
    """RFC 7638 with SHA-256 of an EC or RSA JWK, base64url. Raises KeyRefused when a required member is missing."""
    names = _THUMBPRINT_MEMBERS.get(_text(jwk, "kty") or "")
    if names is None:
        raise KeyRefused("the key is of another type", rule="jwk.usable", detail=f"kty {jwk.get('kty')!r:.80}")
    values = {name: _text(jwk, name) for name in names}
    if None in values.values():
        raise KeyRefused("the key lacks a member", rule="jwk.usable", detail=f"has {sorted(jwk)!r:.200}")
    return encode(hashlib.sha256(json.dumps(values, separators=(",", ":")).encode()).digest())


def read_entries(document: object) -> list[dict[str, object]]:
    """The entries of a key-set document, whatever they are (RFC 7517 5). Raises KeySetError."""
    if not isinstance(document, dict):
        raise KeySetError("the key set is not a JSON object", rule="jwks.is-key-set", detail=type(document).__name__)
    keys = cast("dict[str, object]", document).get("keys")
    if not isinstance(keys, list):
        raise KeySetError("the key set has no array `keys`", rule="jwks.is-key-set", detail=type(keys).__name__)
    entries = cast("list[object]", keys)
    if len(entries) > MAX_KEYS:
        raise KeySetError("the key set has too many keys", rule="jwks.size", detail=f"{len(entries)} of {MAX_KEYS}")
    if not all(isinstance(entry, dict) for entry in entries):
        raise KeySetError("the key set has an entry that is no object", rule="jwks.is-key-set")
    return cast("list[dict[str, object]]", entries)


def _members(jwk: object) -> dict[str, object]:
    if not isinstance(jwk, dict):
        raise KeyRefused("the key is not a JSON object", rule="jwk.usable", detail=type(jwk).__name__)
    return cast("dict[str, object]", jwk)


def _text(members: Mapping[str, object], name: str) -> str | None:
    value = members.get(name)
    return value if isinstance(value, str) else None


def read_number(members: Mapping[str, object], name: str, size: int | None = None) -> int:
    """A big-endian number; `size` octets exactly when given (RFC 7518 6.2.1.2)."""
    text = _text(members, name)
    try:
        octets = decode(text) if text else b""
    except Base64Error:
        octets = b""
    if not octets or (size is not None and len(octets) != size):
        raise KeyRefused(f"the key's `{name}` is malformed", rule="jwk.usable")
    return int.from_bytes(octets, "big")


def _encode_number(value: int) -> str:
    return encode(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _public_key(members: Mapping[str, object]) -> ec.EllipticCurvePublicKey | rsa.RSAPublicKey:
    """The key that the numbers make. ValueError or KeyRefused when they make none."""
    kty, crv = members.get("kty"), members.get("crv")
    if kty == "EC" and crv == "P-256":
        x, y = read_number(members, "x", _COORDINATE), read_number(members, "y", _COORDINATE)
        return ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
    if kty == "RSA":
        n, e = read_number(members, "n"), read_number(members, "e")
        if n.bit_length() not in _RSA_BITS or e not in _EXPONENTS:
            raise KeyRefused("the RSA key has a size or exponent that is not used here", rule="jwk.usable")
        return rsa.RSAPublicNumbers(e, n).public_key()
    raise KeyRefused("the key is of another type", rule="jwk.usable", detail=f"kty {kty!r:.80}, crv {crv!r:.80}")


def _public(members: Mapping[str, object]) -> PublicKey:
    try:
        key = _public_key(members)
    except (ValueError, UnsupportedAlgorithm):  # a point off the curve, for one
        raise KeyRefused("the numbers are no key", rule="jwk.usable") from None
    public = _public_of(key, _text(members, "kid"))
    uses = members.get("use", "sig"), members.get("alg", public.alg), members.get("key_ops", ["verify"])
    if uses[0] != "sig" or uses[1] != public.alg or not (isinstance(uses[2], list) and "verify" in uses[2]):
        raise KeyRefused("the key is for something else", rule="jwk.usable", detail=f"use, alg, key_ops: {uses!r:.200}")
    return public


def _public_of(
    key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey, kid: str | None
) -> PublicKey:
    if isinstance(key, (ec.EllipticCurvePrivateKey, rsa.RSAPrivateKey)):
        key = key.public_key()
    alg: Alg
    if isinstance(key, ec.EllipticCurvePublicKey):
        point = key.public_numbers()
        x, y = (encode(value.to_bytes(_COORDINATE, "big")) for value in (point.x, point.y))
        alg, members, verify = "ES256", {"kty": "EC", "crv": "P-256", "x": x, "y": y}, _verify_es256(key)
    else:
        numbers = key.public_numbers()
        members = {"kty": "RSA", "n": _encode_number(numbers.n), "e": _encode_number(numbers.e)}
        alg, verify = "PS384", _verify_ps384(key)
    name = thumbprint(members)
    return PublicKey(kid or name, alg, name, MappingProxyType(members), verify)


def _verify_es256(key: ec.EllipticCurvePublicKey) -> Callable[[bytes, bytes], None]:
    check = key.verify

    def verify(signature: bytes, message: bytes) -> None:
        try:
            check(_der(signature), message, _ES256)
        except InvalidSignature:
            raise BadSignature from None

    return verify


def _verify_ps384(key: rsa.RSAPublicKey) -> Callable[[bytes, bytes], None]:
    def verify(signature: bytes, message: bytes) -> None:
        try:
            key.verify(signature, message, _PS384, _SHA384)
        except InvalidSignature:
            raise BadSignature from None

    return verify


def _signer(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> Callable[[bytes], bytes]:
    if isinstance(key, ec.EllipticCurvePrivateKey):
        sign_der = key.sign
        return lambda message: _raw(sign_der(message, _ES256))
    return lambda message: key.sign(message, _PS384, _SHA384)


def _der(raw: bytes) -> bytes:
    """The 64 octets r‖s of RFC 7518 3.4 as the DER that the verifier takes; written by hand, it is on the hot path."""
    if len(raw) != 64:
        raise BadSignature(detail=f"an ES256 signature has 64 octets, got {len(raw)}")
    r, s = raw[:32], raw[32:]
    if not 0 < r[0] < 128:
        r = b"\0" + r if r[0] else _shortest(r)
    if not 0 < s[0] < 128:
        s = b"\0" + s if s[0] else _shortest(s)
    return b"0%c\2%c%b\2%c%b" % (len(r) + len(s) + 4, len(r), r, len(s), s)


def _shortest(octets: bytes) -> bytes:
    """A DER integer that begins with zero octets."""
    octets = octets.lstrip(b"\0")
    return octets if octets and octets[0] < 128 else b"\0" + octets


def _raw(der: bytes) -> bytes:
    """The signer's DER as r‖s."""
    split = 4 + der[3]
    return der[4:split][-32:].rjust(32, b"\0") + der[split + 2 :][-32:].rjust(32, b"\0")
