"""How grants, tokens and tickets lie in columns, and the statements that find them."""

from __future__ import annotations

import sqlite3
from typing import Literal, TypeAlias, cast

from papaver.ports.grants import AccessFound, AccessRow, GrantRow, TicketKey, TicketRow
from papaver.protocol.terms import AccountId, ClientId

__all__ = [
    "ACCESS_COLUMNS",
    "GRANT_COLUMNS",
    "is_disabled",
    "load_access",
    "load_grant",
    "load_granted",
    "load_grants",
    "load_ticket",
    "revocation",
]

_OWN = (
    "id",
    "client_id",
    "client_name",
    "account_id",
    "scopes",
    "kind",
    "signed_in_at",
    "expires_at",
    "current",
    "previous",
    "rotated_at",
    "revoked_at",
)
_GRANT = ", ".join(f"grants.{column}" for column in _OWN)
GRANT_COLUMNS = f"company, {', '.join(_OWN)}, ended_at"
ACCESS_COLUMNS = "company, digest, grant_id, client_id, account_id, scopes, expires_at, resource, jkt"

_DISABLED = " LEFT JOIN accounts ON accounts.company = grants.company AND accounts.id = grants.account_id"
_LOAD = f"SELECT {_GRANT}, accounts.id FROM grants{_DISABLED} WHERE grants.company = ? AND grants.id = ?"
_LOAD_BY_REFRESH = (
    f"SELECT {_GRANT}, accounts.id FROM refresh_tokens AS token"
    f" CROSS JOIN grants ON grants.company = token.company AND grants.id = token.grant_id{_DISABLED}"
    " WHERE token.company = ? AND token.digest = ?"
)
_LOAD_BY_ACCESS = (
    "SELECT token.digest, token.grant_id, token.client_id, token.account_id, token.scopes, token.expires_at,"
    f" token.resource, token.jkt, accounts.id, {_GRANT} FROM access_tokens AS token"
    f" CROSS JOIN grants ON grants.company = token.company AND grants.id = token.grant_id{_DISABLED}"
    " WHERE token.company = ? AND token.digest = ?"
)
# Which index is said: SQLite prefers the primary key to one of a part of the rows.
_OF_ACCOUNT = (
    f"SELECT {_GRANT} FROM grants INDEXED BY grants_of_account"
    " WHERE company = ? AND account_id = ? AND revoked_at IS NULL"
)
_TICKET = "SELECT value, expires_at FROM tickets WHERE company = ? AND kind = ? AND digest = ?"

_Kind: TypeAlias = Literal["direct", "device"]
_GrantColumns: TypeAlias = tuple[
    str, str, str, str, str, _Kind, float, float, str, str | None, float | None, float | None
]
_AccessColumns: TypeAlias = tuple[str, str, str, str, str, float, str | None, str | None]


def _scopes(text: str) -> tuple[str, ...]:
    return tuple(text.split(" ")) if text else ()


def _read_grant(columns: _GrantColumns) -> GrantRow:
    id, client, name, account, scopes, kind, begun, ends, current, previous, rotated, revoked = columns
    whose = ClientId(client), name, AccountId(account)
    return GrantRow(id, *whose, _scopes(scopes), kind, begun, ends, current, previous, rotated, revoked)


def _read_access(columns: _AccessColumns) -> AccessRow:
    digest, grant_id, client, account, scopes, ends, resource, jkt = columns
    return AccessRow(digest, grant_id, ClientId(client), AccountId(account), _scopes(scopes), ends, resource, jkt)


def load_grant(connection: sqlite3.Connection, company: int, id: str) -> tuple[GrantRow, bool] | None:
    """A grant, and whether its account is disabled."""
    return _granted(connection.execute(_LOAD, (company, id)))


def load_granted(connection: sqlite3.Connection, company: int, refresh: str) -> tuple[GrantRow, bool] | None:
    """The same of the family of this refresh token."""
    return _granted(connection.execute(_LOAD_BY_REFRESH, (company, refresh)))


def _granted(found: sqlite3.Cursor) -> tuple[GrantRow, bool] | None:
    row = found.fetchone()
    return None if row is None else (_read_grant(row[:-1]), row[-1] is not None)


def load_access(connection: sqlite3.Connection, company: int, digest: str) -> AccessFound | None:
    row = connection.execute(_LOAD_BY_ACCESS, (company, digest)).fetchone()
    return None if row is None else AccessFound(_read_access(row[:8]), _read_grant(row[9:]), row[8] is not None)


def load_grants(
    connection: sqlite3.Connection, company: int, account_id: AccountId, client_id: ClientId | None
) -> list[GrantRow]:
    """Those of an account that were not revoked, in no order."""
    if client_id is None:
        rows = connection.execute(_OF_ACCOUNT, (company, account_id))
    else:
        rows = connection.execute(f"{_OF_ACCOUNT} AND client_id = ?", (company, account_id, client_id))
    return [_read_grant(cast(_GrantColumns, row)) for row in rows]


def revocation(
    company: int, at: float, account_id: AccountId | None, client_id: ClientId | None, limit: int
) -> tuple[str, tuple[object, ...]]:
    """The statement that revokes at most so many standing grants of those who are named, and its values."""
    both = (("account_id", account_id), ("client_id", client_id))
    named = [(name, value) for name, value in both if value is not None]
    whose = "".join(f" AND {name} = ?" for name, _ in named)
    index = "grants_of_client" if account_id is None else "grants_of_account"
    some = (
        f"SELECT id FROM grants INDEXED BY {index}"
        f" WHERE company = ?{whose} AND revoked_at IS NULL AND expires_at > ? LIMIT ?"
    )
    return (
        f"UPDATE grants SET revoked_at = ?, ended_at = ? WHERE company = ? AND id IN ({some})",
        (at, at, company, company, *(value for _, value in named), at, limit),
    )


def load_ticket(connection: sqlite3.Connection, company: int, key: TicketKey) -> TicketRow | None:
    row = connection.execute(_TICKET, (company, *key)).fetchone()
    return None if row is None else TicketRow(*key, *row)


def is_disabled(connection: sqlite3.Connection, company: int, account_id: AccountId) -> bool:
    found = connection.execute("SELECT 1 FROM accounts WHERE company = ? AND id = ?", (company, account_id))
    return found.fetchone() is not None
