"""Statements of a round of changes, and how its values lie in arrays: one statement loads, one writes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from papaver.protocol.conversation.model import Responder, Status
from papaver.protocol.conversation.record import read_head
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.terms import ConversationId

__all__ = ["HEADS", "KIN", "LOAD", "PRUNE_REPLAYS", "WRITE", "Stored", "columns", "read_receipt", "read_stored"]

_HEAD = "id, head, token, holder, due_since"
HEADS = f"SELECT {_HEAD} FROM conversations WHERE company = $1 AND id = ANY($2::text[]) ORDER BY id FOR UPDATE"
KIN = "SELECT id, head FROM conversations WHERE company = $1 AND id = ANY($2::text[])"
"""Not locked: what it says of parents and children is looked at again once all of them are."""
LOAD = (
    "WITH receipt AS (SELECT key, fingerprint, conversation, accepted_as, status, responder FROM receipts"
    " WHERE company = $1 AND key = ANY($3::bytea[])),"
    f" locked AS (SELECT {_HEAD} FROM conversations"
    " WHERE company = $1 AND id = ANY(array_cat($2::text[], ARRAY(SELECT conversation FROM receipt)))"
    " ORDER BY id FOR UPDATE)"
    " SELECT 'head' AS what, id, head AS octets, token AS a, holder AS b, due_since AS c, NULL AS d, NULL AS e,"
    " NULL AS f, NULL::float8 AS g FROM locked"
    " UNION ALL SELECT 'receipt', conversation, key, accepted_as, fingerprint, NULL, status, responder, NULL, NULL"
    " FROM receipt"
    " UNION ALL SELECT 'replay', NULL, key, NULL, NULL, NULL, NULL, NULL, NULL, NULL FROM replays"
    " WHERE company = $1 AND key = ANY($4::bytea[])"
    " UNION ALL SELECT 'session', key, NULL, NULL, client_id, seen_at, sid, user_id, agent_id, ended_at FROM sessions"
    " WHERE company = $1 AND (client_id, sid) IN (SELECT * FROM unnest($5::text[], $6::text[]))"
)
"""Heads are locked in the order of their ids, so that two rounds never wait for each other."""
WRITE = (
    "WITH made AS (INSERT INTO conversations (company, id, head, last_seq, changed_at, changed_day, closed,"
    " due_since, client_key, user_key, attends, attends_since, prunable)"
    " SELECT $1, * FROM unnest($2::text[], $3::bytea[], $4::bigint[], $5::float8[], $6::int[], $7::bool[],"
    " $8::float8[], $9::bigint[], $10::bigint[], $11::smallint[], $12::float8[], $13::float8[])),"
    " changed AS (UPDATE conversations AS old SET head = new.head, last_seq = new.last_seq,"
    " changed_at = new.changed_at, changed_day = new.changed_day, closed = new.closed, due_since = new.due_since,"
    " attends = new.attends, attends_since = new.attends_since, prunable = new.prunable,"
    " turn_id = CASE WHEN new.ended THEN NULL ELSE old.turn_id END,"
    " until_seq = CASE WHEN new.ended THEN NULL ELSE old.until_seq END,"
    " holder = CASE WHEN new.ended THEN NULL ELSE old.holder END,"
    " until = CASE WHEN new.ended THEN NULL ELSE old.until END"
    " FROM unnest($14::text[], $15::bytea[], $16::bigint[], $17::float8[], $18::int[], $19::bool[], $20::float8[],"
    " $21::smallint[], $22::float8[], $23::float8[], $24::bool[]) AS new (id, head, last_seq, changed_at,"
    " changed_day, closed, due_since, attends, attends_since, prunable, ended)"
    " WHERE old.company = $1 AND old.id = new.id),"
    " said AS (INSERT INTO events (company, conversation, seq, body)"
    " SELECT $1, * FROM unnest($25::text[], $26::bigint[], $27::bytea[])),"
    " accepted AS (INSERT INTO receipts (company, key, fingerprint, conversation, accepted_as, status, responder)"
    " SELECT $1, * FROM unnest($28::bytea[], $29::text[], $30::text[], $31::int[], $32::text[], $33::text[])),"
    " used AS (INSERT INTO replays (company, key, until) SELECT $1, * FROM unnest($34::bytea[], $35::float8[])),"
    " told AS (INSERT INTO notes (company, conversation, kind, seq, first_seq)"
    " SELECT $1, * FROM unnest($36::text[], $37::text[], $38::bigint[], $39::bigint[])),"
    " pruned AS (DELETE FROM events USING unnest($40::text[], $41::bigint[]) AS old (conversation, seq)"
    " WHERE events.company = $1 AND events.conversation = old.conversation AND events.seq < old.seq),"
    " over AS (DELETE FROM journal WHERE company = $1 AND conversation = ANY($42::text[]))"
    " INSERT INTO journal (company, conversation, key, value)"
    " SELECT $1, * FROM unnest($43::text[], $44::bytea[], $45::bytea[])"
    " ON CONFLICT (company, conversation, key) DO UPDATE SET value = excluded.value"
)
PRUNE_REPLAYS = (
    "DELETE FROM replays WHERE company = $1 AND key IN (SELECT key FROM replays"
    " WHERE company = $1 AND until < $2 ORDER BY until LIMIT $3 FOR UPDATE SKIP LOCKED)"
)


@dataclass(slots=True, frozen=True)
class Stored:
    """A conversation's row."""

    head: Head
    token: int
    holder: str | None
    due_since: float | None


def read_stored(row: Sequence[Any]) -> tuple[ConversationId, Stored]:
    """Of `id, head, token, holder, due_since`."""
    id, head, token, holder, due_since = row
    return ConversationId(id), Stored(read_head(head), token, holder, due_since)


def read_receipt(conversation: str, accepted_as: int, fingerprint: str, status: str, responder: str) -> Receipt:
    return Receipt(fingerprint, ConversationId(conversation), accepted_as, Status(status), Responder(responder))


def columns(count: int, rows: Iterable[Sequence[object]]) -> list[list[object]]:
    """Rows of so many values as an array of each."""
    made: list[list[object]] = [[] for _ in range(count)]
    for row in rows:
        for column, value in zip(made, row, strict=True):
            column.append(value)
    return made
