"""The guarded fetcher: reads a URL that another party gave us, hop by hop, within one deadline."""

from __future__ import annotations

from types import TracebackType
from typing import Final, Self

import anyio
import httpx2

from papaver.adapters.httpx2.failures import failure_of, refused, unreachable, why
from papaver.adapters.httpx2.network import Network, NetworkSettings
from papaver.adapters.httpx2.transport import ACCEPT_ENCODING, LIMIT, USER_AGENT, GuardedTransport
from papaver.ports.system import FetchPolicy
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule
from papaver.web.messages import Headers, Response
from papaver.web.urls import UrlError, origin_of, read_url, resolve

__all__ = ["GuardedFetcher"]

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})

_OURS: Final = frozenset({"accept-encoding", "connection", "content-length", "cookie", "host", "transfer-encoding"})
# What another origin may see of the caller's headers: how it would like its answer, and nothing it may know.
_NONE: Final = Headers()
_HARMLESS: Final = frozenset({"accept"})

# One connection for one document: nothing lingers, so nobody has to close a fetcher.
_LIMITS: Final = httpx2.Limits(max_connections=100, max_keepalive_connections=0)


class GuardedFetcher:
    """The port `Fetcher` over real sockets. `network` says how addresses are found and judged."""

    def __init__(self, network: Network | NetworkSettings | None = None) -> None:
        self._transport = GuardedTransport(Network.of(network or NetworkSettings()), limits=_LIMITS)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Close what is still open."""
        await self._transport.aclose()

    async def fetch(self, url: str, policy: FetchPolicy, headers: Headers = _NONE) -> Response:
        """GET `url` under `policy`. Any status but a redirect is a Response, whose `url` is the last one.

        `headers` stay with the origin of `url`; a redirect to another one takes Accept along and nothing else. Raises
        FetchFailed; ConfigurationError for a header that is the fetcher's own; NotADestination for a credential.
        """
        check_headers_ours(headers)
        try:
            with anyio.fail_after(policy.seconds):
                return await self._follow(url, policy, headers)
        except TimeoutError:
            raise unreachable(url, f"no complete answer within {policy.seconds} s") from None

    async def _follow(self, url: str, policy: FetchPolicy, headers: Headers) -> Response:
        seen = [url]
        while True:
            response = await self._send(url, policy, headers)
            if response.status not in REDIRECTS:
                check_exact_path(url, policy)
                return response
            check_redirect_allowed(url, len(seen), policy)
            target = _target(url, response)
            check_no_loop(target, seen)
            if origin_of(target) != origin_of(url):
                headers = Headers(pair for pair in headers if pair[0] in _HARMLESS)
            url = target
            seen.append(url)

    async def _send(self, url: str, policy: FetchPolicy, headers: Headers) -> Response:
        """One hop. A redirect's body is not read."""
        try:
            answer = await self._transport.handle_async_request(_request(url, policy, headers))
        except httpx2.HTTPError as error:
            raise failure_of(error, url) from error
        try:
            body = b"" if answer.status_code in REDIRECTS else await _read(answer, url)
        finally:
            await answer.aclose()
        fields = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers.raw)
        return Response(answer.status_code, fields, body, url)


async def _read(answer: httpx2.Response, url: str) -> bytes:
    try:
        return b"".join([piece async for piece in answer.aiter_raw()])
    except httpx2.HTTPError as error:
        raise unreachable(url, f"the body broke off: {why(error)}") from error


def _request(url: str, policy: FetchPolicy, headers: Headers) -> httpx2.Request:
    """The request of one hop, with nothing in it that the caller or we did not name."""
    ours = Headers([("User-Agent", USER_AGENT), ("Accept", "application/json, */*;q=0.1")])
    fields = Headers([*ours.with_(*headers), ("accept-encoding", ACCEPT_ENCODING)])
    each = dict.fromkeys(("connect", "read", "write", "pool"), policy.seconds)
    try:
        parts = read_url(url)
        target = url if parts.fragment is None else url[: -len(parts.fragment) - 1]
        return httpx2.Request(
            "GET",
            target,
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields],
            extensions={"timeout": each, LIMIT: policy.max_bytes},
        )
    except (UrlError, httpx2.InvalidURL) as error:
        raise refused(url, "web.https-only", str(error)) from None


def _target(url: str, response: Response) -> str:
    """Where a redirect leads. Raises FetchFailed when it does not say, or says more than one thing."""
    named = response.headers.all("location")
    if len(named) != 1:
        raise refused(url, "fetch.location", f"{response.status} with {len(named)} Location fields")
    try:
        return resolve(url, named[0].strip())
    except UrlError as error:
        raise refused(url, "fetch.location", f"{response.status} to {named[0]!r:.200}: {error}") from None


@rule("fetch.redirects")
def check_redirect_allowed(url: str, hops: int, policy: FetchPolicy) -> None:
    """No more redirects are followed than this kind of document has (section 3, readings 51). Raises FetchFailed."""
    if hops > policy.redirects:
        raise refused(url, "fetch.redirects", f"redirect {hops}, of {policy.redirects} allowed")


@rule("fetch.no-loop")
def check_no_loop(target: str, seen: list[str]) -> None:
    """A redirect leads to a new URL. Raises FetchFailed."""
    if target in seen:
        raise refused(target, "fetch.no-loop", "the redirects come back to where they were")


@rule("fetch.exact-path")
def check_exact_path(url: str, policy: FetchPolicy) -> None:
    """The last URL has precisely the path asked for and no query, an empty one included (section 3).

    Raises FetchFailed.
    """
    parts = read_url(url)
    if policy.exact_path is not None and (parts.path != policy.exact_path or parts.query is not None):
        raise refused(url, "fetch.exact-path", f"expected the path {policy.exact_path} without a query")


@rule("fetch.headers")
def check_headers_ours(headers: Headers) -> None:
    """The caller names no header that says where a request goes, or how its octets are sent.

    Raises ConfigurationError.
    """
    taken = sorted(_OURS.intersection(name for name, _ in headers))
    if taken:
        raise ConfigurationError(f"a fetch cannot carry {', '.join(taken)}", rule="fetch.headers")
