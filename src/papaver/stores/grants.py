"""Grants alike in every store: their columns, when one ended, how they are listed, whose may be revoked at once."""

from __future__ import annotations

from collections.abc import Iterable

from papaver.ports.grants import AccessRow, GrantRow
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.faults import StoreMisused

__all__ = ["access_columns", "check_revoked", "ended_at", "grant_columns", "newest_first"]


def ended_at(grant: GrantRow) -> float:
    """When it is or was over: revoked or expired, whichever came first. Unix seconds."""
    return grant.expires_at if grant.revoked_at is None else min(grant.revoked_at, grant.expires_at)


def grant_columns(row: GrantRow) -> tuple[object, ...]:
    """In the order of the tables, when it is over last."""
    return (
        row.id,
        row.client_id,
        row.client_name,
        row.account_id,
        " ".join(row.scopes),
        row.kind,
        row.signed_in_at,
        row.expires_at,
        row.current,
        row.previous,
        row.rotated_at,
        row.revoked_at,
        ended_at(row),
    )


def access_columns(row: AccessRow) -> tuple[object, ...]:
    return (
        row.digest,
        row.grant_id,
        row.client_id,
        row.account_id,
        " ".join(row.scopes),
        row.expires_at,
        row.resource,
        row.jkt,
    )


def newest_first(grants: Iterable[GrantRow]) -> tuple[GrantRow, ...]:
    return tuple(sorted(grants, key=lambda grant: (-grant.signed_in_at, grant.id)))


def check_revoked(account_id: AccountId | None, client_id: ClientId | None) -> None:
    """Nobody revokes everything by leaving out both. Raises StoreMisused."""
    if account_id is None and client_id is None:
        raise StoreMisused("a revocation names an account, a client, or both")
