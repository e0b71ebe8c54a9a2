"""The embedded issuer's grants, tokens and tickets of one Company in PostgreSQL: the one door, and reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, TypeVar

from papaver.ports.grants import AccessFound, GrantChange, GrantKeys, GrantLoaded, GrantRow, TicketKey, TicketRow
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.grants import check_revoked, newest_first
from papaver.stores.postgres import grant_rows as rows
from papaver.stores.postgres.grant_rounds import GrantRounds
from papaver.stores.postgres.server import Server
from papaver.stores.postgres.values import count_of

__all__ = ["PostgresGrants"]

R = TypeVar("R")
AT_ONCE: Final = 1000
"""Rows that one statement of a revocation or a sweep changes: nobody waits for a long one."""
_REVOKE = (
    "UPDATE grants SET revoked_at = $2, ended_at = $2 WHERE company = $1 AND id IN ("
    "SELECT id FROM grants WHERE company = $1 AND {whose} AND revoked_at IS NULL AND expires_at > $2"
    " ORDER BY id LIMIT {limit} FOR UPDATE)"
)
"""Locked in order, as a round locks them."""
_BY_ACCOUNT, _BY_CLIENT = "account_id = $3", "client_id = $3"
_BY_BOTH = "account_id = $3 AND client_id = $4"
_SWEEP = (
    "DELETE FROM {table} WHERE company = $1 AND ({key}) IN (SELECT {key} FROM {table}"
    " WHERE company = $1 AND {over} LIMIT {limit} FOR UPDATE SKIP LOCKED)"
)
_SWEPT: Final = (
    ("tickets", "kind, digest", "expires_at <= $2"),
    ("access_tokens", "digest", "expires_at <= $2"),
    ("spent", "key", "until < $2"),
)
_SWEEP_GRANTS = (
    "WITH gone AS (DELETE FROM grants WHERE company = $1 AND id IN (SELECT id FROM grants"
    " WHERE company = $1 AND ended_at < $2 LIMIT {limit} FOR UPDATE SKIP LOCKED) RETURNING id),"
    " tokens AS (DELETE FROM refresh_tokens WHERE company = $1 AND grant_id IN (SELECT id FROM gone) RETURNING 1)"
    " SELECT (SELECT count(*) FROM gone), (SELECT count(*) FROM tokens)"
)


class PostgresGrants:
    """`GrantStore` of one Company."""

    def __init__(self, server: Server, company: int) -> None:
        self._server = server
        self._company = company
        self._rounds = GrantRounds(server, company)

    async def apply(self, keys: GrantKeys, decide: Callable[[GrantLoaded], GrantChange[R]]) -> R:
        return await self._rounds.apply(keys, decide)

    async def access(self, digest: str) -> AccessFound | None:
        found = await self._fetch(rows.LOAD_ACCESS, digest)
        return rows.read_access(found[0]) if found else None

    async def ticket(self, key: TicketKey) -> TicketRow | None:
        found = await self._fetch(rows.LOAD_TICKET, *key)
        return rows.read_ticket(found[0]) if found else None

    async def grants(self, account_id: AccountId, client_id: ClientId | None = None) -> tuple[GrantRow, ...]:
        return newest_first(map(rows.read_grant, await self._fetch(rows.LOAD_OF_ACCOUNT, account_id, client_id)))

    async def revoke(self, at: float, *, account_id: AccountId | None, client_id: ClientId | None) -> int:
        check_revoked(account_id, client_id)
        named = [name for name in (account_id, client_id) if name is not None]
        whose = _BY_BOTH if len(named) == 2 else _BY_CLIENT if account_id is None else _BY_ACCOUNT
        return await self._repeat(_REVOKE.format(whose=whose, limit=AT_ONCE), at, *named)

    async def disable(self, account_id: AccountId, disabled: bool) -> None:
        statement = (
            "INSERT INTO accounts (company, id) VALUES ($1, $2) ON CONFLICT DO NOTHING"
            if disabled
            else "DELETE FROM accounts WHERE company = $1 AND id = $2"
        )
        await self._server.run(lambda connection: connection.execute(statement, self._company, account_id))

    async def sweep(self, now: float, *, forget_before: float) -> int:
        swept = 0
        for table, key, over in _SWEPT:
            swept += await self._repeat(_SWEEP.format(table=table, key=key, over=over, limit=AT_ONCE), now)
        grants = AT_ONCE
        while grants == AT_ONCE:
            ((grants, tokens),) = await self._fetch(_SWEEP_GRANTS.format(limit=AT_ONCE), forget_before)
            swept += grants + tokens
        return swept

    async def _fetch(self, statement: str, *values: object) -> Sequence[Any]:
        return await self._server.run(lambda connection: connection.fetch(statement, self._company, *values))

    async def _repeat(self, statement: str, *values: object) -> int:
        """Execute it until it changes fewer than AT_ONCE rows; how many in all."""
        changed, total = AT_ONCE, 0
        while changed == AT_ONCE:
            changed = count_of(
                await self._server.run(lambda connection: connection.execute(statement, self._company, *values))
            )
            total += changed
        return total
