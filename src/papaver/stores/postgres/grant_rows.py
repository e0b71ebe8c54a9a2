"""How grants, tokens and tickets lie in columns, and the statements that find and write many of them at once."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from papaver.ports.grants import AccessFound, AccessRow, GrantRow, TicketKey, TicketRow
from papaver.protocol.terms import AccountId, ClientId
from papaver.stores.grants import access_columns, grant_columns

__all__ = [
    "ADD_SPENT",
    "FORGET_SPENT",
    "KEEP_SPENT",
    "LOAD_ACCESS",
    "LOAD_ACCOUNTS",
    "LOAD_GRANTS",
    "LOAD_OF_ACCOUNT",
    "LOAD_TICKET",
    "LOCK_TICKETS",
    "WRITE",
    "read_access",
    "read_grant",
    "read_ticket",
    "written",
]

_OWN = (
    "id, client_id, client_name, account_id, scopes, kind, signed_in_at, expires_at,"
    " current, previous, rotated_at, revoked_at"
)
_GRANT = ", ".join(f"grants.{column}" for column in _OWN.split(", "))
_TOKEN = "digest, grant_id, client_id, account_id, scopes, expires_at, resource, jkt"

# Everybody locks in this order, ids first, then tickets, then grants, each of them sorted: two replicas never wait for
# each other.
ADD_SPENT = (
    "INSERT INTO spent (company, key, until)"
    " SELECT $1, key, until FROM unnest($2::bytea[], $3::float8[]) AS fresh (key, until) ORDER BY key"
    " ON CONFLICT DO NOTHING RETURNING key"
)
KEEP_SPENT = (
    "UPDATE spent SET until = longer.until FROM unnest($2::bytea[], $3::float8[]) AS longer (key, until)"
    " WHERE spent.company = $1 AND spent.key = longer.key AND spent.until < longer.until"
)
FORGET_SPENT = "DELETE FROM spent WHERE company = $1 AND key = ANY($2::bytea[])"
LOCK_TICKETS = (
    "SELECT ticket.kind, ticket.digest, ticket.value, ticket.expires_at FROM tickets AS ticket"
    " JOIN unnest($2::text[], $3::text[]) AS asked (kind, digest)"
    " ON ticket.kind = asked.kind AND ticket.digest = asked.digest"
    " WHERE ticket.company = $1 ORDER BY ticket.kind, ticket.digest FOR UPDATE OF ticket"
)
LOAD_GRANTS = (
    f"SELECT {_GRANT},"
    " EXISTS (SELECT FROM accounts WHERE accounts.company = $1 AND accounts.id = grants.account_id),"
    " ARRAY(SELECT digest FROM refresh_tokens AS token WHERE token.company = $1"
    " AND token.digest = ANY($3::text[]) AND token.grant_id = grants.id)"
    " FROM grants WHERE company = $1 AND id = ANY(array_cat($2::text[], ARRAY("
    "SELECT grant_id FROM refresh_tokens WHERE company = $1 AND digest = ANY($3::text[]))))"
    " ORDER BY id FOR UPDATE OF grants"
)
"""Those with these ids, and those of these refresh tokens: whether the account is disabled, which tokens are theirs."""
LOAD_ACCOUNTS = "SELECT id FROM accounts WHERE company = $1 AND id = ANY($2::text[])"
LOAD_TICKET = "SELECT kind, digest, value, expires_at FROM tickets WHERE company = $1 AND kind = $2 AND digest = $3"
LOAD_ACCESS = (
    f"SELECT {', '.join(f'token.{column}' for column in _TOKEN.split(', '))}, accounts.id, {_GRANT}"
    " FROM access_tokens AS token"
    " JOIN grants ON grants.company = token.company AND grants.id = token.grant_id"
    " LEFT JOIN accounts ON accounts.company = grants.company AND accounts.id = grants.account_id"
    " WHERE token.company = $1 AND token.digest = $2"
)
LOAD_OF_ACCOUNT = (
    f"SELECT {_GRANT} FROM grants WHERE company = $1 AND account_id = $2"
    " AND ($3::text IS NULL OR client_id = $3) AND revoked_at IS NULL"
)


def _replacing(columns: str, keys: int) -> str:
    """ON CONFLICT: the new row takes the place of the old one; the first `keys` columns are the same in both."""
    names = columns.split(", ")
    fresh = ", ".join(f"{column} = excluded.{column}" for column in names[keys:])
    return f" ON CONFLICT (company, {', '.join(names[:keys])}) DO UPDATE SET {fresh}"


# One statement, and so one way to the server, for all that a round changes.
WRITE = (
    "WITH dropped AS (DELETE FROM tickets USING unnest($2::text[], $3::text[]) AS gone (kind, digest)"
    " WHERE tickets.company = $1 AND tickets.kind = gone.kind AND tickets.digest = gone.digest),"
    " put AS (INSERT INTO tickets (company, kind, digest, value, expires_at)"
    f" SELECT $1, * FROM unnest($4::text[], $5::text[], $6::bytea[], $7::float8[])"
    f"{_replacing('kind, digest, value, expires_at', 2)}),"
    f" granted AS (INSERT INTO grants (company, {_OWN}, ended_at)"
    " SELECT $1, * FROM unnest($8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::text[],"
    " $14::float8[], $15::float8[], $16::text[], $17::text[], $18::float8[], $19::float8[], $20::float8[])"
    f"{_replacing(f'{_OWN}, ended_at', 1)}),"
    " refreshing AS (INSERT INTO refresh_tokens (company, digest, grant_id)"
    f" SELECT $1, * FROM unnest($21::text[], $22::text[]){_replacing('digest, grant_id', 1)})"
    f" INSERT INTO access_tokens (company, {_TOKEN})"
    " SELECT $1, * FROM unnest($23::text[], $24::text[], $25::text[], $26::text[], $27::text[], $28::float8[],"
    f" $29::text[], $30::text[]){_replacing(_TOKEN, 1)}"
)


def written(
    company: int,
    dropped: Iterable[TicketKey],
    put: Iterable[TicketRow],
    grants: Iterable[GrantRow],
    refresh: Iterable[tuple[str, str]],
    access: Iterable[AccessRow],
) -> tuple[object, ...]:
    """The values of WRITE; of no table is there a key twice."""
    return (
        company,
        *_columns(2, dropped),
        *_columns(4, ((*row.key, row.value, row.expires_at) for row in put)),
        *_columns(13, (grant_columns(row) for row in grants)),
        *_columns(2, refresh),
        *_columns(8, (access_columns(row) for row in access)),
    )


def _columns(count: int, rows: Iterable[Sequence[object]]) -> list[list[object]]:
    """Rows as columns, in the order of their keys: rows that are new are locked in it, too."""
    ordered = sorted(rows, key=lambda row: (str(row[0]), str(row[1])))
    return [[row[n] for row in ordered] for n in range(count)]


def _scopes(text: str) -> tuple[str, ...]:
    return tuple(text.split(" ")) if text else ()


def read_grant(row: Sequence[Any]) -> GrantRow:
    """Of the columns of a grant, in their order."""
    id, client, name, account, scopes, kind, begun, ends, current, previous, rotated, revoked = row
    whose = ClientId(client), name, AccountId(account)
    return GrantRow(id, *whose, _scopes(scopes), kind, begun, ends, current, previous, rotated, revoked)


def read_access(row: Sequence[Any]) -> AccessFound:
    """Of the columns of LOAD_ACCESS."""
    digest, grant_id, client, account, scopes, ends, resource, jkt, disabled = row[:9]
    whose = ClientId(client), AccountId(account)
    token = AccessRow(digest, grant_id, *whose, _scopes(scopes), ends, resource, jkt)
    return AccessFound(token, read_grant(row[9:]), disabled is not None)


def read_ticket(row: Sequence[Any]) -> TicketRow:
    kind, digest, value, expires_at = row
    return TicketRow(kind, digest, value, expires_at)
