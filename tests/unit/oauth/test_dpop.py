"""DPoP proofs: made as others read them, and refused for one thing at a time; nonces without memory."""

from __future__ import annotations

import pickle
from typing import Any

import jwt as pyjwt
import pytest
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import ECKey, RSAKey
from joserfc.jws import JWSRegistry

from papaver.jose.keys import PrivateKey
from papaver.oauth.dpop import Nonces, VerifiedProof, make_proof, read_proof, verify_proof
from papaver.oauth.errors import InvalidDpopProof, UseDpopNonce
from papaver.protocol.session import ath
from papaver.values.base64url import encode
from papaver.values.secret import Secret
from papaver.values.strict_json import dumps

NOW = 1_800_000_000
URL = "https://auth.example.com/oauth/token"
EC = PrivateKey.generate("ES256")
RSA = PrivateKey.generate("PS384")
TOKEN = Secret("eyJh.e30.Qp4w")
ATH = ath(TOKEN.reveal())
NONCES = Nonces(b"n" * 32)
CLAIMS: dict[str, Any] = {"jti": "j", "htm": "POST", "htu": URL, "iat": NOW}


def signed(header: dict[str, Any] | None = None, key: PrivateKey = EC, **claims: object) -> str:
    """A correctly signed proof with some header members and claims changed; None leaves one out."""
    head = {"typ": "dpop+jwt", "alg": key.alg, "jwk": key.public.jwk(), **(header or {})}
    body = {**CLAIMS, **claims}
    segments = [encode(dumps({name: v for name, v in part.items() if v is not None})) for part in (head, body)]
    signing_input = ".".join(segments)
    return f"{signing_input}.{encode(key.sign(signing_input.encode()))}"


def judge(token: str | Secret, **expected: Any) -> VerifiedProof:
    """To the last check."""
    text = token.reveal() if isinstance(token, Secret) else token
    asked: dict[str, Any] = {"method": "POST", "url": URL, "now": NOW, **expected}
    return verify_proof(read_proof([text]), **asked)


def refused(token: str, **expected: Any) -> str:
    """The rule that refuses it; the error is `invalid_dpop_proof`."""
    with pytest.raises(InvalidDpopProof) as refusal:
        judge(token, **expected)
    assert refusal.value.code == "invalid_dpop_proof"
    return refusal.value.rule


@pytest.mark.requirement("5.2-21")
@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_ours_verify_here(key: PrivateKey) -> None:
    """For a request with everything: a token, a nonce, a bound key, a query that `htu` leaves out."""
    proof = make_proof(
        key, method="POST", url=f"{URL}?x=1#y", now=NOW + 0.5, jti="j", nonce=NONCES.current(NOW), access_token=TOKEN
    )
    verified = judge(proof, url=f"{URL}?x=2", access_token_ath=ATH, jkt=key.public.thumbprint, nonces=NONCES)
    assert verified == VerifiedProof(key.public.thumbprint, "j", NOW + 60)


@pytest.mark.requirement("5.2-21")
@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_ours_verify_in_other_libraries(key: PrivateKey) -> None:
    """joserfc and PyJWT, by the key in the header alone."""
    proof = make_proof(key, method="POST", url=URL, now=NOW, jti="j", access_token=TOKEN).reveal()
    header = pyjwt.get_unverified_header(proof)
    assert header == {"typ": "dpop+jwt", "alg": key.alg, "jwk": key.public.jwk()}
    public: Any = (ECKey if key.alg == "ES256" else RSAKey).import_key(header["jwk"])
    roomy = JWSRegistry(algorithms=[key.alg])
    roomy.max_header_length = 2048  # an RSA key does not fit in joserfc's own 512
    assert joserfc_jwt.decode(proof, public, registry=roomy).claims == {**CLAIMS, "ath": ATH}
    known = pyjwt.PyJWK.from_dict({**header["jwk"], "alg": key.alg})
    assert pyjwt.decode(proof, known, algorithms=[key.alg], options={"verify_iat": False})["ath"] == ATH


def test_a_token_request_has_a_proof_without_token_and_nonce() -> None:
    """Nothing that there is nothing to say about."""
    assert judge(make_proof(EC, method="POST", url=URL, now=NOW, jti="j")).jti == "j"


def test_theirs_verify_here() -> None:
    """As joserfc signs."""
    jwk: Any = EC.private_jwk()
    private = ECKey.import_key(jwk)
    header: dict[str, Any] = {"typ": "dpop+jwt", "alg": "ES256", "jwk": private.as_dict(private=False)}
    token = joserfc_jwt.encode(header, dict(CLAIMS), private, algorithms=["ES256"])
    assert judge(token).jkt == EC.public.thumbprint


