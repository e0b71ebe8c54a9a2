"""The writer: answers leave after COMMIT, groups commit together, a fault is told to whom it concerns."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from papaver.protocol.terms import ConversationId
from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.stores.file_lock import FileLock
from papaver.stores.sqlite import SqliteStore, connection, writer
from papaver.stores.sqlite.writer import Transaction, Writer, savepoint
from papaver.testing.stores.samples import COMPANY, begin, code_of, opened, speak, tables

pytestmark = pytest.mark.anyio
CNV = ConversationId("cnv_a")


@asynccontextmanager
async def opened_writer(path: Path) -> AsyncGenerator[Writer]:
    own = Writer(path, "store")
    await own.open()
    try:
        yield own
    finally:
        await own.close()


def put(n: int, size: int = 10) -> Callable[[Transaction], int]:
    def operation(transaction: Transaction) -> int:
        transaction.connection.execute(
            "INSERT INTO events (company, conversation, seq, body) VALUES (1, 'cnv_a', ?, ?)", (n, b"x" * size)
        )
        return n

    return operation


def count(path: Path) -> int:
    """Events, as another connection sees them."""
    other = sqlite3.connect(path)
    try:
        return other.execute("SELECT count(*) FROM events").fetchone()[0]
    finally:
        other.close()


class Gate:
    """Stops the writer's thread at each crash point until it is let on."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.passed: list[str] = []
        self._reached = threading.Semaphore(0)
        self._open = threading.Semaphore(0)
        monkeypatch.setattr("papaver.stores.crash.WATCHED", True)
        monkeypatch.setattr(writer, "crash_point", self._stop)

    def _stop(self, name: str) -> None:
        self.passed.append(name)
        self._reached.release()
        assert self._open.acquire(timeout=30)

    async def reached(self) -> str:
        assert await asyncio.to_thread(self._reached.acquire, timeout=30)
        return self.passed[-1]

    def let_on(self, times: int = 1) -> None:
        self._open.release(times)


async def test_the_answer_leaves_only_after_commit_returned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before COMMIT nobody sees the row and nobody is told; after it the row is there, and only then the answer."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        gate = Gate(monkeypatch)
        answer = asyncio.create_task(begin(own.log, "cnv_a", "msg_1"))
        assert (await gate.reached(), count(path), answer.done()) == ("accept.before-commit", 0, False)
        gate.let_on()
        assert (await gate.reached(), count(path), answer.done()) == ("accept.after-commit", 1, False)
        gate.let_on()
        assert await answer == 1


async def test_commits_are_durable(tmp_path: Path) -> None:
    """`synchronous` is FULL on the connection that writes, and nobody checkpoints behind our back."""
    async with opened(lambda: SqliteStore(tmp_path / "store.db")) as store:
        assert isinstance(store, SqliteStore)
        names = ("synchronous", "journal_mode", "wal_autocheckpoint", "fullfsync")
        assert [await store.writer_pragma(name) for name in names] == [2, "wal", 0, 1]
        with pytest.raises(ValueError):
            await store.writer_pragma("synchronous = 0")


async def test_what_waits_is_committed_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """40 changes that arrive during a commit share the next one."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        gate = Gate(monkeypatch)
        first = asyncio.create_task(begin(own.log, "cnv_0", "msg_0"))
        await gate.reached()
        rest = [asyncio.create_task(begin(own.log, f"cnv_{n}", f"msg_{n}")) for n in range(1, 41)]
        await asyncio.sleep(0)
        gate.let_on(4)
        assert await asyncio.gather(first, *rest) == [1] * 41
        assert gate.passed == ["accept.before-commit", "accept.after-commit"] * 2


async def test_a_group_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many wait, one commit takes so many of them."""
    monkeypatch.setattr(writer, "BATCH", 10)
    async with opened_writer(tmp_path / "store.db") as own:
        assert await asyncio.gather(*(own.run(put(n)) for n in range(25))) == list(range(25))
    assert count(tmp_path / "store.db") == 25


