"""A Personal Agent's vault in one SQLite file, encrypted row by row, shared by the processes of one host."""

from __future__ import annotations

import asyncio
import os
import secrets
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

from papaver.stores.faults import StoreFailed, StoreUnusable, VaultKeyWrong
from papaver.stores.file_lock import FileLock
from papaver.stores.sealing import Sealing
from papaver.stores.sqlite.connection import check_local, create_file
from papaver.stores.sqlite.database import Readers
from papaver.stores.sqlite.writer import Transaction, Writer
from papaver.stores.vault_key import GIVEN, KEYRING, load_key, make_key

__all__ = ["SqliteVault"]

_CHECK_PLACE = b"check"
_FIRST_TRY, _LAST_TRY = 0.005, 0.05
"""Seconds between tries for a lock that another process holds."""


class SqliteVault:
    """A `Vault`. Values are sealed with AES-256-GCM; kinds and keys are found by keyed hashes and sealed as well.

    The file and what lies beside it are made readable by their owner alone. The disk must be a local one.
    """

    def __init__(self, path: str | os.PathLike[str], key: bytes | None = None) -> None:
        """`key`: 32 random bytes that the caller keeps. Without it the vault makes one and keeps it (`guarded_by`)."""
        self._path = Path(path)
        self._given = None if key is None else Sealing(key)
        self._writer = Writer(self._path, "vault")
        self._readers = Readers(self._path)
        self._sealing: Sealing | None = None
        self._guarded_by = ""
        self._tasks: dict[str, asyncio.Lock] = {}

    async def open(self) -> None:
        """Raises StoreUnusable, and VaultKeyWrong when the key does not open what is there."""
        if self._writer.is_open:
            raise StoreFailed(f"{self._path} is open already")
        await asyncio.to_thread(self._prepare)
        try:
            await self._writer.open()
            await asyncio.to_thread(self._readers.open)
            async with self._locked("key"):
                await self._unlock()
        except sqlite3.Error as fault:
            await self.close()
            raise StoreUnusable(f"{self._path} cannot be read: {fault}", detail=repr(fault)) from fault
        except BaseException:
            await self.close()
            raise

    def _prepare(self) -> None:
        locks = self._path.with_name(f"{self._path.name}-locks")
        check_no_link(self._path)
        check_no_link(locks)
        create_file(self._path)
        check_local(self._path)
        try:
            self._path.chmod(0o600)
            locks.mkdir(mode=0o700, exist_ok=True)
        except OSError as fault:
            raise StoreUnusable(f"{self._path.parent} cannot hold a vault: {fault.strerror}") from fault

    async def _unlock(self) -> None:
        """Find the key, or make it when the vault is new. One process at a time."""
        facts = await self._readers.far(
            lambda connection: dict[str, bytes](connection.execute("SELECT name, value FROM facts").fetchall())
        )
        if "check" not in facts:
            self._sealing, self._guarded_by = await self._found()
            return
        self._guarded_by = GIVEN if self._given is not None else facts["guard"].decode()
        sealing = self._given
        if sealing is None:
            if self._guarded_by == GIVEN:
                raise VaultKeyWrong(f"{self._path} was made with a key that its caller keeps; pass it")
            if self._guarded_by != KEYRING:
                self._guarded_by = str(self._key_path)
            vault_id = facts["id"].decode()
            sealing = Sealing(await asyncio.to_thread(load_key, vault_id, self._key_path, self._guarded_by))
        try:
            sealing.unseal(_CHECK_PLACE, facts["check"])
        except StoreFailed as fault:
            raise VaultKeyWrong(f"the key of {self._guarded_by} does not open {self._path}") from fault
        self._sealing = sealing

    async def _found(self) -> tuple[Sealing, str]:
        vault_id = secrets.token_hex(16)
        sealing, guard = self._given, GIVEN
        if sealing is None:
            key, guard = await asyncio.to_thread(make_key, vault_id, self._key_path)
            sealing = Sealing(key)
        facts = [
            ("id", vault_id.encode()),
            ("guard", b"file" if guard not in (GIVEN, KEYRING) else guard.encode()),
            ("check", sealing.seal(_CHECK_PLACE, "", b"papaver")),
        ]
        await self._writer.run(
            lambda transaction: transaction.connection.executemany("INSERT INTO facts VALUES (?, ?)", facts).rowcount
        )
        return sealing, guard

    @property
    def _key_path(self) -> Path:
        return self._path.with_name(f"{self._path.name}.key")

    async def close(self) -> None:
        self._sealing = None
        await asyncio.to_thread(self._readers.close)
        await self._writer.close()

    @property
    def _open_sealing(self) -> Sealing:
        if self._sealing is None:
            raise StoreFailed(f"{self._path} is not open")
        return self._sealing

    async def load(self, kind: str, key: str) -> bytes | None:
        sealing = self._open_sealing
        name = sealing.name(kind, key)
        row = self._readers.near(lambda connection: _load(connection, name))
        return None if row is None else sealing.unseal(name, row)[1]

    async def change(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """See `Vault.change`. `decide` runs on another thread and must not block; what it raises is raised here."""
        sealing = self._open_sealing
        name = sealing.name(kind, key)

        def changed(transaction: Transaction) -> bytes | None:
            connection = transaction.connection
            sealed = _load(connection, name)
            before = None if sealed is None else sealing.unseal(name, sealed)[1]
            after = decide(before)
            if after is None:
                connection.execute("DELETE FROM sealed WHERE id = ?", (name,))
            elif after != before:
                connection.execute(
                    "INSERT INTO sealed (kind, id, value) VALUES (?, ?, ?)"
                    " ON CONFLICT (id) DO UPDATE SET value = excluded.value",
                    (sealing.name(kind), name, sealing.seal(name, key, after)),
                )
            return after

        return await self._writer.run(changed)

    async def rows(self, kind: str) -> tuple[tuple[str, bytes], ...]:
        sealing = self._open_sealing

        def query(connection: sqlite3.Connection) -> tuple[tuple[str, bytes], ...]:
            found = connection.execute("SELECT id, value FROM sealed WHERE kind = ? ORDER BY n", (sealing.name(kind),))
            return tuple([sealing.unseal(name, value) for name, value in found])

        return await self._readers.far(query)

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held by one task of one process at a time; a process that dies lets go."""
        return self._locked(self._open_sealing.name("exclusive", name).hex())

    @asynccontextmanager
    async def _locked(self, name: str) -> AsyncGenerator[None]:
        # Tasks of this process queue up in order; only the first of them asks the other processes.
        async with self._tasks.setdefault(name, asyncio.Lock()):
            path = self._path.with_name(f"{self._path.name}-locks") / name
            lock = await _taken(path)
            try:
                yield
            finally:
                lock.remove()

    @property
    def guarded_by(self) -> str:
        """`keyring`, the path of the key's file, or `the caller`. Known once the vault is open."""
        return self._guarded_by


async def _taken(path: Path) -> FileLock:
    """The lock on this path, waited for without a thread, so that whoever waits can be cancelled."""
    pause = _FIRST_TRY
    while True:
        lock = FileLock(path)
        try:
            if lock.try_take() and lock.is_at_path():
                return lock
        except BaseException:
            lock.close()
            raise
        lock.close()
        await asyncio.sleep(pause)
        pause = min(pause * 2, _LAST_TRY)


def check_no_link(path: Path) -> None:
    """A vault is where its path says: nobody led it elsewhere, and two names never mean one file.

    Raises StoreUnusable.
    """
    if path.is_symlink():
        raise StoreUnusable(
            f"{path} is a symbolic link; remove it, or name the file that it leads to", rule="vault.no-link"
        )


def _load(connection: sqlite3.Connection, name: bytes) -> bytes | None:
    row = connection.execute("SELECT value FROM sealed WHERE id = ?", (name,)).fetchone()
    return None if row is None else row[0]
