"""Delegations: issued with nothing that tells about a User, believed in the order of 5.2, remembered within bounds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.jose.keys import KeySet, PrivateKey, PublicKey, write_key_set
from papaver.protocol import delegation as module
from papaver.protocol.delegation import (
    CHECKS,
    Delegation,
    DelegationCache,
    DelegationProfile,
    issue_delegation,
    read_delegation,
    verify_delegation,
)
from papaver.protocol.errors import InvalidSession
from papaver.testing.keys import NOW, OMIT, AgentKeys, compact
from papaver.testing.rules import switched_off
from papaver.values.base64url import decode

PROFILE = DelegationProfile(typ="poppy-delegation+jwt")
AGENT = AgentKeys()
KEYS = KeySet.read(AGENT.jwks())
MADE = NOW - 60
OFF_CURVE = {**AGENT.delegated.public.jwk(), "y": "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI"}
PRIVATE = {name: value for name, value in AGENT.delegated.private_jwk().items() if name not in ("kid", "alg")}
RSA = PrivateKey.generate("PS384")


def verified(token: str, *, keys: KeySet = KEYS, client_id: str = AGENT.client_id, now: float = NOW) -> Delegation:
    """The delegation, believed."""
    return verify_delegation(token, PROFILE, client_id, keys, now)


def refused(token: str, **arguments: Any) -> InvalidSession:
    """The error that a delegation gets."""
    with pytest.raises(InvalidSession) as caught:
        verified(token, **arguments)
    return caught.value


@pytest.mark.requirement("5.2-24", "5.2-28", "5.2-35")
def test_an_es256_delegation_verifies() -> None:
    """It gives the delegated key and the key that vouches for it."""
    token = AGENT.delegation(jti="dlg-1")
    assert [len(decode(part)) > 0 for part in token.split(".")] == [True] * 3
    delegation = verified(token)
    assert delegation.client_id == AGENT.client_id
    assert delegation.key == AGENT.delegated.public
    assert delegation.signer == AGENT.identity.public
    assert (delegation.iat, delegation.exp, delegation.jti) == (MADE, MADE + 21_600, "dlg-1")


@pytest.mark.requirement("5.2-25", "5.2-23")
def test_a_ps384_delegation_verifies() -> None:
    """An RSA key of the client's key set may vouch, too."""
    agent = AgentKeys(identity=RSA)
    assert verified(agent.delegation(), keys=KeySet.read(agent.jwks())).signer.alg == "PS384"


@pytest.mark.requirement("5.2-30", "5.2-33", "5.2-34")
def test_an_issued_delegation_says_nothing_about_user_or_company() -> None:
    """Exactly the five claims, the public key's required members, and the `jti` that was handed in."""
    token = issue_delegation(
        AGENT.identity, PROFILE, client_id=AGENT.client_id, delegated=AGENT.delegated.public, iat=MADE, exp=MADE + 60,
        jti="dlg-2",
    )  # fmt: skip
    header, payload = (json.loads(decode(part)) for part in token.split(".")[:2])
    assert header == {"alg": "ES256", "typ": "poppy-delegation+jwt", "kid": AGENT.identity.kid}
    assert payload == {
        "iss": AGENT.client_id,
        "cnf": {"jwk": AGENT.delegated.public.jwk()},
        "iat": MADE,
        "exp": MADE + 60,
        "jti": "dlg-2",
    }
    assert verified(token).jti == "dlg-2"


@pytest.mark.parametrize(("lifetime", "delegated"), [(86_401, AGENT.delegated), (0, AGENT.delegated), (60, RSA)])
def test_a_delegation_that_no_company_accepts_is_not_issued(lifetime: int, delegated: PrivateKey) -> None:
    """Too long, over at once, or for a key that does not sign ES256."""
    with pytest.raises(ValueError, match="delegat"):
        issue_delegation(
            AGENT.identity, PROFILE, client_id=AGENT.client_id, delegated=delegated.public, iat=MADE,
            exp=MADE + lifetime, jti="a",
        )  # fmt: skip


