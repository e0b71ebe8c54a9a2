"""Keys are read strictly, sign and verify, and never show themselves."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from joserfc.jwk import import_key

from papaver.jose.keys import (
    MAX_KEYS,
    Alg,
    BadSignature,
    KeyRefused,
    KeySet,
    KeySetError,
    PrivateKey,
    PublicKey,
    thumbprint,
    write_key_set,
)
from papaver.values.base64url import decode, encode

EC = PrivateKey.generate()
RSA = PrivateKey.generate("PS384", kid="rsa-1")
SPOILED: list[Callable[[dict[str, str]], object]] = [
    lambda jwk: {**jwk, "d": encode(b"\1" * 32)},
    lambda jwk: {**jwk, "d": encode(b"\1" * 33)},
    lambda jwk: {**jwk, "d": "+"},
    lambda jwk: {name: value for name, value in jwk.items() if name != "d"},
    list,
    lambda _: {**RSA.private_jwk(), "p": encode(b"\3")},
    lambda _: {**RSA.private_jwk(), "qi": 5},
]
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551


def entry(**members: object) -> dict[str, object]:
    """A usable key-set entry with some members replaced; None leaves one out."""
    whole: dict[str, object] = {**EC.public.entry(), **members}
    return {name: value for name, value in whole.items() if value is not None}


ENTRIES: list[object] = [entry(), None]
NOT_KEY_SETS: list[object] = [
    *([0], None, "keys", 1, {"key": 1}),
    *({"keys": keys} for keys in (1, "", None, [1], ENTRIES)),
]


@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_what_a_key_signs_its_public_half_verifies(key: PrivateKey) -> None:
    """Sign and verify belong together, and only over the same octets."""
    signature = key.sign(b"message")
    key.public.verify(signature, b"message")
    with pytest.raises(BadSignature):
        key.public.verify(signature, b"massage")


def test_es256_signatures_of_every_length_of_integer_verify() -> None:
    """Leading zero octets and high bits of r and s survive the way through DER."""
    for number in range(600):
        message = b"%d" % number
        signature = EC.sign(message)
        assert len(signature) == 64
        EC.public.verify(signature, message)


@pytest.mark.parametrize(
    "signature",
    [
        b"",
        b"\0" * 63,
        b"\0" * 65,
        b"\0" * 64,
        b"\xff" * 64,
        ORDER.to_bytes(32, "big") + b"\0" * 31 + b"\1",
        b"\0" * 31 + b"\x80" + b"\0" * 31 + b"\1",
        b"\0" * 32 + b"\x01" * 32,
    ],
)
def test_odd_es256_signatures_do_not_verify(signature: bytes) -> None:
    """Only BadSignature comes out, whatever the 64 octets are."""
    with pytest.raises(BadSignature):
        EC.public.verify(signature, b"message")


def test_a_der_signature_is_not_a_jose_signature() -> None:
    """RFC 7518 3.4 has r and s side by side, nothing else."""
    with pytest.raises(BadSignature) as caught:
        EC.public.verify(b"0E\2!" + EC.sign(b"message"), b"message")
    assert "got 68" in caught.value.detail


@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_a_private_jwk_reads_back_as_the_same_key(key: PrivateKey) -> None:
    """What a key file holds makes the key again, its kid included."""
    again = PrivateKey.read(key.private_jwk())
    assert again.public == key.public
    assert again.kid == key.kid
    key.public.verify(again.sign(b"message"), b"message")


@pytest.mark.parametrize("spoil", SPOILED)
def test_a_private_jwk_that_is_not_consistent_is_refused(spoil: Callable[[dict[str, str]], object]) -> None:
    """Every fault is KeyRefused, and the secret is in no error."""
    jwk = EC.private_jwk()
    with pytest.raises(KeyRefused) as caught:
        PrivateKey.read(spoil(jwk))
    assert jwk["d"] not in f"{caught.value!r} {caught.value} {caught.value.detail}"


def test_a_private_key_shows_itself_nowhere() -> None:
    """Neither repr nor format nor a pickle nor a copy gives the secret away."""
    secret = EC.private_jwk()["d"]
    assert secret not in f"{EC!r} {EC}"
    assert repr(EC) == f"PrivateKey(kid={EC.kid!r}, alg='ES256')"
    for leak in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            leak(EC)


def test_a_key_of_our_own_has_the_kid_it_was_given_or_its_thumbprint() -> None:
    """`kid` names the key; without one the thumbprint does."""
    assert EC.kid == EC.public.thumbprint
    assert RSA.kid == "rsa-1"
    assert RSA.public.thumbprint != "rsa-1"


@pytest.mark.requirement("4.1-04")
def test_a_published_key_set_holds_public_members_only() -> None:
    """`jwks_uri` gets what verifies, and reads back as the same keys."""
    document = write_key_set([EC.public, RSA.public])
    assert not {"d", "p", "q", "dp", "dq", "qi", "k"} & {name for key in document["keys"] for name in key}
    keys = KeySet.read(document)
    assert keys.find(EC.kid) == EC.public
    assert keys.find("rsa-1") == RSA.public
    assert keys.find("another") is None


@pytest.mark.requirement("4.1-04")
@pytest.mark.parametrize("member", ["d", "p", "q", "dp", "dq", "qi", "oth", "k"])
def test_c44_a_key_set_with_a_private_member_is_refused_whole(member: str) -> None:
    """Even one on a key that would be left out: whoever published it has lost it."""
    secret = encode(b"\7" * 32)
    document = {"keys": [entry(), {"kty": "OKP", "kid": "other", member: secret}]}
    with pytest.raises(KeySetError) as caught:
        KeySet.read(document)
    assert caught.value.rule == "jwks.public-keys-only"
    assert secret not in caught.value.detail


@pytest.mark.parametrize("document", NOT_KEY_SETS)
def test_b1_a_malformed_key_set_is_its_own_error(document: object) -> None:
    """Arrays, numbers and missing members are no key set."""
    with pytest.raises(KeySetError) as caught:
        KeySet.read(document)
    assert caught.value.rule == "jwks.is-key-set"


def test_a_key_set_of_too_many_keys_is_refused() -> None:
    """Each entry costs a point check, so their number is bounded."""
    with pytest.raises(KeySetError) as caught:
        KeySet.read({"keys": [entry(kid=None)] * (MAX_KEYS + 1)})
    assert caught.value.rule == "jwks.size"
    assert KeySet.read({"keys": [entry(kid=None)] * MAX_KEYS}).keys == {}


def test_two_usable_keys_of_one_kid_are_refused() -> None:
    """Which of them is meant would be anybody's guess (readings 50)."""
    other = PrivateKey.generate().public.entry()
    with pytest.raises(KeySetError) as caught:
        KeySet.read({"keys": [entry(kid="1"), {**other, "kid": "1"}]})
    assert caught.value.rule == "jwks.kid-unique"


