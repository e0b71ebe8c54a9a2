"""Drives the flow of a signed request inside an httpx2 client, so any library that takes such a client can use one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Final

import httpx2

from papaver.adapters.httpx2.body import BodyReader, BoundedBody
from papaver.adapters.httpx2.session_transport import SIGNED, SignedHop
from papaver.personal_agent.driver import Ports, no_sender, perform
from papaver.personal_agent.flows.effects import Send
from papaver.personal_agent.flows.request import Exchange, signed
from papaver.personal_agent.live import LiveSession
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Request, Response

__all__ = ["SessionAuth", "read_response"]

ERROR_BYTES: Final = 1024 * 1024
"""The longest body of a refusal. It is read whole before its caller sees it, because a recovery may fit it."""


class SessionAuth(httpx2.Auth):
    """Signs every request of a client afresh, those that are sent again included, and mends what can be mended.

    An answer that no recovery fits is the caller's, whatever its status; but SignInNeeded is raised where the User's
    account is needed and the User may be asked. Raises NotADestination before anything is
    sent to a URL that the Company's document does not name, RateLimited, DiscoveryFailed, ConfigurationError, and
    FetchFailed for an error whose body is longer than ERROR_BYTES.
    """

    def __init__(self, live: LiveSession, ports: Ports) -> None:
        self._live = live
        self._ports = ports

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """The requests that one request takes."""
        await request.aread()  # a body that was streamed once could not be sent again
        asked = Request(
            request.method,
            str(request.url),
            Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw),
        )
        flow = signed(self._live, lambda _: asked)
        found: list[object] = []  # empty whenever the flow runs: a row is a secret, and this frame is in tracebacks
        try:
            effect = next(flow)
            while True:
                if isinstance(effect, Send):
                    request.extensions[SIGNED] = SignedHop(effect)
                    response = yield request
                    refused = response.status_code >= 400
                    if refused:
                        _bound(response)
                    effect = flow.send(await read_response(response, body=refused))
                else:
                    try:
                        found.append(await perform(effect, self._ports, no_sender))
                    except PapaverError as error:
                        effect = flow.throw(error)
                    else:
                        effect = flow.send(found.pop())
        except StopIteration as end:
            exchange: Exchange = end.value
            if exchange.needs is not None and not exchange.needs.only_if_asked:
                raise exchange.needs from None
        finally:
            flow.close()


def _bound(response: httpx2.Response) -> None:
    """Whatever transport it came through, its body ends at the limit. The guarded one has decoded it already."""
    assert isinstance(response.stream, httpx2.AsyncByteStream)
    response.stream = BoundedBody(response.stream, BodyReader("", ERROR_BYTES, str(response.url)))


async def read_response(response: httpx2.Response, *, body: bool = True) -> Response:
    """A response as a value. Without `body` its stream is left for the caller."""
    return Response(
        response.status_code,
        Headers((name.decode("latin-1"), value.decode("latin-1")) for name, value in response.headers.raw),
        await response.aread() if body else b"",
        str(response.url),
    )
