"""A compact JWS has one spelling, one header, and is accepted only as what was expected."""

from __future__ import annotations

import pickle
from collections.abc import Mapping

import jwt as pyjwt
import pytest

from papaver.jose.jws import (
    CompactJws,
    JwsError,
    check_no_crit,
    header_segment,
    read_compact,
    read_header,
    sign,
    verify,
)
from papaver.jose.keys import KeySet, PrivateKey, write_key_set
from papaver.testing.keys import compact
from papaver.testing.rules import switched_off
from papaver.values.base64url import encode
from papaver.values.strict_json import dumps

EC = PrivateKey.generate(kid="ec-1")
RSA = PrivateKey.generate("PS384", kid="rsa-1")
KEYS = KeySet.read(write_key_set([EC.public, RSA.public]))
TOKEN = sign(b'{"a":1}', EC, typ="t+jwt", alg="ES256", kid="ec-1")
HEADER, PAYLOAD, SIGNATURE = TOKEN.split(".")
GOOD: Mapping[str, object] = {"alg": "ES256", "typ": "t+jwt", "kid": "ec-1"}


@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_what_is_signed_verifies_here_and_in_another_library(key: PrivateKey) -> None:
    """PyJWT reads our JWS, and the key that made it is told."""
    token = sign(b'{"a":1}', key, typ="t+jwt", alg=key.alg, kid=key.kid)
    jws, signer = verify(token, KEYS, typ="t+jwt", algs=["ES256", "PS384"])
    assert (jws.payload, signer) == (b'{"a":1}', key.public)
    public = pyjwt.PyJWK({**key.public.jwk(), "alg": key.alg})
    assert pyjwt.decode(token, public, algorithms=[key.alg]) == {"a": 1}


@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_what_another_library_signs_verifies_here(key: PrivateKey) -> None:
    """PyJWT's JWS is read by us."""
    private = pyjwt.PyJWK(key.private_jwk()).key
    token = pyjwt.encode({"a": 1}, private, algorithm=key.alg, headers={"typ": "t+jwt", "kid": key.kid})
    assert verify(token, KEYS, typ="t+jwt", algs=[key.alg])[0].payload == b'{"a":1}'


def test_alg_has_to_be_the_keys_own() -> None:
    """An algorithm is a property of the key, and saying another is a programming error."""
    with pytest.raises(ValueError, match="ES256, not PS384"):
        sign(b"", EC, typ="t", alg="PS384", kid="ec-1")


@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "a.b",
        f"{HEADER}.{PAYLOAD}",
        f"{HEADER}.{PAYLOAD}.",
        f"{HEADER}..{SIGNATURE}",
        f".{PAYLOAD}.{SIGNATURE}",
        f"{TOKEN}.{SIGNATURE}",
        f"{TOKEN}=",
        f"{TOKEN}==",
        f"{TOKEN}\n",
        f" {TOKEN}",
        f"{HEADER}.{PAYLOAD}\n.{SIGNATURE}",
        f"{HEADER}.{PAYLOAD[:-1]}+.{SIGNATURE}",
        f"{HEADER}.{PAYLOAD}.{SIGNATURE[:-1]}",
        f"{HEADER}.{PAYLOAD}.{SIGNATURE[:-1]}{'B' if SIGNATURE[-1] == 'A' else chr(ord(SIGNATURE[-1]) + 1)}",
        f"{TOKEN},{TOKEN}",
        f"{TOKEN}é",
    ],
    ids=map(str, range(19)),
)
def test_another_spelling_is_refused(token: str) -> None:
    """Three non-empty segments of unpadded base64url, no set bits left over, nothing round them."""
    with pytest.raises(JwsError) as caught:
        verify(token, KEYS, typ="t+jwt", algs=["ES256"])
    assert caught.value.rule == ("jws.header" if token.startswith(" ") else "jws.compact-form")


