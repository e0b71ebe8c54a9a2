"""Access tokens of other issuers: JWTs and introspected ones, believed for what they say and no more."""

from __future__ import annotations

from typing import Any

import pytest
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import ECKey

from papaver.jose.issuer_keys import IssuerKeySet
from papaver.jose.keys import PrivateKey, write_key_set
from papaver.oauth.access_tokens import (
    AccessToken,
    TokenProfile,
    introspection_request,
    read_introspection,
    read_jwt_access_token,
)
from papaver.oauth.answers import write_answer
from papaver.oauth.errors import InvalidAccessToken, InvalidOAuthResponse, TryLater
from papaver.oauth.forms import read_form
from papaver.values.base64url import encode
from papaver.values.secret import Secret
from papaver.values.strict_json import dumps
from papaver.web.messages import Response

ISSUER = "https://auth.example.com"
CLIENT = "https://agent.example/agent.json"
NOW = 1_800_000_000
KEY = PrivateKey.generate("ES256", kid="k1")
KEYS = IssuerKeySet.read(write_key_set([KEY.public]))
CLAIMS: dict[str, Any] = {
    "iss": ISSUER,
    "sub": "account-1",
    "client_id": CLIENT,
    "aud": ["https://example.com"],
    "exp": NOW + 600,
    "iat": NOW,
    "jti": "t1",
    "scope": "orders:read orders:write",
}
BELIEVED = AccessToken(
    CLIENT, "account-1", frozenset({"orders:read", "orders:write"}), NOW + 600, ("https://example.com",)
)
ACTIVE = {**CLAIMS, "active": True, "token_type": "Bearer"}


def signed(header: dict[str, Any] | None = None, key: PrivateKey = KEY, **claims: object) -> Secret:
    """A correctly signed token with some header members and claims changed; None leaves one out."""
    head = {"typ": "at+jwt", "alg": key.alg, "kid": key.kid, **(header or {})}
    body = {**CLAIMS, **claims}
    segments = [encode(dumps({name: v for name, v in part.items() if v is not None})) for part in (head, body)]
    signing_input = ".".join(segments)
    return Secret(f"{signing_input}.{encode(key.sign(signing_input.encode()))}")


def judge(token: Secret | str, **more: Any) -> AccessToken:
    """To the last check."""
    asked: dict[str, Any] = {"issuer": ISSUER, "now": NOW, **more}
    return read_jwt_access_token(token, KEYS, **asked)


def refused(token: Secret | str, **more: Any) -> str:
    """The rule that refuses it; the error is `invalid_token`."""
    with pytest.raises(InvalidAccessToken) as refusal:
        judge(token, **more)
    assert refusal.value.code == "invalid_token"
    return refusal.value.rule


def test_a_token_of_the_rfc_is_believed() -> None:
    """RFC 9068, also as joserfc signs it."""
    assert judge(signed()) == BELIEVED
    jwk: Any = KEY.private_jwk()
    private = ECKey.import_key(jwk)
    token = joserfc_jwt.encode(
        {"alg": "ES256", "typ": "application/at+jwt", "kid": "k1"}, dict(CLAIMS), private, algorithms=["ES256"]
    )
    assert judge(token) == BELIEVED


def test_a_bound_token_says_its_key() -> None:
    """RFC 9449 6.1; another `cnf` binds to nothing that is known here."""
    assert judge(signed(cnf={"jkt": "thumb"})).jkt == "thumb"
    assert judge(signed(cnf={"x5t#S256": "other"})).jkt is None


@pytest.mark.parametrize(
    ("claims", "believed"),
    [
        ({"aud": None}, ()),
        ({"aud": "https://a.example"}, ("https://a.example",)),
        ({"aud": ["https://a.example", "https://b.example"]}, ("https://a.example", "https://b.example")),
    ],
)
def test_an_audience_may_be_a_list(claims: dict[str, Any], believed: tuple[str, ...]) -> None:
    """RFC 7519 4.1.3: unlike a client assertion's."""
    assert judge(signed(**claims)).audience == believed


@pytest.mark.parametrize("scope", [None, "", [], ["orders:read", "orders:write"]])
def test_scopes_may_be_a_list_or_none(scope: object) -> None:
    """As some issuers write them."""
    assert judge(signed(scope=scope)).scopes == (BELIEVED.scopes if scope else frozenset())


@pytest.mark.requirement("papaver-48")
def test_the_client_is_client_id_else_azp_and_never_the_actor() -> None:
    """5.3: `act` says who acts for somebody, and not whom the token was issued to."""
    act = {"client_id": "https://evil.example/a", "sub": "x"}
    assert judge(signed(client_id=None, azp=CLIENT, act=act)).client_id == CLIENT
    assert judge(signed(azp=CLIENT)).client_id == CLIENT
    assert refused(signed(client_id=None, act=act)) == "oauth.token-client"
    assert refused(signed(azp="https://other.example/a")) == "oauth.token-client"


