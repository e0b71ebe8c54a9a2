"""Locks by name across processes and hosts: PostgreSQL's advisory locks, held by one connection of each vault."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from typing import TypeVar
from weakref import WeakValueDictionary

from papaver.stores.faults import StoreFailed
from papaver.stores.postgres.server import Connection, Server

__all__ = ["AdvisoryLocks"]

R = TypeVar("R")
_FIRST_TRY, _LAST_TRY = 0.005, 0.05
"""Seconds between tries for a lock that another process holds."""
_CLOSE_SECONDS = 5.0
_TAKE, _GIVE_BACK = "SELECT pg_try_advisory_lock($1)", "SELECT pg_advisory_unlock($1)"


class AdvisoryLocks:
    """They end with the connection: with its process, and with the server.

    After the server was restarted, those that are held are taken again as soon as anybody asks for one.
    """

    def __init__(self, server: Server) -> None:
        self._server = server
        self._connection: Connection | None = None
        self._is_open = False
        self._turn = asyncio.Lock()
        self._held: set[int] = set()
        self._tasks: WeakValueDictionary[int, asyncio.Lock] = WeakValueDictionary()
        self._asked: set[asyncio.Task[object]] = set()

    def open(self) -> None:
        """The server is open; a connection is made when it is needed."""
        self._is_open = True

    async def close(self) -> None:
        """Ends what is held, too."""
        self._is_open = False
        while self._asked:
            await asyncio.wait(self._asked)
        connection, self._connection = self._connection, None
        if connection is not None:
            try:
                async with self._server.told():
                    await connection.close(timeout=_CLOSE_SECONDS)
            except StoreFailed:
                connection.terminate()

    @asynccontextmanager
    async def held(self, key: int) -> AsyncGenerator[None]:
        """`key`: 64 bits, signed. Raises StoreFailed."""
        # Tasks of this process queue up in order; only the first of them asks the other processes.
        own = self._tasks.setdefault(key, asyncio.Lock())
        async with own:
            pause = _FIRST_TRY
            while not await self._take(key):
                await asyncio.sleep(pause)
                pause = min(pause * 2, _LAST_TRY)
            try:
                yield
            finally:
                self._held.discard(key)
                # To its end, also when whoever waits for it is cancelled.
                await asyncio.shield(self._start(self._give_back(key)))

    async def _take(self, key: int) -> bool:
        """Whoever is cancelled here holds nothing."""
        taking = self._start(self._ask(_TAKE, key))
        try:
            taken = await asyncio.shield(taking)
        except asyncio.CancelledError:
            self._start(self._undo(taking, key))
            raise
        if taken:
            self._held.add(key)
        return taken

    async def _undo(self, taking: asyncio.Task[bool], key: int) -> None:
        await asyncio.wait({taking})
        if taking.exception() is None and taking.result():
            await self._give_back(key)

    async def _give_back(self, key: int) -> None:
        try:
            await self._ask(_GIVE_BACK, key)
        except StoreFailed:
            # The lock goes with the connection, if that is not gone itself.
            if self._connection is not None:
                self._connection.terminate()

    async def _ask(self, question: str, key: int) -> bool:
        async with self._turn:
            if not self._is_open:
                raise StoreFailed("the vault is not open")
            connection = self._connection
            async with self._server.told():
                if connection is not None and not connection.is_closed():
                    try:
                        return await connection.fetchval(question, key)
                    except self._server.lost:
                        connection.terminate()
                self._connection = connection = await self._connected()
                return await connection.fetchval(question, key)

    async def _connected(self) -> Connection:
        connection = await self._server.connect()
        try:
            for key in self._held:
                await connection.fetchval(_TAKE, key)
        except BaseException:
            connection.terminate()
            raise
        return connection

    def _start(self, work: Coroutine[object, object, R]) -> asyncio.Task[R]:
        task = asyncio.ensure_future(work)
        self._asked.add(task)
        task.add_done_callback(self._asked.discard)
        return task
