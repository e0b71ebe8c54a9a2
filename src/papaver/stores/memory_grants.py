"""Grants, their tokens and tickets in this process's memory, for tests: the same contract, nothing kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from papaver.ports.grants import (
    AccessFound,
    AccessRow,
    GrantChange,
    GrantKeys,
    GrantLoaded,
    GrantRow,
    Spent,
    TicketKey,
    TicketRow,
)
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.grants import check_revoked, ended_at, newest_first

__all__ = ["MemoryGrants"]

R = TypeVar("R")


class MemoryGrants:
    """A `GrantStore`."""

    def __init__(self) -> None:
        self._grants: dict[str, GrantRow] = {}
        self._refresh: dict[str, str] = {}
        self._access: dict[str, AccessRow] = {}
        self._tickets: dict[TicketKey, TicketRow] = {}
        self._spent: dict[tuple[ClientId, str, str], float] = {}
        self._disabled: set[AccountId] = set()

    async def apply(self, keys: GrantKeys, decide: Callable[[GrantLoaded], GrantChange[R]]) -> R:
        change = decide(self._load(keys))
        for one in keys.spent:
            self._spent[_id(one)] = max(one.until, self._spent.get(_id(one), one.until))
        for key in change.drop_tickets:
            self._tickets.pop(key, None)
        self._tickets.update((ticket.key, ticket) for ticket in change.put_tickets)
        self._grants.update((grant.id, grant) for grant in change.grants)
        self._refresh.update((row.digest, row.grant_id) for row in change.refresh)
        self._access.update((row.digest, row) for row in change.access)
        return change.result

    def _load(self, keys: GrantKeys) -> GrantLoaded:
        named = keys.grant if keys.refresh is None else self._refresh.get(keys.refresh)
        grant = None if named is None else self._grants.get(named)
        account = keys.account if keys.account is not None or grant is None else grant.account_id
        return GrantLoaded(
            tickets={key: self._tickets[key] for key in keys.tickets if key in self._tickets},
            grant=grant,
            disabled=account in self._disabled,
            spent=tuple(one for one in keys.spent if _id(one) in self._spent),
        )

    async def access(self, digest: str) -> AccessFound | None:
        row = self._access.get(digest)
        grant = None if row is None else self._grants.get(row.grant_id)
        if row is None or grant is None:
            return None
        return AccessFound(row, grant, grant.account_id in self._disabled)

    async def ticket(self, key: TicketKey) -> TicketRow | None:
        return self._tickets.get(key)

    async def grants(self, account_id: AccountId, client_id: ClientId | None = None) -> tuple[GrantRow, ...]:
        return newest_first(
            grant
            for grant in self._grants.values()
            if grant.account_id == account_id and client_id in (None, grant.client_id) and grant.revoked_at is None
        )

    async def revoke(self, at: float, *, account_id: AccountId | None, client_id: ClientId | None) -> int:
        check_revoked(account_id, client_id)
        standing = [
            grant
            for grant in self._grants.values()
            if account_id in (None, grant.account_id) and client_id in (None, grant.client_id) and grant.stands(at)
        ]
        self._grants.update((grant.id, replace(grant, revoked_at=at)) for grant in standing)
        return len(standing)

    async def disable(self, account_id: AccountId, disabled: bool) -> None:
        if disabled:
            self._disabled.add(account_id)
        else:
            self._disabled.discard(account_id)

    async def sweep(self, now: float, *, forget_before: float) -> int:
        before = self._count()
        self._grants = {id: grant for id, grant in self._grants.items() if ended_at(grant) >= forget_before}
        self._refresh = {digest: id for digest, id in self._refresh.items() if id in self._grants}
        self._access = {digest: row for digest, row in self._access.items() if now < row.expires_at}
        self._tickets = {key: ticket for key, ticket in self._tickets.items() if now < ticket.expires_at}
        self._spent = {key: until for key, until in self._spent.items() if until >= now}
        return before - self._count()

    def _count(self) -> int:
        tables = (self._grants, self._refresh, self._access, self._tickets, self._spent)
        return sum(len(table) for table in tables)


def _id(spent: Spent) -> tuple[ClientId, str, str]:
    return spent.client_id, spent.kind, spent.jti
