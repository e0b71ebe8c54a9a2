"""The guard under every hop of a client: https, judged addresses, true names, credentials only where they may go."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Final

import httpcore2
import httpx2

import papaver
from papaver.adapters.exchange_log import note_request, note_response
from papaver.adapters.httpx2.body import BodyReader, BoundedBody, check_size
from papaver.adapters.httpx2.network import Network, NetworkSettings, refused
from papaver.protocol.errors import NotADestination
from papaver.values.rules import rule
from papaver.web import sse
from papaver.web.urls import UrlError, check_https

__all__ = [
    "ACCEPT_ENCODING",
    "MAX_BYTES",
    "USER_AGENT",
    "GuardedTransport",
    "MayReceive",
    "is_event_stream",
    "open_client",
]

MayReceive = Callable[[str, str], None]
"""(method, URL) → None when the Session header and an access token may go there; raises NotADestination."""

USER_AGENT: Final = f"papaver/{papaver.__version__}"
ACCEPT_ENCODING: Final = "gzip"

MAX_BYTES: Final = 10 * 1024 * 1024
"""The longest response, after decompression, that a client reads unless told otherwise. Only an event stream, that is
a 200 of this media type which was asked for, has no end."""

LIMIT: Final = "papaver.max_bytes"
"""The request extension that replaces the transport's own limit."""

CREDENTIALS: Final = ("poppy-session", "authorization")

_LIMITS: Final = httpx2.Limits(max_connections=100, max_keepalive_connections=20, keepalive_expiry=5.0)
# A read waits for a held poll (25 s at most, limits.md) and for the way back.
_TIMEOUT: Final = httpx2.Timeout(connect=5.0, read=40.0, write=10.0, pool=10.0)


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """An httpx2 transport whose every request, redirects of the client included, passes the same checks.

    `network`      where addresses are judged
    `may_receive`  asked before a request that carries credentials; without it, none may
    `max_bytes`    of a response after decompression, None for no limit; a request's extension LIMIT replaces it

    Raises FetchFailed for what may not be connected to, NotADestination for credentials that may not go there, both
    before anything is sent; FetchFailed while reading a body that is too large or cannot be decoded.
    """

    def __init__(
        self,
        network: Network,
        *,
        may_receive: MayReceive | None = None,
        max_bytes: int | None = MAX_BYTES,
        limits: httpx2.Limits = _LIMITS,
    ) -> None:
        super().__init__(verify=network.trust, trust_env=False, limits=limits)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=network.trust,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=network,
        )
        self._may_receive = may_receive
        self._max_bytes = max_bytes

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Check the request, send it, and hand its response on with a body that is decoded and bounded."""
        url = str(request.url)
        try:
            check_https(url)
        except UrlError as error:
            raise refused(url, "web.https-only", error.description) from None
        check_names_agree(request)
        if any(name in request.headers for name in CREDENTIALS):
            check_credentials_expected(self._may_receive is not None, url)
            if self._may_receive is not None:
                self._may_receive(request.method, url)
        line = f"{request.method} {url}"
        note_request(line, request.headers.items())
        response = await super().handle_async_request(request)
        note_response(line, response.status_code, response.headers.items())
        try:
            return _bounded(response, url, self._limit(request, response))
        except BaseException:
            await response.aclose()
            raise

    def _limit(self, request: httpx2.Request, response: httpx2.Response) -> int | None:
        """What the caller set for this request; else none for an event stream, and the transport's for all the rest."""
        if LIMIT in request.extensions:
            limit: int | None = request.extensions[LIMIT]
            return limit
        return None if _is_event_stream(request, response) else self._max_bytes


def open_client(
    network: Network | NetworkSettings,
    *,
    may_receive: MayReceive | None = None,
    auth: httpx2.Auth | None = None,
    timeout: httpx2.Timeout = _TIMEOUT,
    max_bytes: int | None = MAX_BYTES,
) -> httpx2.AsyncClient:
    """An httpx2 client on a guarded transport: no redirects, no cookies kept, nothing read from the environment.

    Its caller closes it. `may_receive` and `max_bytes` are the transport's.
    """
    return httpx2.AsyncClient(
        transport=GuardedTransport(Network.of(network), may_receive=may_receive, max_bytes=max_bytes),
        auth=auth,
        timeout=timeout,
        follow_redirects=False,
        trust_env=False,
        cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
        headers={"User-Agent": USER_AGENT, "Accept-Encoding": ACCEPT_ENCODING},
    )


def _is_event_stream(request: httpx2.Request, response: httpx2.Response) -> bool:
    """Whether the answer is a stream of events that was asked for. To accept one says nothing of what comes: a client
    of MCP accepts both kinds of answer each time."""
    return sse.MEDIA_TYPE in request.headers.get("accept", "") and is_event_stream(response)


def is_event_stream(response: httpx2.Response) -> bool:
    """Whether it is a stream of events."""
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    return response.status_code == 200 and kind == sse.MEDIA_TYPE


def _bounded(response: httpx2.Response, url: str, limit: int | None) -> httpx2.Response:
    """The response as if it had never been compressed, with a stream that ends at the limit."""
    length = response.headers.get("content-length", "")
    if limit is not None and length.isdecimal():
        check_size(int(length), limit, url)
    reader = BodyReader(response.headers.get("content-encoding", ""), limit, url)
    kept = [
        (name, value)
        for name, value in response.headers.raw
        if reader.plain or name.lower() not in (b"content-encoding", b"content-length")
    ]
    assert isinstance(response.stream, AsyncIterable)
    return httpx2.Response(
        response.status_code, headers=kept, stream=BoundedBody(response.stream, reader), extensions=response.extensions
    )


@rule("fetch.names-agree")
def check_names_agree(request: httpx2.Request) -> None:
    """Host and SNI are the URL's own, so no request reaches one host in the name of another. Raises FetchFailed."""
    hosts = request.headers.get_list("host")
    if hosts != [request.url.netloc.decode("ascii")] or request.extensions.get("sni_hostname") is not None:
        raise refused(str(request.url), "fetch.names-agree", f"Host {hosts!r:.200}, or an SNI of its own")


@rule("fetch.no-credentials")
def check_credentials_expected(expected: bool, url: str) -> None:
    """A client that was not told where credentials may go sends none (section 3). Raises NotADestination."""
    if not expected:
        raise NotADestination(rule="fetch.no-credentials", detail=url)
