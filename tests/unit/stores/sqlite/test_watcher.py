"""The watcher: one query for all that others changed, whatever gaps there are."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from papaver.protocol.terms import ConversationId
from papaver.stores.sqlite import SqliteStore, watcher
from papaver.testing.stores.samples import COMPANY, OTHER_COMPANY, opened, speak, tables

pytestmark = pytest.mark.anyio
A, B = ConversationId("cnv_a"), ConversationId("cnv_b")


@asynccontextmanager
async def written_by_hand(path: Path) -> AsyncGenerator[sqlite3.Connection]:
    """A program that knows the tables, such as another process of ours."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        yield connection
    finally:
        connection.close()


async def test_what_others_changed_wakes_its_watchers_only(tmp_path: Path) -> None:
    """Of each Company its own."""
    path = tmp_path / "store.db"
    async with opened(lambda: SqliteStore(path)) as store, written_by_hand(path) as other:
        own, bank = await store.tables(COMPANY), await store.tables(OTHER_COMPANY)
        with own.log.watch(A) as watch, own.log.watch(B) as asleep, bank.log.watch(A) as elsewhere:
            assert not await watch.wait(0.06)
            other.execute("INSERT INTO wakes VALUES (1, 1, 'other', '[\"cnv_a\", \"\"]')")
            assert await watch.wait(20)
            assert [await asleep.wait(0), await elsewhere.wait(0)] == [False, False]


async def test_a_gap_wakes_everyone(tmp_path: Path) -> None:
    """Rows that were pruned before this process looked may have been about anything."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own, written_by_hand(path) as other:
        with own.log.watch(B) as watch:
            assert not await watch.wait(0.06)
            other.execute("INSERT INTO wakes VALUES (1, 7, 'other', '[\"cnv_a\"]')")
            assert await watch.wait(20)


async def test_own_commits_wake_once(tmp_path: Path) -> None:
    """At once, and not again when the watcher reads their row."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        with own.log.watch(A) as watch:
            await speak(own.log, A)
            assert await watch.wait(0.0)
            assert not await watch.wait(0.12)


async def test_a_store_that_cannot_be_read_wakes_everyone(tmp_path: Path) -> None:
    """They look for themselves and meet the fault."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own, written_by_hand(path) as other:
        with own.log.watch(A) as watch:
            assert not await watch.wait(0.06)
            other.execute("ALTER TABLE wakes RENAME TO gone")
            assert await watch.wait(20)


async def test_old_wakes_are_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are hints; a few stay for who is late."""
    monkeypatch.setattr(watcher, "KEPT", 5)
    monkeypatch.setattr(watcher, "PRUNED_EVERY", 10)
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own, written_by_hand(path) as other:
        for _ in range(30):
            await speak(own.log, A)
        count, newest = other.execute("SELECT count(*), max(n) FROM wakes").fetchone()
        assert (count, newest) == (5, 30)


async def test_nobody_watches_until_somebody_does(tmp_path: Path) -> None:
    """An idle store has no timer, nor has a closed one."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        before = _timers()
        with own.log.watch(A), own.log.watch(B):
            assert _timers() == before + 1
    assert _timers() == before


def _timers() -> int:
    """Timers of the running loop that are not cancelled."""
    scheduled: list[asyncio.TimerHandle] = vars(asyncio.get_running_loop())["_scheduled"]
    return sum(not timer.cancelled() for timer in scheduled)
