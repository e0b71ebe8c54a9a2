"""Requests that need the User's account (section 7), and those that use no Session (5.3).

A `SignedInSession` is made here only; so is an `OAuthCaller`, which leads to no Session by any way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from papaver.protocol.errors import AccountNeeded, InsufficientScope
from papaver.protocol.session import AccountAccess, VerifiedSession
from papaver.protocol.terms import AccountId, ClientId
from papaver.values.rules import rule

__all__ = ["OAuthCaller", "SignedInSession", "check_account", "check_scopes", "signed_in", "without_session"]


@dataclass(frozen=True, slots=True)
class SignedInSession(VerifiedSession):
    """A verified Session whose request carries an access token with the scopes that were asked for."""

    account_id: AccountId


@dataclass(frozen=True, slots=True)
class OAuthCaller:
    """Who a request is from where no Session is used (5.3): what its access token says, and nothing else.

    `client_id`, `account_id`  None when the request is signed out
    """

    client_id: ClientId | None
    account_id: AccountId | None
    scopes: frozenset[str]


@rule("access.account-needed")
def check_account(access: AccountAccess | None, scopes: Sequence[str]) -> None:
    """5.4, 7: without an access token a request is signed out, and is told which scopes it needs."""
    if access is None:
        raise AccountNeeded(" ".join(scopes), rule="access.account-needed")


@rule("access.scopes-suffice")
def check_scopes(held: frozenset[str], scopes: Sequence[str]) -> None:
    """4.7, 7: the token has each scope that the request needs; all of them are named, not only what is missing."""
    if not held.issuperset(scopes):
        missing = ", ".join(scope for scope in scopes if scope not in held)
        raise InsufficientScope(" ".join(scopes), rule="access.scopes-suffice", detail=f"lacks {missing}")


def signed_in(session: VerifiedSession, *scopes: str) -> SignedInSession:
    """The Session as one of a signed-in User with these scopes. Raises AccountNeeded, InsufficientScope."""
    access = session.access
    check_account(access, scopes)
    assert access is not None
    check_scopes(access.scopes, scopes)
    return SignedInSession(
        client_id=session.client_id,
        sid=session.sid,
        user_id=session.user_id,
        agent_id=session.agent_id,
        account_id=access.account_id,
        scopes=access.scopes,
        version=session.version,
        extensions=session.extensions,
        jti=session.jti,
        iat=session.iat,
        access=access,
    )


def without_session(access: AccountAccess | None, *scopes: str) -> OAuthCaller:
    """The caller of an endpoint that uses no Session. Signed out is enough where no scope is needed.

    Raises AccountNeeded, InsufficientScope.
    """
    if scopes:
        check_account(access, scopes)
    if access is None:
        return OAuthCaller(None, None, frozenset())
    check_scopes(access.scopes, scopes)
    return OAuthCaller(ClientId(access.client_id), access.account_id, access.scopes)
