"""Statements about many rows at once: one step of SQLite for all of them, where each step hands the GIL to others."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain

__all__ = ["insert_rows", "select_in"]

MOST = 64
"""Rows in one statement, at most; sizes are powers of two, so that few statements are ever prepared."""


@cache
def _insert(table: str, columns: str, more: str, count: int) -> str:
    row = f"({', '.join('?' * (columns.count(',') + 1))})"
    return f"INSERT INTO {table} ({columns}) VALUES {', '.join([row] * count)}{more}"


def insert_rows(
    connection: sqlite3.Connection, table: str, columns: str, rows: Sequence[tuple[object, ...]], more: str = ""
) -> None:
    """`more` goes behind the values, such as an ON CONFLICT clause."""
    start, left = 0, len(rows)
    while left:
        count = min(MOST, 1 << (left.bit_length() - 1))
        values = rows[start] if count == 1 else tuple(chain.from_iterable(rows[start : start + count]))
        connection.execute(_insert(table, columns, more, count), values)
        start, left = start + count, left - count


@cache
def _select(query: str, count: int) -> str:
    return f"{query} IN ({', '.join('?' * count)})"


def select_in(
    connection: sqlite3.Connection, query: str, values: tuple[object, ...], among: Sequence[object]
) -> Iterator[tuple[object, ...]]:
    """The rows of `query`, which ends in a column's name, where that column is one of `among`."""
    for start in range(0, len(among), MOST):
        some = list(among[start : start + MOST])
        count = 1 << (len(some) - 1).bit_length()
        padded = (*values, *some, *(some[-1:] * (count - len(some))))
        yield from connection.execute(_select(query, count), padded)


def execute_in(
    connection: sqlite3.Connection, statement: str, values: tuple[object, ...], among: Sequence[object]
) -> None:
    """The same for a statement that returns no rows."""
    list(select_in(connection, statement, values, among))
