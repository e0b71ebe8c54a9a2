"""The issuer's own access tokens at the Company's services: looked up each time, so what is revoked stops at once."""

from __future__ import annotations

from typing import Literal

from papaver.oauth.access_tokens import AccessToken
from papaver.ports.company import ClientStore
from papaver.ports.grants import AccessFound, GrantStore, digest
from papaver.ports.system import Clock
from papaver.protocol.errors import InvalidToken
from papaver.values.rules import rule

__all__ = [
    "OpaqueVerifier",
    "check_access_account",
    "check_access_client",
    "check_access_fresh",
    "check_access_grant",
]


@rule("access.fresh")
def check_access_fresh(found: AccessFound, now: float) -> None:
    """4.5: an access token ends with its lifetime, or earlier when its client gave it back (RFC 7009)."""
    if now >= found.row.expires_at:
        raise InvalidToken(rule="access.fresh", detail=f"expired at {found.row.expires_at:.0f}")


@rule("access.grant-stands")
def check_access_grant(found: AccessFound, now: float) -> None:
    """5.5, readings 26: with its refresh token an access token is revoked or expired, at once."""
    if not found.grant.stands(now):
        raise InvalidToken(rule="access.grant-stands", detail=f"the grant {found.grant.id} is over")


@rule("access.account-enabled")
def check_access_account(found: AccessFound) -> None:
    """Nobody acts for a disabled account."""
    if found.disabled:
        raise InvalidToken(rule="access.account-enabled", detail="the account is disabled")


@rule("access.client-not-blocked")
def check_access_client(verdict: Literal["allowed", "blocked"] | None) -> None:
    """4.1, 5.4: the tokens of a client that is blocked stop with it (B12)."""
    if verdict == "blocked":
        raise InvalidToken(rule="access.client-not-blocked", detail="the client is blocked")


class OpaqueVerifier:
    """A `TokenVerifier`: asks the store about a token's digest, whatever process changed it last."""

    def __init__(self, grants: GrantStore, clients: ClientStore, clock: Clock) -> None:
        self._grants, self._clients, self._clock = grants, clients, clock

    async def verify(self, token: str) -> AccessToken:
        """Raises InvalidToken."""
        return await self._judge(digest(token))

    async def recheck(self, ath: str, token: AccessToken) -> None:
        """Raises InvalidToken."""
        await self._judge(ath)

    async def _judge(self, hashed: str) -> AccessToken:
        found = await self._grants.access(hashed)
        if found is None:
            raise InvalidToken(rule="access.known", detail="unknown access token")
        now, row = self._clock.now(), found.row
        check_access_fresh(found, now)
        check_access_grant(found, now)
        check_access_account(found)
        check_access_client(await self._clients.verdict(row.client_id))
        return AccessToken(
            client_id=row.client_id,
            subject=row.account_id,
            scopes=frozenset(row.scopes),
            expires_at=row.expires_at,
            audience=() if row.resource is None else (row.resource,),
            jkt=row.jkt,
        )