async def test_a_failed_commit_fails_for_all_of_its_group(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every caller is told, nothing is half done, and the next group goes through."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:

        def fail(name: str) -> None:
            if name.endswith("before-commit"):
                raise sqlite3.OperationalError("disk I/O error")

        with monkeypatch.context() as patched:
            patched.setattr("papaver.stores.crash.WATCHED", True)
            patched.setattr(writer, "crash_point", fail)
            with own.log.watch(CNV) as watch:
                codes = await asyncio.gather(*(code_of(begin(own.log, CNV, f"msg_{n}")) for n in range(5)))
                assert codes == ["temporarily_unavailable"] * 5
                assert not await watch.wait(0)
        assert count(path) == 0
        assert await begin(own.log, CNV, "msg_1") == 1


async def test_a_full_disk_is_told_and_survived(tmp_path: Path) -> None:
    """The change that does not fit fails; smaller ones beside and after it are written."""
    async with opened_writer(tmp_path / "store.db") as own:
        pages = await own.run(lambda transaction: transaction.connection.execute("PRAGMA page_count").fetchone()[0])
        await own.run(
            lambda transaction: transaction.connection.execute(f"PRAGMA max_page_count = {pages + 5}").fetchone()
        )
        with pytest.raises(StoreFailed, check=lambda fault: "full" in fault.detail):
            await own.run(put(1, 1_000_000))
        assert await own.run(put(2)) == 2


async def test_another_programs_lock_is_waited_for_and_then_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No SQLITE_BUSY leaves the store: a lock that does not go away is `temporarily_unavailable`."""
    monkeypatch.setattr(connection, "BUSY_SECONDS", 0.01)
    path = tmp_path / "store.db"
    async with opened_writer(path) as own:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreFailed, check=lambda fault: "locked" in fault.detail):
            await own.run(put(1))
        other.execute("COMMIT")
        other.close()
        assert await own.run(put(1)) == 1


async def test_a_lock_file_that_fails_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next group tries again."""
    async with opened_writer(tmp_path / "store.db") as own:

        def fail(_: FileLock) -> None:
            raise OSError(5, "Input/output error")

        with monkeypatch.context() as patched:
            patched.setattr(FileLock, "take", fail)
            with pytest.raises(StoreFailed, check=lambda fault: "Input/output" in fault.detail):
                await own.run(put(1))
        assert await own.run(put(1)) == 1


@pytest.mark.parametrize("fault", [SystemExit("out"), asyncio.CancelledError(), LookupError("no")])
async def test_whatever_a_change_raises_is_its_callers(tmp_path: Path, fault: BaseException) -> None:
    """The thread lives on."""

    def operation(_: Transaction) -> None:
        raise fault

    async with opened_writer(tmp_path / "store.db") as own:
        with pytest.raises(type(fault)):
            await own.run(operation)
        assert await own.run(put(1)) == 1


async def test_a_stray_stop_iteration_is_told_as_an_error(tmp_path: Path) -> None:
    """A future cannot carry it."""
    async with opened_writer(tmp_path / "store.db") as own:
        with pytest.raises(RuntimeError, match="StopIteration"):
            await own.run(lambda _: next(iter(())))


async def test_a_savepoint_undoes_its_own_change_only(tmp_path: Path) -> None:
    """What the same group wrote before stays."""

    def broken(transaction: Transaction) -> None:
        with savepoint(transaction.connection):
            put(2)(transaction)
            put(1)(transaction)

    async with opened_writer(tmp_path / "store.db") as own:
        outcomes = await asyncio.gather(own.run(put(1)), own.run(broken), own.run(put(3)), return_exceptions=True)
        assert [type(outcome) for outcome in outcomes] == [int, StoreFailed, int]
    assert count(tmp_path / "store.db") == 2


async def test_closing_commits_what_waits(tmp_path: Path) -> None:
    """And then nothing more."""
    own = Writer(tmp_path / "store.db", "store")
    await own.open()
    waiting = [asyncio.create_task(own.run(put(n))) for n in range(5)]
    await asyncio.sleep(0)
    await own.close()
    assert await asyncio.gather(*waiting) == [0, 1, 2, 3, 4]
    await own.close()
    with pytest.raises(StoreFailed, check=lambda fault: "not open" in fault.detail):
        await own.run(put(9))
    assert not (tmp_path / "store.db-wal").exists()


async def test_a_store_is_opened_once(tmp_path: Path) -> None:
    """A second `open` is a mistake that harms nothing; after `close` it is none."""
    async with opened(lambda: SqliteStore(tmp_path / "store.db")) as store:
        with pytest.raises(StoreFailed, check=lambda fault: "open already" in fault.detail):
            await store.open()
        await store.probe()
        await store.close()
        await store.open()
        await store.probe()


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    """In one sentence that names it."""
    path = tmp_path / "store.db"
    path.write_bytes(b"no database " * 99)
    with pytest.raises(StoreUnusable, match=r"store\.db cannot be opened"):
        await SqliteStore(path).open()


async def test_the_log_is_copied_into_the_file_now_and_then(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that it does not grow with all that was ever written."""
    monkeypatch.setattr(writer, "CHECKPOINT_AFTER", 20)
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        for _ in range(30):
            await speak(own.log, CNV)
        early = path.with_name("store.db-wal").stat().st_size
        for _ in range(120):
            await speak(own.log, CNV)
        assert path.with_name("store.db-wal").stat().st_size <= early * 2


async def test_a_loop_that_is_gone_is_told_nothing(tmp_path: Path) -> None:
    """A process may drop its event loop without closing the store; the writer's thread survives that."""
    path = tmp_path / "store.db"

    async def leave() -> None:
        store = SqliteStore(path)
        await store.open()
        await store.tables(COMPANY)
        left.append(store)

    left: list[SqliteStore] = []
    await asyncio.to_thread(lambda: asyncio.run(leave()))
    assert len(left) == 1
    async with tables(lambda: SqliteStore(path)) as own:
        assert await speak(own.log, CNV) == 1
