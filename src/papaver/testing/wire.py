"""An internet in memory: names, addresses and servers that a test holds in its hand, below the real clients and guards.

Only the sockets and TLS are missing. Every check of an address, a redirect, a size or a credential is made as ever.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from email.utils import formatdate
from typing import Any, Final
from urllib.parse import unquote

import anyio
import httpcore2

from papaver.adapters.asgi import ASGIApp
from papaver.adapters.httpx2.network import Network
from papaver.personal_agent.flows.effects import StreamedResponse
from papaver.ports.system import Clock
from papaver.values import strict_json
from papaver.web.messages import Headers, Request, Response
from papaver.web.sse import MEDIA_TYPE

__all__ = ["PUBLIC_ADDRESS", "Exchange", "Interposer", "Lost", "Onward", "Site", "Wire", "asgi_site", "documents_site"]

PUBLIC_ADDRESS: Final = "93.184.216.34"
"""Where a name is that has a site and no address of its own."""

_MINUTE: Final = 60.0


class Lost(Exception):
    """Raised by a site or an interposer: the connection ends without an answer."""


@dataclass(slots=True)
class Exchange:
    """One request on the wire. `by` is whose network it came from, `response` is None as long as there is none.

    `at` is when it arrived, in Unix seconds; `left` is set once its sender has gone away.
    """

    by: str
    at: float
    request: Request
    response: Response | None = None
    left: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    @property
    def place(self) -> str:
        """Method and URL, without the query."""
        return f"{self.request.method} {self.request.url.partition('?')[0]}"


Site = Callable[[Exchange], Awaitable[Response]]
"""The server of one host name."""
Onward = Callable[[], Awaitable[Response]]
Interposer = Callable[[Exchange, Onward], Awaitable[Response]]
"""Sees every exchange before its site: passes it on and returns the answer, or answers itself, or raises Lost."""


class Wire:
    """The sites that there are, and everything that was said.

    `sites`      host name → its server; another name does not exist
    `addresses`  host name → what the resolver says about it, where that is not PUBLIC_ADDRESS
    `exchanges`  every request, in the order of arrival
    `interpose`  what stands between the parties, if anything
    """

    def __init__(self, clock: Clock) -> None:
        self.sites: dict[str, Site] = {}
        self.addresses: dict[str, Sequence[str]] = {}
        self.exchanges: list[Exchange] = []
        self.interpose: Interposer | None = None
        self._clock = clock
        self._serving: set[asyncio.Task[Response]] = set()

    def network(self, by: str) -> Network:
        """A guarded network of its own on this wire, for one party; `by` is its name in the exchanges."""

        async def dial(address: str, port: int) -> httpcore2.AsyncNetworkStream:
            return _Connection(self, by, (address, port))

        return Network(resolver=self._resolve, dialler=dial)

    def sent(self, by: str, host: str | None = None) -> list[Exchange]:
        """The exchanges of one party; with one host when named."""
        prefix = "https://" if host is None else f"https://{host}/"
        return [one for one in self.exchanges if one.by == by and one.request.url.startswith(prefix)]

    async def answer(self, by: str, request: Request, left: asyncio.Event) -> Response:
        """What the site of the request's host says. Its work goes on when the caller is cancelled, as a server's."""
        exchange = Exchange(by, self._clock.now(), request, left=left)
        self.exchanges.append(exchange)
        task = asyncio.create_task(self._answered(exchange))
        self._serving.add(task)
        task.add_done_callback(self._serving.discard)
        return await asyncio.shield(task)

    async def close(self) -> None:
        """End what is still being served."""
        for task in tuple(self._serving):
            task.cancel()
        await asyncio.gather(*self._serving, return_exceptions=True)

    async def _answered(self, exchange: Exchange) -> Response:
        site = self.sites[exchange.request.url.split("/")[2]]

        async def onward() -> Response:
            return await site(exchange)

        response = await (onward() if self.interpose is None else self.interpose(exchange, onward))
        if "date" not in response.headers:
            stamped = response.headers.with_(("date", formatdate(self._clock.now(), usegmt=True)))
            response = replace(response, headers=stamped)
        exchange.response = response
        return response

    async def _resolve(self, host: str, port: int) -> Sequence[str]:
        if host in self.addresses:
            return self.addresses[host]
        return (PUBLIC_ADDRESS,) if host in self.sites else ()


class _Connection(httpcore2.AsyncNetworkStream):
    """One connection, the server's end of HTTP/1.1 included; `start_tls` says whose it is."""

    def __init__(self, wire: Wire, by: str, address: tuple[str, int]) -> None:
        self._wire, self._by, self._address = wire, by, address
        self._host = ""
        self._received = b""
        self._ready = b""
        self._left = asyncio.Event()
        self._chunks: AsyncGenerator[bytes] | None = None

    async def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.AsyncNetworkStream:
        self._host = server_hostname or ""
        return self

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._received += buffer

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        if not self._ready and self._chunks is not None:
            try:
                with anyio.fail_after(timeout):
                    return await anext(self._chunks, b"")
            except TimeoutError as error:
                raise httpcore2.ReadTimeout(f"silent for {timeout} s") from error
        if not self._ready:
            try:
                with anyio.fail_after(timeout):
                    response = await self._wire.answer(self._by, self._request(), self._left)
            except TimeoutError as error:
                raise httpcore2.ReadTimeout(f"no answer within {timeout} s") from error
            except Lost:
                return b""
            self._ready = _written(response)
            if isinstance(response, StreamedResponse):
                self._chunks = response.chunks
        piece, self._ready = self._ready[:max_bytes], self._ready[max_bytes:]
        return piece

    async def aclose(self) -> None:
        self._left.set()

    def get_extra_info(self, info: str) -> Any:
        return {"server_addr": self._address, "is_readable": self._left.is_set()}.get(info)

    def _request(self) -> Request:
        """What was received, as a request to the host that TLS was asked for: the client wrote it, so it is HTTP."""
        head, _, rest = self._received.partition(b"\r\n\r\n")
        self._received = b""
        first, *lines = head.decode("latin-1").split("\r\n")
        method, target, _ = first.split(" ")
        headers = Headers((name, value.strip()) for name, _, value in (line.partition(":") for line in lines))
        body = _joined(rest) if headers.first("transfer-encoding") == "chunked" else rest
        return Request(method, f"https://{self._host}{target}", headers, body)


