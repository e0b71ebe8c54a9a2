"""Access tokens of an issuer that is not ours: JWTs by an independent signer, introspection, and what is refused."""

from __future__ import annotations

import base64
import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jws as oracle
from joserfc.jwk import ECKey, RSAKey

from papaver.jose.issuer_keys import IssuerKeySet
from papaver.jose.jws import JwsError
from papaver.oauth.access_tokens import (
    AccessToken,
    AccessTokenRefused,
    IntrospectionFailed,
    introspection_request,
    read_introspection,
    read_jwt_access_token,
)
from papaver.values.secret import Secret
from papaver.web.messages import Response

NOW = 1_800_000_000.0
ISSUER = "https://auth.example.com"
AGENT = "https://agent.example/agent.json"
KEY: Any = RSAKey.generate_key(2048, {"kid": "k1"})
KEYS = IssuerKeySet.read({"keys": [KEY.as_dict(private=False)]})
GOOD: dict[str, object] = {
    "iss": ISSUER,
    "sub": "acct_1",
    "aud": ["https://example.com"],
    "client_id": AGENT,
    "scope": "orders:read orders:write",
    "exp": NOW + 3600,
    "iat": NOW,
}


def token(header: dict[str, Any] | None = None, key: Any = KEY, alg: str = "RS256", **claims: Any) -> str:
    """A good token but for what is named; None leaves a member out."""
    head = {"typ": "at+jwt", "alg": alg, "kid": "k1", **(header or {})}
    body = {name: value for name, value in {**GOOD, **claims}.items() if value is not None}
    return oracle.serialize_compact(
        {name: value for name, value in head.items() if value is not None}, json.dumps(body), key, algorithms=[alg]
    )


def read(text: str, **options: Any) -> AccessToken:
    said: dict[str, Any] = {"issuer": ISSUER, "now": NOW, **options}
    return read_jwt_access_token(text, KEYS, **said)


def refused(text: str, **options: Any) -> str:
    with pytest.raises(AccessTokenRefused) as caught:
        read(text, **options)
    assert caught.value.code == "invalid_token"
    return caught.value.rule


def test_a_jwt_says_whom_it_is_for_and_what_it_may() -> None:
    """RFC 9068 2.2: client, account, scopes, end and audience."""
    assert read(token()) == AccessToken(
        AGENT, "acct_1", frozenset({"orders:read", "orders:write"}), NOW + 3600, ("https://example.com",), None
    )


@pytest.mark.parametrize(
    ("claims", "attribute", "value"),
    [
        ({"aud": "https://example.com"}, "audience", ("https://example.com",)),
        ({"aud": None}, "audience", ()),
        ({"client_id": None, "azp": AGENT}, "client_id", AGENT),
        ({"azp": AGENT}, "client_id", AGENT),
        ({"act": {"client_id": "https://other.example/a.json"}}, "client_id", AGENT),
        ({"scope": None}, "scopes", frozenset[str]()),
        ({"scope": ["a", "b"]}, "scopes", frozenset({"a", "b"})),
        ({"scope": None, "scp": "a b"}, "scopes", frozenset({"a", "b"})),
        ({"scope": None, "scp": ["a"]}, "scopes", frozenset({"a"})),
        ({"cnf": {"jkt": "thumb"}}, "jkt", "thumb"),
        ({"cnf": {"x5t#S256": "x"}}, "jkt", None),
    ],
)
def test_what_servers_write_otherwise_is_understood(claims: dict[str, Any], attribute: str, value: object) -> None:
    """Lists for texts, `azp` for `client_id`, `scp` for `scope`; an actor's client is never the client."""
    assert getattr(read(token(**claims)), attribute) == value


@pytest.mark.requirement("papaver-106")
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        (token({"typ": "JWT"}), "token.typ"),
        (token({"typ": None}), "token.typ"),
        (token(iss=ISSUER + "/"), "token.issuer"),
        (token(iss=None), "token.issuer"),
        (token(exp=NOW - 5), "token.times"),
        (token(exp=None), "token.times"),
        (token(nbf=NOW + 61), "token.times"),
        (token(iat=NOW + 61), "token.times"),
        (token(client_id=None), "token.client"),
        (token(client_id=None, act={"client_id": AGENT}), "token.client"),
        (token(azp="https://other.example/a.json"), "token.client"),
        (token(sub=None), "token.subject"),
        (token(sub=AGENT), "token.subject"),
        (token(sub=7), "token.jwt"),
        ("a" * 16_385, "token.jwt"),
    ],
    ids=[
        "typ-jwt",
        "no-typ",
        "issuer-with-slash",
        "no-issuer",
        "expired",
        "no-exp",
        "not-begun",
        "issued-ahead",
        "no-client",
        "only-an-actors-client",
        "two-clients",
        "no-subject",
        "client-is-subject",
        "subject-no-text",
        "too-long",
    ],
)
def test_a_wrong_token_is_refused_for_what_is_wrong(text: str, rule: str) -> None:
    """One member of a good, correctly signed token is another."""
    assert refused(text) == rule