FAULTS = [
    pytest.param("5.2-23", "delegation.alg", {"jose": {"alg": "RS256"}}, id="alg RS256"),
    pytest.param("5.2-23", "delegation.alg", {"jose": {"alg": "none"}}, id="alg none"),
    pytest.param("5.2-23", "delegation.alg", {"jose": {"alg": OMIT}}, id="no alg"),
    pytest.param("5.2-23", "delegation.signed-by-jwks-key", {"jose": {"alg": "PS384"}}, id="another key's alg"),
    pytest.param("5.2-27", "delegation.signed-by-jwks-key", {"jose": {"kid": "unknown"}}, id="unknown kid"),
    pytest.param("5.2-27", "delegation.signed-by-jwks-key", {"jose": {"kid": OMIT}}, id="no kid"),
    pytest.param("5.2-27", "delegation.signed-by-jwks-key", {"jose": {"kid": 1}}, id="kid a number"),
    pytest.param("5.2-39", "delegation.signed-by-jwks-key", {"signer": PrivateKey.generate()}, id="another key"),
    pytest.param("5.2-26", "delegation.typ", {"jose": {"typ": "JWT"}}, id="typ JWT"),
    pytest.param("5.2-26", "delegation.typ", {"jose": {"typ": OMIT}}, id="no typ"),
    pytest.param("5.2-26", "delegation.typ", {"jose": {"typ": "pap-delegation+jwt"}}, id="b7 typ pap"),
    pytest.param("5.2-26", "delegation.typ", {"jose": {"typ": "poppy-session+jwt"}}, id="typ of a Session JWT"),
    pytest.param("5.2-40", "delegation.iss-is-session-iss", {"iss": "https://other.example/a.json"}, id="other iss"),
    pytest.param("5.2-28", "delegation.iss-is-session-iss", {"iss": OMIT}, id="no iss"),
    pytest.param("5.2-40", "delegation.not-expired", {"exp": NOW - 5}, id="expired"),
    pytest.param("5.2-31", "delegation.not-expired", {"exp": OMIT}, id="no exp"),
    pytest.param("5.2-31", "delegation.lifetime", {"iat": OMIT}, id="no iat"),
    pytest.param("5.2-32", "delegation.lifetime", {"exp": MADE + 86_401}, id="one second too long"),
    pytest.param("5.2-31", "delegation.exp-after-iat", {"iat": NOW + 9, "exp": NOW + 9}, id="exp is iat"),
    pytest.param("5.2-31", "delegation.exp-after-iat", {"iat": NOW + 9, "exp": NOW + 8}, id="exp before iat"),
    pytest.param("5.2-40", "delegation.iat-not-future", {"iat": NOW + 61, "exp": NOW + 99}, id="iat ahead"),
    pytest.param("5.2-43", "delegation.jti", {"jti": OMIT}, id="no jti"),
    pytest.param("5.2-43", "delegation.jti", {"jti": "j" * 257}, id="long jti"),
    pytest.param("5.2-30", "delegation.no-private-members", {"cnf": {"jwk": PRIVATE}}, id="private member"),
    pytest.param("5.2-29", "delegation.key", {"cnf": {"jwk": OFF_CURVE}}, id="off the curve"),
    pytest.param("5.2-29", "delegation.key", {"cnf": {"jwk": {}}}, id="empty jwk"),
    pytest.param("5.2-29", "delegation.key", {"cnf": {"jwk": RSA.public.jwk()}}, id="RSA"),
    pytest.param("5.2-29", "claims.typed", {"cnf": OMIT}, id="no cnf"),
    pytest.param("5.2-29", "claims.typed", {"cnf": {}}, id="no jwk"),
    pytest.param("5.2-29", "claims.typed", {"cnf": {"jwk": "x"}}, id="b1 jwk a string"),
    pytest.param("5.2-29", "claims.typed", {"cnf": {"jwk": [1]}}, id="b1 jwk an array"),
    pytest.param("5.2-31", "claims.typed", {"exp": str(NOW + 60)}, id="exp a string"),
    pytest.param("5.2-31", "claims.typed", {"iat": NOW + 0.5}, id="iat a fraction"),
    pytest.param("5.2-43", "jws.no-crit", {"jose": {"crit": []}}, id="crit"),
]


