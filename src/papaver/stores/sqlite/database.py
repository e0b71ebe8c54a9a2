"""One open database file as its tables use it: the writer, the readers, and who waits."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

from papaver.stores.faults import StoreFailed
from papaver.stores.notify import WatchRegistry
from papaver.stores.sqlite.connection import connect_reader
from papaver.stores.sqlite.generation import Generation
from papaver.stores.sqlite.holders import Holders
from papaver.stores.sqlite.writer import Writer

__all__ = ["Database", "Readers", "snapshot"]

R = TypeVar("R")


class Readers:
    """Two connections that only read. Neither ever waits for the writer.

    `near`  for a few indexed rows, read on the event loop's own thread: some 20 µs, where a thread would cost 100
    `far`   for what may read many rows, on a thread of its own
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._near: sqlite3.Connection | None = None
        self._far: sqlite3.Connection | None = None
        self._thread: ThreadPoolExecutor | None = None

    def open(self) -> None:
        self._near = connect_reader(self._path)
        self._far = connect_reader(self._path)
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="papaver-reader")

    def close(self) -> None:
        """Blocks while a far read runs."""
        if self._thread is not None:
            self._thread.shutdown()
        for connection in (self._near, self._far):
            if connection is not None:
                connection.close()
        self._near = self._far = self._thread = None

    def near(self, query: Callable[[sqlite3.Connection], R]) -> R:
        """Raises StoreFailed."""
        if self._near is None:
            raise StoreFailed(f"{self._path} is not open")
        return _read(query, self._near)

    async def far(self, query: Callable[[sqlite3.Connection], R]) -> R:
        """Raises StoreFailed."""
        if self._far is None or self._thread is None:
            raise StoreFailed(f"{self._path} is not open")
        return await asyncio.get_running_loop().run_in_executor(self._thread, _read, query, self._far)


def _read(query: Callable[[sqlite3.Connection], R], connection: sqlite3.Connection) -> R:
    try:
        return query(connection)
    except sqlite3.Error as fault:
        raise StoreFailed(f"{type(fault).__name__}: {fault}") from fault


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Generator[None]:
    """Several reads of one state of the file."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        if connection.in_transaction:
            connection.execute("COMMIT")


class Database:
    """What every table of one file shares."""

    __slots__ = ("generation", "holders", "readers", "registry", "start_watching", "writer")

    def __init__(
        self,
        writer: Writer,
        readers: Readers,
        registry: WatchRegistry,
        holders: Holders,
        generation: Generation,
        start_watching: Callable[[], None],
    ) -> None:
        """`start_watching` is called at each watch: other processes are listened to from the first one on."""
        self.writer = writer
        self.readers = readers
        self.registry = registry
        self.holders = holders
        self.generation = generation
        self.start_watching = start_watching
