"""Client assertions: made as every Company accepts them, and refused for one thing at a time."""

from __future__ import annotations

import pickle
from typing import Any

import jwt as pyjwt
import pytest
from joserfc import jwt as joserfc_jwt
from joserfc.jwk import ECKey, RSAKey

from papaver.jose import jws
from papaver.jose.keys import KeySet, PrivateKey, write_key_set
from papaver.oauth import assertions
from papaver.oauth.assertions import ASSERTION_TYPE, make_assertion, read_assertion, verify_assertion
from papaver.oauth.errors import InvalidClient, InvalidOAuthRequest
from papaver.oauth.forms import Form
from papaver.testing.clock import SeededIds
from papaver.values.base64url import encode
from papaver.values.secret import Secret
from papaver.values.strict_json import dumps

ISSUER = "https://auth.example.com"
CLIENT = "https://agent.example/agent.json"
NOW = 1_800_000_000
EC = PrivateKey.generate("ES256", kid="ec")
RSA = PrivateKey.generate("PS384", kid="rsa")
OTHER = PrivateKey.generate("ES256", kid="ec")
KEYS = KeySet.read(write_key_set([EC.public, RSA.public]))
CLAIMS: dict[str, Any] = {"iss": CLIENT, "sub": CLIENT, "aud": ISSUER, "jti": "j", "iat": NOW, "exp": NOW + 60}
AUD_TWICE = dumps(CLAIMS)[:-1] + b',"aud":"x"}'


def form(token: Secret | str, **more: str) -> Form:
    """A token request's parameters, as far as they authenticate."""
    text = token.reveal() if isinstance(token, Secret) else token
    return Form([*{"client_assertion_type": ASSERTION_TYPE, "client_assertion": text, **more}.items()])


def signed(header: dict[str, Any] | None = None, key: PrivateKey = EC, **claims: object) -> str:
    """A correctly signed assertion with some header members and claims changed; None leaves one out."""
    head = {"alg": key.alg, "typ": "JWT", "kid": key.kid, **(header or {})}
    body = {**CLAIMS, **claims}
    segments = [encode(dumps({name: v for name, v in part.items() if v is not None})) for part in (head, body)]
    signing_input = ".".join(segments)
    return f"{signing_input}.{encode(key.sign(signing_input.encode()))}"


def judge(token: Secret | str, keys: KeySet = KEYS, now: float = NOW) -> assertions.VerifiedAssertion:
    """To the last check."""
    return verify_assertion(read_assertion(form(token)), keys, client_id=CLIENT, issuer=ISSUER, now=now)


def refused(token: Secret | str, keys: KeySet = KEYS, now: float = NOW) -> str:
    """The rule that refuses it; the error is always `invalid_client`."""
    with pytest.raises(InvalidClient) as refusal:
        judge(token, keys, now)
    assert refusal.value.code == "invalid_client"
    return refusal.value.rule


@pytest.mark.requirement("4.1-06", "4.1-13", "4.1-14")
@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_ours_verify_by_the_published_keys(key: PrivateKey) -> None:
    """By both algorithms of 4.1."""
    token = make_assertion(key, client_id=CLIENT, issuer=ISSUER, now=NOW + 0.5, jti="j")
    parsed = read_assertion(form(token, client_id=CLIENT))
    assert (parsed.client_id, parsed.kid) == (CLIENT, key.kid)
    assert judge(token) == assertions.VerifiedAssertion(CLIENT, "j", NOW + 60 + 30)


@pytest.mark.requirement("4.1-07", "4.1-09", "4.1-10")
@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_ours_verify_in_other_libraries(key: PrivateKey) -> None:
    """joserfc and PyJWT read our claims: one `aud`, and a minute to live."""
    token = make_assertion(key, client_id=CLIENT, issuer=ISSUER, now=NOW, jti="j").reveal()
    jwk: Any = key.public.jwk()
    public: Any = (ECKey if key.alg == "ES256" else RSAKey).import_key(jwk)
    decoded = joserfc_jwt.decode(token, public, algorithms=[key.alg])
    assert decoded.claims == CLAIMS
    assert decoded.header == {"alg": key.alg, "typ": "JWT", "kid": key.kid}
    assert isinstance(decoded.claims["aud"], str)
    known = pyjwt.PyJWK.from_dict(key.public.entry())
    unlimited: Any = {"verify_exp": False, "verify_iat": False}
    assert pyjwt.decode(token, known, algorithms=[key.alg], audience=ISSUER, options=unlimited) == CLAIMS


@pytest.mark.requirement("4.1-13", "4.1-14")
@pytest.mark.parametrize("key", [EC, RSA], ids=["ES256", "PS384"])
def test_theirs_verify_here(key: PrivateKey) -> None:
    """As joserfc signs."""
    jwk: Any = key.private_jwk()
    private: Any = (ECKey if key.alg == "ES256" else RSAKey).import_key(jwk)
    token = joserfc_jwt.encode({"alg": key.alg, "kid": key.kid}, dict(CLAIMS), private, algorithms=[key.alg])
    assert judge(token).jti == "j"


