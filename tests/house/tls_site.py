"""A small HTTPS server on loopback that says what a test tells it, and a network whose public addresses lead there."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, cast

import httpcore2
import pytest
import trustme

from papaver.adapters.httpx2.fetcher import GuardedFetcher
from papaver.adapters.httpx2.network import Network
from papaver.adapters.httpx2.resolve_map import NetworkSettings, ResolveMap
from papaver.ports.system import FetchFailed, FetchPolicy
from papaver.web.messages import Headers

ONCE = FetchPolicy(seconds=10)
NO_HEADERS = Headers()

PUBLIC = "93.184.215.14"
PUBLIC_6 = "2606:2800:21f:cb07:6820:80da:af6b:8b2c"

Answer = bytes | Callable[[asyncio.StreamWriter], Awaitable[None]]
"""What a path answers: the octets, or who writes them."""


def answer(body: bytes = b"{}", status: str = "200 OK", *fields: str) -> bytes:
    """A whole HTTP/1.1 response."""
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *fields]
    return "\r\n".join([*head, "", ""]).encode("latin-1") + body


def redirect(location: str, status: int = 302) -> bytes:
    """A redirect to `location`."""
    return answer(b"", f"{status} Redirect", f"Location: {location}")


@cache
def authority() -> trustme.CA:
    """The one certificate authority of the tests."""
    return trustme.CA()


@dataclass
class Site:
    """The server. `answers` by path; `heads` as received; `names` are the SNIs; `connections` counts sockets."""

    answers: Mapping[str, Answer]
    port: int = 0
    heads: list[str] = field(default_factory=list[str])
    names: list[str | None] = field(default_factory=list[str | None])
    connections: int = 0
    looked_up: list[str] = field(default_factory=list[str])
    dialled: list[str] = field(default_factory=list[str])

    @property
    def paths(self) -> list[str]:
        return [head.split(" ")[1] for head in self.heads]

    def put(self, **answers: Answer) -> None:
        """More paths, named without their slash."""
        self.answers = {**self.answers, **{f"/{path}": what for path, what in answers.items()}}

    def fields(self, name: str, of: int = -1) -> list[str]:
        """The values of a header field in a received request."""
        pairs = (line.split(": ", 1) for line in self.heads[of].split("\r\n")[1:] if line)
        return [value for key, value in pairs if key.lower() == name]

    def network(
        self,
        addresses: Mapping[str, Sequence[Sequence[str]] | Sequence[str]],
        ca_file: Path,
        *,
        peer: str | None = None,
        dead: Mapping[str, BaseException | None] | None = None,
        resolve: Sequence[str] = (),
    ) -> Network:
        """A network that judges as always, with this resolver, whose sockets all end at this server.

        `addresses`  host → its addresses, or a list of answers, one after another
        `peer`       what a socket says is at its other end, instead of the address dialled
        `dead`       address → the error of dialling it, None for silence
        """
        dead = dead or {}
        turns = {host: iter(found) for host, found in addresses.items() if found and not isinstance(found[0], str)}

        async def resolver(host: str, port: int) -> Sequence[str]:
            self.looked_up.append(host)
            return cast("Sequence[str]", next(turns[host]) if host in turns else addresses.get(host, ()))

        async def dialler(address: str, port: int) -> httpcore2.AsyncNetworkStream:
            self.dialled.append(address)
            if address in dead:
                error = dead[address]
                if error is not None:
                    raise error
                await asyncio.Event().wait()
            sockets = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())
            return Disguised(await sockets.connect_tcp("127.0.0.1", self.port), peer or address)

        return Network(NetworkSettings(ResolveMap.read(resolve), ca_file), resolver=resolver, dialler=dialler)


class Disguised(httpcore2.AsyncNetworkStream):
    """A loopback connection that says it leads to another address."""

    def __init__(self, stream: httpcore2.AsyncNetworkStream, address: str) -> None:
        self._stream = stream
        self._address = address

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._stream.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        return await self._stream.start_tls(ssl_context, server_hostname, timeout)

    def get_extra_info(self, info: str) -> Any:
        return (self._address, 443) if info == "server_addr" else self._stream.get_extra_info(info)


@asynccontextmanager
async def serve(answers: Mapping[str, Answer], *names: str, tls: bool = True) -> AsyncGenerator[Site, None]:
    """The server under these names, for as long as the block lasts. An unknown path is a 404."""
    site = Site(answers)
    context = None
    if tls:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        cert: Any = authority().issue_cert(*(names or ("shop.example",)))
        cert.configure_cert(context)

        def note_name(_socket: ssl.SSLObject, name: str | None, _context: ssl.SSLContext) -> None:
            site.names.append(name)

        context.sni_callback = note_name

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        site.connections += 1
        try:
            while True:
                site.heads.append((await reader.readuntil(b"\r\n\r\n")).decode("latin-1"))
                chosen = site.answers.get(site.paths[-1], answer(b"", "404 Not Found"))
                if not isinstance(chosen, bytes):
                    await chosen(writer)
                    break
                writer.write(chosen)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, ssl.SSLError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0, ssl=context)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        await server.wait_closed()


async def fails(network: Network, url: str, policy: FetchPolicy = ONCE, headers: Headers = NO_HEADERS) -> FetchFailed:
    """The failure of a fetch that must fail."""
    with pytest.raises(FetchFailed) as caught:
        await GuardedFetcher(network).fetch(url, policy, headers)
    return caught.value
