"""Where a browser on this machine comes back to after a Direct Sign-In: one callback on the loopback interface.

RFC 8252 7.3: an address, not the name `localhost`, and a port of the system's choice. Only the path is ours to know.
"""

from __future__ import annotations

import asyncio
import hmac
from contextlib import suppress
from types import TracebackType
from typing import Final, Literal, Self
from urllib.parse import parse_qs

from papaver.adapters.callback_pages import DONE, NOTHING, OVER, WRONG, Page
from papaver.protocol.errors import ConfigurationError
from papaver.values.secret import Secret

__all__ = ["LoopbackListener"]

MAX_HEAD: Final = 16 * 1024
"""Octets of a request's head. A callback is a few hundred."""
SECONDS: Final = 10.0
"""How long a browser may take to send its request."""
MOST_CONNECTIONS: Final = 16


class LoopbackListener:
    """Listens while it is entered. `redirect_uri` names the port that it was given.

    `path`  of the callback; everything else, such as a favicon, is 404
    `host`  `127.0.0.1` or `::1`
    `port`  0 for a free one

    Raises ConfigurationError when it cannot listen. It logs nothing, since what it receives is a secret.
    """

    def __init__(
        self, path: str = "/callback", *, host: Literal["127.0.0.1", "::1"] = "127.0.0.1", port: int = 0
    ) -> None:
        self._path = path
        self._host = host
        self._port = port
        self._server: asyncio.Server | None = None
        self._state: str | None = None
        self._taken: asyncio.Future[Secret] | None = None
        self._open = 0

    @property
    def redirect_uri(self) -> str:
        """For the authorization request."""
        return f"http://{self._authority}{self._path}"

    async def callback(self, state: str) -> Secret:
        """Wait for the callback that carries this `state`, and return its whole URL, which holds a code. Once.

        One with another `state` is somebody else's, so it is refused and the wait goes on. Nobody is waited for
        before this is called, nor after it has returned or was cancelled.
        """
        self._taken = asyncio.get_running_loop().create_future()
        self._state = state
        try:
            return await self._taken
        finally:
            self._state = None

    async def __aenter__(self) -> Self:
        try:
            self._server = await asyncio.start_server(self._answer, self._host, self._port, limit=MAX_HEAD)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {self._host}:{self._port} for the browser to come back",
                rule="loopback.listens",
                detail=str(error),
            ) from error
        self._port = int(self._server.sockets[0].getsockname()[1])
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def _authority(self) -> str:
        host = f"[{self._host}]" if ":" in self._host else self._host
        return f"{host}:{self._port}"

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of one connection."""
        self._open += 1
        try:
            if self._open > MOST_CONNECTIONS:
                return
            async with asyncio.timeout(SECONDS):
                try:
                    head = await reader.readuntil(b"\r\n\r\n")
                except asyncio.LimitOverrunError:
                    head = b""
                writer.write(_written(self._judged(head)))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    def _judged(self, head: bytes) -> Page:
        """The page for a request; the callback, if it is the one that is waited for, is taken."""
        line, _, fields = head.decode("latin-1").partition("\r\n")
        method, _, rest = line.partition(" ")
        target, _, version = rest.partition(" ")
        hosts = [value.strip() for name, _, value in _fields(fields) if name.lower() == "host"]
        if not version.startswith("HTTP/1.") or hosts != [self._authority] or not target.isascii():
            return WRONG
        path, _, query = target.partition("?")
        if method != "GET" or path != self._path:
            return NOTHING
        if self._state is None or self._taken is None or self._taken.done():
            return OVER
        if not _has_state(query, self._state):
            return WRONG
        self._taken.set_result(Secret(f"http://{self._authority}{target}"))
        return DONE


def _written(page: Page) -> bytes:
    body = page.document.encode()
    fields = (*page.headers, ("Content-Length", str(len(body))), ("Connection", "close"))
    head = [f"HTTP/1.1 {page.status} {page.reason}", *(f"{name}: {value}" for name, value in fields), "", ""]
    return "\r\n".join(head).encode() + body


def _fields(text: str) -> list[tuple[str, str, str]]:
    return [line.partition(":") for line in text.split("\r\n") if line]


def _has_state(query: str, state: str) -> bool:
    """Whether the callback is of this sign-in; compared in constant time."""
    try:
        sent = parse_qs(query, max_num_fields=50).get("state", [])
    except ValueError:
        return False
    return len(sent) == 1 and hmac.compare_digest(sent[0].encode(errors="replace"), state.encode())
