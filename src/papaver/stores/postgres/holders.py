"""Which processes live: each store holds an advisory lock by its own name, on a connection that does nothing else."""

from __future__ import annotations

import os
import secrets
from typing import Final

from papaver.stores.faults import StoreFailed
from papaver.stores.postgres.server import Connection, Server

__all__ = ["Holders"]

BELIEVED: Final = 2
"""Looks in which a holder has to be missing: a process whose connection was lost connects again, and lives."""
_RESTARTED: Final = 10
"""Seconds after a start of the server in which nobody is believed dead: all have to connect again."""
_GONE: Final = (
    "SELECT holder FROM (SELECT holder FROM conversations WHERE holder IS NOT NULL"
    " UNION SELECT holder FROM notes WHERE holder IS NOT NULL) AS named"
    " WHERE holder ~ '^postgres-[0-9]+-[0-9a-f]{16}$' AND NOT EXISTS (SELECT FROM pg_locks"
    " WHERE locktype = 'advisory' AND granted AND objsubid = 1"
    " AND classid::bigint = ('x' || left(right(holder, 16), 8))::bit(32)::bigint & 4294967295"
    " AND objid::bigint = ('x' || right(holder, 8))::bit(32)::bigint & 4294967295)"
    f" AND pg_postmaster_start_time() < clock_timestamp() - interval '{_RESTARTED} seconds'"
)


# In the order of a round, so that they never wait for each other.
_FREE_TURNS: Final = (
    "WITH held AS (SELECT company, id FROM conversations WHERE holder = $1 ORDER BY company, id FOR UPDATE)"
    " UPDATE conversations AS own SET holder = NULL, until = NULL FROM held"
    " WHERE own.company = held.company AND own.id = held.id"
)
_FREE_NOTES: Final = "UPDATE notes SET holder = NULL, free_at = 0 WHERE holder = $1"


class Holders:
    """Our own name, kept alive, and the names of the dead that still hold something."""

    def __init__(self, server: Server) -> None:
        self._server = server
        key = secrets.token_hex(8)
        self.name = f"postgres-{os.getpid()}-{key}"
        number = int(key, 16)
        self._key = number - 2**64 if number >= 2**63 else number
        self._connection: Connection | None = None
        self._is_held = False
        self._missing: dict[str, int] = {}
        self.dead: frozenset[str] = frozenset()

    async def open(self) -> None:
        """Raises StoreFailed."""
        await self._live()
        # Whoever was gone before we came has had its time to connect again.
        self.dead = frozenset(await self._gone())
        self._missing = dict.fromkeys(self.dead, BELIEVED)

    async def _gone(self) -> set[str]:
        return {row[0] for row in await self._server.run(lambda connection: connection.fetch(_GONE))}

    async def look(self) -> bool:
        """Keep our name alive and see who is dead; True when somebody died. Raises StoreFailed."""
        await self._live()
        missing = await self._gone()
        self._missing = {name: self._missing.get(name, 0) + 1 for name in missing if name != self.name}
        dead = frozenset(name for name, looks in self._missing.items() if looks >= BELIEVED)
        died, self.dead = bool(dead - self.dead), dead
        return died

    async def let_go(self) -> None:
        """In order, as far as the server lets us: others need not wait until we are believed dead."""
        try:
            await self._server.run(lambda connection: connection.execute(_FREE_TURNS, self.name))
            await self._server.run(lambda connection: connection.execute(_FREE_NOTES, self.name))
        except StoreFailed:
            return

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                async with self._server.told():
                    await connection.close(timeout=5.0)
            except StoreFailed:
                connection.terminate()

    async def _live(self) -> None:
        connection = self._connection
        if connection is not None and not connection.is_closed():
            try:
                await self._hold(connection)
                return
            except (TimeoutError, *self._server.lost):
                connection.terminate()
        self._connection = None
        connection = await self._server.connect()
        try:
            async with self._server.told():
                self._is_held = False
                await self._hold(connection)
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection

    async def _hold(self, connection: Connection) -> None:
        """See that the connection works. While the server has not noticed that the last one is over, that holds it."""
        if self._is_held:
            await connection.fetchval("SELECT 1")
        else:
            self._is_held = await connection.fetchval("SELECT pg_try_advisory_lock($1)", self._key)
