"""The Session header of draft 0.4, whole: one fault at a time, in the order of 5.2 and 5.3."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from papaver.jose.keys import KeySet, PrivateKey
from papaver.protocol.delegation import DelegationCache
from papaver.protocol.errors import InvalidSession
from papaver.protocol.session import ProvenSession, expect
from papaver.testing.keys import NOW, OMIT, AgentKeys
from papaver.testing.rules import switched_off
from papaver.versions.v0_4.session import CHECKS, SESSION
from papaver.web.messages import Headers

COMPANY = "https://auth.example.com"
URL = "https://api.example.com/poppy/conversations"
AGENT = AgentKeys()
KEYS = KeySet.read(AGENT.jwks())
OTHER = PrivateKey.generate()
RSA = PrivateKey.generate("PS384")
EXPECTED = expect(company_id=COMPANY, method="POST", url=URL, now=NOW)


def proven(header: str, *, now: float = NOW, url: str = URL, cache: DelegationCache | None = None) -> ProvenSession:
    """A POST with this header, believed."""
    expected = expect(company_id=COMPANY, method="POST", url=url, now=now)
    return SESSION.verify(SESSION.read(Headers([("Poppy-Session", header)])), KEYS, expected, cache)


def made(**overrides: Any) -> str:
    """A header, right but for the overrides."""
    return AGENT.header("POST", URL, COMPANY, **overrides)


def test_the_names_of_draft_0_4() -> None:
    """Field, typ values and the member that carries the delegation; ES256, 8 KiB."""
    assert (SESSION.header, SESSION.typ, SESSION.alg, SESSION.max_bytes) == (
        "Poppy-Session", "poppy-session+jwt", "ES256", 8192,
    )  # fmt: skip
    assert (SESSION.delegation_member, SESSION.delegation.typ) == ("poppy_dlg", "poppy-delegation+jwt")


def test_the_claims_are_checked_in_the_order_of_the_clause() -> None:
    """`aud`, then `htm` and `htu`, then `iat` (5.3, step 2)."""
    assert [check.__name__ for check in CHECKS][-4:] == ["check_aud", "check_htm", "check_htu", "check_iat"]


@pytest.mark.requirement("5.2-08", "5.2-13", "5.2-14")
def test_a_right_header_proves_client_user_and_session() -> None:
    """With and without an Agent ID, which is optional."""
    session = proven(made(sid="sid_1", sub="usr_1"))
    assert (session.client_id, session.sid, session.user_id) == (AGENT.client_id, "sid_1", "usr_1")
    assert session.agent_id is None
    assert proven(made(agent_id="agt_1")).agent_id == "agt_1"


@pytest.mark.requirement("5.2-15", "5.3-06")
def test_a_query_is_no_part_of_htu() -> None:
    """A request with a cursor verifies with the bare URL."""
    header = AGENT.header("POST", URL + "?cursor=x", COMPANY)
    assert proven(header, url=URL + "?cursor=x")


@pytest.mark.requirement("5.2-46", "5.2-45")
def test_a_new_delegated_key_on_each_request_is_fine() -> None:
    """Nothing is tied to a delegated key; the Session goes on."""
    for _ in range(3):
        rotated = AgentKeys(identity=AGENT.identity)
        assert proven(rotated.header("POST", URL, COMPANY, sid="sid_1")).sid == "sid_1"


def test_claims_that_would_grant_access_are_ignored() -> None:
    """Whatever else it contains, a Session JWT is no access."""
    session = proven(made(scope="orders:write", account_id="acc_1", scopes=["admin"]))
    assert not hasattr(session.claims, "scope")


FAULTS = [
    pytest.param("5.2-06", "session.typ", {"jose": {"typ": "JWT"}}, id="typ JWT"),
    pytest.param("5.2-06", "session.typ", {"jose": {"typ": OMIT}}, id="no typ"),
    pytest.param("5.2-06", "session.typ", {"jose": {"typ": "poppy-delegation+jwt"}}, id="typ of a delegation"),
    *(
        pytest.param("5.2-07", "session.alg", {"jose": {"alg": alg}}, id=f"alg {'absent' if alg is OMIT else alg}")
        for alg in ("none", "HS256", "RS256", "ES384", "PS384", OMIT)
    ),
    pytest.param("5.2-08", "session.claims-present", {"iss": ""}, id="empty iss"),
    pytest.param("5.2-09", "session.aud-is-company", {"aud": COMPANY + "/"}, id="aud with a slash"),
    pytest.param("5.2-09", "session.aud-is-company", {"aud": COMPANY + "/token"}, id="aud an endpoint"),
    pytest.param("5.3-05", "session.aud-is-company", {"aud": "https://Auth.example.com"}, id="aud in another case"),
    pytest.param("5.2-09", "claims.typed", {"aud": [COMPANY]}, id="aud an array"),
    pytest.param("5.2-12", "session.sid-form", {"sid": "a.b"}, id="sid with a dot"),
    pytest.param("5.2-12", "session.sid-form", {"sid": "s" * 257}, id="sid too long"),
    pytest.param("5.2-13", "session.ids-bounded", {"sub": "s" * 257}, id="sub too long"),
    pytest.param("5.2-14", "session.ids-bounded", {"agent_id": ""}, id="agent_id empty"),
    pytest.param("5.2-14", "claims.typed", {"agent_id": None}, id="agent_id null"),
    pytest.param("5.2-15", "session.htm-is-method", {"htm": "GET"}, id="another htm"),
    pytest.param("5.2-15", "session.htu-is-url", {"htu": URL + "/x"}, id="another htu"),
    pytest.param("5.3-06", "session.htu-is-url", {"htu": "http://api.example.com/poppy/conversations"}, id="http"),
    pytest.param("5.2-16", "session.iat-in-window", {"iat": NOW * 1000}, id="iat in milliseconds"),
    pytest.param("5.2-16", "claims.typed", {"iat": str(NOW)}, id="iat a string"),
    pytest.param("5.2-16", "claims.typed", {"iat": NOW + 0.5}, id="iat a fraction"),
    pytest.param("5.3-07", "session.iat-in-window", {"iat": NOW - 600}, id="iat old"),
    pytest.param("5.3-07", "session.iat-in-window", {"iat": NOW + 600}, id="iat ahead"),
    pytest.param("5.2-41", "session.signed-by-delegated-key", {"key": OTHER}, id="signed by another key"),
    pytest.param("5.2-41", "session.kid-is-thumbprint", {"jose": {"kid": "other"}}, id="another kid"),
    pytest.param("5.2-36", "session.kid-is-thumbprint", {"jose": {"kid": OMIT}}, id="no kid"),
    pytest.param("5.2-42", "session.carries-delegation", {"delegation": OMIT}, id="no delegation"),
    pytest.param("5.2-42", "session.carries-delegation", {"delegation": ["a.b.c"]}, id="delegation an array"),
    pytest.param("5.2-43", "jws.compact-form", {"delegation": "x"}, id="delegation malformed"),
    pytest.param("5.2-43", "delegation.signed-by-jwks-key", {"delegation": AgentKeys().delegation()}, id="foreign dlg"),
    pytest.param("5.2-43", "jws.no-crit", {"jose": {"crit": ["x"]}}, id="crit"),
    *(
        pytest.param("5.2-19", "session.claims-present", {name: OMIT}, id=f"no {name}")
        for name in ("iss", "aud", "sid", "sub", "htm", "htu", "iat", "jti")
    ),
]


@pytest.mark.requirement("5.3-02", "5.2-43")
@pytest.mark.parametrize("cached", [False, True], ids=["first", "cached"])
@pytest.mark.parametrize(
    ("rule", "overrides"),
    [
        pytest.param(*fault.values[1:], id=str(fault.id), marks=pytest.mark.requirement(str(fault.values[0])))
        for fault in FAULTS
    ],
)
def test_one_fault_refuses_a_session_jwt(rule: str, overrides: dict[str, Any], cached: bool) -> None:
    """Each fault alone is invalid_session by the rule of its clause, with a warm cache too; nothing is remembered."""
    cache = DelegationCache()
    if cached:
        proven(made(), cache=cache)
    before = len(cache)
    header = made(**overrides)
    with pytest.raises(InvalidSession) as caught:
        proven(header, cache=cache)
    found = {"delegation.iss-is-session-iss"} if "iss" in overrides else set[str]()
    assert caught.value.code == "invalid_session"
    assert caught.value.rule in {rule} | found
    assert len(cache) == before


@pytest.mark.parametrize(
    ("rule", "overrides"),
    [
        pytest.param(*fault.values[1:], id=str(fault.id), marks=pytest.mark.requirement(str(fault.values[0])))
        for fault in FAULTS
        if str(fault.values[1]).startswith("session.")
        and fault.values[1] not in ("session.carries-delegation", "session.claims-present")
    ],
)
def test_only_its_own_rule_refuses_a_fault(rule: str, overrides: dict[str, Any]) -> None:
    """With the rule switched off, the fault passes."""
    header = made(**overrides)
    with switched_off(rule):
        proven(header)


@pytest.mark.requirement("5.2-42")
def test_a_jwt_signed_straight_by_a_jwks_key_is_refused() -> None:
    """A key of the key set vouches, it does not sign Sessions; not even when it is its own delegated key's kid."""
    header = made(key=AGENT.identity, jose={"kid": AGENT.identity.kid, "poppy_dlg": OMIT})
    with pytest.raises(InvalidSession) as caught:
        proven(header)
    assert caught.value.rule == "session.carries-delegation"
    assert "poppy_dlg" in caught.value.description


