"""From a header nobody believes to a Session: what each step refuses, and that no step can be left out."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pytest

from papaver.jose.keys import KeySet
from papaver.protocol.delegation import DelegationCache
from papaver.protocol.errors import InvalidSession, SessionEnded
from papaver.protocol.session import (
    AccountAccess,
    BoundSession,
    ProvenSession,
    SessionJwt,
    VerifiedSession,
    ath,
    bind,
    check_ath,
    expect,
    open_session,
)
from papaver.protocol.terms import AccountId, AgentId, UserId
from papaver.testing.keys import NOW, AgentKeys
from papaver.testing.rules import switched_off
from papaver.values.base64url import encode
from papaver.versions.v0_4.session import SESSION
from papaver.web.messages import Headers

COMPANY = "https://auth.example.com"
URL = "https://api.example.com/orders"
AGENT = AgentKeys()
KEYS = KeySet.read(AGENT.jwks())
TOKEN = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
ACCESS = AccountAccess(ath(TOKEN), AGENT.client_id, AccountId("acc_1"), frozenset({"orders:read"}))


DANA = UserId("usr_dana")


@dataclass(frozen=True)
class Stored:
    """A store's row, as far as it matters here."""

    user_id: UserId = DANA
    agent_id: AgentId | None = None
    ended_at: float | None = None


def proven(**overrides: Any) -> ProvenSession:
    """A Session JWT of the test agent, believed."""
    expected = expect(company_id=COMPANY, method="GET", url=URL, now=NOW)
    return SESSION.verify(SESSION.read_value(AGENT.header("GET", URL, COMPANY, **overrides)), KEYS, expected)


def opened(bound: BoundSession, stored: Stored | None = None) -> VerifiedSession:
    """The Session, with a version and one declared extension."""
    return open_session(bound, stored, version="0.4", extensions={"gift": "1"})


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ("", "jws.compact-form"),
        ("a.b.c", "jws.compact-form"),
        ("é.é.é", "jws.compact-form"),
        (f"{encode(b'{}')}.{encode(b'[]')}.{encode(b'x' * 64)}", "claims.typed"),
        (f"{encode(b'{}')}.{encode(b'{')}.{encode(b'x' * 64)}", "claims.typed"),
    ],
)
def test_what_is_no_jwt_is_refused_unread(value: str, rule: str) -> None:
    """A value that cannot be taken apart is invalid_session, too."""
    with pytest.raises(InvalidSession) as caught:
        SESSION.read_value(value)
    assert caught.value.rule == rule
    assert caught.value.description.startswith("the Session JWT is malformed")


def test_the_header_is_read_only_when_it_is_needed() -> None:
    """A malformed JOSE header with good claims is parsed, and refused when it is to be believed."""
    good = AGENT.header("GET", URL, COMPANY)
    jwt = SESSION.read_value(f"{encode(b'[]')}.{good.partition('.')[2]}")
    assert jwt.iss == AGENT.client_id
    with pytest.raises(InvalidSession) as caught:
        SESSION.verify(jwt, KEYS, expect(company_id=COMPANY, method="GET", url=URL, now=NOW))
    assert caught.value.rule == "jws.header"


def test_the_field_is_found_in_any_letter_case() -> None:
    """Names of fields have none."""
    headers = Headers([("POPPY-SESSION", AGENT.header("GET", URL, COMPANY))])
    assert isinstance(SESSION.read(headers), SessionJwt)


def test_a_proven_session_says_what_its_claims_say() -> None:
    """Absent optional claims are None."""
    session = proven(sid="s", sub="u", jti="j")
    assert (session.sid, session.user_id, session.jti, session.iat) == ("s", "u", "j", NOW)
    assert (session.agent_id, session.ath) == (None, None)
    assert proven(agent_id="a").agent_id == "a"
    assert proven(access_token=TOKEN).ath == ath(TOKEN)


def test_only_a_jwt_that_passed_every_check_is_remembered() -> None:
    """With a cache the second one needs no delegation check; a refused one leaves no trace."""
    cache, expected = DelegationCache(), expect(company_id=COMPANY, method="GET", url=URL, now=NOW)
    wrong = SESSION.read_value(AGENT.header("GET", URL, COMPANY, aud="another"))
    with pytest.raises(InvalidSession):
        SESSION.verify(wrong, KEYS, expected, cache)
    assert len(cache) == 0
    for _ in range(2):
        SESSION.verify(SESSION.read_value(AGENT.header("GET", URL, COMPANY)), KEYS, expected, cache)
    assert len(cache) == 1


# ── the access token ──────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("5.3-11")
def test_ath_without_a_token_is_refused() -> None:
    """Before the token would be looked at, and when binding."""
    with_ath = proven(access_token=TOKEN)
    for refusing in (lambda: check_ath(with_ath, None), lambda: bind(with_ath, None)):
        with pytest.raises(InvalidSession) as caught:
            refusing()
        assert caught.value.rule == "session.ath-absent-without-token"
    check_ath(proven(), None)
    with switched_off("session.ath-absent-without-token"):
        check_ath(with_ath, None)