@pytest.mark.requirement("4.1-10")
@pytest.mark.parametrize("lifetime", [0, -1, 301])
def test_ours_are_short_lived(lifetime: int) -> None:
    """No Company has to accept more than five minutes."""
    with pytest.raises(ValueError, match="300"):
        make_assertion(EC, client_id=CLIENT, issuer=ISSUER, now=NOW, jti="j", lifetime=lifetime)


@pytest.mark.requirement("4.1-11")
def test_ours_have_iat_and_the_jti_that_they_are_given() -> None:
    """A thousand ids, a thousand assertions apart."""
    ids = SeededIds("assertions")
    claims: list[dict[str, Any]] = []
    for _ in range(1000):
        token = make_assertion(EC, client_id=CLIENT, issuer=ISSUER, now=NOW, jti=ids.token())
        claims.append(pyjwt.decode(token.reveal(), options={"verify_signature": False}))
    assert len({one["jti"] for one in claims}) == 1000
    assert min(len(one["jti"]) for one in claims) >= 22
    assert {one["iat"] for one in claims} == {NOW}


@pytest.mark.requirement("4.1-08")
@pytest.mark.parametrize(
    "aud",
    [
        "https://auth.example.com/oauth/token",
        "https://auth.example.com/",
        "https://AUTH.example.com",
        "https://other.example",
        [ISSUER],
        [ISSUER, "https://other.example"],
        [],
        None,
    ],
    ids=["endpoint", "slash", "case", "other", "list", "two", "none", "missing"],
)
def test_b28_an_aud_that_is_not_the_issuer_is_refused(aud: object) -> None:
    """The token endpoint above all, which another Company's metadata may name (4.1)."""
    assert refused(signed(aud=aud)) == "assertion.aud-is-issuer"


@pytest.mark.requirement("4.1-08")
@pytest.mark.parametrize("endpoint", ["token", "revoke", "device_authorization"])
def test_b30_no_endpoint_accepts_its_own_url(endpoint: str) -> None:
    """There is one check, and it knows the issuer alone."""
    assert refused(signed(aud=f"{ISSUER}/{endpoint}")) == "assertion.aud-is-issuer"


@pytest.mark.requirement("4.1-08")
def test_c48_an_aud_list_is_refused_even_with_the_issuer_alone() -> None:
    """One string, and the list of it is not that."""
    assert refused(signed(aud=[ISSUER])) == "assertion.aud-is-issuer"


@pytest.mark.requirement("papaver-42")
@pytest.mark.parametrize("typ", ["poppy-session+jwt", "poppy-delegation+jwt", "dpop+jwt", "at+jwt", "jwt", 1, {}])
def test_c49_a_jwt_of_another_typ_is_no_assertion(typ: object) -> None:
    """A Session JWT, a delegation, a proof and an access token, each with an assertion's claims."""
    assert refused(signed({"typ": typ})) == "assertion.typ"


@pytest.mark.parametrize("typ", [None, "JWT", "client-authentication+jwt"])
def test_an_assertion_may_say_that_it_is_one(typ: object) -> None:
    """Or nothing."""
    assert judge(signed({"typ": typ})).client_id == CLIENT


@pytest.mark.requirement("4.1-09")
@pytest.mark.parametrize(
    "claims", [{"iss": None}, {"sub": None}, {"iss": "https://other.example/a"}, {"sub": "https://other.example/a"}]
)
def test_iss_and_sub_are_both_the_client(claims: dict[str, Any]) -> None:
    """Both, and neither may be missing (RFC 7523 3)."""
    assert refused(signed(**claims)) == "assertion.iss-sub-are-client"


@pytest.mark.requirement("4.1-09", "4.1-11")
@pytest.mark.parametrize(
    "claims",
    [
        {"exp": None},
        {"iat": None},
        {"iat": 0},
        {"iat": NOW, "exp": NOW},
        {"iat": NOW + 31, "exp": NOW + 60},
        {"nbf": NOW + 31},
    ],
)
def test_the_times_are_there_and_in_order(claims: dict[str, Any]) -> None:
    """`iat` and `exp` both, and not ahead of us by more than the skew."""
    assert refused(signed(**claims)) == "assertion.times"


@pytest.mark.requirement("4.1-09")
def test_an_assertion_ends() -> None:
    """Half a minute of grace for two clocks."""
    assert judge(signed(nbf=NOW + 30), now=NOW + 89).until == NOW + 90
    assert refused(signed(), now=NOW + 90) == "assertion.not-expired"


