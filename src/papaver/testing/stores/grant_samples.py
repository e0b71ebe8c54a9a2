"""Small grants and their changes, written by hand: the contract does not depend on what an issuer makes of one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, Literal

from papaver.ports.grants import (
    AccessRow,
    GrantChange,
    GrantKeys,
    GrantLoaded,
    GrantRow,
    GrantStore,
    RefreshRow,
    Spent,
    digest,
)
from papaver.protocol.terms import AccountId, ClientId
from papaver.testing.stores.samples import CLIENT, NOW

__all__ = [
    "ACCOUNT",
    "DAY",
    "HOUR",
    "OTHER_ACCOUNT",
    "OTHER_CLIENT",
    "access_row",
    "grant_row",
    "refresh",
    "seen",
    "sign_in",
    "spent_id",
    "writes",
]

ACCOUNT: Final = AccountId("acc_dana")
OTHER_ACCOUNT: Final = AccountId("acc_robin")
OTHER_CLIENT: Final = ClientId("https://other.example/agent.json")
HOUR: Final = 3600.0
DAY: Final = 86_400.0


def grant_row(
    id: str = "gra_1",
    *,
    account: AccountId = ACCOUNT,
    client: ClientId = CLIENT,
    begun: float = 0,
    lasts: float = 90 * DAY,
    revoked: float | None = None,
) -> GrantRow:
    """A grant signed in `begun` seconds after NOW. Its newest refresh token is `{id}.1`."""
    return GrantRow(
        id=id,
        client_id=client,
        client_name="Assistant « Ärmel »",
        account_id=account,
        scopes=("poppy", "orders:read"),
        kind="direct",
        signed_in_at=NOW + begun,
        expires_at=NOW + begun + lasts,
        current=digest(f"{id}.1"),
        revoked_at=None if revoked is None else NOW + revoked,
    )


def access_row(token: str, grant: GrantRow, *, lasts: float = HOUR) -> AccessRow:
    return AccessRow(digest(token), grant.id, grant.client_id, grant.account_id, grant.scopes, NOW + lasts)


def writes(change: GrantChange[str]) -> Callable[[GrantLoaded], GrantChange[str]]:
    return lambda _: change


def _look(loaded: GrantLoaded) -> GrantChange[GrantLoaded]:
    return GrantChange(loaded)


async def seen(store: GrantStore, keys: GrantKeys) -> GrantLoaded:
    """What is loaded; nothing but the ids is written."""
    return await store.apply(keys, _look)


async def sign_in(store: GrantStore, grant: GrantRow) -> None:
    """The grant, its first refresh token `{id}.1` and an access token `{id}.access.1`."""
    first = RefreshRow(grant.current, grant.id)
    change = GrantChange("", grants=(grant,), refresh=(first,), access=(access_row(f"{grant.id}.access.1", grant),))
    await store.apply(GrantKeys(), writes(change))


def spent_id(jti: str, *, until: float = 60, kind: Literal["assertion", "dpop"] = "assertion") -> Spent:
    return Spent(CLIENT, kind, jti, NOW + until)


async def refresh(store: GrantStore, token: str, fresh: str, *, jti: str | None = None, at: float = 1) -> str:
    """Rotate a refresh token; "reused" when it is not the newest any more, and then its family is revoked."""

    def decide(loaded: GrantLoaded) -> GrantChange[str]:
        grant = loaded.grant
        if grant is None or loaded.disabled or loaded.spent or not grant.stands(NOW + at):
            return GrantChange("refused")
        if grant.current != digest(token):
            return GrantChange("reused", grants=(replace(grant, revoked_at=NOW + at),))
        rotated = replace(grant, current=digest(fresh), previous=grant.current, rotated_at=NOW + at)
        row = RefreshRow(rotated.current, grant.id)
        return GrantChange("done", grants=(rotated,), refresh=(row,), access=(access_row(f"{fresh}.access", grant),))

    spent = () if jti is None else (spent_id(jti),)
    return await store.apply(GrantKeys(refresh=digest(token), spent=spent), decide)
