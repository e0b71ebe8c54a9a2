"""Keys of an issuer that is not ours: every algorithm by an independent signer, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import jwt as pyjwt
import pytest
from joserfc import jws as oracle
from joserfc.jwk import ECKey, OKPKey, RSAKey

from papaver.jose.issuer_keys import ALGS, IssuerKeySet, verify_issuer_jws
from papaver.jose.jws import JwsError
from papaver.jose.keys import KeySetError
from papaver.values.base64url import encode

RSA: Any = RSAKey.generate_key(2048, {"kid": "rsa"})
P256: Any = ECKey.generate_key("P-256", {"kid": "p256"})
P384: Any = ECKey.generate_key("P-384", {"kid": "p384"})
P521: Any = ECKey.generate_key("P-521", {"kid": "p521"})
ED: Any = OKPKey.generate_key("Ed25519", {"kid": "ed"})
SIGNERS: dict[str, Any] = {
    **dict.fromkeys(("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"), RSA),
    "ES256": P256,
    "ES384": P384,
    "ES512": P521,
    "EdDSA": ED,
    "Ed25519": ED,
}


OTHER = encode(b'{"sub":"b"}')


def public(*keys: Any, **more: object) -> IssuerKeySet:
    return IssuerKeySet.read({"keys": [{**key.as_dict(private=False), **more} for key in keys]})


def signed(alg: str, **header: object) -> str:
    key = SIGNERS[alg]
    if alg == "EdDSA":  # deprecated in favour of Ed25519 (RFC 9864), so one oracle warns of it; issuers still use it
        return pyjwt.PyJWS().encode(b'{"sub":"a"}', key.private_key, alg, {"kid": key.kid})
    members: dict[str, Any] = {"alg": alg, "kid": key.kid, **header}
    return oracle.serialize_compact(members, b'{"sub":"a"}', key, algorithms=[alg])


@pytest.mark.parametrize("alg", sorted(ALGS))
def test_each_algorithm_of_an_independent_signer_verifies(alg: str) -> None:
    """The payload and the header come back as they were signed."""
    jws, header = verify_issuer_jws(signed(alg), public(RSA, P256, P384, P521, ED))
    assert (jws.payload, header["alg"]) == (b'{"sub":"a"}', alg)


@pytest.mark.parametrize("alg", sorted(ALGS))
def test_a_changed_payload_does_not_verify(alg: str) -> None:
    """One octet of the payload is another."""
    head, _, signature = signed(alg).split(".")
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws(f"{head}.{OTHER}.{signature}", public(SIGNERS[alg]))
    assert caught.value.rule == "jws.signature"


def test_an_ecdsa_signature_has_exactly_its_length() -> None:
    """RFC 7518 3.4: r and s have the curve's size each."""
    head, payload, _ = signed("ES384").split(".")
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws(f"{head}.{payload}.{encode(bytes(64))}", public(P384))
    assert (caught.value.rule, caught.value.detail) == (
        "jws.signature",
        "an ES384 signature has 96 octets, got 64",
    )


@pytest.mark.requirement("papaver-107")
@pytest.mark.parametrize("alg", ["none", "HS256", None, ["RS256"]])
def test_other_algorithms_are_refused_before_any_key_is_tried(alg: object) -> None:
    """RFC 8725 3.1: neither `none` nor a MAC passes, whatever the key set says."""
    head = encode(json.dumps({"alg": alg, "kid": "rsa"}).encode())
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws(f"{head}.{encode(b'{}')}.{encode(b'x')}", public(RSA))
    assert caught.value.rule == "issuer.alg"


def test_a_caller_may_narrow_the_algorithms() -> None:
    """What the Company expects is all that it takes."""
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws(signed("RS256"), public(RSA), algs=("ES256",))
    assert caught.value.rule == "issuer.alg"


def test_a_key_verifies_only_the_algorithm_that_it_names() -> None:
    """A key with `alg` is for that one (RFC 8725 3.5)."""
    keys = public(RSA, alg="PS256")
    assert verify_issuer_jws(signed("PS256"), keys)[1]["kid"] == "rsa"
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws(signed("RS256"), keys)
    assert caught.value.rule == "jws.kid"


def test_without_a_kid_only_a_single_fitting_key_is_used() -> None:
    """Which of two is meant would be a guess."""
    unnamed = _without_kid("RS256")
    assert verify_issuer_jws(unnamed, public(RSA, P256))[1]["alg"] == "RS256"
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws(unnamed, public(RSA, RSAKey.generate_key(2048, {"kid": "other"})))
    assert caught.value.rule == "jws.kid"


def _without_kid(alg: str) -> str:
    return oracle.serialize_compact({"alg": alg}, b'{"sub":"a"}', SIGNERS[alg], algorithms=[alg])


def test_an_unknown_kid_says_so() -> None:
    """The caller asks for newer keys then."""
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws(signed("RS256"), public(RSAKey.generate_key(2048, {"kid": "other"})))
    assert caught.value.rule == "jws.kid"


def test_a_token_that_is_not_ascii_is_no_jws() -> None:
    """It is refused before it is decoded."""
    with pytest.raises(JwsError) as caught:
        verify_issuer_jws("é.é.é", public(RSA))
    assert caught.value.rule == "jws.compact-form"


GOOD: dict[str, Any] = P256.as_dict(private=False)


@pytest.mark.parametrize(
    "entry",
    [
        {**GOOD, "use": "enc"},
        {**GOOD, "key_ops": ["sign"]},
        {**GOOD, "key_ops": "verify"},
        {**GOOD, "x": "AAAA"},
        {**GOOD, "x": encode(bytes(32)), "y": encode(bytes(32))},
        {**GOOD, "crv": "secp256k1"},
        {**GOOD, "alg": "HS256"},
        {"kty": "oct", "k": "c2VjcmV0"},
        {"kty": "OKP", "crv": "Ed25519", "x": "AAAA"},
        {"kty": "OKP", "crv": "Ed25519", "x": "!"},
        {"kty": "OKP", "crv": "Ed25519"},
        {"kty": "RSA", "n": encode(b"\xff" * 64), "e": "AQAB"},
        {"kty": "RSA", "n": encode(b"\xff" * 256), "e": "AQ"},
    ],
    ids=[
        "encryption",
        "operation",
        "operations-no-list",
        "short",
        "off-curve",
        "curve",
        "alg",
        "symmetric",
        "ed-short",
        "ed-malformed",
        "ed-empty",
        "rsa-small",
        "rsa-exponent",
    ],
)
def test_keys_that_are_not_usable_are_left_out(entry: dict[str, object]) -> None:
    """They do not spoil the others; a set of them alone is refused."""
    assert len(IssuerKeySet.read({"keys": [entry, GOOD]}).keys) == 1
    with pytest.raises(KeySetError) as caught:
        IssuerKeySet.read({"keys": [entry]})
    assert caught.value.rule == "jwks.usable"


def test_a_key_without_a_name_is_kept() -> None:
    """Some issuers publish one key and name nothing."""
    assert IssuerKeySet.read({"keys": [{**GOOD, "kid": 7}]}).keys[0].kid is None