@pytest.mark.requirement("papaver-48")
@pytest.mark.parametrize(
    ("header", "claims", "rule"),
    [
        ({"typ": "JWT"}, {}, "oauth.token-typ"),
        ({"typ": None}, {}, "oauth.token-typ"),
        ({"typ": "poppy-session+jwt"}, {}, "oauth.token-typ"),
        ({"kid": "other"}, {}, "jws.kid"),
        ({"alg": "PS384"}, {}, "jws.kid"),
        ({"alg": "HS256"}, {}, "issuer.alg"),
        ({"crit": ["x"]}, {}, "jws.no-crit"),
        ({}, {"iss": f"{ISSUER}/"}, "oauth.token-issuer"),
        ({}, {"iss": None}, "oauth.token-issuer"),
        ({}, {"exp": None}, "oauth.token-exp"),
        ({}, {"exp": NOW - 5}, "oauth.token-times"),
        ({}, {"nbf": NOW + 6}, "oauth.token-times"),
        ({}, {"sub": None}, "oauth.token-subject"),
        ({}, {"sub": "s" * 257}, "oauth.token-subject"),
        ({}, {"scope": 'a"'}, "oauth.token-scope"),
        ({}, {"scope": 5}, "claims.typed"),
        ({}, {"cnf": "x"}, "claims.typed"),
    ],
)
def test_what_a_token_is_refused_for(header: dict[str, Any], claims: dict[str, Any], rule: str) -> None:
    """One thing wrong in a correctly signed token."""
    assert refused(signed(header, **claims)) == rule


@pytest.mark.requirement("papaver-48")
def test_what_is_no_token_is_refused() -> None:
    """Another key's signature, another shape, another alphabet, endless."""
    assert refused(signed(key=PrivateKey.generate("ES256", kid="k1"))) == "jws.signature"
    assert refused("opaque") == "jws.compact-form"
    assert refused("\u00e4.b.c") == "jws.compact-form"
    assert refused("a" * 8193) == "oauth.token-size"


@pytest.mark.requirement("papaver-48")
def test_a_profile_names_the_audience_and_a_plain_typ() -> None:
    """A plain JWT without `scope` may be an ID token, and is refused."""
    here = TokenProfile(audiences=("https://example.com",))
    assert judge(signed(), profile=here) == BELIEVED
    assert refused(signed(aud="https://other.example"), profile=here) == "oauth.token-audience"
    plain = TokenProfile(typs=("JWT",))
    assert judge(signed({"typ": "jwt"}), profile=plain) == BELIEVED
    assert refused(signed({"typ": "JWT"}, scope=None), profile=plain) == "oauth.token-typ"


def test_an_introspection_request_authenticates_as_the_issuer_wants() -> None:
    """By a header or by an assertion; the token is in the body alone."""
    by_header = introspection_request(f"{ISSUER}/introspect", Secret("t0k"), authorization=Secret("Bearer x"))
    assert by_header.headers.first("Authorization") == "Bearer x"
    assert dict(read_form(by_header.body)) == {"token": ("t0k",), "token_type_hint": ("access_token",)}
    assert "t0k" not in repr(by_header)
    form = read_form(
        introspection_request(f"{ISSUER}/introspect", Secret("t"), client_id="c", assertion=Secret("a.b.c")).body
    )
    assert (form.one("client_id"), form.one("client_assertion")) == ("c", "a.b.c")


def test_an_introspected_token_is_believed() -> None:
    """RFC 7662 2.2: what is absent or null says nothing."""
    assert read_introspection(write_answer(ACTIVE), NOW, issuer=ISSUER) == BELIEVED
    sparse = write_answer({"active": True, "client_id": CLIENT, "sub": "account-1", "exp": None, "iss": None})
    assert read_introspection(sparse, NOW, issuer=ISSUER) == AccessToken(CLIENT, "account-1", frozenset())


@pytest.mark.requirement("papaver-48")
@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"active": False}, "oauth.token-active"),
        ({"active": "true"}, "oauth.token-active"),
        ({"active": 1}, "oauth.token-active"),
        ({"iss": "https://other.example"}, "oauth.token-issuer"),
        ({"exp": NOW - 5}, "oauth.token-times"),
        ({"client_id": None}, "oauth.token-client"),
        ({"sub": None}, "oauth.token-subject"),
    ],
)
def test_an_introspected_token_is_judged_too(changed: dict[str, Any], rule: str) -> None:
    """The same checks, but for those of a JWT."""
    with pytest.raises(InvalidAccessToken) as refusal:
        read_introspection(write_answer({**ACTIVE, **changed}), NOW, issuer=ISSUER)
    assert refusal.value.rule == rule


def test_an_issuer_that_does_not_answer_is_no_refusal() -> None:
    """Neither a failure nor nonsense says anything about the token."""
    with pytest.raises(TryLater):
        read_introspection(Response(503), NOW)
    with pytest.raises(InvalidOAuthResponse) as refusal:
        read_introspection(write_answer({**ACTIVE, "exp": "soon"}), NOW)
    assert refusal.value.rule == "oauth.answer-member"
