"""Compact JWS (RFC 7515), strictly: signed only with `typ`, `alg` and `kid` given, verified only against them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import lru_cache
from typing import Final, Never

import msgspec

from papaver.jose.keys import Alg, BadSignature, KeySet, PrivateKey, PublicKey
from papaver.values.base64url import Base64Error, decode, encode
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError, dumps, loads_object

__all__ = [
    "CompactJws",
    "JwsError",
    "check_no_crit",
    "header_segment",
    "read_compact",
    "read_header",
    "sign",
    "verify",
]

MAX_HEADER_BYTES: Final = 8192
"""A Session JWT carries its delegation in its header, so this is far above what other JWTs need."""
SHORT_HEADER: Final = 256
"""Octets of an encoded header that may be remembered: `typ`, `alg` and `kid`, and no key or delegation."""


class JwsError(PapaverError):
    """A text that is not a compact JWS, or one that must not be accepted."""

    code = "invalid_jws"
    description = "the JWS is malformed"


class CompactJws(msgspec.Struct, frozen=True, gc=False):
    """A compact JWS taken apart. Nothing in it is verified; it hides itself, because it can be replayed.

    `header_segment`  as received, still encoded       `signing_input`  what the signature covers
    `payload`         decoded                          `signature`      decoded
    """

    header_segment: bytes
    signing_input: bytes
    payload: bytes
    signature: bytes

    def __repr__(self) -> str:
        return "CompactJws(…)"

    def __reduce__(self) -> Never:
        raise TypeError("a JWS is never pickled")


def read_compact(token: bytes) -> CompactJws:
    """Take a compact JWS apart. Raises JwsError unless it is three non-empty base64url segments, strictly encoded."""
    signing_input, _, signature = token.rpartition(b".")
    header, _, payload = signing_input.partition(b".")
    if not (header and payload and signature):
        raise JwsError(rule="jws.compact-form", detail="not three segments")
    try:
        return CompactJws(header, signing_input, decode(payload), decode(signature))
    except Base64Error as error:
        raise JwsError(rule="jws.compact-form", detail=error.detail) from None


def read_header(segment: bytes) -> dict[str, object]:
    """The protected header of a `header_segment`. Raises JwsError: not an object, a member twice, `crit` present."""
    header = dict(_short_header(segment)) if len(segment) <= SHORT_HEADER else _header(segment)
    check_no_crit(header)
    return header


def _header(segment: bytes) -> dict[str, object]:
    try:
        return loads_object(decode(segment), max_bytes=MAX_HEADER_BYTES)
    except (Base64Error, JsonError) as error:
        raise JwsError(rule="jws.header", detail=f"{error.description}: {error.detail}") from None


_short_header = lru_cache(maxsize=256)(_header)
"""All assertions of one client have the same header, so it is decoded once. It is judged each time."""


@rule("jws.no-crit")
def check_no_crit(header: Mapping[str, object]) -> None:
    """No extension is understood here, so a critical one is refused (RFC 7515 4.1.11; readings 50)."""
    if "crit" in header:
        raise JwsError("the JWS has critical header members", rule="jws.no-crit", detail=f"crit {header['crit']!r:.80}")


def header_segment(*, typ: str, alg: Alg, kid: str, more: Mapping[str, str] | None = None) -> bytes:
    """The encoded protected header, ready to be reused for many JWTs of one key."""
    return encode(dumps({"alg": alg, "typ": typ, "kid": kid, **(more or {})})).encode()


def sign(payload: bytes, key: PrivateKey, *, typ: str, alg: Alg, kid: str) -> str:
    """A compact JWS over `payload`. `alg` has to be the key's own; ValueError otherwise."""
    if alg != key.alg:
        raise ValueError(f"the key signs {key.alg}, not {alg}")
    signing_input = header_segment(typ=typ, alg=alg, kid=kid) + b"." + encode(payload).encode()
    return f"{signing_input.decode()}.{encode(key.sign(signing_input))}"


def verify(token: str, keys: KeySet, *, typ: str, algs: Collection[Alg]) -> tuple[CompactJws, PublicKey]:
    """The JWS and the key that signed it: the one that its `kid` names, with that key's own algorithm, one of `algs`.

    Raises JwsError for malformed text, another `alg` or `typ`, an unknown `kid`, or a signature that does not verify.
    """
    try:
        jws = read_compact(token.encode("ascii"))
    except UnicodeEncodeError:
        raise JwsError(rule="jws.compact-form", detail="not ASCII") from None
    header = read_header(jws.header_segment)
    alg, kid = header.get("alg"), header.get("kid")
    if alg not in algs:
        raise JwsError("the JWS has another alg", rule="jws.alg", detail=f"expected {sorted(algs)}, got {alg!r:.80}")
    key = keys.find(kid) if isinstance(kid, str) else None
    if key is None or key.alg != alg:
        raise JwsError(
            "no key of this kid and alg is published", rule="jws.kid", detail=f"kid {kid!r:.200}, alg {alg!r}"
        )
    try:
        key.verify(jws.signature, jws.signing_input)
    except BadSignature as error:
        raise JwsError("the signature does not verify", rule="jws.signature", detail=error.detail) from None
    if header.get("typ") != typ:
        raise JwsError(
            "the JWS is of another typ", rule="jws.typ", detail=f"expected {typ!r}, got {header.get('typ')!r:.80}"
        )
    return jws, key
