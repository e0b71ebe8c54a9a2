"""The one thread that writes to a database file: what waits is committed together, and told only after COMMIT."""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import Literal, Protocol, TypeVar, cast

from papaver.stores import crash
from papaver.stores.crash import Step, crash_point
from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.stores.file_lock import FileLock
from papaver.stores.notify import Topic
from papaver.stores.sqlite.connection import connect_writer
from papaver.stores.sqlite.migrations import migrate
from papaver.values.errors import PapaverError

__all__ = ["Held", "Transaction", "Writer", "savepoint"]

R = TypeVar("R")
BATCH = 256
"""Changes in one group commit, at most."""
CHECKPOINT_AFTER = 4000
"""Written rows after which the log is copied into the file: some 16 MB of log at the most."""


class Held(Protocol):
    """Rows that a table holds back until COMMIT, and those that it remembers."""

    def write(self, connection: sqlite3.Connection) -> None: ...

    def forget(self) -> None: ...


class Transaction:
    """One group commit as its operations see it.

    `operations`  all of the group, in order        `version`    another one when rows were written by somebody else
    `topics`      who is woken once it is durable   `committed`  it is
    `touched`     somebody wrote here by `connection`
    `afterwards`  called when it is over, committed or not, with the file still locked
    `direct`      the connection, for those who know what is held back
    `broken`      the error of a statement: the group is undone, and done again one by one
    """

    __slots__ = ("_held", "afterwards", "broken", "committed", "direct", "operations", "topics", "touched", "version")

    def __init__(
        self, connection: sqlite3.Connection, operations: Sequence[Callable[[Transaction], object]] = ()
    ) -> None:
        self.direct, self.operations, self.version = connection, operations, (0, 0)
        self.topics: set[Topic] = set()
        self.committed = self.touched = False
        self.broken: sqlite3.Error | None = None
        self.afterwards: list[Callable[[], None]] = []
        self._held: list[Held] = []

    @property
    def connection(self) -> sqlite3.Connection:
        """For reading and writing any row: what is held back is written first, and nothing is remembered."""
        self.write_held()
        for one in self._held:
            one.forget()
        self.touched = True
        return self.direct

    def settled(self) -> sqlite3.Connection:
        """As `connection`, for those who tell the holder what they change."""
        self.write_held()
        return self.direct

    def hold(self, held: Held) -> None:
        """Ask `held` to write before COMMIT."""
        self._held.append(held)

    def write_held(self) -> None:
        try:
            for one in self._held:
                one.write(self.direct)
        except sqlite3.Error as fault:
            self.broken = fault
            raise


@contextmanager
def savepoint(connection: sqlite3.Connection) -> Generator[None]:
    """Undo what is written inside when it raises, and nothing else of the group commit."""
    connection.execute("SAVEPOINT change")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO change")
            connection.execute("RELEASE change")
        raise
    connection.execute("RELEASE change")


@dataclass(slots=True)
class _Job:
    operation: Callable[[Transaction], object]
    step: Step | None
    future: asyncio.Future[object]
    result: object = None
    fault: BaseException | None = None


