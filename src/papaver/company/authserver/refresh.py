"""Refresh with rotation (4.4, RFC 6749 6, RFC 9700 4.14.2): what becomes of a presented refresh token.

    presented is …                        then
    the newest of its family              it is replaced, by its successor
    the one before, within the grace      the same successor again; the family stays as it is
    the one before, later                 invalid_grant
    any older one                         its successor was used, so two parties have it: the family is revoked

Whoever asks has proven to be the client by then; nothing that is sent without that changes anything.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final, Literal

from papaver.company.authserver.issue import Issue, access_row, token_response
from papaver.oauth.errors import InvalidGrant, InvalidScope, ProtocolError
from papaver.oauth.scopes import covers
from papaver.oauth.tokens import TokenResponse
from papaver.ports.grants import GrantChange, GrantLoaded, GrantRow, RefreshRow
from papaver.values.rules import rule

__all__ = [
    "Refreshing",
    "Standing",
    "check_account_enabled",
    "check_grant_of_client",
    "check_grant_stands",
    "check_in_grace",
    "check_narrower",
    "decide_refresh",
    "standing",
]

Standing = Literal["newest", "replaced", "older"]
"""Where a refresh token stands in its family."""


@dataclass(frozen=True, slots=True)
class Refreshing:
    """A refresh request whose client is proven. `issue.tokens.refresh` is the successor of what was presented.

    `presented`  the digest of the refresh token        `scopes`  as asked for; None: all of the grant
    `grace`      in seconds
    """

    client_id: str
    presented: str
    scopes: tuple[str, ...] | None
    issue: Issue
    grace: float


def standing(grant: GrantRow, presented: str) -> Standing:
    """Where the token with this digest stands."""
    return "newest" if presented == grant.current else "replaced" if presented == grant.previous else "older"


@rule("refresh.grant-of-client")
def check_grant_of_client(grant: GrantRow, client_id: str) -> None:
    """4.4, RFC 6749 10.4: a refresh token is bound to the client that got it; another one changes nothing by it."""
    if grant.client_id != client_id:
        raise InvalidGrant(rule="refresh.grant-of-client", detail=f"of {grant.client_id}, sent by {client_id}")


@rule("refresh.grant-stands")
def check_grant_stands(grant: GrantRow, now: float) -> None:
    """4.4: neither revoked nor expired; the lifetime is counted from the sign-in, not from the last use."""
    if not grant.stands(now):
        raise InvalidGrant(rule="refresh.grant-stands", detail=f"revoked {grant.revoked_at}, until {grant.expires_at}")


@rule("refresh.account-enabled")
def check_account_enabled(disabled: bool) -> None:
    """4.4: a disabled account gets no token until it is enabled again."""
    if disabled:
        raise InvalidGrant(rule="refresh.account-enabled", detail="the account is disabled")


@rule("refresh.grace")
def check_in_grace(grant: GrantRow, now: float, grace: float) -> None:
    """A replaced token whose answer was lost may be sent again for a while (B47), and no longer."""
    if grant.rotated_at is None or now > grant.rotated_at + grace:
        raise InvalidGrant(rule="refresh.grace", detail=f"replaced at {grant.rotated_at}")


@rule("refresh.scope-narrower")
def check_narrower(held: tuple[str, ...], asked: tuple[str, ...]) -> None:
    """RFC 6749 6: `scope` may leave out what was granted, and never adds to it."""
    if not covers(held, asked):
        raise InvalidScope("the scope is more than was granted", rule="refresh.scope-narrower")


def decide_refresh(loaded: GrantLoaded, ask: Refreshing) -> GrantChange[TokenResponse | ProtocolError]:
    """The tokens, or the error of a request that revokes its family. Raises InvalidGrant, InvalidScope."""
    grant = loaded.grant
    if grant is None:
        raise InvalidGrant(rule="refresh.known", detail="unknown refresh token")
    check_grant_of_client(grant, ask.client_id)
    check_grant_stands(grant, ask.issue.now)
    check_account_enabled(loaded.disabled)
    return _TABLE[standing(grant, ask.presented)](grant, ask)


def _rotate(grant: GrantRow, ask: Refreshing) -> GrantChange[TokenResponse | ProtocolError]:
    check_narrower(grant.scopes, ask.scopes or ())
    successor = ask.issue.tokens.refresh_digest
    rotated = grant.rotated(successor, ask.issue.now)
    row = access_row(ask.issue, rotated, ask.scopes or grant.scopes)
    return GrantChange(
        token_response(ask.issue, row),
        grants=(rotated,),
        refresh=(RefreshRow(successor, grant.id),),
        access=(row,),
    )


def _repeat(grant: GrantRow, ask: Refreshing) -> GrantChange[TokenResponse | ProtocolError]:
    check_in_grace(grant, ask.issue.now, ask.grace)
    check_narrower(grant.scopes, ask.scopes or ())
    row = access_row(ask.issue, grant, ask.scopes or grant.scopes)
    return GrantChange(token_response(ask.issue, row), access=(row,))


def _revoke(grant: GrantRow, ask: Refreshing) -> GrantChange[TokenResponse | ProtocolError]:
    error = InvalidGrant(rule="refresh.reuse", detail=f"reused after its successor was used; {grant.id} is revoked")
    return GrantChange(error, grants=(replace(grant, revoked_at=ask.issue.now),))


_TABLE: Final = {"newest": _rotate, "replaced": _repeat, "older": _revoke}
