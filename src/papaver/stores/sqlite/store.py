"""A Company's store in one SQLite file: for one process or several on one host."""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
from pathlib import Path

from papaver.ports.company import Erased
from papaver.protocol.terms import ClientId, CompanyId, UserId
from papaver.stores.deltas import LocalDeltas
from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.stores.file_lock import FileLock
from papaver.stores.notify import WatchRegistry
from papaver.stores.sqlite.clients import SqliteClients
from papaver.stores.sqlite.connection import check_local, create_file
from papaver.stores.sqlite.database import Database, Readers
from papaver.stores.sqlite.generation import Generation
from papaver.stores.sqlite.grants import SqliteGrants
from papaver.stores.sqlite.holders import Holders
from papaver.stores.sqlite.log import SqliteLog
from papaver.stores.sqlite.sessions import SqliteSessions
from papaver.stores.sqlite.watcher import Wakes, Watcher
from papaver.stores.sqlite.writer import Transaction, Writer

__all__ = ["SqliteStore", "SqliteTables"]


class SqliteTables:
    """One Company's rows in the file."""

    def __init__(self, database: Database, company: int, secret: bytes) -> None:
        self.sessions = SqliteSessions(database, company)
        self.log = SqliteLog(database, company)
        self.clients = SqliteClients(database, company)
        self.grants = SqliteGrants(database, company)
        self.deltas = LocalDeltas(company, database.registry)
        self.counts = None
        self._secret = secret

    @property
    def secret(self) -> bytes:
        return self._secret

    async def erase(self, client_id: ClientId, user_id: UserId) -> Erased:
        return await self.log.erase(client_id, user_id)


class SqliteStore:
    """A `CompanyStore`. Opened on the event loop that uses it; each process opens its own on the same path.

    Beside the file are `-wal` and `-shm` (SQLite's own), `-lock` (taken round each group commit), `-holders` (which
    processes live) and `-clients` (how often verdicts have changed). The disk must be a local one; `open` raises
    StoreUnusable for another.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._registry = WatchRegistry()
        self._holders = Holders(self._path.with_name(f"{self._path.name}-holders"))
        self._generation = Generation(self._path.with_name(f"{self._path.name}-clients"))
        self._readers = Readers(self._path)
        self._watcher = Watcher(self._readers, self._registry, self._holders)
        self._writer = Writer(self._path, "store", wake=self._registry.wake, before_commit=Wakes(self._holders).note)
        self._database = Database(
            self._writer, self._readers, self._registry, self._holders, self._generation, self._watcher.start
        )
        self._tables: dict[CompanyId, SqliteTables] = {}

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def is_open(self) -> bool:
        return self._writer.is_open

    async def open(self) -> None:
        if self._writer.is_open:
            raise StoreFailed(f"{self._path} is open already")
        await asyncio.to_thread(self._prepare)
        try:
            await self._writer.open()
            await asyncio.to_thread(self._readers.open)
        except sqlite3.Error as fault:
            await self.close()
            raise StoreUnusable(f"{self._path} cannot be read: {fault}", detail=repr(fault)) from fault
        except BaseException:
            await self.close()
            raise

    def _prepare(self) -> None:
        create_file(self._path)
        check_local(self._path)
        lock = FileLock(self._path.with_name(f"{self._path.name}-lock"))
        try:
            with lock.held():
                self._holders.open()
                self._generation.open()
        finally:
            lock.close()

    async def close(self) -> None:
        self._watcher.stop()
        self._tables.clear()
        # The writer last: the connection that closes a SQLite file last also copies its log, under our lock.
        await asyncio.to_thread(self._readers.close)
        await self._writer.close()
        self._holders.close()
        self._generation.close()

    async def probe(self) -> None:
        def write(transaction: Transaction) -> int:
            return transaction.connection.execute(
                "INSERT INTO probes (company, n) VALUES (0, 1) ON CONFLICT DO UPDATE SET n = n + 1 RETURNING n"
            ).fetchone()[0]

        def read(connection: sqlite3.Connection) -> int:
            return connection.execute("SELECT n FROM probes WHERE company = 0").fetchone()[0]

        written = await self._writer.run(write)
        if self._readers.near(read) < written:
            raise StoreFailed("a row that was written cannot be read")

    async def tables(self, company: CompanyId) -> SqliteTables:
        if company not in self._tables:
            number, secret = await self._writer.run(lambda transaction: _enter(transaction.connection, company))
            self._tables.setdefault(company, SqliteTables(self._database, number, secret))
            self._watcher.follow(number)
        return self._tables[company]

    @property
    def holder(self) -> str:
        return self._holders.name

    async def writer_pragma(self, name: str) -> object:
        """The value of one of SQLite's settings, as the connection that writes has it: `synchronous` is 2 for FULL."""
        if not name.isidentifier():
            raise ValueError(f"{name!r} is no name of a pragma")
        return await self._writer.run(
            lambda transaction: transaction.connection.execute(f"PRAGMA {name}").fetchone()[0]
        )


def _enter(connection: sqlite3.Connection, company: CompanyId) -> tuple[int, bytes]:
    """The Company's number and secret, made when it is seen for the first time."""
    connection.execute("INSERT OR IGNORE INTO companies (id, secret) VALUES (?, ?)", (company, secrets.token_bytes(32)))
    number, secret = connection.execute("SELECT company, secret FROM companies WHERE id = ?", (company,)).fetchone()
    return number, secret