@pytest.mark.requirement("papaver-47")
@pytest.mark.parametrize(
    ("header", "claims", "rule"),
    [
        ({"typ": "JWT"}, {}, "dpop.typ"),
        ({"typ": None}, {}, "dpop.typ"),
        ({"typ": "poppy-session+jwt"}, {}, "dpop.typ"),
        ({"alg": "none"}, {}, "dpop.alg"),
        ({"alg": "HS256"}, {}, "dpop.alg"),
        ({"alg": "PS384"}, {}, "dpop.jwk-public"),
        ({"jwk": None}, {}, "dpop.key"),
        ({"jwk": "x"}, {}, "dpop.key"),
        ({"jwk": {"kty": "oct", "k": "AA"}}, {}, "dpop.key"),
        ({"jwk": EC.private_jwk()}, {}, "dpop.jwk-public"),
        ({"jwk": PrivateKey.generate().public.jwk()}, {}, "dpop.signature"),
        ({}, {"htm": "GET"}, "dpop.htm-is-method"),
        ({}, {"htm": "post"}, "dpop.htm-is-method"),
        ({}, {"htm": None}, "dpop.htm-is-method"),
        ({}, {"htu": "https://auth.example.com/oauth/token/"}, "dpop.htu-is-url"),
        ({}, {"htu": "https://other.example/oauth/token"}, "dpop.htu-is-url"),
        ({}, {"htu": "x"}, "dpop.htu-is-url"),
        ({}, {"htu": None}, "dpop.htu-is-url"),
        ({}, {"iat": NOW - 61}, "dpop.iat-in-window"),
        ({}, {"iat": NOW + 61}, "dpop.iat-in-window"),
        ({}, {"iat": None}, "dpop.iat-in-window"),
        ({}, {"jti": None}, "dpop.jti"),
        ({}, {"jti": "j" * 257}, "dpop.jti"),
    ],
    ids=[str(number) for number in range(23)],
)
def test_c50_a_proof_is_of_this_request_and_of_now(header: dict[str, Any], claims: dict[str, Any], rule: str) -> None:
    """One thing wrong in a correctly signed proof (RFC 9449 4.3)."""
    assert refused(signed(header, **claims)) == rule


def test_c50_a_query_in_htu_is_ignored() -> None:
    """And so is what else normalisation levels (readings 28)."""
    assert judge(signed(htu=f"{URL}?x=1#f")).jti == "j"
    assert judge(signed(htu="https://AUTH.example.com:443/oauth/%74oken")).jti == "j"


@pytest.mark.requirement("5.2-21", "papaver-47")
def test_c50_a_proof_is_of_this_token_and_key() -> None:
    """`ath` where there is a token, the bound key where one is bound."""
    assert judge(signed(ath=ATH), access_token_ath=ATH).jti == "j"
    assert judge(signed(ath="x")).jti == "j"
    for wrong in (None, "x", "\u00e4", ATH[:-1]):
        assert refused(signed(ath=wrong), access_token_ath=ATH) == "dpop.ath"
    assert refused(signed(), jkt=RSA.public.thumbprint) == "dpop.key-is-bound"


@pytest.mark.requirement("papaver-47")
@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ([], "dpop.header-once"),
        ([signed(), signed()], "dpop.header-once"),
        (["a" * 8193], "dpop.size"),
        (["\u00e4.a.a"], "dpop.form"),
        (["a.b"], "jws.compact-form"),
        ([signed({"crit": ["x"]})], "jws.no-crit"),
        ([signed(jti=5)], "claims.typed"),
        ([signed(nonce=5)], "claims.typed"),
    ],
    ids=["none", "two", "long", "ascii", "segments", "crit", "jti", "nonce"],
)
def test_what_cannot_be_read_is_refused(values: list[str], rule: str) -> None:
    """One header, one proof."""
    with pytest.raises(InvalidDpopProof) as refusal:
        read_proof(values)
    assert refusal.value.rule == rule


@pytest.mark.requirement("papaver-47")
def test_c51_a_demanded_nonce_is_ours_and_recent() -> None:
    """Missing, forged, old; each refusal hands out the current one."""
    nonce = NONCES.current(NOW)
    assert judge(signed(nonce=nonce), nonces=NONCES).jti == "j"
    assert judge(signed(nonce="any")).jti == "j"
    foreign = Nonces(b"f" * 32).current(NOW)
    for wrong in (None, "", "x", "\u00e4", nonce[:-1], foreign, NONCES.current(NOW - 600), NONCES.current(NOW + 300)):
        with pytest.raises(UseDpopNonce) as demand:
            judge(signed(nonce=wrong), nonces=NONCES)
        assert (demand.value.nonce, demand.value.rule, demand.value.code) == (nonce, "dpop.nonce", "use_dpop_nonce")


def test_c51_a_nonce_lives_on_for_one_window() -> None:
    """So that none dies on its way; the secret is not shown, and not short."""
    nonce = NONCES.current(NOW)
    NONCES.check(nonce, NOW)
    NONCES.check(nonce, NOW + 300)
    with pytest.raises(UseDpopNonce):
        NONCES.check(nonce, NOW + 600)
    assert Nonces(b"n" * 32).current(NOW + 299) == nonce
    assert "nnn" not in repr(NONCES)
    with pytest.raises(ValueError, match="32"):
        Nonces(b"short")


def test_a_proof_hides_itself() -> None:
    """It can be replayed."""
    proof = read_proof([signed()])
    assert repr(proof) == "ProofJwt(…)"
    with pytest.raises(TypeError):
        pickle.dumps(proof)
