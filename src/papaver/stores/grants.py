"""Grants alike in every store: when one ended, in which order they are listed, and whose may be revoked at once."""

from __future__ import annotations

from collections.abc import Iterable

from papaver.ports.grants import GrantRow
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.faults import StoreMisused

__all__ = ["check_revoked", "ended_at", "newest_first"]


def ended_at(grant: GrantRow) -> float:
    """When it is or was over: revoked or expired, whichever came first. Unix seconds."""
    return grant.expires_at if grant.revoked_at is None else min(grant.revoked_at, grant.expires_at)


def newest_first(grants: Iterable[GrantRow]) -> tuple[GrantRow, ...]:
    return tuple(sorted(grants, key=lambda grant: (-grant.signed_in_at, grant.id)))


def check_revoked(account_id: AccountId | None, client_id: ClientId | None) -> None:
    """Nobody revokes everything by leaving out both. Raises StoreMisused."""
    if account_id is None and client_id is None:
        raise StoreMisused("a revocation names an account, a client, or both")
