"""The schema as text: what an application that manages its tables itself can have."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from papaver.stores.sqlite import SqliteStore
from papaver.stores.sqlite.migrations import scripts
from papaver.testing.stores import STORE_CONTRACT

pytestmark = pytest.mark.anyio


@pytest.mark.requirement("ca-98", "ca-100")
async def test_an_application_may_make_the_tables_itself(tmp_path: Path) -> None:
    """The text of the schema is there to be read and run; the store takes a file made of it, and adds nothing."""
    texts = scripts("store")
    database = tmp_path / "store.db"
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for number, text in texts.items():
            connection.executescript(text)
            connection.execute(f"PRAGMA user_version = {number}")
    connection.close()
    before = tables(database)
    assert {"conversations", "events", "receipts", "sessions"} <= before.keys()
    await STORE_CONTRACT[0](lambda: SqliteStore(database))
    assert tables(database) == before


def tables(database: Path) -> dict[str, str]:
    """Name → definition."""
    with sqlite3.connect(database) as connection:
        found = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall())
    connection.close()
    return found