@pytest.mark.requirement("5.2-40", "5.2-43")
@pytest.mark.parametrize(("row", "rule", "overrides"), FAULTS)
def test_one_fault_refuses_a_delegation(row: str, rule: str, overrides: dict[str, Any]) -> None:
    """Each fault alone is invalid_session, by the rule of its clause."""
    error = refused(AGENT.delegation(**overrides))
    assert (error.code, error.rule) == ("invalid_session", rule)


@pytest.mark.parametrize(
    ("rule", "overrides"),
    [
        pytest.param(*(fault.values[1:]), id=str(fault.id), marks=pytest.mark.requirement(str(fault.values[0])))
        for fault in FAULTS
        if str(fault.values[1]).startswith("delegation.") and fault.values[1] != "delegation.key"
    ],
)
def test_only_its_own_rule_refuses_a_fault(rule: str, overrides: dict[str, Any]) -> None:
    """With the rule switched off, what follows goes on as far as it can without what is missing."""
    token = AGENT.delegation(**overrides)
    assert refused(token).rule == rule
    with switched_off(rule):
        if "kid" in overrides.get("jose", {}):
            with pytest.raises(KeyError):
                verified(token)
        elif rule == "delegation.alg":
            assert refused(token).rule == "delegation.signed-by-jwks-key"
        elif OMIT in (overrides.get("iat"), overrides.get("exp")):
            assert refused(token).rule == "delegation.exp-after-iat"
        else:
            verified(token)


def test_c44_a_private_member_is_in_no_error() -> None:
    """The leaked key does not leak further through our log."""
    error = refused(AGENT.delegation(cnf={"jwk": PRIVATE}))
    assert PRIVATE["d"] not in f"{error!r} {error} {error.detail}"


def test_a_refusal_tells_both_values_to_the_log_only() -> None:
    """The description may be sent; the detail names what was expected and what came."""
    error = refused(AGENT.delegation(jose={"typ": "pap-delegation+jwt"}))
    assert error.description == "the delegation's typ is not poppy-delegation+jwt"
    assert error.detail == "expected 'poppy-delegation+jwt', got 'pap-delegation+jwt'"


@pytest.mark.requirement("5.2-32")
def test_the_bounds_of_the_times_are_accepted() -> None:
    """Exactly 24 hours, five seconds after `exp`, and an `iat` as far ahead as clocks may be."""
    assert verified(AGENT.delegation(exp=MADE + 86_400)).exp == MADE + 86_400
    assert verified(AGENT.delegation(exp=NOW - 4)).exp == NOW - 4
    assert verified(AGENT.delegation(iat=NOW + 60)).iat == NOW + 60


