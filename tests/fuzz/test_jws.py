"""The general JWS, its header, claims and keys: right ones, changed in one place and signed correctly.

Only `JwsError`, `ClaimsError`, `KeyRefused` and `KeySetError` come out. The corpus alone reaches every line of
`jose/jws.py`, `jose/claims.py` and `jose/keys.py`.
"""

from __future__ import annotations

import json
import pickle
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from papaver.jose.claims import ClaimsError, ClaimsReader
from papaver.jose.jws import JwsError, read_compact, sign, verify
from papaver.jose.keys import (
    BadSignature,
    KeyRefused,
    KeySet,
    KeySetError,
    PrivateKey,
    PublicKey,
    thumbprint,
    write_key_set,
)
from papaver.testing.keys import OMIT, compact
from papaver.values.base64url import encode
from papaver.values.strict_json import dumps
from tests.fuzz.seeds import unreached

EC = PrivateKey.generate(kid="ec-1")
RSA = PrivateKey.generate("PS384", kid="rsa-1")
STRANGER = PrivateKey.generate()
KEYS = KeySet.read(write_key_set([EC.public, RSA.public]))
HEADER: dict[str, object] = {"alg": "ES256", "typ": "t+jwt", "kid": "ec-1"}

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


class Claims(msgspec.Struct, frozen=True):
    """What a JWT with one text and one number says."""

    iss: str = ""
    iat: int = 0


@st.composite
def payloads(draw: st.DrawFn) -> bytes:
    """A JSON object of a few members, some of them twice, with and without white space before the colon."""
    names, spaces = st.sampled_from(["iss", "iat", "more"]), st.sampled_from(["", " ", "\n"])
    members = draw(st.lists(st.tuples(names, spaces, json_values.map(json.dumps)), max_size=4))
    text = ",".join(f'"{name}"{space}:{value}' for name, space, value in members)
    return f"{{{text}}}".encode()


QUICK, CAREFUL = ClaimsReader(Claims, quotes=lambda _: 6), ClaimsReader(Claims)


def accepted(token: str) -> bool:
    """Whether a JWS verifies; any error but JwsError fails the test."""
    try:
        jws, key = verify(token, KEYS, typ="t+jwt", algs=["ES256", "PS384"])
    except JwsError:
        return False
    assert key in KEYS.keys.values()
    assert repr(jws) == "CompactJws(…)"
    return True


@example("alg", "none")
@example("alg", "PS384")
@example("kid", "rsa-1")
@example("kid", OMIT)
@example("typ", OMIT)
@example("crit", [])
@example("more", {"a": [1]})
@given(st.sampled_from(["alg", "typ", "kid", "crit", "b64", "jwk", "more"]), json_values)
def test_a_signed_header_is_accepted_only_with_the_right_members(name: str, value: object) -> None:
    """Whatever one member says, or says besides."""
    header = {**HEADER, name: value}
    right = "crit" not in header and header.items() >= HEADER.items()
    assert accepted(compact(EC, header, b"{}")) == right


@example(b"[]")
@example(b'{"alg":"ES256","alg":"ES256","typ":"t+jwt","kid":"ec-1"}')
@example(b"\xff")
@given(st.binary(max_size=40) | json_values.map(dumps))
def test_a_signed_header_of_any_octets_is_read_or_refused(header: bytes) -> None:
    """The signature is right, the header is not; and a right header with another's signature is refused as well."""
    assert not accepted(compact(STRANGER, HEADER, header))
    signing_input = f"{encode(header)}.{encode(b'{}')}"
    assert not accepted(f"{signing_input}.{encode(EC.sign(signing_input.encode()))}")


@example("")
@example("a.b")
@example("a.b.c")
@example("é.é.é")
@example(sign(b"{}", EC, typ="t+jwt", alg="ES256", kid="ec-1") + "=")
@given(st.text(alphabet="abcQAgw._-=+/ é\n", max_size=40))
def test_any_text_is_refused_by_our_own_error(token: str) -> None:
    """No text that was not signed is a JWS."""
    assert not accepted(token)


@example(b"", EC)
@example(b"", RSA)
@example(b"{}", EC)
@given(st.binary(max_size=64), st.sampled_from([EC, RSA]))
def test_whatever_is_signed_verifies_and_hides(payload: bytes, key: PrivateKey) -> None:
    """Any payload but an empty one; with another alg nothing is signed."""
    token = sign(payload, key, typ="t+jwt", alg=key.alg, kid=key.kid)
    assert accepted(token) == (payload != b"")
    with pytest.raises(ValueError, match="the key signs"):
        sign(payload, key, typ="t+jwt", alg="PS384" if key is EC else "ES256", kid=key.kid)
    if payload:
        with pytest.raises(TypeError):
            pickle.dumps(read_compact(token.encode()))


