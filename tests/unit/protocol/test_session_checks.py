"""Each check of a Session JWT, alone: what it accepts, what it refuses, and what it says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from papaver.jose.keys import PrivateKey
from papaver.protocol import session_checks as checks
from papaver.protocol.errors import InvalidSession
from papaver.protocol.session_jwt import Expected, SessionClaims, expect
from papaver.testing.keys import NOW, AgentKeys
from papaver.versions.v0_4.session import SESSION

URL = "https://api.example.com/orders"
COMPANY = "https://auth.example.com"
EXPECTED = expect(company_id=COMPANY, method="GET", url=URL, now=NOW)
CLAIMS = SessionClaims(
    iss="https://agent.example/agent.json", aud=COMPANY, sid="sid_1", sub="usr_1", htm="GET", htu=URL, iat=NOW, jti="j"
)


def check_refused(check: Callable[..., None], rule: str, *arguments: Any) -> InvalidSession:
    """The check refuses, by its own rule."""
    with pytest.raises(InvalidSession) as caught:
        check(*arguments)
    assert caught.value.rule == rule
    assert caught.value.description
    return caught.value


@pytest.mark.parametrize("values", [(), ("a", "b"), ("a", "a")])
def test_c89_the_header_is_there_exactly_once(values: tuple[str, ...]) -> None:
    """Missing, or twice, even with one value."""
    check_refused(checks.check_header_once, "session.header-once", values)
    checks.check_header_once(("a",))


@pytest.mark.requirement("papaver-15")
def test_the_header_is_bounded() -> None:
    """At the limit it is read, above not."""
    checks.check_header_size("x" * 10, 10)
    check_refused(checks.check_header_size, "session.header-size", "x" * 11, 10)


@pytest.mark.parametrize("alg", ["none", "HS256", "RS256", "ES384", "PS384", None, 1, "es256"])
def test_alg_is_es256(alg: object) -> None:
    """Exactly, in its letter case."""
    check_refused(checks.check_alg, "session.alg", {"alg": alg}, "ES256")
    checks.check_alg({"alg": "ES256"}, "ES256")


@pytest.mark.parametrize("header", [{}, {"dlg": None}, {"dlg": 1}, {"dlg": ["a.b.c"]}])
def test_a_delegation_is_carried(header: dict[str, object]) -> None:
    """As one string."""
    check_refused(checks.check_carries_delegation, "session.carries-delegation", header, "dlg")
    checks.check_carries_delegation({"dlg": "a.b.c"}, "dlg")


def test_the_delegated_key_signed() -> None:
    """And no other key."""
    agent = AgentKeys()
    jwt = SESSION.read_value(agent.header("GET", URL, COMPANY))
    checks.check_signature(jwt, agent.delegated.public)
    error = check_refused(checks.check_signature, "session.signed-by-delegated-key", jwt, PrivateKey.generate().public)
    assert agent.delegated.public.thumbprint not in error.detail


@pytest.mark.parametrize("kid", ["other", "", None, 1])
def test_kid_is_the_thumbprint(kid: object) -> None:
    """Not just any name of the key."""
    key = PrivateKey.generate(kid="named").public
    check_refused(checks.check_kid, "session.kid-is-thumbprint", {"kid": kid}, key)
    check_refused(checks.check_kid, "session.kid-is-thumbprint", {"kid": "named"}, key)
    checks.check_kid({"kid": key.thumbprint}, key)


@pytest.mark.parametrize("typ", ["JWT", "poppy-delegation+jwt", "Poppy-Session+jwt", "application/a+jwt", None])
def test_typ_is_exact(typ: object) -> None:
    """So that no other JWT passes for a Session JWT."""
    check_refused(checks.check_typ, "session.typ", {"typ": typ}, "poppy-session+jwt")
    checks.check_typ({"typ": "poppy-session+jwt"}, "poppy-session+jwt")


@pytest.mark.requirement("5.2-13", "5.2-19")
@pytest.mark.parametrize("name", ["iss", "aud", "sid", "sub", "htm", "htu", "iat", "jti"])
def test_each_required_claim_is_named_when_it_lacks(name: str) -> None:
    """Absent and empty are the same; the sentence names the claim."""
    lacking = replace(CLAIMS, **{name: 0 if name == "iat" else ""})
    error = check_refused(checks.check_claims_present, "session.claims-present", lacking, EXPECTED)
    assert error.description == f"the Session JWT lacks {name}"
    checks.check_claims_present(CLAIMS, EXPECTED)


@pytest.mark.requirement("5.2-12")
@pytest.mark.parametrize("sid", ["a.b", "a/b", "a b", "a+b", "a=", "é", "a\n", "", "s" * 257])
def test_sid_has_the_alphabet_and_length_of_a_conversation_id(sid: str) -> None:
    """1 to 256 base64url characters (readings 47)."""
    check_refused(checks.check_sid, "session.sid-form", replace(CLAIMS, sid=sid), EXPECTED)
    for good in ("A", "-_09az", "s" * 256):
        checks.check_sid(replace(CLAIMS, sid=good), EXPECTED)


@pytest.mark.parametrize("wrong", [{"sub": "s" * 257}, {"jti": "j" * 257}, {"agent_id": ""}, {"agent_id": "a" * 257}])
def test_other_ids_are_bounded(wrong: dict[str, str]) -> None:
    """Any characters, at most 256; a given Agent ID is not empty (readings 47)."""
    check_refused(checks.check_ids_bounded, "session.ids-bounded", replace(CLAIMS, **wrong), EXPECTED)
    checks.check_ids_bounded(replace(CLAIMS, sub="ü" * 256, jti="j" * 256, agent_id="a b"), EXPECTED)
    checks.check_ids_bounded(CLAIMS, EXPECTED)


@pytest.mark.parametrize("aud", [f"{COMPANY}/", "https://AUTH.example.com", f"{COMPANY}/token", "auth.example.com", ""])
def test_aud_is_the_company_character_for_character(aud: str) -> None:
    """No slash more, no other letter case."""
    error = check_refused(checks.check_aud, "session.aud-is-company", replace(CLAIMS, aud=aud), EXPECTED)
    assert error.detail == f"expected {COMPANY!r}, got {aud!r}"
    checks.check_aud(CLAIMS, EXPECTED)


@pytest.mark.requirement("5.2-15", "5.3-06")
@pytest.mark.parametrize("htm", ["POST", "get", "GET ", ""])
def test_htm_is_the_method(htm: str) -> None:
    """Methods have a letter case."""
    check_refused(checks.check_htm, "session.htm-is-method", replace(CLAIMS, htm=htm), EXPECTED)
    checks.check_htm(CLAIMS, EXPECTED)


@pytest.mark.parametrize(
    "htu",
    [
        "https://api.example.com/order",
        "https://api.example.com/orders/",
        "https://api.example.com/Orders",
        "http://api.example.com/orders",
        "https://api.example.com:8443/orders",
        "https://example.com/orders",
        "https://api.example.com/a/%2e%2e/order",
        "/orders",
        "",
        "https://user@api.example.com/orders",
    ],
)
def test_b20_another_htu_is_refused(htu: str) -> None:
    """Another scheme, host, port or path, a slash more, or no URL at all; both values are in the detail."""
    error = check_refused(checks.check_htu, "session.htu-is-url", replace(CLAIMS, htu=htu), EXPECTED)
    assert error.detail == f"expected {URL!r}, got {htu!r}"


@pytest.mark.requirement("ca-15")
@pytest.mark.parametrize(
    "htu",
    [
        URL,
        "HTTPS://api.example.com/orders",
        "https://API.Example.COM/orders",
        "https://api.example.com:443/orders",
        "https://api.example.com/%6Frders",
        "https://api.example.com/orders?cursor=x",
        "https://api.example.com/orders#x",
    ],
)
def test_an_equivalent_htu_is_accepted(htu: str) -> None:
    """RFC 9449 4.3's normalisations; a query that does not belong there is ignored (readings 28)."""
    checks.check_htu(replace(CLAIMS, htu=htu), EXPECTED)


@pytest.mark.parametrize("off", [-61, 61, -600, 600, NOW * 999, -NOW, 10**400])
def test_iat_outside_the_window_is_refused(off: int) -> None:
    """Too old, too far ahead, in milliseconds, or beyond any clock (readings 18)."""
    check_refused(checks.check_iat, "session.iat-in-window", replace(CLAIMS, iat=NOW + off), EXPECTED)


def test_b25_the_window_goes_both_ways_and_is_configurable() -> None:
    """60 seconds by default, 300 at most."""
    for off in (-60, -5, 0, 5, 60):
        checks.check_iat(replace(CLAIMS, iat=NOW + off), EXPECTED)
    wide = Expected(COMPANY, "GET", URL, NOW + 0.5, 300)
    for off in (-299, 300):
        checks.check_iat(replace(CLAIMS, iat=NOW + off), wide)
    check_refused(checks.check_iat, "session.iat-in-window", replace(CLAIMS, iat=NOW - 300), wide)
