"""Replay keys: exact across processes and failed commits, and gone once they are over."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from papaver.protocol.conversation.change import Change, Keys, Loaded, ReplayKey
from papaver.protocol.terms import ConversationId
from papaver.stores.sqlite import SqliteStore, writer
from papaver.testing.stores.samples import CLIENT, NOW, begin, code_of, say, speak, tables

pytestmark = pytest.mark.anyio
A = ConversationId("cnv_a")


def look(loaded: Loaded) -> Change[bool]:
    return Change(loaded.replayed)


def key(jti: str, until: float = 60) -> Keys:
    return Keys(A, replay=ReplayKey(CLIENT, jti, NOW + until))


async def test_a_key_whose_commit_failed_is_new_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was not written must not be remembered: the agent's retry is no replay."""

    def fail(name: str) -> None:
        if name.endswith("before-commit"):
            raise sqlite3.OperationalError("disk I/O error")

    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        assert not await own.log.apply(key("jti_0"), look)
        with monkeypatch.context() as patched:
            patched.setattr("papaver.stores.crash.WATCHED", True)
            patched.setattr(writer, "crash_point", fail)
            assert await code_of(begin(own.log, A, "msg_1", jti="jti_1")) == "temporarily_unavailable"
        assert [await own.log.apply(key(f"jti_{n}"), look) for n in (0, 1, 1)] == [True, False, True]


async def test_a_key_whose_row_fails_is_not_written_by_another_change(tmp_path: Path) -> None:
    """Nor by one that names no key: the retry is a first try."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TRIGGER bad BEFORE INSERT ON replays BEGIN SELECT RAISE(ABORT, 'bad row'); END")
            assert await code_of(begin(own.log, A, "msg_1", jti="jti_1")) == "temporarily_unavailable"
            other.execute("DROP TRIGGER bad")
            await speak(own.log, "cnv_b")
            assert other.execute("SELECT count(*) FROM replays").fetchone() == (0,)
        assert await begin(own.log, A, "msg_1", jti="jti_1") == 1


async def test_a_key_used_at_another_process_is_known(tmp_path: Path) -> None:
    """Each has read what the other wrote before it writes."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as one, tables(lambda: SqliteStore(path)) as two:
        seen = [await log.apply(key(f"jti_{n // 2}"), look) for n in range(20) for log in (one.log, two.log)]
        assert seen == [False, True, True, True] * 10
        both = await asyncio.gather(*(log.apply(key("jti"), look) for _ in range(9) for log in (one.log, two.log)))
        assert both.count(False) == 1


async def test_keys_that_are_over_are_deleted(tmp_path: Path) -> None:
    """In the file and in memory, while those that still count are known."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        for n in range(30):
            keys = [key(f"jti_{n}_{i}", until=n) for i in range(50)]
            await asyncio.gather(*(own.log.apply(one, say(A, when=n)) for one in keys))
        with closing(sqlite3.connect(path)) as other:
            kept, newest = other.execute("SELECT count(*), max(n) FROM replays").fetchone()
        assert (kept < 400, newest) == (True, 1500)
        assert await own.log.apply(key("jti_29_7", until=29), look)
        assert not await own.log.apply(key("jti_0_0", until=99), look)
