"""A Personal Agent's vault in PostgreSQL, encrypted row by row, shared by the processes of several hosts."""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any

from papaver.stores.faults import StoreFailed, VaultKeyWrong
from papaver.stores.postgres.locks import AdvisoryLocks
from papaver.stores.postgres.migrations import migrate
from papaver.stores.postgres.server import Connection, Server
from papaver.stores.sealing import Sealing
from papaver.stores.vault_key import VaultKey
from papaver.values.secret import Secret

__all__ = ["PostgresVault"]

_CHECK_PLACE = b"check"
_SCHEMA = re.compile(r"[a-z_][a-z0-9_]{0,62}")
_OPENED_HERE = 256
"""Up to so many rows are decrypted on the loop's own thread."""


class PostgresVault:
    """A `Vault`. What it hides, and how, is as in `SqliteVault`; the server sees sizes, times and which rows change.

    Every process opens its own, with the same key. The DSN leads to the server itself or to a pooler that leaves each
    connection to one client (session mode): locks belong to connections. A restart of the server lets go of the locks
    that are held then; a change of one row is atomic even so.
    """

    def __init__(
        self,
        dsn: str | Secret,
        *,
        key: VaultKey,
        schema: str = "papaver_vault",
        connections: int = 10,
        timeout: float = 10.0,
    ) -> None:
        """`dsn`: postgresql://user:password@host:5432/database, as asyncpg reads it. Nothing connects before `open`.

        `key`          where the 32 bytes are that every process shares
        `schema`       made when it is not there; one vault each
        `connections`  that rows use, at most; the locks have one more
        `timeout`      seconds to connect, or to wait for one of the connections
        """
        if not _SCHEMA.fullmatch(schema):
            raise ValueError("a vault's schema has lowercase letters, digits and underscores, at most 63 of them")
        if connections < 1 or timeout <= 0:
            raise ValueError("a vault needs a connection, and time to make one")
        self._key = key
        self._server = Server(dsn, schema, connections=connections, timeout=timeout)
        self._locks = AdvisoryLocks(self._server)
        self._sealing: Sealing | None = None

    def __reduce__(self) -> str:
        raise TypeError("a vault is not pickled")

    def __repr__(self) -> str:
        return f"<PostgresVault in the schema {self._server.schema}, guarded by {self.guarded_by}>"

    async def open(self) -> None:
        """Raises StoreUnusable, and VaultKeyWrong when the key does not open what is there."""
        if self._server.is_open:
            raise StoreFailed("the vault is open already")
        await self._server.open()
        try:
            self._sealing = await self._server.first(self._unlock)
        except BaseException:
            await self.close()
            raise
        self._locks.open()

    async def _unlock(self, connection: Connection) -> Sealing:
        """Bring the tables up to date and find the key; the first process makes it. One process at a time."""
        async with connection.transaction():
            await migrate(connection, self._server.schema)
            facts: dict[str, bytes] = dict(await connection.fetch("SELECT name, value FROM facts"))
            if "check" not in facts:
                return await self._found(connection)
        sealing = Sealing(await asyncio.to_thread(self._key.load, facts["id"].decode()))
        try:
            sealing.unseal(_CHECK_PLACE, facts["check"])
        except StoreFailed as fault:
            raise VaultKeyWrong(
                f"the key of {self.guarded_by} does not open the vault in the schema {self._server.schema};"
                " every process needs the key with which it was made"
            ) from fault
        return sealing

    async def _found(self, connection: Connection) -> Sealing:
        vault_id = secrets.token_hex(16)
        sealing = Sealing(await asyncio.to_thread(self._key.make, vault_id))
        for name, value in (("id", vault_id.encode()), ("check", sealing.seal(_CHECK_PLACE, "", b"papaver"))):
            await connection.execute("INSERT INTO facts (name, value) VALUES ($1, $2)", name, value)
        return sealing

    async def close(self) -> None:
        self._sealing = None
        await self._locks.close()
        await self._server.close()

    @property
    def _open_sealing(self) -> Sealing:
        if self._sealing is None:
            raise StoreFailed("the vault is not open")
        return self._sealing

    async def load(self, kind: str, key: str) -> bytes | None:
        sealing = self._open_sealing
        name = sealing.name(kind, key)

        async def loaded(connection: Connection) -> bytes | None:
            return await connection.fetchval("SELECT value FROM sealed WHERE id = $1", name)

        sealed = await self._server.run(loaded)
        return None if sealed is None else sealing.unseal(name, sealed)[1]

    async def change(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        """See `Vault.change`. `decide` must not block; it is called again when the row was made meanwhile."""
        return await _Changing(self._open_sealing, kind, key, decide).run(self._server)

    async def rows(self, kind: str) -> tuple[tuple[str, bytes], ...]:
        sealing = self._open_sealing

        async def found(connection: Connection) -> Sequence[Any]:
            query = "SELECT id, value FROM sealed WHERE kind = $1 ORDER BY n"
            return await connection.fetch(query, sealing.name(kind))

        def opened(rows: Sequence[Any]) -> tuple[tuple[str, bytes], ...]:
            return tuple([sealing.unseal(name, value) for name, value in rows])

        rows = await self._server.run(found)
        return opened(rows) if len(rows) <= _OPENED_HERE else await asyncio.to_thread(opened, rows)

    def exclusive(self, name: str) -> AbstractAsyncContextManager[None]:
        """Held by one task of one process at a time, on whatever host; a process that dies lets go."""
        hidden = self._open_sealing.name("exclusive", self._server.schema, name)
        return self._locks.held(int.from_bytes(hidden[:8], "big", signed=True))

    @property
    def guarded_by(self) -> str:
        """`keyring`, the path of the key's file, the name of an environment variable, or `the caller`."""
        return self._key.guarded_by


class _Changing:
    """One change of one row."""

    def __init__(self, sealing: Sealing, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> None:
        self._sealing, self._kind, self._key, self._decide = sealing, kind, key, decide
        self._name = sealing.name(kind, key)
        self._begun = False
        self._fault: Exception | None = None

    async def run(self, server: Server) -> bytes | None:
        # Once something was written, a lost connection leaves open whether it was committed: never done twice.
        try:
            return await server.run(self._change, repeat=lambda: not self._begun)
        except _Refused:
            pass
        assert self._fault is not None
        raise self._fault

    async def _change(self, connection: Connection) -> bytes | None:
        async with connection.transaction():
            while True:
                sealed = await connection.fetchval("SELECT value FROM sealed WHERE id = $1 FOR UPDATE", self._name)
                before = None if sealed is None else self._sealing.unseal(self._name, sealed)[1]
                after = self._decided(before)
                if after == before or await self._write(connection, before, after):
                    return after

    def _decided(self, before: bytes | None) -> bytes | None:
        try:
            return self._decide(before)
        except Exception as fault:
            self._fault = fault
            raise _Refused from fault

    async def _write(self, connection: Connection, before: bytes | None, after: bytes | None) -> bool:
        """False when somebody else has made the row since it was looked for: look again."""
        self._begun = True
        if after is None:
            await connection.execute("DELETE FROM sealed WHERE id = $1", self._name)
            return True
        value = self._sealing.seal(self._name, self._key, after)
        if before is not None:
            await connection.execute("UPDATE sealed SET value = $2 WHERE id = $1", self._name, value)
            return True
        made = await connection.fetchval(
            "INSERT INTO sealed (id, kind, value) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING RETURNING true",
            self._name,
            self._sealing.name(self._kind),
            value,
        )
        return made is not None


class _Refused(Exception):
    """What `decide` raised, on its way past the driver's own faults."""
