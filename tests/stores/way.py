"""A way to the PostgreSQL of the tests that can be cut and closed, as a restart of the server does it."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from tests.stores.postgres import DSN, query

__all__ = ["Way", "way"]


class Way:
    """A way to the server that can be cut and closed, as a restart does it."""

    def __init__(self) -> None:
        parts = urlsplit(DSN)
        self._target = parts.hostname or "127.0.0.1", parts.port or 5432
        self._out: set[asyncio.StreamWriter] = set()
        self._carrying: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0

    @property
    def dsn(self) -> str:
        parts = urlsplit(DSN)
        user = parts.netloc.rpartition("@")[0]
        return parts._replace(netloc=f"{user}@127.0.0.1:{self.port}").geturl()

    async def open(self) -> None:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task, ends = asyncio.current_task(), [writer]
        assert task is not None
        self._carrying.add(task)
        try:
            other, out = await asyncio.open_connection(*self._target)
            ends.append(out)
            self._out.add(out)
            await asyncio.gather(_copy(reader, out), _copy(other, writer))
        finally:
            self._out.difference_update(ends)
            self._carrying.discard(task)
            for end in ends:
                end.transport.abort()

    async def close(self) -> None:
        """Cut what runs and refuse what comes."""
        if self._server is not None:
            self._server.close()
        carrying = list(self._carrying)
        for task in carrying:
            task.cancel()
        await asyncio.gather(*carrying, return_exceptions=True)
        await asyncio.sleep(0)

    def cut(self) -> None:
        """What runs is over; what comes is let through."""
        for out in self._out:
            out.transport.abort()

    async def restart(self) -> None:
        """Every session is ended by the server, with its own words."""
        ports = [writer.get_extra_info("sockname")[1] for writer in self._out]
        await query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE client_port = ANY($1::int[])", ports)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


@asynccontextmanager
async def way() -> AsyncGenerator[Way]:
    own = Way()
    await own.open()
    try:
        yield own
    finally:
        await own.close()
