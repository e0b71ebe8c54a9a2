"""One Company's changes of grants within a group commit: decided one after the other, what they add written together.

Tokens and one-time ids are only added: they are held back until COMMIT. Grants and tickets are written at once.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from papaver.ports.grants import GrantChange, GrantKeys, GrantLoaded, GrantRow
from papaver.stores.digests import digest
from papaver.stores.grants import access_columns, grant_columns
from papaver.stores.sqlite.grant_rows import (
    ACCESS_COLUMNS,
    GRANT_COLUMNS,
    is_disabled,
    load_grant,
    load_granted,
    load_ticket,
)
from papaver.stores.sqlite.replays import Replays
from papaver.stores.sqlite.rows import insert_rows
from papaver.stores.sqlite.writer import Transaction

__all__ = ["GrantGroup"]

R = TypeVar("R")

_ROTATE = "UPDATE grants SET current = ?, previous = ?, rotated_at = ? WHERE company = ? AND id = ?"
_DROP = "DELETE FROM tickets WHERE company = ? AND kind = ? AND digest = ?"


def _replacing(columns: str, keys: int) -> str:
    """ON CONFLICT: the new row takes the place of the old one; the first `keys` columns are the same in both."""
    fresh = ", ".join(f"{column} = excluded.{column}" for column in columns.split(", ")[keys:])
    return f" ON CONFLICT DO UPDATE SET {fresh}"


_REFRESH_COLUMNS, _TICKET_COLUMNS = "company, digest, grant_id", "company, kind, digest, value, expires_at"
_REPLACE_GRANT = _replacing(GRANT_COLUMNS, 2)
_REPLACE_REFRESH = _replacing(_REFRESH_COLUMNS, 2)
_REPLACE_ACCESS = _replacing(ACCESS_COLUMNS, 2)
_REPLACE_TICKET = _replacing(_TICKET_COLUMNS, 3)


class GrantGroup:
    """Lives as long as its table, and is used on the writer's thread alone.

    It reads and writes by `Transaction.direct`: no other table's rows are touched, and none of those held back here is
    read by anyone else.
    """

    __slots__ = ("_access", "_company", "_now", "_refresh", "_spent", "_transaction")

    def __init__(self, company: int) -> None:
        self._company = company
        self._transaction: Transaction | None = None
        self._refresh: dict[str, str] = {}
        self._access: list[tuple[object, ...]] = []
        self._spent = Replays(company, "spent")
        self._now = 0.0

    def apply(self, transaction: Transaction, keys: GrantKeys, decide: Callable[[GrantLoaded], GrantChange[R]]) -> R:
        self._enter(transaction)
        connection = transaction.direct
        ids = [digest(one.client_id, one.kind, one.jti) for one in keys.spent]
        known = [self._spent.known(transaction, id) for id in ids]
        loaded = self._load(connection, keys)
        if any(until is not None for until in known):
            used = [one for one, until in zip(keys.spent, known, strict=True) if until is not None]
            loaded = replace(loaded, spent=tuple(used))
        # What `decide` raises leaves nothing: nothing is written before it.
        change = decide(loaded)
        try:
            self._write(connection, change, loaded.grant)
        except (UnicodeError, OverflowError) as fault:
            # A value that no column takes; rows before it were written. As an error of SQLite it undoes them.
            raise sqlite3.DataError(f"{type(fault).__name__} in a change of grants") from fault
        for one, id, until in zip(keys.spent, ids, known, strict=True):
            if until is None or until < one.until:
                self._spent.note(id, one.until)
        return change.result

    def _enter(self, transaction: Transaction) -> None:
        if transaction is self._transaction:
            return
        # What the last one held back was written, or was lost with it.
        self._clear()
        self._spent.drop()
        self._transaction = transaction
        transaction.hold(self)

    def _load(self, connection: sqlite3.Connection, keys: GrantKeys) -> GrantLoaded:
        company, refresh = self._company, keys.refresh
        tickets = {key: row for key in keys.tickets if (row := load_ticket(connection, company, key)) is not None}
        id = keys.grant if refresh is None else self._refresh.get(refresh)
        if id is not None:
            found = load_grant(connection, company, id)
        else:
            found = None if refresh is None else load_granted(connection, company, refresh)
        grant, disabled = (None, False) if found is None else found
        if keys.account is not None and (grant is None or grant.account_id != keys.account):
            disabled = is_disabled(connection, company, keys.account)
        return GrantLoaded(tickets, grant, disabled)

    def _write(self, connection: sqlite3.Connection, change: GrantChange[object], loaded: GrantRow | None) -> None:
        company = self._company
        tickets = [(company, *row.key, row.value, row.expires_at) for row in change.put_tickets]
        access = [(company, *access_columns(row)) for row in change.access]
        grants = [(company, *grant_columns(row)) for row in change.grants]
        for key in change.drop_tickets:
            connection.execute(_DROP, (company, *key))
        insert_rows(connection, "tickets", _TICKET_COLUMNS, tickets, _REPLACE_TICKET)
        for row, columns in zip(change.grants, grants, strict=True):
            if loaded is not None and _rotated(loaded, row):
                connection.execute(_ROTATE, (row.current, row.previous, row.rotated_at, company, row.id))
            else:
                insert_rows(connection, "grants", GRANT_COLUMNS, [columns], _REPLACE_GRANT)
        self._refresh.update((row.digest, row.grant_id) for row in change.refresh)
        self._access += access

    def write(self, connection: sqlite3.Connection) -> None:
        """All that was held back."""
        refresh = [(self._company, digest, grant_id) for digest, grant_id in self._refresh.items()]
        try:
            insert_rows(connection, "refresh_tokens", _REFRESH_COLUMNS, refresh, _REPLACE_REFRESH)
            insert_rows(connection, "access_tokens", ACCESS_COLUMNS, self._access, _REPLACE_ACCESS)
        except (UnicodeError, OverflowError) as fault:
            raise sqlite3.DataError(f"{type(fault).__name__} in tokens") from fault
        self._spent.write(connection, self._now)
        self._clear()

    def forget(self) -> None:
        """Nothing is remembered that another writer could change."""

    def _clear(self) -> None:
        self._refresh.clear()
        self._access.clear()

    def forget_spent(self, transaction: Transaction, now: float) -> int:
        """Ids that are over; how many rows that deleted."""
        self._enter(transaction)
        self._now = now
        return self._spent.prune(transaction.direct, now)


def _rotated(before: GrantRow, after: GrantRow) -> bool:
    """Whether nothing but its newest tokens is new: no index has to be touched."""
    return replace(before, current=after.current, previous=after.previous, rotated_at=after.rotated_at) == after
