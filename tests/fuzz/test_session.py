"""Session headers, delegations and key sets that begin right, are changed in one place, and are signed correctly.

Only our own error comes out, and whatever is accepted says what was signed. The corpus reaches each line of the parsers
(`jws`, `claims`, and the readers of `keys`, `delegation` and `session`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from papaver.jose.jws import JwsError, verify
from papaver.jose.keys import KeyRefused, KeySet, KeySetError, PrivateKey, PublicKey
from papaver.protocol.delegation import DelegationCache
from papaver.protocol.errors import InvalidSession
from papaver.protocol.session import ProvenSession, expect
from papaver.testing.keys import NOW, OMIT, AgentKeys
from papaver.values.base64url import decode, encode
from papaver.versions.v0_4.session import SESSION
from papaver.web.messages import Headers
from tests.fuzz.seeds import unreached

COMPANY = "https://auth.example.com"
URL = "https://api.example.com/orders"
AGENT = AgentKeys()
KEYS = KeySet.read(AGENT.jwks())
RSA = AgentKeys(identity=PrivateKey.generate("PS384"))
EXPECTED = expect(company_id=COMPANY, method="GET", url=URL, now=NOW)
GOOD = AGENT.header("GET", URL, COMPANY, agent_id="agt_1", access_token="token")
DELEGATION = AGENT.delegation()
STRANGER = PrivateKey.generate()
CACHE = DelegationCache(total=50, per_client=50)

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["ES256", "", NOW]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)
raw_values = st.sampled_from(
    [b"NaN", b"1e999", b"-0", b"1.0", b"9" * 4299, b"9" * 4301, b'"\\ud800"', b'"\xff"', b"[" * 600 + b"]" * 600, b""]
) | json_values.map(lambda value: json.dumps(value).encode())


def outcome(header: str) -> ProvenSession | InvalidSession:
    """What the Company makes of a header. Any other error fails the test."""
    try:
        return SESSION.verify(SESSION.read(Headers([("poppy-session", header)])), KEYS, EXPECTED, CACHE)
    except InvalidSession as error:
        refusal = error
    assert refusal.rule
    assert len(refusal.detail) < 1000
    return refusal


def signed(key: PrivateKey, header: bytes, payload: bytes) -> str:
    """A JWS with these very octets, signed correctly."""
    signing_input = f"{encode(header)}.{encode(payload)}"
    return f"{signing_input}.{encode(key.sign(signing_input.encode()))}"


def parts(token: str) -> tuple[bytes, bytes]:
    """The decoded header and payload."""
    header, payload, _ = token.split(".")
    return decode(header), decode(payload)


@st.composite
def changed_object(draw: st.DrawFn, whole: bytes) -> bytes:
    """A JSON object with one member left out, replaced, repeated or renamed, or with one octet changed."""
    members: list[tuple[bytes, bytes]] = [
        (json.dumps(name).encode(), json.dumps(value).encode()) for name, value in json.loads(whole).items()
    ]
    where = draw(st.integers(0, len(members) - 1))
    name, value = members[where]
    how = draw(st.sampled_from(["leave out", "replace", "repeat", "rename", "add", "octet", "space"]))
    match how:
        case "leave out":
            del members[where]
        case "replace":
            members[where] = name, draw(raw_values)
        case "repeat":
            members.append((name, draw(st.just(value) | raw_values)))
        case "rename":
            members[where] = json.dumps(draw(st.text(max_size=5))).encode(), value
        case "add":
            members.append(
                (json.dumps(draw(st.sampled_from(["crit", "b64", "x", "scope"]))).encode(), draw(raw_values))
            )
        case "space":
            members[where] = name + b" ", b"\t" + value + b"\r\n"
        case _:
            at = draw(st.integers(0, len(whole) - 1))
            return whole[:at] + draw(st.binary(max_size=2)) + whole[at + draw(st.integers(0, 2)) :]
    return b"{" + b",".join(name + b":" + value for name, value in members) + b"}"


@given(st.data())
def test_a_changed_payload_that_is_signed_is_accepted_as_it_says_or_refused(data: st.DataObject) -> None:
    """A careful reader agrees with whatever was accepted, and finds no member twice."""
    header, payload = parts(GOOD)
    changed = data.draw(changed_object(payload))
    result = outcome(signed(AGENT.delegated, header, changed))
    if isinstance(result, ProvenSession):
        pairs: list[tuple[str, Any]] = json.loads(changed, object_pairs_hook=list)
        assert len(dict(pairs)) == len(pairs)
        said = dict(pairs)
        assert (result.client_id, result.sid, result.user_id) == (said["iss"], said["sid"], said["sub"])
        assert (result.agent_id, result.ath) == (said.get("agent_id"), said.get("ath"))
        assert (said["aud"], said["htm"], result.jti) == (COMPANY, "GET", said["jti"])
        assert abs(said["iat"] - NOW) <= 60


@given(st.data())
def test_a_changed_header_that_is_signed_is_accepted_only_with_the_right_members(data: st.DataObject) -> None:
    """`typ`, `alg`, `kid` and the delegation are what they have to be, and `crit` is absent."""
    header, payload = parts(GOOD)
    changed = data.draw(changed_object(header))
    result = outcome(signed(AGENT.delegated, changed, payload))
    if isinstance(result, ProvenSession):
        said, wanted = json.loads(changed), json.loads(header)
        assert {name: said[name] for name in wanted} == wanted
        assert "crit" not in said


@pytest.mark.parametrize("agent", [AGENT, RSA], ids=["ES256", "PS384"])
@given(data=st.data())
def test_a_changed_delegation_that_is_signed_stays_within_its_rules(agent: AgentKeys, data: st.DataObject) -> None:
    """Header and claims of the delegation, each changed in one place and signed by the published key."""
    header, payload = parts(agent.delegation())
    if data.draw(st.booleans()):
        header = data.draw(changed_object(header))
    else:
        payload = data.draw(changed_object(payload))
    token = agent.header("GET", URL, COMPANY, delegation=signed(agent.identity, header, payload))
    keys = KeySet.read(agent.jwks())
    try:
        proven = SESSION.verify(SESSION.read_value(token), keys, EXPECTED)
    except InvalidSession:
        return
    assert json.loads(header)["typ"] == "poppy-delegation+jwt"
    said = json.loads(payload)
    assert said["iss"] == agent.client_id
    assert NOW - 5 < said["exp"] <= said["iat"] + 86_400
    assert said["cnf"]["jwk"].keys() & {"d", "k"} == set()
    assert proven.delegation.key == agent.delegated.public


TIMES = [0, NOW, NOW - 60, NOW - 61, NOW + 61, NOW + 30_000, NOW + 90_000]
TEXTS = ["", "GET", "get", URL, URL + "/", URL + "#a", "nonsense", COMPANY, "a.b", "s" * 256, "s" * 257]
NEAR = st.sampled_from([*TIMES, *TEXTS, OMIT, None, "PS384", "unknown", AGENT.identity.kid, "poppy-delegation+jwt"])


@example("claims", "aud", "x", None)
@example("claims", "htm", "POST", None)
@example("claims", "htu", "nonsense", None)
@example("claims", "iat", NOW + 61, None)
@example("claims", "agent_id", "", None)
@example("claims", "sub", "s" * 257, None)
@example("claims", "sid", "a.b", None)
@example("claims", "jti", OMIT, None)
@example("claims", "jti", "j", STRANGER)
@example("header", "alg", "PS384", None)
@example("header", "kid", "unknown", None)
@example("header", "typ", "JWT", None)
@example("header", "poppy_dlg", OMIT, None)
@example("delegation", "iat", NOW + 61, None)
@example("delegation", "iat", NOW + 30_000, None)
@example("delegation", "exp", NOW + 90_000, None)
@example("delegation", "exp", NOW - 60, None)
@example("delegation", "exp", NOW - 61, None)
@example("delegation", "jti", "", None)
@example("delegation", "cnf", {"jwk": AGENT.delegated.private_jwk()}, None)
@example("delegation", "cnf", {"jwk": RSA.identity.public.jwk()}, None)
@example("delegation", "cnf", {"jwk": {}}, None)
@example("delegation header", "alg", "PS384", None)
@example("delegation header", "alg", "none", None)
@example("delegation header", "kid", OMIT, None)
@example("delegation header", "typ", "pap-delegation+jwt", None)
@given(
    st.sampled_from(["claims", "header", "delegation", "delegation header"]),
    st.sampled_from(["iss", "aud", "sid", "sub", "htm", "htu", "iat", "jti", "ath", "exp", "cnf", "typ", "alg", "kid"]),
    NEAR,
    st.sampled_from([None, STRANGER]),
)
def test_a_near_miss_is_refused_by_a_rule(where: str, name: str, value: Any, key: PrivateKey | None) -> None:
    """Values that are right elsewhere, in each place; another key never signs for the delegated one."""
    dlg = {name: value} if where == "delegation" else {}
    dlg_header = {name: value} if where == "delegation header" else {}
    claims = {name: value} if where == "claims" else {}
    result = outcome(
        AGENT.header(
            "GET",
            URL,
            COMPANY,
            key=key,
            jose={name: value} if where == "header" else {},
            delegation=AGENT.delegation(jose=dlg_header, **dlg),
            **claims,
        )
    )
    assert isinstance(result, InvalidSession) or key is None


@st.composite
def changed_text(draw: st.DrawFn, text: str) -> str:
    """The text with a character changed, left out or put in, cut off, or with two segments exchanged."""
    at = draw(st.integers(0, len(text) - 1))
    character = draw(st.sampled_from("A-_.=+/ \n,é\0") | st.characters())
    how = draw(st.sampled_from(["change", "leave out", "put in", "cut", "exchange"]))
    segments = text.split(".")
    return {
        "change": text[:at] + character + text[at + 1 :],
        "leave out": text[:at] + text[at + 1 :],
        "put in": text[:at] + character + text[at:],
        "cut": text[:at],
        "exchange": ".".join(draw(st.permutations(segments))),
    }[how]


@example(header=GOOD)
@example(header="")
@example(header=GOOD + "=")
@example(header="x" * 9000)
@given(changed_text(GOOD))
def test_no_other_text_means_the_same_session_jwt(header: str) -> None:
    """One spelling: whatever differs from what was signed is refused."""
    if header != GOOD:
        assert isinstance(outcome(header), InvalidSession)
    else:
        assert isinstance(outcome(header), ProvenSession)


@example(0, GOOD)
@example(1, GOOD)
@example(2, GOOD)
@given(st.integers(0, 3), changed_text(GOOD))
def test_c89_only_one_field_is_read(count: int, second: str) -> None:
    """None, or more than one, is refused whatever they hold."""
    headers = Headers([("Poppy-Session", value) for value in [GOOD, second, GOOD][:count]])
    if count == 1:
        assert SESSION.read(headers).iss == AGENT.client_id
    else:
        with pytest.raises(InvalidSession):
            SESSION.read(headers)


@given(changed_text(DELEGATION))
def test_no_other_text_means_the_same_delegation(delegation: str) -> None:
    """Put into a Session JWT that is signed correctly, whatever differs is refused."""
    result = outcome(AGENT.header("GET", URL, COMPANY, delegation=delegation))
    assert isinstance(result, ProvenSession if delegation == DELEGATION else InvalidSession)


@given(st.data())
def test_a_changed_key_set_is_read_or_refused_by_its_own_error(data: st.DataObject) -> None:
    """Documents, entries and members. A changed octet may make another RSA modulus, but never another point."""
    agent = data.draw(st.sampled_from([AGENT, RSA]))
    entry = json.dumps(agent.identity.public.entry()).encode()
    change: Callable[[bytes], st.SearchStrategy[bytes]] = changed_object
    text = data.draw(st.just(b'{"keys":[%s]}' % data.draw(change(entry))) | change(b'{"keys":[%s]}' % entry))
    try:
        document: object = json.loads(text)
    except (ValueError, RecursionError):
        return
    try:
        keys = KeySet.read(document)
    except KeySetError:
        return
    for key in keys.keys.values():
        assert key.alg == agent.identity.alg
        assert agent is RSA or key.thumbprint == agent.identity.public.thumbprint


@given(json_values | changed_object(json.dumps(AGENT.delegated.private_jwk()).encode()))
def test_a_changed_key_is_read_or_refused_by_its_own_error(jwk: object) -> None:
    """Public and private; the secret is in no error."""
    document: object = jwk
    if isinstance(jwk, bytes):
        try:
            document = json.loads(jwk)
        except (ValueError, RecursionError):
            return
    told: list[str] = []
    for read in (PublicKey.read, PrivateKey.read):
        try:
            read(document)
        except KeyRefused as error:
            told.append(f"{error!r} {error.detail}")
    assert AGENT.delegated.private_jwk()["d"] not in " ".join(told)


@given(st.text() | changed_text(GOOD))
def test_the_general_verifier_raises_nothing_but_its_own_error(token: str) -> None:
    """For whatever text."""
    with pytest.raises(JwsError):
        verify(token, KEYS, typ="poppy-session+jwt", algs=["ES256"])


def test_the_examples_alone_cover_the_parser_and_its_checks() -> None:
    """Every line and branch."""
    assert unreached("session", "papaver.versions.v0_4.session", "papaver.protocol.session_checks") == ""