@pytest.mark.requirement("5.3-21")
@pytest.mark.parametrize("count", [0, 2])
def test_c89_a_missing_or_repeated_header_is_refused(count: int) -> None:
    """Two lines are two, in any letter case; a joined value is no JWT."""
    header = made()
    with pytest.raises(InvalidSession) as caught:
        SESSION.read(Headers([("Poppy-Session", header), ("poppy-session", header)][:count]))
    assert caught.value.rule == "session.header-once"
    with pytest.raises(InvalidSession) as caught:
        SESSION.read(Headers([("Poppy-Session", f"{header}, {header}")]))
    assert caught.value.rule == "jws.compact-form"


def test_a_header_above_8_kib_is_refused_unread() -> None:
    """Whatever is in it; at the limit it is read."""
    with pytest.raises(InvalidSession) as caught:
        SESSION.read(Headers([("Poppy-Session", "x" * 8193)]))
    assert caught.value.rule == "session.header-size"
    header = made(more="")
    assert proven(made(more="x" * ((8192 - len(header)) * 3 // 4 - 3)))


def test_a_repeated_member_is_refused_in_header_and_payload() -> None:
    """Although both are signed: two readers could read two Sessions."""
    payload = b'{"sub":"usr_1","iss":"%s","aud":"a","sid":"s","sub":"usr_2"}' % AGENT.client_id.encode()
    with pytest.raises(InvalidSession) as caught:
        proven(made(payload=payload))
    assert caught.value.rule == "claims.typed"


@pytest.mark.requirement("10.4-01")
def test_a_jwt_for_one_company_fails_at_another() -> None:
    """`aud` is the verified identifier of exactly one."""
    jwt = SESSION.read_value(made())
    with pytest.raises(InvalidSession) as caught:
        SESSION.verify(jwt, KEYS, expect(company_id="https://other.example", method="POST", url=URL, now=NOW))
    assert caught.value.rule == "session.aud-is-company"


@pytest.mark.requirement("5.2-44")
def test_a_cached_delegation_is_not_verified_again() -> None:
    """The key of the key set is asked once, however many Session JWTs carry the delegation."""
    asked: list[bytes] = []

    def note(signature: bytes, message: bytes) -> None:
        asked.append(message)

    signer = replace(AGENT.identity.public, verify=note)
    keys, cache = KeySet({signer.kid: signer}), DelegationCache()
    for _ in range(3):
        SESSION.verify(SESSION.read_value(made()), keys, EXPECTED, cache)
    assert len(asked) == 1


@pytest.mark.requirement("5.2-44", "5.2-40")
def test_a_cached_delegation_dies_with_its_exp() -> None:
    """Five seconds after `exp` it is refused, remembered or not."""
    cache, late = DelegationCache(), NOW + 35
    delegation = AGENT.delegation(exp=NOW + 30)
    proven(made(delegation=delegation, now=late - 1), now=late - 1, cache=cache)
    assert len(cache) == 1
    with pytest.raises(InvalidSession) as caught:
        proven(made(delegation=delegation, now=late), now=late, cache=cache)
    assert caught.value.rule == "delegation.not-expired"


def test_a_cached_delegation_does_not_serve_another_iss() -> None:
    """The claims' `iss` is compared with the entry's each time."""
    cache = DelegationCache()
    proven(made(), cache=cache)
    assert len(cache) == 1
    with pytest.raises(InvalidSession) as caught:
        proven(made(iss="https://other.example/agent.json"), cache=cache)
    assert caught.value.rule == "delegation.iss-is-session-iss"


def test_a_key_removed_from_the_key_set_ends_its_delegations_though_cached() -> None:
    """10.7 and readings 14: the refreshed set lacks it, so the next request is refused."""
    cache = DelegationCache()
    proven(made(), cache=cache)
    without = KeySet.read({"keys": [OTHER.public.entry()]})
    with pytest.raises(InvalidSession) as caught:
        SESSION.verify(SESSION.read_value(made()), without, EXPECTED, cache)
    assert caught.value.rule == "delegation.signed-by-jwks-key"
    assert len(cache) == 0


@pytest.mark.requirement("5.2-25")
def test_a_ps384_delegation_serves_a_session() -> None:
    """The Session JWT itself stays ES256."""
    agent = AgentKeys(identity=RSA)
    jwt = SESSION.read_value(agent.header("POST", URL, COMPANY))
    assert SESSION.verify(jwt, KeySet.read(agent.jwks()), EXPECTED).delegation.signer.alg == "PS384"
