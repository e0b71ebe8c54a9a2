"""ASGI ⇄ values: one callable that serves a Company's own paths and hands everything else on."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from papaver.company.app import Company
from papaver.company.begun import Begun
from papaver.company.incoming import Incoming
from papaver.protocol.errors import ConfigurationError, InvalidRequest, PayloadTooLarge
from papaver.versions import DIALECTS
from papaver.web.messages import Headers, Response, Stream

__all__ = [
    "ASGIApp",
    "CompanyEndpoint",
    "Receive",
    "Scope",
    "Send",
    "incoming_of",
    "path_of",
    "seen_of",
    "send_response",
    "send_stream",
    "upstream_headers",
]

log = logging.getLogger("papaver.adapters")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]


SEEN = "papaver.incoming"
"""Where a request's scope keeps what a Company has read of it, for the app's own routes."""


class CompanyEndpoint:
    """A Company as an ASGI app, for any mount. What is not the Company's goes to `otherwise`, or gets 404.

    Without `otherwise` it may be a server's whole app: a websocket is closed, and the lifespan starts when the Company
    is run (`running`), and says so when it is not.
    """

    def __init__(self, company: Company, otherwise: ASGIApp | None = None) -> None:
        self._company, self._otherwise = company, otherwise

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        response = None
        if scope["type"] == "http":
            incoming = incoming_of(scope, receive)
            response = await self._company.handle(incoming)
            if response is None:
                scope[SEEN] = (_seen(scope), incoming)
            if response is None and self._otherwise is None:
                self._company.note_unowned(incoming.host, incoming.path)
        if isinstance(response, Stream):
            await send_stream(response, send)
        elif response is not None:
            await send_response(response, send, head=scope["method"] == "HEAD")
        elif self._otherwise is not None:
            await self._otherwise(scope, receive, send)
        elif scope["type"] == "http":
            await send_response(Response(404), send)
        elif scope["type"] == "websocket":
            await receive()
            await send({"type": "websocket.close"})
        elif scope["type"] == "lifespan":
            await self._live(receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            _ = self._company.sessions  # which only a Company has that is run
        except ConfigurationError as error:
            await send({"type": "lifespan.startup.failed", "message": error.description})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})


def path_of(scope: Scope) -> str:
    """The path as received, still percent-encoded, below a mount's prefix or not: as the app's routes see it."""
    raw: bytes | None = scope.get("raw_path")
    if raw is None:
        path: str = scope["path"]
        return path
    return raw.partition(b"?")[0].decode("latin-1")


def incoming_of(scope: Scope, receive: Receive) -> Incoming:
    """An ASGI http scope as a request whose body is still to be read."""
    headers = Headers([(name.decode("latin-1"), value.decode("latin-1")) for name, value in scope["headers"]])
    client = scope.get("client")
    stream = _Body(receive, headers)
    return Incoming(
        method=scope["method"],
        path=path_of(scope),
        query=scope["query_string"].decode("latin-1"),
        host=headers.first("host") or "",
        headers=headers,
        peer=client[0] if client else "",
        body=stream.read,
        gone=stream.gone,
    )


def seen_of(scope: Scope, receive: Receive) -> Incoming:
    """As `incoming_of`, for a look at the head alone; not read again when nothing between changed it."""
    seen: tuple[tuple[object, ...], Incoming] | None = scope.get(SEEN)
    return seen[1] if seen is not None and seen[0] == _seen(scope) else incoming_of(scope, receive)


def _seen(scope: Scope) -> tuple[object, ...]:
    """What an `Incoming` is made of, so that whatever a middleware changed is read again."""
    return (
        tuple(scope["headers"]),
        scope.get("client"),
        scope["method"],
        scope.get("raw_path") or scope["path"],
        scope["query_string"],
    )


class _Body:
    __slots__ = ("_headers", "_receive")

    def __init__(self, receive: Receive, headers: Headers) -> None:
        self._receive, self._headers = receive, headers

    async def read(self, limit: int) -> bytes:
        """The whole body, refused as soon as it is known to be longer than `limit` bytes (C91)."""
        declared = self._headers.first("content-length")
        if declared is not None and declared.isdecimal() and int(declared) > limit:
            raise PayloadTooLarge(rule="limits.body", detail=f"Content-Length {declared}, limit {limit}")
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise InvalidRequest("the body ended early", rule="request.body-whole")
            chunk: bytes = message.get("body", b"")
            size += len(chunk)
            if size > limit:
                raise PayloadTooLarge(rule="limits.body", detail=f"more than {limit} bytes came")
            chunks.append(chunk)
            if not message.get("more_body", False):
                return b"".join(chunks)

    async def gone(self) -> None:
        """Returns when the caller has left."""
        while (await self._receive())["type"] != "http.disconnect":
            pass


async def send_response(response: Response, send: Send, *, head: bool = False) -> None:
    """`head`: the body is left out, its length is not (RFC 9110 9.3.2)."""
    headers = [*response.headers.octets()]
    if response.status not in (204, 304):
        headers.append((b"content-length", str(len(response.body)).encode("ascii")))
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else response.body})


async def send_stream(stream: Stream, send: Send) -> None:
    """Chunk by chunk, each once the one before has left; closes the stream, however it ends.

    Whoever takes nothing for too long is left without an end of the body, and the server closes the connection.
    """
    try:
        start = {"type": "http.response.start", "status": stream.status, "headers": stream.headers.octets()}
        await _sent(stream, send(start))
        async for chunk in stream.chunks:
            await _sent(stream, send({"type": "http.response.body", "body": chunk, "more_body": True}))
        await _sent(stream, send({"type": "http.response.body", "body": b""}))
    except TimeoutError:
        log.info("a reader of a stream takes nothing; its connection is closed")
    except OSError:
        log.debug("a reader of a stream has left while it was sent something")
    finally:
        await stream.chunks.aclose()


async def _sent(stream: Stream, sending: Awaitable[None]) -> None:
    """Mostly it is over at once, and needs no time limit."""
    begun = Begun(sending)
    if not begun.is_over:
        await stream.taken(begun)


_SESSION_FIELDS = frozenset(dialect.session.header.lower() for dialect in DIALECTS.values())


def upstream_headers(headers: Headers, *, with_session: bool = False) -> Headers:
    """The fields that a gateway passes on: without the Session header, which is meant for this Company alone (B5).

    `with_session` passes it on too. Say so only for an upstream that belongs to the Company: whoever reads the header
    can use it, for as long as its `iat` window lasts.
    """
    return (
        headers if with_session else Headers([(name, value) for name, value in headers if name not in _SESSION_FIELDS])
    )
