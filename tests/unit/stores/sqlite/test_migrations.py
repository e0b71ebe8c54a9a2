"""The schema as text: what an application that manages its tables itself can have."""

from __future__ import annotations

import sqlite3
from dataclasses import replace
from pathlib import Path

import pytest

from papaver.protocol.conversation.record import write_head
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ConversationId
from papaver.stores.sqlite import SqliteStore
from papaver.stores.sqlite.migrations import scripts
from papaver.testing.stores import STORE_CONTRACT
from papaver.testing.stores.samples import CLIENT, COMPANY, NOW, USER, at
from papaver.testing.stores.samples import tables as opened_tables

pytestmark = pytest.mark.anyio
HEAD = Head(ConversationId("cnv_a"), CLIENT, USER, at(), at(5), last_seq=3, asked_seq=3)


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


async def test_conversations_of_an_earlier_version_may_be_pruned(tmp_path: Path) -> None:
    """Of a file without the columns for it: those with an event that may go one day are found."""
    database, heads = tmp_path / "store.db", [HEAD, replace(HEAD, id=ConversationId("cnv_b"), last_seq=1)]
    with sqlite3.connect(database) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        for number in (1, 2):
            connection.executescript(scripts("store")[number])
        connection.execute("PRAGMA user_version = 2")
        connection.execute("INSERT INTO companies (company, id, secret) VALUES (1, ?, ?)", (COMPANY, bytes(32)))
        rows = [(1, head.id, write_head(head), 0, NOW, int(NOW // 86_400)) for head in heads]
        columns = "company, id, head, closed, changed_at, changed_day"
        connection.executemany(f"INSERT INTO conversations ({columns}) VALUES (?, ?, ?, ?, ?, ?)", rows)
    connection.close()
    async with opened_tables(lambda: SqliteStore(database)) as own:
        assert await own.log.prunable(before=NOW, limit=9) == ()
        assert await own.log.prunable(before=NOW + 1, limit=9) == (HEAD.id,)
        assert await own.log.attention(9) == ()
        assert list(await own.log.listed()) == heads


def tables(database: Path) -> dict[str, str]:
    """Name → definition."""
    with sqlite3.connect(database) as connection:
        found = dict(connection.execute("SELECT name, sql FROM sqlite_schema WHERE type = 'table'").fetchall())
    connection.close()
    return found
