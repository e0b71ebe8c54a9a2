"""Fuzzing assertions, proofs, access tokens and answers: valid and correctly signed, then spoiled in a few places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from papaver.jose.issuer_keys import IssuerKeySet
from papaver.jose.keys import KeySet, PrivateKey, write_key_set
from papaver.oauth.access_tokens import read_introspection, read_jwt_access_token
from papaver.oauth.answers import read_error
from papaver.oauth.assertions import ASSERTION_TYPE, read_assertion, verify_assertion
from papaver.oauth.device import check_link, read_device_response
from papaver.oauth.dpop import Nonces, read_proof, verify_proof
from papaver.oauth.errors import OAuthError
from papaver.oauth.forms import Form
from papaver.oauth.metadata import missing_members
from papaver.oauth.tokens import read_token_response
from papaver.values.base64url import encode
from papaver.values.strict_json import JsonError, dumps
from papaver.web.messages import Headers, Response
from tests.fuzz.mutations import mutated

NOW = 1_800_000_000
ISSUER = "https://auth.example.com"
CLIENT = "https://agent.example/agent.json"
KEY = PrivateKey.generate("ES256", kid="k1")
KEYS = KeySet.read(write_key_set([KEY.public]))
ISSUER_KEYS = IssuerKeySet.read(write_key_set([KEY.public]))
NONCES = Nonces(b"n" * 32)
ASSERTION: dict[str, Any] = {
    "header": {"alg": "ES256", "typ": "JWT", "kid": "k1"},
    "claims": {"iss": CLIENT, "sub": CLIENT, "aud": ISSUER, "jti": "j", "iat": NOW, "exp": NOW + 60},
}
PROOF: dict[str, Any] = {
    "header": {"alg": "ES256", "typ": "dpop+jwt", "jwk": KEY.public.jwk()},
    "claims": {"jti": "j", "htm": "POST", "htu": ISSUER, "iat": NOW, "ath": "a", "nonce": NONCES.current(NOW)},
}
TOKEN: dict[str, Any] = {
    "header": {"alg": "ES256", "typ": "at+jwt", "kid": "k1"},
    "claims": {"iss": ISSUER, "sub": "a", "client_id": CLIENT, "aud": [ISSUER], "exp": NOW + 60, "scope": "a b"},
}
ANSWERS: tuple[dict[str, Any], ...] = (
    {"access_token": "t", "token_type": "Bearer", "expires_in": 60, "refresh_token": "r", "scope": "a"},
    {
        "device_code": "d",
        "user_code": "WDJB-MJHT",
        "verification_uri": ISSUER,
        "verification_uri_complete": ISSUER,
        "expires_in": 600,
        "interval": 5,
    },
    {
        "active": True,
        "client_id": CLIENT,
        "sub": "a",
        "exp": NOW + 60,
        "cnf": {"jkt": "x"},
        "scope": "a",
        "aud": ISSUER,
    },
    {"error": "invalid_grant", "error_description": "x"},
    {"issuer": ISSUER, "grant_types_supported": ["refresh_token", "authorization_code"], "protected_resources": ["x"]},
)


def signed(jwt: Any) -> str | None:
    """A JWT of these parts, correctly signed; None for parts that are none."""
    try:
        segments = [encode(dumps(jwt[part])) for part in ("header", "claims")]
    except (JsonError, KeyError, TypeError):
        return None
    signing_input = ".".join(segments)
    return f"{signing_input}.{encode(KEY.sign(signing_input.encode()))}"


def refusal_of(judge: Callable[..., object], *inputs: object) -> OAuthError | None:
    """What an attempt is refused for; any other error is a failure."""
    try:
        judge(*inputs)
    except OAuthError as error:
        return error
    return None


def judge_assertion(token: str) -> None:
    form = Form([("client_assertion_type", ASSERTION_TYPE), ("client_assertion", token)])
    verify_assertion(read_assertion(form), KEYS, client_id=CLIENT, issuer=ISSUER, now=NOW)


def judge_proof(token: str) -> None:
    proof = read_proof([token])
    expected: dict[str, Any] = {"access_token_ath": "a", "jkt": KEY.public.thumbprint, "nonces": NONCES}
    verify_proof(proof, method="POST", url=ISSUER, now=NOW, **expected)


def judge_token(token: str) -> None:
    read_jwt_access_token(token, ISSUER_KEYS, issuer=ISSUER, now=NOW)


def test_the_unspoiled_ones_stand() -> None:
    """What is spoiled below was good before, and each of the three only in its own place."""
    tokens = [str(signed(jwt)) for jwt in (ASSERTION, PROOF, TOKEN)]
    for place, judge in enumerate((judge_assertion, judge_proof, judge_token)):
        refusals = [refusal_of(judge, token) for token in tokens]
        assert [refusal is None for refusal in refusals] == [place == other for other in range(3)]


@given(mutated((ASSERTION, PROOF, TOKEN)))
def test_spoiled_jwts_are_believed_or_refused(jwt: Any) -> None:
    """By a rule, and by nothing but an error of OAuth."""
    token = signed(jwt)
    if token is None:
        return
    for judge in (judge_assertion, judge_proof, judge_token):
        refusal = refusal_of(judge, token)
        assert refusal is None or refusal.rule


@given(mutated(ANSWERS), st.sampled_from((200, 400, 503)))
def test_spoiled_answers_are_read_or_refused(document: Any, status: int) -> None:
    """Of every endpoint that a Personal Agent or a Company asks."""
    try:
        response = Response(status, Headers([("dpop-nonce", "n")]), dumps(document))
    except JsonError:
        return
    missing_members(document)
    assert read_error(response).code

    def device() -> None:
        check_link(read_device_response(response), issuer=ISSUER, protected_resources=())

    for judge in (
        device,
        lambda: read_token_response(response, requested=("a",)),
        lambda: read_introspection(response, NOW, issuer=ISSUER),
    ):
        refusal = refusal_of(judge)
        assert refusal is None or refusal.code


@given(st.binary(max_size=200))
def test_any_octets_are_an_answer_or_none(body: bytes) -> None:
    """An error is found in whatever came."""
    assert read_error(Response(400, body=body)).code


@given(st.text(max_size=200))
def test_any_text_is_no_jwt(text: str) -> None:
    """Refused, never an accident."""
    for judge in (judge_assertion, judge_proof, judge_token):
        refusal = refusal_of(judge, text)
        assert refusal is not None
        assert refusal.rule