def test_a_kid_shared_with_a_key_that_is_not_usable_is_no_ambiguity() -> None:
    """Only usable keys count."""
    keys = KeySet.read({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "AA", "kid": "1"}, entry(kid="1")]})
    assert keys.keys["1"].thumbprint == EC.public.thumbprint


def members(jwk: dict[str, object]) -> list[tuple[str, object]]:
    """What tells a key apart in a test's name."""
    return [(name, value) for name, value in jwk.items() if name not in ("y", "n")]


def rsa_entry(bits: int, exponent: int = 65537, **members: object) -> dict[str, object]:
    """An RSA entry of a size."""
    numbers = rsa.generate_private_key(public_exponent=65537, key_size=bits).public_key().public_numbers()
    n, e = encode(numbers.n.to_bytes(bits // 8, "big")), encode(exponent.to_bytes(8, "big").lstrip(b"\0"))
    return {"kty": "RSA", "n": n, "e": e, "kid": "r", **members}


@pytest.mark.parametrize(
    "unusable",
    [
        entry(kid=None),
        entry(kid=""),
        entry(kid=7),
        entry(kty="OKP"),
        entry(kty=None),
        entry(crv="P-384"),
        entry(crv="secp256k1"),
        entry(use="enc"),
        entry(use=None, key_ops=["sign"]),
        entry(key_ops="verify"),
        entry(alg="PS384"),
        entry(alg="ES384"),
        entry(x=None),
        entry(x=5),
        entry(x="+" * 43),
        entry(x=encode(b"\0" + decode(EC.public.members["x"]))),
        entry(x=encode(decode(EC.public.members["x"])[1:])),
        entry(y=encode(b"\2" * 32)),
        rsa_entry(1024),
        rsa_entry(2048, exponent=1),
        rsa_entry(2048, exponent=4),
        rsa_entry(2048, exponent=2**32 + 1),
        rsa_entry(2048, alg="RS256"),
        rsa_entry(2048, n=encode(b"\xff" * 1025)),
        rsa_entry(2048, n=""),
    ],
)
def test_a_key_that_cannot_be_used_here_is_left_out(unusable: dict[str, object]) -> None:
    """It neither verifies nor spoils the keys beside it (readings 50)."""
    beside = RSA.public.entry()
    assert list(KeySet.read({"keys": [unusable, beside]}).keys) == ["rsa-1"]


@pytest.mark.parametrize(
    "usable", [entry(use=None, alg=None), entry(key_ops=["verify", "sign"]), entry(extra={"a": []}), rsa_entry(2048)]
)
def test_a_key_without_use_and_alg_or_with_more_members_is_used(usable: dict[str, object]) -> None:
    """What RFC 7517 makes optional may be missing; what it does not know may be there."""
    assert len(KeySet.read({"keys": [usable]}).keys) == 1


def test_every_document_read_is_a_generation_of_its_own() -> None:
    """What is derived from a key set can tell whether the set was read again."""
    document = write_key_set([EC.public])
    first, second = KeySet.read(document), KeySet.read(document)
    assert first.generation is not second.generation
    assert first != second
    assert first.find(EC.kid) == second.find(EC.kid)


def test_one_key_without_a_kid_reads_and_is_named_by_its_thumbprint() -> None:
    """`cnf.jwk` has no kid."""
    key = PublicKey.read(EC.public.jwk())
    assert key == EC.public
    assert set(key.jwk()) == {"kty", "crv", "x", "y"}


def test_one_key_with_private_members_is_refused() -> None:
    """The value is in no error."""
    with pytest.raises(KeyRefused) as caught:
        PublicKey.read(EC.private_jwk())
    assert caught.value.rule == "jwk.public"
    assert EC.private_jwk()["d"] not in caught.value.detail


@pytest.mark.parametrize("jwk", [{"kty": kty, "crv": "P-256", "x": 1, "y": "a"} for kty in (None, "oct", "EC", "RSA")])
def test_a_thumbprint_needs_the_required_members(jwk: dict[str, object]) -> None:
    """RFC 7638 3.2 names them per key type."""
    with pytest.raises(KeyRefused):
        thumbprint(jwk)


@pytest.mark.parametrize("key", [EC, RSA], ids=["EC", "RSA"])
def test_thumbprints_are_those_of_another_library(key: PrivateKey) -> None:
    """joserfc computes the same value."""
    assert import_key(dict(key.public.members)).thumbprint() == thumbprint(key.public.members)


@pytest.mark.parametrize(("alg", "length"), [("ES256", 64), ("PS384", 384)])
def test_generated_keys_differ(alg: Alg, length: int) -> None:
    """Two keys never share a thumbprint, and have the size that is meant."""
    one, other = PrivateKey.generate(alg), PrivateKey.generate(alg)
    assert one.public.thumbprint != other.public.thumbprint
    assert len(one.sign(b"")) == length