@example(b'{"more":null,"more":null,"more":null}')
@example(b'{"iss":"a","iat":1}')
@example(b'{"iss":"a","iss" :"a","iat":1}')
@example(b'{"iss":"\\u0061","iat":1}')
@example(b'{"iss":"a","iat":1,"more":1}')
@example(b'{"iss":"a","iat":"1","more":"1"}')
@example(b'{"z":' + b"[" * 2000 + b"]" * 2000 + b"}")
@given(payloads())
def test_the_quick_reader_agrees_with_the_careful_one(payload: bytes) -> None:
    """Members twice, in any spelling: both read the same claims, or both refuse."""
    results: list[Claims | None] = []
    for reader in (QUICK, CAREFUL):
        try:
            claims = reader.read(payload)
            # Without a required claim the count says nothing; the check that it is there refuses both alike.
            results.append(claims if claims.iss and claims.iat else None)
        except ClaimsError:
            results.append(None)
    assert results[0] == results[1]


@example(EC, b"\0" * 64)
@example(EC, b"\0" * 31 + b"\1" + b"\0" * 30 + b"\x80\1")
@example(EC, b"\xff" * 64)
@example(EC, b"\1" * 64)
@example(EC, b"")
@example(RSA, b"")
@given(st.sampled_from([EC, RSA]), st.binary(min_size=64, max_size=64) | st.binary(max_size=400))
def test_any_octets_as_a_signature_are_refused_by_our_own_error(key: PrivateKey, signature: bytes) -> None:
    """Nobody guesses one."""
    with pytest.raises(BadSignature):
        key.public.verify(signature, b"message")


PLACES = ["kty", "crv", "x", "y", "n", "e", "d", "p", "q", "dp", "dq", "qi", "kid", "use", "alg", "key_ops", "k"]
NUMBERS = st.sampled_from([b"\3", b"\1" * 32, b"\0" * 33, b"\xff" * 256, b"\xff" * 1025]).map(encode)


@example(EC, "d", encode(b"\1" * 32))
@example(EC, "crv", "P-384")
@example(EC, "x", OMIT)
@example(EC, "y", encode(b"\2" * 32))
@example(EC, "y", "+")
@example(EC, "use", "enc")
@example(EC, "kid", OMIT)
@example(EC, "k", "secret")
@example(RSA, "n", encode(b"\3" * 128))
@example(RSA, "p", encode(b"\3"))
@example(RSA, "kty", "oct")
@given(st.sampled_from([EC, RSA]), st.sampled_from(PLACES), json_values | NUMBERS | st.sampled_from(["sig", "RSA"]))
def test_a_key_changed_in_one_place_is_read_or_refused(key: PrivateKey, name: str, value: object) -> None:
    """As a private key, a public key, an entry of a key set, and for its thumbprint; the secret is in no error."""
    told: list[str] = []
    for whole in (key.private_jwk(), key.public.entry()):
        jwk: dict[str, object] = {n: v for n, v in {**whole, name: value}.items() if v is not OMIT}
        for read in (PrivateKey.read, PublicKey.read, thumbprint):
            try:
                read(jwk)
            except KeyRefused as error:
                told.append(f"{error!r} {error.detail}")
        try:
            assert len(KeySet.read({"keys": [jwk]}).keys) <= 1
        except KeySetError as error:
            told.append(f"{error!r} {error.detail}")
    assert key.private_jwk()["d"] not in " ".join(told)
    assert key.private_jwk()["d"] not in repr(key)


ENTRY: Any = EC.public.entry()


@example([])
@example({"keys": 1})
@example({"keys": [1]})
@example({"keys": [ENTRY, ENTRY]})
@example({"keys": [ENTRY] * 101})
@example({"keys": [{**ENTRY, "d": "x"}]})
@given(json_values | st.fixed_dictionaries({"keys": json_values | st.lists(json_values | st.just(ENTRY), max_size=3)}))
def test_any_document_as_a_key_set_is_read_or_refused(document: object) -> None:
    """B1's whole kind: shapes, not values; what is read finds what it holds."""
    try:
        keys = KeySet.read(document)
    except KeySetError:
        return
    assert all(keys.find(kid) == key for kid, key in keys.keys.items())


@pytest.mark.parametrize("alg", ["ES256", "PS384"])
def test_a_generated_key_is_read_back_from_its_jwk_only(alg: Any) -> None:
    """The one way to write a private key down."""
    key = PrivateKey.generate(alg)
    assert PrivateKey.read(key.private_jwk()).public == key.public
    assert PublicKey.read(key.public.jwk()) == key.public
    assert (key.kid, key.alg) == (key.public.thumbprint, alg)
    with pytest.raises(KeyRefused):
        PublicKey.read(None)
    with pytest.raises(TypeError):
        pickle.dumps(key)


def test_the_examples_alone_cover_the_parsers() -> None:
    """Every line and branch."""
    assert unreached("jws", *(f"papaver.jose.{module}" for module in ("jws", "claims", "keys"))) == ""
