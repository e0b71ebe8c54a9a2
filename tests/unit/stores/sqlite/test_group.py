"""A group commit: decided in memory in order, written together, undone and repeated one by one when a row fails."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from papaver.protocol.terms import ConversationId
from papaver.stores.sqlite import SqliteStore
from papaver.stores.sqlite.rows import execute_in, insert_rows, select_in
from papaver.testing.stores.samples import CLIENT, SID, answer, begin, code_of, lease, speak, tables

pytestmark = pytest.mark.anyio
A, BAD = ConversationId("cnv_a"), ConversationId("cnv_bad")


async def test_changes_of_one_group_see_each_other(tmp_path: Path) -> None:
    """Numbered in order, though the rows are written once; a retry in the same group is one."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        seqs = await asyncio.gather(*(speak(own.log, A) for _ in range(100)))
        assert seqs == list(range(1, 101))
        codes = await asyncio.gather(*(code_of(begin(own.log, f"cnv_{n}", "msg_1")) for n in range(2)))
        assert codes == ["", "store_misused"], "the second one finds the first one's receipt"


async def test_what_is_remembered_gives_way_to_another_process(tmp_path: Path) -> None:
    """Each goes on where the other stopped."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as one, tables(lambda: SqliteStore(path)) as two:
        assert [await speak(log, A) for _ in range(5) for log in (one.log, one.log, two.log)] == list(range(1, 16))


async def test_memory_has_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was forgotten is read again."""
    monkeypatch.setattr("papaver.stores.sqlite.group.KEPT", 2)
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        seqs = [await speak(own.log, f"cnv_{n}") for _ in range(3) for n in range(5)]
        assert seqs == [1] * 5 + [2] * 5 + [3] * 5


async def test_a_direct_change_in_between_is_seen(tmp_path: Path) -> None:
    """What was held back is written before it, and read again after it."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        codes = await asyncio.gather(
            code_of(begin(own.log, "cnv_1", "msg_1")),
            code_of(own.sessions.end(CLIENT, SID, 1.0)),
            code_of(begin(own.log, "cnv_2", "msg_1")),
            code_of(speak(own.log, "cnv_1")),
        )
        assert codes == ["", "", "store_misused", ""]
        found = await own.log.read(ConversationId("cnv_1"), 0, 10)
        assert found is not None
        assert found.head.last_seq == 2


async def test_a_row_that_fails_concerns_its_own_change(tmp_path: Path) -> None:
    """Those beside it are written, each in a commit of its own."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        with closing(sqlite3.connect(path)) as other:
            other.execute(
                "CREATE TRIGGER bad BEFORE INSERT ON events WHEN NEW.conversation = 'cnv_bad'"
                " BEGIN SELECT RAISE(ABORT, 'bad row'); END"
            )
        with own.log.watch(BAD) as bad, own.log.watch(A) as good:
            codes = await asyncio.gather(*(code_of(speak(own.log, id)) for id in (A, BAD, A, BAD, "cnv_c")))
            assert codes[1::2] == ["temporarily_unavailable"] * 2
            assert (await bad.wait(0), await good.wait(0)) == (False, True)
        assert [await speak(own.log, id) for id in (A, "cnv_c")] == [3, 2]
        assert await own.log.read(BAD, 0, 10) is None


async def test_a_step_of_a_turn_that_ends_in_its_group_is_not_kept(tmp_path: Path) -> None:
    """Its journal is over before it is written, and the next turn begins without one."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        await speak(own.log, A)
        turn = await lease(own.log)
        assert turn is not None
        kept, _ = await asyncio.gather(own.log.journal(turn.lease, "step", b"done"), answer(own.log, turn))
        with closing(sqlite3.connect(path)) as other:
            assert (kept, other.execute("SELECT count(*) FROM journal").fetchone()[0]) == (True, 0)
        await speak(own.log, A)
        again = await lease(own.log, "trn_2", when=2)
        assert again is not None
        assert dict(again.journal) == {}


@pytest.mark.parametrize("count", [0, 1, 2, 3, 63, 64, 65, 200])
def test_rows_of_any_number_go_into_few_statements(count: int) -> None:
    """And come out, and go."""
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute("CREATE TABLE t (company, n)")
        statements: list[str] = []
        connection.set_trace_callback(statements.append)
        insert_rows(connection, "t", "company, n", [(1, n) for n in range(count)])
        assert sum("INSERT" in one for one in statements) <= count // 64 + 6
        among = [*range(count), -1]
        found = sorted(select_in(connection, "SELECT n FROM t WHERE company = ? AND n", (1,), among))
        assert found == [(n,) for n in range(count)]
        execute_in(connection, "DELETE FROM t WHERE company = ? AND n", (1,), among)
        assert connection.execute("SELECT count(*) FROM t").fetchone() == (0,)
