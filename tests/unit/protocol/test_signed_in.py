"""Requests that need an account and its scopes, and those that use no Session."""

from __future__ import annotations

from dataclasses import fields

import pytest

from papaver.protocol.errors import AccountNeeded, InsufficientScope
from papaver.protocol.session import AccountAccess, VerifiedSession
from papaver.protocol.signed_in import OAuthCaller, SignedInSession, signed_in, without_session
from papaver.protocol.terms import AccountId, ClientId, SessionId, UserId

ACCESS = AccountAccess("ath", "https://a.example/a.json", AccountId("dana"), frozenset({"orders:read", "addresses"}))


def session(access: AccountAccess | None) -> VerifiedSession:
    """As `open_session` makes it."""
    return VerifiedSession(
        client_id=ClientId("https://a.example/a.json"),
        sid=SessionId("sid_1"),
        user_id=UserId("usr_1"),
        agent_id=None,
        account_id=None if access is None else access.account_id,
        scopes=frozenset() if access is None else access.scopes,
        version="0.4",
        extensions={"x.example/y": "1"},
        jti="jti_1",
        iat=7,
        access=access,
    )


@pytest.mark.requirement("5-06")
def test_a_signed_in_session_has_both_the_sessions_and_the_tokens_word() -> None:
    """Client, User and Session by the header, account and scopes by the token; nothing else changes."""
    before = session(ACCESS)
    after = signed_in(before, "orders:read", "addresses")
    assert isinstance(after, SignedInSession)
    assert {one.name: getattr(after, one.name) for one in fields(before)} == {
        one.name: getattr(before, one.name) for one in fields(before)
    }
    assert (after.account_id, after.user_id) == ("dana", "usr_1")


@pytest.mark.requirement("5.4-10", "7-24")
def test_signed_out_is_told_the_scopes_that_are_needed() -> None:
    """All of them, in the order in which they were asked for."""
    with pytest.raises(AccountNeeded, check=lambda error: error.rule == "access.account-needed") as caught:
        signed_in(session(None), "orders:write", "orders:read")
    assert caught.value.scope == "orders:write orders:read"


@pytest.mark.requirement("7-28")
def test_too_few_scopes_are_told_what_is_needed_not_what_is_missing() -> None:
    """The Personal Agent asks for the union with what it holds (4.7)."""
    with pytest.raises(InsufficientScope, check=lambda error: error.rule == "access.scopes-suffice") as caught:
        signed_in(session(ACCESS), "orders:read", "orders:write")
    assert caught.value.scope == "orders:read orders:write"
    assert caught.value.detail == "lacks orders:write"


@pytest.mark.requirement("5.3-16")
def test_without_a_session_there_is_only_what_the_token_says() -> None:
    """No field of it can hold a User, a Session or an agent; a client only as the token's."""
    assert {one.name for one in fields(OAuthCaller)} == {"client_id", "account_id", "scopes"}
    assert not issubclass(OAuthCaller, VerifiedSession)
    caller = without_session(ACCESS, "orders:read")
    assert (caller.client_id, caller.account_id) == (ACCESS.client_id, "dana")
    assert without_session(None) == OAuthCaller(None, None, frozenset())


@pytest.mark.requirement("5.3-17")
def test_without_a_session_scopes_are_asked_for_all_the_same() -> None:
    """No token, and a token with too few."""
    with pytest.raises(AccountNeeded, check=lambda error: error.scope == "orders:write"):
        without_session(None, "orders:write")
    with pytest.raises(InsufficientScope, check=lambda error: error.scope == "orders:write"):
        without_session(ACCESS, "orders:write")