@pytest.mark.parametrize(
    "header",
    [
        b"",
        b"[]",
        b'"a"',
        b"{",
        b'{"alg":"none","alg":"ES256","typ":"t+jwt","kid":"ec-1"}',
        b'{"alg":"ES256","typ":"t+jwt","kid":"ec-1","a":{"b":1,"b":2}}',
        b'{"alg":"ES256","typ":"t+jwt","kid":"ec-1","a":"\xff"}',
        b'{"a":' + b"[" * 40 + b"]" * 40 + b"}",
        b'{"a":"' + b"x" * 8192 + b'"}',
    ],
    ids=lambda header: repr(header[:30]),
)
def test_a_malformed_header_is_refused(header: bytes) -> None:
    """Not an object, a member twice, too deep, too long."""
    with pytest.raises(JwsError) as caught:
        read_header(encode(header).encode())
    assert caught.value.rule == "jws.header"


def test_a_header_that_is_not_base64url_is_refused() -> None:
    """Read only when it is needed, and strictly then."""
    with pytest.raises(JwsError) as caught:
        read_header(b"e30=")
    assert caught.value.rule == "jws.header"


@pytest.mark.parametrize("crit", [["b64"], ["x"], [], None])
def test_critical_members_are_refused(crit: object) -> None:
    """No extension is understood here (RFC 7515 4.1.11; readings 50)."""
    token = compact(EC, {**GOOD, "crit": crit, "b64": False}, b"{}")
    with pytest.raises(JwsError) as caught:
        verify(token, KEYS, typ="t+jwt", algs=["ES256"])
    assert caught.value.rule == "jws.no-crit"
    with switched_off("jws.no-crit"):
        verify(token, KEYS, typ="t+jwt", algs=["ES256"])
    check_no_crit(GOOD)


@pytest.mark.parametrize(
    ("member", "value", "rule"),
    [
        ("alg", "none", "jws.alg"),
        ("alg", "HS256", "jws.alg"),
        ("alg", None, "jws.alg"),
        ("alg", "PS384", "jws.kid"),
        ("kid", "rsa-1", "jws.kid"),
        ("kid", "unknown", "jws.kid"),
        ("kid", None, "jws.kid"),
        ("kid", ["ec-1"], "jws.kid"),
        ("typ", "T+jwt", "jws.typ"),
        ("typ", "application/t+jwt", "jws.typ"),
        ("typ", None, "jws.typ"),
    ],
)
def test_another_alg_kid_or_typ_is_refused(member: str, value: object, rule: str) -> None:
    """Each is compared exactly, and the algorithm with the key's own, too."""
    with pytest.raises(JwsError) as caught:
        verify(compact(EC, {**GOOD, member: value}, b"{}"), KEYS, typ="t+jwt", algs=["ES256", "PS384"])
    assert caught.value.rule == rule
    assert repr(value) in caught.value.detail


def test_another_keys_signature_is_refused() -> None:
    """The `kid` decides which key verifies."""
    with pytest.raises(JwsError) as caught:
        verify(compact(PrivateKey.generate(), GOOD, b"{}"), KEYS, typ="t+jwt", algs=["ES256"])
    assert caught.value.rule == "jws.signature"


def test_a_signature_covers_header_and_payload() -> None:
    """Segments of two good JWS do not make a third."""
    other = compact(EC, {**GOOD, "a": 1}, b"{}").split(".")
    for token in (f"{other[0]}.{PAYLOAD}.{SIGNATURE}", f"{HEADER}.{other[1]}.{SIGNATURE}"):
        with pytest.raises(JwsError) as caught:
            verify(token, KEYS, typ="t+jwt", algs=["ES256"])
        assert caught.value.rule == "jws.signature"


def test_a_header_segment_is_the_encoded_header() -> None:
    """Made once, it serves every JWT of one key."""
    segment = header_segment(typ="t", alg="ES256", kid="k", more={"dlg": "a.b.c"})
    assert segment.decode() == encode(dumps({"alg": "ES256", "typ": "t", "kid": "k", "dlg": "a.b.c"}))
    assert read_header(segment) == {"alg": "ES256", "typ": "t", "kid": "k", "dlg": "a.b.c"}


def test_a_jws_taken_apart_hides_itself() -> None:
    """Whoever has its octets can send it again."""
    jws = read_compact(TOKEN.encode())
    assert isinstance(jws, CompactJws)
    assert repr(jws) == "CompactJws(…)"
    with pytest.raises(TypeError):
        pickle.dumps(jws)
