"""A balancer for a figure's replicas: each connection goes to one that takes it, and is never begun a second time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

__all__ = ["Balancer", "balancer"]

PATIENCE = 5.0
"""Seconds in which a connection waits for a replica that takes it."""
NOBODY = b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\ncontent-length: 2\r\n\r\n{}"


class Balancer:
    """`ports`: where the replicas listen, by place. One that refuses is passed over; no octet was sent to it then."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.port = 0
        self._next = 0
        self._open: set[asyncio.Task[None]] = set()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._serve(reader, writer)
        except (OSError, asyncio.CancelledError):
            pass  # one of the two is gone, or all this is over
        finally:
            self._open.discard(task)
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        found = await self._replica()
        if found is None:
            await reader.read(65_536)
            writer.write(NOBODY)
            await writer.drain()
            return
        theirs, ours = found
        asked = asyncio.create_task(copied(reader, ours))
        try:
            await copied(theirs, writer)
        finally:
            asked.cancel()
            ours.close()

    async def _replica(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """A connection to the next one that takes it."""
        until = asyncio.get_running_loop().time() + PATIENCE
        while asyncio.get_running_loop().time() < until:
            ports = list(self.ports.values())
            for _ in ports:
                self._next += 1
                with suppress(OSError):
                    return await asyncio.open_connection("127.0.0.1", ports[self._next % len(ports)])
            await asyncio.sleep(0.1)
        return None

    def end(self) -> None:
        for task in self._open:
            task.cancel()


async def copied(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until there is no more, or one of the two is gone."""
    with suppress(OSError):
        while octets := await reader.read(65_536):
            writer.write(octets)
            await writer.drain()


@asynccontextmanager
async def balancer() -> AsyncGenerator[Balancer]:
    own = Balancer()
    server = await asyncio.start_server(own.serve, "127.0.0.1", 0, backlog=1024)
    own.port = server.sockets[0].getsockname()[1]
    try:
        yield own
    finally:
        server.close()
        own.end()
