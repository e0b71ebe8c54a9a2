"""Revocation (4.6, RFC 7009): a refresh token takes its whole grant with it, an access token only itself."""

from __future__ import annotations

from dataclasses import replace

from papaver.company.authserver.refresh import check_grant_of_client
from papaver.oauth.errors import ProtocolError
from papaver.ports.grants import AccessRow, GrantChange, GrantLoaded

__all__ = ["decide_revocation"]


def decide_revocation(
    loaded: GrantLoaded, client_id: str, access: AccessRow | None, now: float
) -> GrantChange[ProtocolError | None]:
    """What the token's client asked for, in the store. An unknown token is revoked already (RFC 7009 2.2).

    `access`  the row, when the token is an access token; its grant is loaded. Raises InvalidGrant for another client.
    """
    grant = loaded.grant
    if grant is None:
        return GrantChange(None)
    check_grant_of_client(grant, client_id)
    if access is not None:
        return GrantChange(None, access=(replace(access, expires_at=min(access.expires_at, now)),))
    return GrantChange(None, grants=() if grant.revoked_at is not None else (replace(grant, revoked_at=now),))
