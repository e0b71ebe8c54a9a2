"""A store with very many conversations: made by its own database out of one that a Company has written."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.in_postgres import execute

__all__ = ["fill_postgres", "fill_sqlite"]

TABLES = ("conversations", "events", "receipts")
_IN_SQLITE = {
    "id": "one.id",
    "conversation": "one.id",
    "head": "CAST(replace(CAST(head AS TEXT), old.id, one.id) AS BLOB)",
    "key": "randomblob(16)",
    "due_since": "NULL",
}
_IN_POSTGRES = {
    "id": "one.id",
    "conversation": "one.id",
    "head": "convert_to(replace(convert_from(head, 'UTF8'), old.id, one.id), 'UTF8')",
    "key": "decode(md5(one.id), 'hex')",
    "due_since": "NULL",
}


def _copies(table: str, columns: Sequence[str], values: Mapping[str, str]) -> str:
    """INSERT of a copy of the template's rows for each id, in the order of the ids."""
    taken = ", ".join(values.get(column, f"row.{column}") for column in columns)
    own = "id" if table == "conversations" else "conversation"
    return (
        f"INSERT INTO {table} ({', '.join(columns)}) SELECT {taken} FROM filling AS one CROSS JOIN template AS old"
        f" JOIN {table} AS row ON row.company = old.company AND row.{own} = old.id ORDER BY one.id"
    )


def fill_sqlite(path: Path, count: int) -> None:
    """So many more conversations, each with one message and its receipt, and nobody at work on them."""
    connection = sqlite3.connect(path)
    try:
        connection.execute("CREATE TEMP TABLE template AS SELECT company, id FROM conversations LIMIT 1")
        connection.execute(
            "CREATE TEMP TABLE filling AS WITH RECURSIVE counted (n) AS"
            " (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?)"
            " SELECT 'cnv_' || lower(hex(randomblob(16))) AS id FROM counted ORDER BY id",
            (count,),
        )
        for table in TABLES:
            columns = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
            connection.execute(_copies(table, columns, _IN_SQLITE))
            connection.commit()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    finally:
        connection.close()


def fill_postgres(schema: str, count: int) -> None:
    """The same in a schema."""
    ids = f"SELECT 'cnv_' || md5(random()::text || n) AS id FROM generate_series(1, {count}) AS n"
    statements = [
        f"SET search_path = {schema}",
        "CREATE TEMP TABLE template AS SELECT company, id FROM conversations LIMIT 1",
        f"CREATE TEMP TABLE filling AS {ids}",
    ]
    for table in TABLES:
        found = execute(
            "SELECT column_name FROM information_schema.columns"
            f" WHERE table_schema = '{schema}' AND table_name = '{table}' ORDER BY ordinal_position"
        )
        statements.append(_copies(table, [row[0] for row in found], _IN_POSTGRES))
    execute(*statements, *(f"VACUUM ANALYZE {table}" for table in TABLES), "CHECKPOINT")