def test_an_empty_ath_is_an_ath() -> None:
    """There, though empty, is not absent."""
    with pytest.raises(InvalidSession) as caught:
        bind(proven(ath=""), None)
    assert caught.value.rule == "session.ath-absent-without-token"


@pytest.mark.requirement("5.3-09")
@pytest.mark.parametrize("overrides", [{}, {"ath": ath("another")}, {"ath": ""}])
def test_ath_of_another_token_or_none_is_refused(overrides: dict[str, str]) -> None:
    """With a token, `ath` has to be that token's hash (readings 6)."""
    session = proven(**overrides)
    for refusing in (lambda: check_ath(session, TOKEN), lambda: bind(session, ACCESS)):
        with pytest.raises(InvalidSession) as caught:
            refusing()
        assert caught.value.rule == "session.ath-matches-token"
        assert TOKEN not in caught.value.detail


@pytest.mark.requirement("5.3-10")
def test_a_token_of_another_client_is_refused() -> None:
    """Its `ath` may be right all the same."""
    session = proven(access_token=TOKEN)
    check_ath(session, TOKEN)
    foreign = AccountAccess(ath(TOKEN), "https://other.example/agent.json", AccountId("acc_1"), frozenset())
    with pytest.raises(InvalidSession) as caught:
        bind(session, foreign)
    assert caught.value.rule == "session.token-client-is-iss"


def test_odd_tokens_have_a_hash_too() -> None:
    """Whatever characters a header field brought."""
    assert len({ath(token) for token in ("", "é", "?", "\ud800")}) == 4


# ── the store ─────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("5.3-13")
def test_an_unknown_sid_begins_a_signed_out_session() -> None:
    """With the verified client, User ID and Agent ID, and no account."""
    session = opened(bind(proven(sid="s", sub="u", agent_id="a", jti="j"), None))
    assert {field.name: getattr(session, field.name) for field in fields(session)} == {
        "client_id": AGENT.client_id, "sid": "s", "user_id": "u", "agent_id": "a", "account_id": None,
        "scopes": frozenset(), "version": "0.4", "extensions": {"gift": "1"}, "jti": "j", "iat": NOW, "access": None,
    }  # fmt: skip


def test_a_signed_in_session_has_the_tokens_account_and_scopes() -> None:
    """Session and User from the header, account and scopes from the token."""
    session = opened(bind(proven(access_token=TOKEN), ACCESS))
    assert (session.account_id, session.scopes) == ("acc_1", {"orders:read"})


@pytest.mark.requirement("5.3-14", "5.2-20")
@pytest.mark.parametrize(
    ("overrides", "stored"),
    [
        ({"sub": "usr_erin"}, Stored()),
        ({"agent_id": "agt_1"}, Stored()),
        ({}, Stored(agent_id=AgentId("agt_1"))),
        ({"agent_id": "agt_2"}, Stored(agent_id=AgentId("agt_1"))),
        ({"sub": "usr_erin"}, Stored(ended_at=NOW)),
    ],
    ids=["another sub", "agent_id added", "agent_id removed", "another agent_id", "another sub and ended"],
)
def test_a_known_sid_keeps_its_user_and_agent(overrides: dict[str, str], stored: Stored) -> None:
    """Another owner is invalid_session, also where the Session has ended (readings 5)."""
    bound = bind(proven(**overrides), None)
    with pytest.raises(InvalidSession) as caught:
        opened(bound, stored)
    assert caught.value.rule == "session.same-user-and-agent"
    with switched_off("session.same-user-and-agent", "session.not-ended"):
        opened(bound, stored)


def test_a_known_sid_of_the_same_owner_goes_on() -> None:
    """With an Agent ID and without."""
    assert opened(bind(proven(), None), Stored()).user_id == "usr_dana"
    assert opened(bind(proven(agent_id="a"), None), Stored(agent_id=AgentId("a"))).agent_id == "a"


@pytest.mark.requirement("5.3-19")
def test_an_ended_session_is_session_ended() -> None:
    """To its owner, and by its own code."""
    bound = bind(proven(), None)
    with pytest.raises(SessionEnded) as caught:
        opened(bound, Stored(ended_at=float(NOW)))
    assert (caught.value.code, caught.value.rule) == ("session_ended", "session.not-ended")
    with switched_off("session.not-ended"):
        opened(bound, Stored(ended_at=float(NOW)))


@pytest.mark.requirement("5.1-11")
def test_the_agent_id_is_there_for_whoever_tells_agents_apart() -> None:
    """A Company may use it; it is the client's own otherwise."""
    assert opened(bind(proven(agent_id="travel"), None)).agent_id == "travel"