class Writer:
    """A thread, its connection and the file lock that it takes round each group commit, checkpoint and migration."""

    def __init__(
        self,
        path: Path,
        family: Literal["store", "vault"],
        *,
        wake: Callable[[set[Topic]], None] | None = None,
        before_commit: Callable[[Transaction], None] | None = None,
    ) -> None:
        """`wake` runs on the event loop after a commit; `before_commit` on the writer's thread, in the transaction."""
        self._path = path
        self._family: Literal["store", "vault"] = family
        self._wake = wake
        self._before_commit = before_commit
        self._queue: SimpleQueue[list[_Job] | None] = SimpleQueue()
        self._jobs: list[_Job] = []
        self._at_work = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended: asyncio.Future[None] | None = None
        self._unsaved_rows = 0
        self._touched = 0

    @property
    def is_open(self) -> bool:
        return self._loop is not None

    async def open(self) -> None:
        """Open the file, migrate it and begin to write; for one that is not open. Raises StoreUnusable."""
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        self._queue = SimpleQueue()
        self._ended = loop.create_future()
        self._loop = loop
        threading.Thread(target=self._run, args=(loop, ready, self._ended), name="papaver-writer", daemon=True).start()
        try:
            await ready
        except PapaverError:
            self._loop = None
            raise

    async def close(self) -> None:
        """Commit what waits, copy the log into the file, close it."""
        if self._loop is not None and self._ended is not None:
            self._loop = None
            if self._jobs:
                self._queue.put(self._jobs)
                self._jobs = []
            self._queue.put(None)
            await asyncio.shield(self._ended)

    async def run(self, operation: Callable[[Transaction], R], step: Step | None = None) -> R:
        """What `operation` returns or raises, once the group commit that it was part of is durable.

        It runs on the writer's thread. One that raises anything but an error of SQLite must have written nothing.
        Raises StoreFailed when a statement or the commit fails. A caller that is cancelled undoes nothing.
        """
        if self._loop is None:
            raise StoreFailed(f"{self._path} is not open")
        job = _Job(operation, step, self._loop.create_future())
        self._jobs.append(job)
        if len(self._jobs) == 1 and not self._at_work:
            # Not at once: what else this round of the loop brings goes along, and the thread wakes once for all of it.
            self._loop.call_soon(self._hand_over)
        return cast(R, await job.future)

    def _hand_over(self) -> None:
        if self._jobs and not self._at_work and self._loop is not None:
            self._at_work += 1
            self._queue.put(self._jobs[:BATCH])
            del self._jobs[:BATCH]

    def _run(self, loop: asyncio.AbstractEventLoop, ready: asyncio.Future[None], ended: asyncio.Future[None]) -> None:
        try:
            connection, lock = self._connect()
        except (sqlite3.Error, OSError, StoreUnusable) as fault:
            _call(loop, _settle, ready, fault if isinstance(fault, StoreUnusable) else _unusable(self._path, fault))
            _call(loop, _settle, ended, None)
            return
        _call(loop, _settle, ready, None)
        while (jobs := self._queue.get()) is not None:
            for start in range(0, len(jobs), BATCH):
                self._commit(jobs[start : start + BATCH], connection, lock, loop)
        try:
            with lock.held():
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                connection.close()
        except (sqlite3.Error, OSError):
            connection.close()  # what was committed is in the log; the next to open the file copies it
        lock.close()
        _call(loop, _settle, ended, None)

    def _connect(self) -> tuple[sqlite3.Connection, FileLock]:
        lock = FileLock(self._path.with_name(f"{self._path.name}-lock"))
        try:
            with lock.held():
                connection = connect_writer(self._path)
                try:
                    migrate(connection, self._family)
                except BaseException:
                    connection.close()
                    raise
        except BaseException:
            lock.close()
            raise
        return connection, lock

    def _commit(
        self, jobs: list[_Job], connection: sqlite3.Connection, lock: FileLock, loop: asyncio.AbstractEventLoop
    ) -> None:
        try:
            lock.take()
        except OSError as fault:
            _fail(jobs, fault)
            _call(loop, self._tell, jobs, set[Topic]())
            return
        try:
            topics = self._group(jobs, connection)
            _call(loop, self._tell, jobs, topics)
            self._checkpoint(connection)
        finally:
            lock.give_back()

    def _group(self, jobs: list[_Job], connection: sqlite3.Connection) -> set[Topic]:
        """One group commit, or one for each change when a statement of it fails; who is to be woken."""
        # Leases read rows that other changes hold back: first of all, they find nothing held back.
        jobs = sorted(jobs, key=_is_no_lease)
        transaction = Transaction(connection, [job.operation for job in jobs])
        try:
            self._write(jobs, transaction)
        except sqlite3.Error as fault:
            connection.rollback()
            if transaction.broken is not None and len(jobs) > 1:
                return set[Topic]().union(*(self._group([job], connection) for job in jobs))
            _fail(jobs, fault)
            return set()
        finally:
            self._touched += transaction.touched
            for call in transaction.afterwards:
                call()
        return transaction.topics

    def _write(self, jobs: list[_Job], transaction: Transaction) -> None:
        connection = transaction.direct
        connection.execute("BEGIN IMMEDIATE")
        transaction.version = connection.execute("PRAGMA data_version").fetchone()[0], self._touched
        for job in jobs:
            job.fault = None
            try:
                job.result = job.operation(transaction)
            except sqlite3.Error as fault:
                transaction.broken = fault
                raise
            except StopIteration as fault:
                job.fault = RuntimeError(f"a change raised {fault!r}")  # a future cannot carry this one
            except BaseException as fault:  # noqa: BLE001 - whatever a `decide` raises is its caller's, not the group's
                job.fault = fault
        transaction.write_held()
        if self._before_commit is not None:
            self._before_commit(transaction)
        if crash.WATCHED:
            _pass(jobs, "before-commit")
        connection.execute("COMMIT")
        transaction.committed = True
        if crash.WATCHED:
            _pass(jobs, "after-commit")

    def _tell(self, jobs: list[_Job], topics: set[Topic]) -> None:
        self._at_work = 0
        self._hand_over()
        for job in jobs:
            if not job.future.done():
                if job.fault is None:
                    job.future.set_result(job.result)
                else:
                    job.future.set_exception(job.fault)
        if self._wake is not None and topics:
            self._wake(topics)

    def _checkpoint(self, connection: sqlite3.Connection) -> None:
        if connection.total_changes - self._unsaved_rows < CHECKPOINT_AFTER:
            return
        self._unsaved_rows = connection.total_changes
        try:
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        except sqlite3.Error:
            return  # the log grows until the next try; nothing is lost


def _is_no_lease(job: _Job) -> bool:
    return job.step != "lease"


def _pass(jobs: list[_Job], side: str) -> None:
    for step in {job.step for job in jobs if job.step is not None}:
        crash_point(f"{step}.{side}")


def _failed(fault: Exception) -> StoreFailed:
    return StoreFailed(f"{type(fault).__name__}: {fault}")


def _fail(jobs: list[_Job], fault: Exception) -> None:
    for job in jobs:
        job.fault = _failed(fault)


def _unusable(path: Path, fault: Exception) -> StoreUnusable:
    return StoreUnusable(f"{path} cannot be opened: {fault}", detail=repr(fault))


def _settle(future: asyncio.Future[None], fault: BaseException | None) -> None:
    if future.done():
        return
    if fault is None:
        future.set_result(None)
    else:
        future.set_exception(fault)


def _call(loop: asyncio.AbstractEventLoop, function: Callable[..., None], *arguments: object) -> None:
    """On the loop's thread; a loop that is closed has nobody left to tell."""
    try:
        loop.call_soon_threadsafe(function, *arguments)
    except RuntimeError:
        return