def _joined(rest: bytes) -> bytes:
    """A body that came in chunks."""
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
    return body


def _written(response: Response) -> bytes:
    lines = [f"HTTP/1.1 {response.status} So", *(f"{name}: {value}" for name, value in response.headers)]
    if isinstance(response, StreamedResponse):
        lines.append("connection: close")
    elif response.status != 204 and "content-length" not in response.headers:
        lines.append(f"content-length: {len(response.body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + response.body


def documents_site(read: Callable[[], Any], *, fresh: float = _MINUTE) -> Site:
    """A site that serves documents: `read` gives URL → octets, or a value to be written as JSON; anything else is 404.

    It is asked anew for each request, so a document may change. `fresh` is for how long they may be kept, in seconds.
    """

    async def serve(exchange: Exchange) -> Response:
        found: object = read().get(exchange.request.url)
        if found is None:
            return Response(404)
        body = found if isinstance(found, bytes) else strict_json.dumps(found)
        fields = [("content-type", "application/json"), ("cache-control", f"max-age={fresh:.0f}")]
        return Response(200, Headers(fields), body)

    return serve


def asgi_site(app: ASGIApp) -> Site:
    """Any ASGI app as a site: a Company that is run, or your own app with one in it. Its lifespan is yours to run."""

    async def serve(exchange: Exchange) -> Response:
        request = exchange.request
        host, _, target = request.url.removeprefix("https://").partition("/")
        path, _, query = f"/{target}".partition("?")
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": "1.1",
            "scheme": "https",
            "method": request.method,
            "path": unquote(path),
            "raw_path": path.encode("ascii"),
            "root_path": "",
            "query_string": query.encode("ascii"),
            "headers": [(name.encode("latin-1"), value.encode("latin-1")) for name, value in request.headers],
            "client": (PUBLIC_ADDRESS, 50_000),
            "server": (host, 443),
        }
        pending = [{"type": "http.request", "body": request.body, "more_body": False}]
        status, headers, body = 500, Headers(), b""
        pieces: asyncio.Queue[bytes] = asyncio.Queue()
        begun = asyncio.Event()

        async def receive() -> dict[str, Any]:
            if pending:
                return pending.pop()
            await exchange.left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status, headers, body
            if message["type"] == "http.response.start":
                status = message["status"]
                pairs: Any = message.get("headers", ())
                headers = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in pairs)
            elif headers.first("content-type") == MEDIA_TYPE:
                begun.set()
                if piece := message.get("body", b""):
                    await pieces.put(piece)
            else:
                body += message.get("body", b"")

        async def run() -> None:
            try:
                await app(scope, receive, send)
            finally:
                await pieces.put(b"")
                begun.set()

        running = asyncio.create_task(run())
        await begun.wait()
        if headers.first("content-type") == MEDIA_TYPE and not running.done():
            return StreamedResponse(status, headers, chunks=_until_empty(pieces, running))
        await running
        return Response(status, headers, body)

    return serve


async def _until_empty(pieces: asyncio.Queue[bytes], running: asyncio.Task[None]) -> AsyncGenerator[bytes]:
    """What an app sends as it sends it."""
    try:
        while piece := await pieces.get():
            yield piece
    finally:
        running.cancel()
        await asyncio.wait({running})
