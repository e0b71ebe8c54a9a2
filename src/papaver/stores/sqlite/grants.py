"""The embedded issuer's grants, tokens and tickets of one Company in SQLite: the one door, and how they are read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from typing import TypeVar

from papaver.ports.grants import AccessFound, GrantChange, GrantKeys, GrantLoaded, GrantRow, TicketKey, TicketRow
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.grants import check_revoked, newest_first
from papaver.stores.sqlite.database import Database
from papaver.stores.sqlite.grant_group import GrantGroup
from papaver.stores.sqlite.grant_rows import load_access, load_grants, load_ticket, revocation
from papaver.stores.sqlite.writer import Transaction

__all__ = ["SqliteGrants"]

R = TypeVar("R")
AT_ONCE = 500
"""Rows that one transaction of a revocation or a sweep changes: nobody's message waits for a long one."""
LOOKED_AT, PAGE = 20_000, 5_000
"""Refresh tokens of which one sweep sees whether they still have a grant, and those that one read fetches."""


class SqliteGrants:
    """`GrantStore` of one Company."""

    def __init__(self, database: Database, company: int) -> None:
        self._database = database
        self._company = company
        self._group = GrantGroup(company)
        self._looked_up_to = ""

    async def apply(self, keys: GrantKeys, decide: Callable[[GrantLoaded], GrantChange[R]]) -> R:
        def applied(transaction: Transaction) -> R:
            return self._group.apply(transaction, keys, decide)

        return await self._database.writer.run(applied, "grant")

    async def access(self, digest: str) -> AccessFound | None:
        return self._database.readers.near(lambda connection: load_access(connection, self._company, digest))

    async def ticket(self, key: TicketKey) -> TicketRow | None:
        return self._database.readers.near(lambda connection: load_ticket(connection, self._company, key))

    async def grants(self, account_id: AccountId, client_id: ClientId | None = None) -> tuple[GrantRow, ...]:
        return newest_first(
            await self._database.readers.far(
                lambda connection: load_grants(connection, self._company, account_id, client_id)
            )
        )

    async def revoke(self, at: float, *, account_id: AccountId | None, client_id: ClientId | None) -> int:
        check_revoked(account_id, client_id)
        return await self._repeat(*revocation(self._company, at, account_id, client_id, AT_ONCE))

    async def disable(self, account_id: AccountId, disabled: bool) -> None:
        statement = (
            "INSERT OR IGNORE INTO accounts (company, id) VALUES (?, ?)"
            if disabled
            else "DELETE FROM accounts WHERE company = ? AND id = ?"
        )
        await self._database.writer.run(
            lambda transaction: transaction.direct.execute(statement, (self._company, account_id)).rowcount
        )

    async def sweep(self, now: float, *, forget_before: float) -> int:
        swept = await self._database.writer.run(lambda transaction: self._group.forget_spent(transaction, now))
        for table, key, over, before in (
            ("tickets", "kind, digest", "expires_at <= ?", now),
            ("access_tokens", "digest", "expires_at <= ?", now),
            ("grants", "id", "ended_at < ?", forget_before),
        ):
            some = f"SELECT {key} FROM {table} WHERE company = ? AND {over} LIMIT ?"
            swept += await self._repeat(
                f"DELETE FROM {table} WHERE company = ? AND ({key}) IN ({some})",
                (self._company, self._company, before, AT_ONCE),
            )
        return swept + await self._sweep_refresh()

    async def _repeat(self, statement: str, values: tuple[object, ...]) -> int:
        """Execute it until it changes fewer than AT_ONCE rows; how many in all."""
        changed, total = AT_ONCE, 0
        while changed == AT_ONCE:
            changed = await self._database.writer.run(
                lambda transaction: transaction.direct.execute(statement, values).rowcount
            )
            total += changed
        return total

    async def _sweep_refresh(self) -> int:
        """Delete refresh tokens without a grant, in a part of the table: from where the last sweep stopped."""
        swept = 0
        for _ in range(LOOKED_AT // PAGE):
            page = await self._database.readers.far(self._next_refresh)
            self._looked_up_to = page[-1][0] if len(page) == PAGE else ""
            lost = [(self._company, digest) for digest, has_grant in page if not has_grant]
            for some in _parts(lost):
                swept += await self._database.writer.run(lambda transaction, some=some: _delete_lost(transaction, some))
            if not self._looked_up_to:
                break
        return swept

    def _next_refresh(self, connection: sqlite3.Connection) -> list[tuple[str, bool]]:
        return connection.execute(
            "SELECT digest, EXISTS (SELECT 1 FROM grants WHERE company = token.company AND id = token.grant_id)"
            " FROM refresh_tokens AS token WHERE company = ? AND digest > ? ORDER BY digest LIMIT ?",
            (self._company, self._looked_up_to, PAGE),
        ).fetchall()


def _parts(rows: list[tuple[int, str]]) -> Iterator[list[tuple[int, str]]]:
    for start in range(0, len(rows), AT_ONCE):
        yield rows[start : start + AT_ONCE]


def _delete_lost(transaction: Transaction, rows: list[tuple[int, str]]) -> int:
    statement = "DELETE FROM refresh_tokens WHERE company = ? AND digest = ?"
    return transaction.direct.executemany(statement, rows).rowcount
