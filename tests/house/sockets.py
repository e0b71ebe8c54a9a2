"""An app behind uvicorn on loopback, in this process, and a reader of its streams that sees each chunk as it comes."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import uvicorn

from papaver.adapters.asgi import ASGIApp
from papaver.testing.company import VERSION, CompanyBench
from papaver.web.messages import Headers
from papaver.web.sse import MEDIA_TYPE, Decoder, ServerEvent

__all__ = ["Reader", "connected", "listening", "reading"]

WITHIN = 60.0
"""Seconds after which a test gives up waiting. Nothing is ever asserted about time."""


@asynccontextmanager
async def listening(app: ASGIApp, *, send_buffer: int = 0) -> AsyncGenerator[int]:
    """Serve it; the port. `send_buffer`: octets that the machine itself takes for a connection, about."""
    place = socket.create_server(("127.0.0.1", 0))
    if send_buffer:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, send_buffer)
    config = uvicorn.Config(app, lifespan="off", log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve([place]))
    try:
        while not server.started:
            await asyncio.sleep(0)
            assert not serving.done()
        yield place.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await serving


class Reader:
    """One open connection and its answer. `headers` of it; `ended` once its body has had its proper end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self.status = 0
        self.headers = Headers()
        self.ended = False
        self._decoder = Decoder()
        self._events: list[ServerEvent] = []

    async def head(self) -> None:
        async with asyncio.timeout(WITHIN):
            head = await self._reader.readuntil(b"\r\n\r\n")
        status, *lines = head.decode("latin-1").split("\r\n")[:-2]
        self.status = int(status.split()[1])
        pairs = (line.partition(": ") for line in lines)
        self.headers = Headers([(name, value) for name, _, value in pairs])

    async def chunk(self) -> bytes:
        """The next chunk of the body; empty at its end, and where the connection breaks off."""
        async with asyncio.timeout(WITHIN):
            try:
                size = int(await self._reader.readuntil(b"\r\n"), 16)
                chunk = (await self._reader.readexactly(size + 2))[:-2]
            except asyncio.IncompleteReadError:
                return b""
        self.ended = not chunk
        return chunk

    async def event(self) -> ServerEvent | None:
        """The next event; None at the end."""
        while not self._events:
            chunk = await self.chunk()
            if not chunk:
                return None
            self._events += self._decoder.feed(chunk)
        return self._events.pop(0)

    async def rest(self) -> bytes:
        """Whatever still comes, as octets."""
        async with asyncio.timeout(WITHIN):
            return await self._reader.read()


@asynccontextmanager
async def connected(
    port: int, target: str, fields: Mapping[str, str], *, receive_buffer: int = 0
) -> AsyncGenerator[Reader]:
    """A GET over a connection of its own; its head was read. `receive_buffer`: octets that this side takes, about."""
    place = socket.socket()
    if receive_buffer:
        place.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    place.setblocking(False)
    await asyncio.get_running_loop().sock_connect(place, ("127.0.0.1", port))
    connection = Reader(*await asyncio.open_connection(sock=place, limit=receive_buffer or 65_536))
    lines = [f"GET {target} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    connection.writer.write("\r\n".join(lines).encode())
    try:
        await connection.head()
        yield connection
    finally:
        connection.writer.close()


@asynccontextmanager
async def reading(
    bench: CompanyBench, port: int, conversation: str, query: str = "", *, receive_buffer: int = 0, **fields: str
) -> AsyncGenerator[Reader]:
    """A read that asks the Company of a bench for a stream."""
    offer = bench.company.offer
    url = f"{offer.endpoint}/{conversation}/events"
    sent = {
        "host": offer.endpoint_host,
        "accept": MEDIA_TYPE,
        "poppy-version": VERSION,
        "poppy-session": bench.agent.header("GET", url, bench.company.id, now=bench.clock.now()),
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }
    target = f"{offer.path}/conversations/{conversation}/events" + (f"?{query}" if query else "")
    async with connected(port, target, sent, receive_buffer=receive_buffer) as reader:
        yield reader
