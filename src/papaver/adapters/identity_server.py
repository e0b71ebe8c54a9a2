"""Serves a Personal Agent's published documents over TLS, with the standard library alone."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from papaver.adapters.callback_pages import Page
from papaver.protocol.errors import ConfigurationError
from papaver.web.urls import read_url

__all__ = ["IdentityServer", "Taken"]

Taken = Callable[[str], Page]
"""What is done with the URL of a callback → the page for the User."""

SECONDS: Final = 10.0
"""How long a client may take for its handshake and its request."""


class IdentityServer:
    """Answers GET and HEAD for these documents (URL → body) and 404 for all else, on threads of its own.

    `tls` is (certificate file, key file); without it the server speaks plain HTTP, for a proxy in front that ends TLS.
    `callbacks` are redirect URIs, each with what takes the whole URL that a User came back to, and says which page
    they see; it is called on a thread of the server. Such a URL holds a code, so nothing here logs it.

    Raises ConfigurationError when it cannot listen or the files cannot be used. `address` is where it listens.
    """

    def __init__(
        self,
        documents: Mapping[str, bytes],
        host: str,
        port: int,
        tls: tuple[Path, Path] | None = None,
        callbacks: Mapping[str, Taken] | None = None,
    ) -> None:
        bodies = {_target(url): body for url, body in documents.items()}
        back = {_target(url): (url, taken) for url, taken in (callbacks or {}).items()}
        context = None if tls is None else _context(*tls)
        try:
            self._server = _Server((host, port), _handler(bodies, back), context)
        except OSError as error:
            raise ConfigurationError(
                f"cannot listen on {host}:{port}: {error.strerror}", rule="identity.listens", detail=str(error)
            ) from error
        self.address: tuple[str, int] = (str(self._server.server_address[0]), int(self._server.server_address[1]))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler], context: ssl.SSLContext | None
    ) -> None:
        self._context = context
        super().__init__(address, handler)

    def finish_request(self, request: Any, client_address: Any) -> None:
        """On the request's own thread, so that a slow handshake holds up nobody else."""
        request.settimeout(SECONDS)
        if self._context is not None:
            try:
                request = self._context.wrap_socket(request, server_side=True)
            except OSError:
                return
        try:
            super().finish_request(request, client_address)
        except OSError:
            pass
        finally:
            if isinstance(request, ssl.SSLSocket):
                request.close()


def _handler(bodies: Mapping[str, bytes], callbacks: Mapping[str, tuple[str, Taken]]) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version, sys_version = "papaver", ""

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            if query and path in callbacks and self.command == "GET":
                url, taken = callbacks[path]
                self._show(taken(f"{url}?{query}"))
                return
            body = bodies.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Cache-Control", "no-store" if body is None else "public, max-age=300")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body or b"")

        do_HEAD = do_GET

        def _show(self, page: Page) -> None:
            body = page.document.encode()
            self.send_response(page.status)
            for name, value in page.headers:
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None:
            """Nothing: what is published is no secret, and who asks is the Company's business."""

    return Handler


def _context(certificate: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(certificate, key)
    except OSError as error:
        raise ConfigurationError(
            f"{certificate} and {key} are no certificate with its key",
            rule="identity.certificate",
            detail=str(error),
        ) from error
    return context


def _target(url: str) -> str:
    parts = read_url(url)
    return parts.path if parts.query is None else f"{parts.path}?{parts.query}"