@pytest.mark.requirement("5.2-38")
def test_the_delegated_key_is_not_touched_before_every_check_passed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Signature first, content second; only then is `cnf.jwk` made a key."""
    read: list[object] = []

    class Watched(PublicKey):
        """Notes what is read."""

        @classmethod
        def read(cls, jwk: object) -> PublicKey:
            read.append(jwk)
            return PublicKey.read(jwk)

    monkeypatch.setattr(module, "PublicKey", Watched)
    faults: list[dict[str, Any]] = [{"exp": NOW - 5}, {"iss": "https://other.example"}, {"cnf": {"jwk": PRIVATE}}]
    for overrides in faults:
        refused(AGENT.delegation(**overrides))
    refused(AGENT.delegation(signer=PrivateKey.generate()))
    assert read == []
    verified(AGENT.delegation())
    assert len(read) == 1


def test_the_checks_are_in_the_order_of_the_clause() -> None:
    """Signature, `typ`, `iss`, expiry, lifetime: 5.2, steps 1 and 2."""
    names = [check.__name__ for check in CHECKS]
    assert names[1:6] == ["check_signature", "check_typ", "check_iss_claim", "check_exp_claim", "check_lifetime"]


@pytest.mark.parametrize(
    "token",
    ["", "a.b.c", "é", f"{AGENT.delegation()}x", compact(AGENT.identity, {}, b"[]")],
    ids=["empty", "letters", "accent", "longer", "list"],
)
def test_a_malformed_delegation_is_refused(token: str) -> None:
    """What is no JWT at all has the rule of the layer that noticed."""
    with pytest.raises(InvalidSession) as caught:
        read_delegation(token)
    assert caught.value.rule in {"jws.compact-form", "jws.header", "delegation.form", "claims.typed"}
    assert caught.value.description.startswith("the delegation is malformed")


# ── the cache ─────────────────────────────────────────────────────────────────────────────────────────────────────


def entry(cache: DelegationCache, segment: bytes, agent: AgentKeys, keys: KeySet) -> Delegation:
    """Insert a verified delegation of `agent` under `segment`."""
    delegation = verify_delegation(agent.delegation(), PROFILE, agent.client_id, keys, NOW)
    cache.insert(segment, delegation, keys)
    return delegation


@pytest.mark.requirement("5.2-44")
def test_a_remembered_delegation_is_found_by_the_header_that_carried_it() -> None:
    """Octet for octet, and nothing else finds it."""
    cache = DelegationCache()
    kept = entry(cache, b"header", AGENT, KEYS)
    assert cache.find(b"header", KEYS) is kept
    assert cache.find(b"heade", KEYS) is None


def test_a_key_removed_from_the_key_set_kills_what_it_signed() -> None:
    """10.7, readings 14: at once when the set is read again, and it does not come back with the next one."""
    cache = DelegationCache()
    kept = entry(cache, b"header", AGENT, KEYS)
    again = KeySet.read(AGENT.jwks())
    assert cache.find(b"header", again) is kept
    assert cache.find(b"header", again) is kept
    other = KeySet.read(write_key_set([PrivateKey.generate(kid=AGENT.identity.kid).public]))
    assert cache.find(b"header", other) is None
    assert len(cache) == 0
    assert cache.find(b"header", again) is None


def test_a_client_evicts_only_its_own_when_it_has_too_many() -> None:
    """A flood of one client's delegations leaves every other client's in place; its oldest go."""
    cache, other = DelegationCache(total=10, per_client=3), AgentKeys("https://other.example/agent.json")
    theirs = KeySet.read(other.jwks())
    entry(cache, b"other", other, theirs)
    for number in range(9):
        entry(cache, b"%d" % number, AGENT, KEYS)
    assert len(cache) == 4
    assert cache.find(b"other", theirs) is not None
    assert [number for number in range(9) if cache.find(b"%d" % number, KEYS)] == [6, 7, 8]


def test_a_full_cache_takes_from_whoever_holds_more_than_a_share() -> None:
    """A client that holds more than an equal share replaces its own; else the oldest of all goes."""
    cache, other = DelegationCache(total=4, per_client=4), AgentKeys("https://other.example/agent.json")
    theirs = KeySet.read(other.jwks())
    entry(cache, b"other", other, theirs)
    for number in range(4):
        entry(cache, b"%d" % number, AGENT, KEYS)
    assert cache.find(b"other", theirs) is not None
    assert [number for number in range(4) if cache.find(b"%d" % number, KEYS)] == [1, 2, 3]
    third = AgentKeys("https://third.example/agent.json")
    entry(cache, b"third", third, KeySet.read(third.jwks()))
    assert cache.find(b"other", theirs) is None
    assert len(cache) == 4


def test_remembering_the_same_header_again_takes_no_more_room() -> None:
    """Two requests that verified the same header at once leave one entry."""
    cache = DelegationCache(total=1, per_client=1)
    entry(cache, b"header", AGENT, KEYS)
    kept = entry(cache, b"header", AGENT, KEYS)
    assert cache.find(b"header", KEYS) is kept
    assert len(cache) == 1