@pytest.mark.requirement("4.1-10")
@pytest.mark.parametrize("claims", [{"exp": NOW + 301}, {"iat": NOW + 30, "exp": NOW + 331}])
def test_long_lived_assertions_are_refused(claims: dict[str, Any]) -> None:
    """Five minutes, by its own clock and by ours."""
    assert judge(signed(exp=NOW + 300)).until == NOW + 330
    assert refused(signed(**claims)) == "assertion.short-lived"
    jwt = read_assertion(form(signed(iat=NOW - 10, exp=NOW + 20)))
    with pytest.raises(InvalidClient) as refusal:
        verify_assertion(jwt, KEYS, client_id=CLIENT, issuer=ISSUER, now=NOW, accepted=20, skew=0)
    assert refusal.value.rule == "assertion.short-lived"


@pytest.mark.requirement("4.1-11")
@pytest.mark.parametrize("jti", [None, "", "j" * 257])
def test_a_jti_is_there_and_bounded(jti: str | None) -> None:
    """It is remembered."""
    assert judge(signed(jti="j" * 256)).jti == "j" * 256
    assert refused(signed(jti=jti)) == "assertion.jti"


@pytest.mark.parametrize(
    "token",
    [
        signed(key=OTHER),
        signed({"kid": "none"}),
        signed({"kid": 1}),
        signed({"kid": "rsa"}),
        signed({"alg": "PS384"}),
        signed()[:-4] + "AAAA",
    ],
    ids=["other-key", "unknown-kid", "kid-number", "kid-of-rsa", "alg-of-rsa", "tampered"],
)
@pytest.mark.requirement("4.1-06")
def test_only_a_published_key_signs(token: str) -> None:
    """By the algorithm that is its own."""
    assert refused(token) == "assertion.signed-by-jwks-key"


def test_without_kid_the_only_key_of_the_alg_is_meant() -> None:
    """RFC 7515 4.1.4 leaves `kid` to the signer; of two keys none is guessed."""
    token = signed({"kid": None})
    assert read_assertion(form(token)).kid is None
    assert judge(token).client_id == CLIENT
    two = KeySet.read(write_key_set([EC.public, PrivateKey.generate().public]))
    assert refused(token, two) == "assertion.signed-by-jwks-key"


@pytest.mark.requirement("papaver-42")
@pytest.mark.parametrize("alg", ["none", "HS256", "RS256", "ES384", None, 1, []])
def test_other_algorithms_are_refused(alg: object) -> None:
    """ES256 and PS384."""
    assert refused(signed({"alg": alg})) == "assertion.alg"


@pytest.mark.requirement("papaver-42")
@pytest.mark.parametrize(
    ("token", "rule"),
    [
        ("a.b", "jws.compact-form"),
        ("\u00e4.a.a", "assertion.form"),
        (signed({"crit": ["exp"], "exp": 1}), "jws.no-crit"),
        (signed(iss=5), "claims.typed"),
        (signed(aud=5), "claims.typed"),
        (f"{encode(b'{}')}.{encode(b'[]')}.AAAA", "claims.typed"),
        (f"{encode(b'{}')}.{encode(AUD_TWICE)}.AAAA", "claims.typed"),
        ("a" * 8193, "assertion.size"),
    ],
    ids=["segments", "ascii", "crit", "iss-type", "aud-type", "list", "aud-twice", "size"],
)
def test_what_cannot_be_read_is_refused(token: str, rule: str) -> None:
    """Before any key is looked for."""
    with pytest.raises(InvalidClient) as refusal:
        read_assertion(form(token))
    assert refusal.value.rule == rule


@pytest.mark.requirement("4.1-06")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {"client_assertion_type": ASSERTION_TYPE},
        {"client_assertion": signed()},
        {
            "client_assertion": signed(),
            "client_assertion_type": f"{ASSERTION_TYPE}x",
        },
    ],
)
def test_an_assertion_is_given_and_named(given: dict[str, str]) -> None:
    """`private_key_jwt` is the one way (4.1)."""
    with pytest.raises(InvalidClient) as refusal:
        read_assertion(Form(given.items()))
    assert refusal.value.rule == "assertion.given"


@pytest.mark.requirement("papaver-42")
def test_nothing_else_authenticates() -> None:
    """A secret beside the assertion, another `client_id`, an assertion twice."""
    with pytest.raises(InvalidClient) as secret:
        read_assertion(form(signed(), client_secret="x"))
    assert secret.value.rule == "assertion.only-method"
    with pytest.raises(InvalidClient) as other:
        read_assertion(form(signed(), client_id="https://other.example/a"))
    assert other.value.rule == "assertion.client-id-parameter"
    with pytest.raises(InvalidOAuthRequest) as twice:
        read_assertion(Form([("client_assertion", signed()), ("client_assertion", signed())]))
    assert twice.value.rule == "oauth.parameter-once"


def test_an_assertion_hides_itself() -> None:
    """It can be replayed."""
    parsed = read_assertion(form(signed()))
    assert repr(parsed) == "AssertionJwt(…)"
    with pytest.raises(TypeError):
        pickle.dumps(parsed)
    made = make_assertion(EC, client_id=CLIENT, issuer=ISSUER, now=NOW, jti="j")
    assert made.reveal() not in repr(made)
    assert jws.read_compact(made.reveal().encode()).payload == dumps(CLAIMS)
