"""Authorization codes (4.2, RFC 6749 4.1.3): issued once, used once, worth nothing without verifier and assertion."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import msgspec

from papaver.company.authserver.issue import Issue, access_row, token_response
from papaver.company.authserver.refresh import check_account_enabled
from papaver.company.authserver.tickets import CODE, Asked, Code, Redirect, read_ticket, write_ticket
from papaver.oauth.errors import InvalidGrant, InvalidTarget, ProtocolError
from papaver.oauth.pkce import check_verifier
from papaver.oauth.tokens import TokenResponse
from papaver.ports.grants import GrantChange, GrantLoaded, GrantRow, RefreshRow
from papaver.protocol.terms import AccountId, ClientId
from papaver.values.rules import rule
from papaver.values.secret import Secret

__all__ = [
    "Redeeming",
    "check_code_fresh",
    "check_code_key",
    "check_code_of_client",
    "check_code_redirect",
    "check_resource_asked",
    "decide_code",
    "first_grant",
]


@dataclass(frozen=True, slots=True)
class Redeeming:
    """A code request whose client is proven.

    `code`      digest of the code
    `grant_id`  made from the code, so that whoever uses it again finds the grant
    `jkt`       of the proof that came, whether the token is bound to it or not
    """

    client_id: str
    code: str
    verifier: Secret | None
    redirect_uri: str | None
    grant_id: str
    issue: Issue
    jkt: str | None
    grant_lifetime: float
    reuse_noticed: float


@rule("code.of-client")
def check_code_of_client(code: Code, client_id: str) -> None:
    """RFC 6749 4.1.3: a code belongs to the client that it was issued to."""
    if code.asked.client_id != client_id:
        raise InvalidGrant(rule="code.of-client", detail=f"of {code.asked.client_id}, sent by {client_id}")


@rule("code.redirect-uri")
def check_code_redirect(code: Code, redirect_uri: str | None) -> None:
    """RFC 6749 4.1.3: the token request repeats the redirect URI of the authorization request, exactly (B49)."""
    if code.redirect.uri != redirect_uri:
        raise InvalidGrant(rule="code.redirect-uri", detail="another redirect_uri than at the authorization endpoint")


@rule("code.fresh")
def check_code_fresh(code: Code, now: float) -> None:
    """RFC 6749 4.1.2: a code lives shortly."""
    if now >= code.expires_at:
        raise InvalidGrant(rule="code.fresh", detail=f"expired at {code.expires_at:.0f}")


@rule("code.dpop-key")
def check_code_key(code: Code, jkt: str | None) -> None:
    """RFC 9449 10: a code that was asked for with a DPoP key is redeemed with a proof by that key."""
    if code.redirect.jkt is not None and code.redirect.jkt != jkt:
        raise InvalidGrant(rule="code.dpop-key", detail="no proof, or one by another key than dpop_jkt named")


@rule("code.resource")
def check_resource_asked(asked: str | None, resource: str | None) -> None:
    """RFC 8707 2.2: what the sign-in was begun with for one service is not redeemed for another."""
    if asked is not None and asked != resource:
        raise InvalidTarget(rule="code.resource", detail=f"asked for {asked} when the sign-in began")


def decide_code(loaded: GrantLoaded, ask: Redeeming) -> GrantChange[TokenResponse | ProtocolError]:
    """The tokens and a new grant, or the error of a code that is used again, which revokes its grant.

    That comes after everything that only the client knows: a stolen code revokes nothing. Raises InvalidGrant,
    InvalidTarget.
    """
    key = (CODE, ask.code)
    code = read_ticket(Code, loaded.tickets.get(key))
    if code is None:
        raise InvalidGrant(rule="code.known", detail="unknown code")
    check_code_of_client(code, ask.client_id)
    check_code_redirect(code, ask.redirect_uri)
    check_verifier(None if ask.verifier is None else ask.verifier.reveal(), code.redirect.challenge)
    if code.used:
        used = loaded.grant
        error = InvalidGrant(rule="code.single-use", detail=f"used again; its grant {ask.grant_id} is revoked")
        return GrantChange(error, grants=() if used is None else (_revoked(used, ask.issue.now),))
    check_code_fresh(code, ask.issue.now)
    check_code_key(code, ask.jkt)
    issue = ask.issue
    check_resource_asked(code.asked.resource, issue.resource)
    check_account_enabled(loaded.disabled)
    grant = first_grant(issue, code.asked, code.account, ask.grant_id, code.signed_in_at, ask.grant_lifetime, "direct")
    row = access_row(issue, grant, grant.scopes)
    used_code = msgspec.structs.replace(
        code, used=True, asked=Asked(code.asked.client_id, "", ()), redirect=_remembered(code.redirect)
    )
    return GrantChange(
        token_response(issue, row),
        put_tickets=(write_ticket(key, used_code, issue.now + ask.reuse_noticed),),
        grants=(grant,),
        refresh=(RefreshRow(grant.current, grant.id),),
        access=(row,),
    )


def first_grant(
    issue: Issue,
    asked: Asked,
    account: str,
    grant_id: str,
    signed_in_at: float,
    lifetime: float,
    kind: Literal["direct", "device"],
) -> GrantRow:
    """The grant that a sign-in becomes; its lifetime is counted from the User's approval (4.4)."""
    return GrantRow(
        id=grant_id,
        client_id=ClientId(asked.client_id),
        client_name=asked.client_name,
        account_id=AccountId(account),
        scopes=asked.scopes,
        kind=kind,
        signed_in_at=signed_in_at,
        expires_at=signed_in_at + lifetime,
        current=issue.tokens.refresh_digest,
    )


def _revoked(grant: GrantRow, now: float) -> GrantRow:
    return grant if grant.revoked_at is not None else replace(grant, revoked_at=now)


def _remembered(redirect: Redirect) -> Redirect:
    """What is compared when a used code comes again, and no more."""
    return Redirect(redirect.uri, redirect.challenge)
