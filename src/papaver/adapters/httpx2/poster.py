"""The guarded way to token, revocation and device endpoints: one request, no redirect, and nothing of it told."""

from __future__ import annotations

from typing import Final

import anyio
import httpx2

from papaver.adapters.httpx2.failures import failure_of, unreachable
from papaver.adapters.httpx2.network import Network, NetworkSettings
from papaver.adapters.httpx2.transport import (
    ACCEPT_ENCODING,
    LIMIT,
    USER_AGENT,
    GuardedTransport,
    MayReceive,
    check_credentials_expected,
)
from papaver.ports.system import FetchFailed
from papaver.web.messages import Headers, Request, Response

__all__ = ["GuardedPoster"]

# One connection for one request: no Company sees two Users share one (5.1).
_LIMITS: Final = httpx2.Limits(max_connections=100, max_keepalive_connections=0)


class GuardedPoster:
    """The port `Poster` over real sockets. `network` says how addresses are found and judged.

    `transport`      in place of the guarded one, for tests
    `authorized_at`  the one URL that requests may carry an Authorization field to; None for none
    """

    def __init__(
        self,
        network: Network | NetworkSettings | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        authorized_at: str | None = None,
    ) -> None:
        self._transport = transport or GuardedTransport(
            Network.of(network or NetworkSettings()),
            may_receive=None if authorized_at is None else _only(authorized_at),
            limits=_LIMITS,
        )

    async def aclose(self) -> None:
        """Close what is still open."""
        await self._transport.aclose()

    async def post(self, request: Request, seconds: float, max_bytes: int) -> Response:
        """Send a form and read what is answered, a redirect included: it is never followed (section 3).

        Raises FetchFailed when there is no answer; neither it nor its cause holds anything that was sent.
        """
        try:
            with anyio.fail_after(seconds):
                return await self._send(request, seconds, max_bytes)
        except TimeoutError:
            failure = unreachable(request.url, f"no complete answer within {seconds} s")
        except httpx2.HTTPError as error:
            failure = failure_of(error, request.url)
        except FetchFailed as error:
            failure = error
        # Outside of the handlers: the errors below, their frames and the frames' local variables know what was sent.
        failure.__context__ = None
        raise failure.with_traceback(None) from None

    async def _send(self, request: Request, seconds: float, max_bytes: int) -> Response:
        answer = await self._transport.handle_async_request(_request(request, seconds, max_bytes))
        try:
            body = b"" if answer.is_redirect else b"".join([piece async for piece in answer.aiter_bytes()])
        finally:
            await answer.aclose()
        fields = Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in answer.headers.raw)
        return Response(answer.status_code, fields, body, request.url)


def _only(url: str) -> MayReceive:
    """Credentials go to this URL alone."""
    there = str(httpx2.URL(url))
    return lambda _, asked: check_credentials_expected(asked == there, asked)


def _request(request: Request, seconds: float, max_bytes: int) -> httpx2.Request:
    """The request, with nothing in it that the caller or we did not name."""
    ours = Headers([("User-Agent", USER_AGENT), ("Accept", "application/json")])
    fields = Headers([*ours.with_(*request.headers), ("accept-encoding", ACCEPT_ENCODING)])
    return httpx2.Request(
        request.method,
        request.url,
        headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields],
        content=request.body,
        extensions={"timeout": dict.fromkeys(("connect", "read", "write", "pool"), seconds), LIMIT: max_bytes},
    )
