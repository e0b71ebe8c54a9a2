"""DPoP proofs (RFC 9449): made for independent verifiers, and each way in which one may be wrong."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any

import jwt as pyjwt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.jose.keys import PrivateKey
from papaver.oauth.dpop import Nonces, VerifiedProof, make_proof, read_proof, verify_proof
from papaver.oauth.errors import InvalidDpopProof, UseDpopNonce
from papaver.protocol.session import ath
from papaver.values.base64url import encode
from papaver.values.secret import Secret
from papaver.web.urls import UrlError

NOW = 1_800_000_000
URL = "https://api.example.com/orders?page=2"
KEY = PrivateKey.generate("ES256")
OTHER = PrivateKey.generate("ES256")
RSA = PrivateKey.generate("PS384")
TOKEN = Secret("an-access-token")
NONCES = Nonces(b"s" * 32)


def proof(key: PrivateKey = KEY, **options: Any) -> str:
    said: dict[str, Any] = {"method": "GET", "url": URL, "now": NOW, "jti": "jti-1", **options}
    return make_proof(key, **said).reveal()


def forged(header: dict[str, object] | None = None, key: PrivateKey = KEY, **claims: object) -> str:
    """A proof that differs from a good one in what is named; None leaves a member out. Signed by `key`."""
    head = {"typ": "dpop+jwt", "alg": key.alg, "jwk": key.public.jwk(), **(header or {})}
    body = {"jti": "jti-1", "htm": "GET", "htu": "https://api.example.com/orders", "iat": NOW, **claims}
    parts = [
        encode(json.dumps({name: value for name, value in part.items() if value is not None}).encode())
        for part in (head, body)
    ]
    signing_input = ".".join(parts).encode()
    return f"{signing_input.decode()}.{encode(key.sign(signing_input))}"


def verify(text: str, **options: Any) -> VerifiedProof:
    said: dict[str, Any] = {"method": "GET", "url": URL, "now": NOW, **options}
    return verify_proof(read_proof([text]), **said)


def refused(text: str, **options: Any) -> str:
    with pytest.raises(InvalidDpopProof) as caught:
        verify(text, **options)
    assert caught.value.code == "invalid_dpop_proof"
    return caught.value.rule


@pytest.mark.parametrize("key", [KEY, RSA], ids=["ES256", "PS384"])
def test_a_proof_verifies_here_and_at_an_independent_verifier(key: PrivateKey) -> None:
    """PyJWT reads the claims with the key that the header carries."""
    text = proof(key, nonce="n", access_token=TOKEN)
    head = pyjwt.get_unverified_header(text)
    claims = pyjwt.decode(
        text, pyjwt.PyJWK(head["jwk"], head["alg"]), algorithms=[head["alg"]], options={"verify_iat": False}
    )
    assert (head["typ"], claims["htu"], claims["htm"]) == ("dpop+jwt", "https://api.example.com/orders", "GET")
    assert (claims["nonce"], claims["ath"], claims["iat"]) == ("n", ath(TOKEN.reveal()), NOW)
    found = verify(text, access_token_ath=ath(TOKEN.reveal()), jkt=key.public.thumbprint)
    assert found == VerifiedProof(key.public.thumbprint, "jti-1", NOW + 61)


def test_a_proof_of_an_independent_signer_verifies_here() -> None:
    """PyJWT signs, we believe."""
    jwk = KEY.private_jwk()
    text = pyjwt.encode(
        {"jti": "a", "htm": "GET", "htu": "https://api.example.com/orders", "iat": NOW},
        pyjwt.PyJWK(jwk, "ES256").key,
        "ES256",
        {"typ": "dpop+jwt", "jwk": KEY.public.jwk()},
    )
    assert verify(text).jkt == KEY.public.thumbprint


def test_a_proof_hides_itself() -> None:
    """Neither what was made nor what was read shows a claim."""
    text = proof()
    assert text not in f"{make_proof(KEY, method='GET', url=URL, now=NOW, jti='j')!r} {read_proof([text])!r}"
    assert "jti-1" not in repr(read_proof([text]))
    assert repr(NONCES) == "Nonces(lifetime=300)"


@pytest.mark.requirement("papaver-105")
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (forged({"typ": "JWT"}), "dpop.typ"),
        (forged({"typ": None}), "dpop.typ"),
        (forged({"alg": "none"}), "dpop.alg"),
        (forged({"alg": "HS256"}), "dpop.alg"),
        (forged({"alg": ["ES256"]}), "dpop.alg"),
        (forged({"alg": "PS384"}), "dpop.signature"),
        (forged({"jwk": OTHER.public.jwk()}), "dpop.signature"),
        (forged({"jwk": KEY.private_jwk()}), "jwk.public"),
        (forged({"jwk": None}), "jwk.usable"),
        (forged({"crit": ["exp"]}), "jws.no-crit"),
        (forged(htm="POST"), "dpop.htm"),
        (forged(htm="get"), "dpop.htm"),
        (forged(htu="https://api.example.com/other"), "dpop.htu"),
        (forged(htu="http://api.example.com/orders"), "dpop.htu"),
        (forged(htu="nonsense"), "dpop.htu"),
        (forged(iat=NOW - 61), "dpop.iat"),
        (forged(iat=NOW + 61), "dpop.iat"),
        (forged(iat=None), "dpop.claims"),
        (forged(jti=None), "dpop.claims"),
        (forged(jti="j" * 257), "dpop.claims"),
        (forged(iat="1800000000"), "claims.typed"),
    ],
    ids=[
        "typ",
        "no-typ",
        "alg-none",
        "alg-mac",
        "alg-list",
        "alg-of-another-key",
        "another-key",
        "private-key",
        "no-key",
        "crit",
        "htm",
        "htm-case",
        "htu",
        "htu-scheme",
        "htu-no-url",
        "old",
        "ahead",
        "no-iat",
        "no-jti",
        "long-jti",
        "iat-text",
    ],
)
def test_c50_a_wrong_proof_is_refused_for_what_is_wrong(text: str, rule: str) -> None:
    """One member of a good, correctly signed proof is another."""
    assert refused(text) == rule


def test_c50_query_and_fragment_of_htu_are_ignored() -> None:
    """They say nothing about which resource it is (readings 28)."""
    assert verify(forged(htu="https://API.example.com:443/orders?x=1#y")).jti == "jti-1"


@pytest.mark.requirement("papaver-105")
def test_c50_the_proof_is_of_this_token_and_this_key() -> None:
    """Another token's hash, none at all, and another key's proof are refused."""
    good = ath(TOKEN.reveal())
    assert refused(proof(), access_token_ath=good) == "dpop.ath"
    assert refused(proof(access_token=Secret("another")), access_token_ath=good) == "dpop.ath"
    assert refused(proof(), jkt=OTHER.public.thumbprint) == "dpop.key"


@pytest.mark.requirement("papaver-105")
@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([], "dpop.header-once"),
        (["a", "b"], "dpop.header-once"),
        (["a" * 8193], "dpop.header-once"),
        (["a.b"], "jws.compact-form"),
        (["é.b.c"], "jws.compact-form"),
    ],
    ids=["none", "two", "long", "two-parts", "not-ascii"],
)
def test_a_field_that_is_no_proof_is_refused(values: list[str], rule: str) -> None:
    """Missing, doubled, too long or no JWS."""
    with pytest.raises(InvalidDpopProof) as caught:
        read_proof(values)
    assert caught.value.rule == rule


@pytest.mark.requirement("papaver-105")
def test_c51_a_nonce_is_asked_for_and_is_good_for_one_to_two_lifetimes() -> None:
    """The one just given is good; so is the one before it; an older one is not."""
    nonce = NONCES.current(NOW)
    assert verify(proof(nonce=nonce), nonces=NONCES).jti == "jti-1"
    later = NOW + 300
    assert verify(proof(nonce=nonce, now=later), now=later, nonces=NONCES).jti == "jti-1"
    with pytest.raises(UseDpopNonce) as caught:
        verify(proof(nonce=nonce, now=NOW + 600), now=NOW + 600, nonces=NONCES)
    assert (caught.value.rule, caught.value.nonce) == ("dpop.nonce", NONCES.current(NOW + 600))


@pytest.mark.parametrize("nonce", [None, "", "forged", "ü"], ids=["none", "empty", "forged", "not-ascii"])
def test_c51_a_missing_or_forged_nonce_is_answered_with_a_good_one(nonce: str | None) -> None:
    """RFC 9449 8: the error carries the nonce to use."""
    with pytest.raises(UseDpopNonce) as caught:
        verify(forged(nonce=nonce), nonces=NONCES)
    assert caught.value.nonce == NONCES.current(NOW)


def test_a_nonce_of_another_server_is_none() -> None:
    """The secret makes it."""
    with pytest.raises(UseDpopNonce):
        NONCES.check(Nonces(b"t" * 32).current(NOW), NOW)


def test_a_url_that_is_none_is_the_callers_mistake() -> None:
    """Nothing of a proof can be compared with it."""
    with pytest.raises(UrlError):
        verify(proof(), url="nonsense")


@given(st.data())
def test_whatever_is_mutated_only_a_refusal_comes_out(data: st.DataObject) -> None:
    """A good proof with one character changed, added or left out is refused, or is the same proof."""
    text = forged(nonce="n", ath="a")
    at = data.draw(st.integers(0, len(text) - 1))
    text = text[:at] + data.draw(st.text(max_size=2)) + text[at + data.draw(st.integers(0, 2)) :]
    with suppress(InvalidDpopProof, UseDpopNonce):
        assert verify(text, nonces=None).jkt == KEY.public.thumbprint