def test_an_issuer_that_does_not_type_its_tokens_may_be_taken() -> None:
    """Said explicitly, by the Company."""
    assert read(token({"typ": "JWT"}), typed=False).subject == "acct_1"


@pytest.mark.requirement("papaver-106")
def test_an_audience_is_required_when_one_is_expected() -> None:
    """One of several is enough."""
    assert read(token(), audience=("https://a.example", "https://example.com")).client_id == AGENT
    assert refused(token(), audience=("https://a.example",)) == "token.audience"


def test_a_signature_by_another_key_is_no_token() -> None:
    """The caller sees which part of the JWS it was."""
    with pytest.raises(JwsError) as caught:
        read(token(key=RSAKey.generate_key(2048, {"kid": "k1"})))
    assert caught.value.rule == "jws.signature"
    with pytest.raises(JwsError) as unknown:
        read(token({"kid": "k2"}, ECKey.generate_key("P-256", {"kid": "k2"}), "ES256"))
    assert unknown.value.rule == "jws.kid"


def test_a_token_is_good_for_a_leeway_after_its_end() -> None:
    """Five seconds, for clocks (readings 17)."""
    assert read(token(exp=NOW - 4)).expires_at == NOW - 4


def answer(status: int = 200, **members: object) -> Response:
    body = {"active": True, **GOOD, **members}
    return Response(status, body=json.dumps({k: v for k, v in body.items() if v is not None}).encode())


def test_introspection_asks_as_a_client_and_shows_no_secret() -> None:
    """RFC 7662 2.1: the token in the body, the client by HTTP Basic, form-encoded before (RFC 6749 2.3.1)."""
    request = introspection_request(
        f"{ISSUER}/introspect", Secret("tok:en"), client_id="shop:1", client_secret=Secret("p ss")
    )
    assert request.body == b"token=tok%3Aen&token_type_hint=access_token"
    basic = (request.headers.first("authorization") or "").removeprefix("Basic ")
    assert base64.b64decode(basic) == b"shop%3A1:p+ss"
    assert "tok" not in repr(request)
    assert "authorization" not in introspection_request(f"{ISSUER}/introspect", Secret("t")).headers


def test_an_active_token_is_read_like_a_jwt() -> None:
    """RFC 7662 2.2: the same members; `iss` and `exp` may be left out."""
    found = read_introspection(answer(iss=None, exp=None), issuer=ISSUER, now=NOW)
    assert (found.client_id, found.expires_at) == (AGENT, None)


@pytest.mark.requirement("papaver-106")
@pytest.mark.parametrize(
    ("response", "rule"),
    [
        (answer(active=False), "token.active"),
        (Response(200, body=b"{}"), "token.active"),
        (answer(iss="https://other.example"), "token.issuer"),
        (answer(exp=NOW - 60), "token.times"),
        (answer(client_id=None), "token.client"),
        (answer(sub=None), "token.subject"),
    ],
    ids=["inactive", "silent", "issuer", "expired", "no-client", "no-subject"],
)
def test_a_token_that_is_not_active_is_refused(response: Response, rule: str) -> None:
    """Or one of whom the answer says something that is not good here."""
    with pytest.raises(AccessTokenRefused) as caught:
        read_introspection(response, issuer=ISSUER, now=NOW)
    assert caught.value.rule == rule


@pytest.mark.parametrize(
    "response",
    [answer(401), answer(500), Response(200, body=b"<html>"), Response(200, body=b"[]"), answer(sub=1)],
    ids=["401", "500", "html", "list", "sub-number"],
)
def test_an_answer_that_is_none_says_nothing_about_the_token(response: Response) -> None:
    """The token may be good: the check could not be made (readings 15)."""
    with pytest.raises(IntrospectionFailed) as caught:
        read_introspection(response, issuer=ISSUER, now=NOW)
    assert (caught.value.code, caught.value.rule) == ("introspection_failed", "token.introspection")


TEXT = token()


@given(st.data())
def test_whatever_is_mutated_only_a_refusal_comes_out(data: st.DataObject) -> None:
    """Characters of a good token changed, added or left out."""
    at = data.draw(st.integers(0, len(TEXT) - 1))
    text = TEXT[:at] + data.draw(st.text(max_size=2)) + TEXT[at + data.draw(st.integers(0, 2)) :]
    with suppress(AccessTokenRefused, JwsError):
        assert read(text).subject == "acct_1"


@given(st.binary(max_size=60))
def test_whatever_an_introspection_answers_only_its_own_errors_come_out(body: bytes) -> None:
    """Any octets."""
    with suppress(AccessTokenRefused, IntrospectionFailed):
        read_introspection(Response(200, body=body), issuer=ISSUER, now=NOW)


def test_a_signed_payload_that_is_no_object_is_refused() -> None:
    """Correctly signed, and a list."""
    text = oracle.serialize_compact({"typ": "at+jwt", "alg": "RS256", "kid": "k1"}, b"[]", KEY, algorithms=["RS256"])
    assert refused(text) == "token.jwt"
