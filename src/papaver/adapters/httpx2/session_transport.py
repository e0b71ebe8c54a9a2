"""Under every hop of a Session's client: Session header and access token join the request here, for this one hop.

No request that an application, a log or an error can see holds them: they are added to a copy, below the client.
A redirect is another hop, so it never carries it (section 3, 5.2).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, Self

import httpx2

from papaver.adapters.httpx2.transport import MayReceive
from papaver.personal_agent.flows.effects import Send, SessionFields
from papaver.protocol.destinations import Destinations, check_destination
from papaver.protocol.errors import NotADestination
from papaver.values.errors import PapaverError
from papaver.values.rules import rule

__all__ = ["SIGNED", "SessionTransport", "SignedHop"]

SIGNED: Final = "papaver.session"
"""The request extension that holds a SignedHop."""


@dataclass(frozen=True, slots=True)
class SignedHop:
    """What was signed, and for which request."""

    send: Send

    def is_for(self, request: httpx2.Request) -> bool:
        """Whether this is the hop, and not one that a redirect made of it."""
        return (request.method, str(request.url)) == (self.send.request.method, self.send.request.url)


class SessionTransport(httpx2.AsyncBaseTransport):
    """Adds the Session header to signed hops. `open_inner` makes the transport below, told what it may send on.

    `destinations` says which URLs get no request without the header.
    """

    def __init__(
        self,
        open_inner: Callable[[MayReceive], httpx2.AsyncBaseTransport],
        destinations: Callable[[], Destinations],
    ) -> None:
        self._on_the_way: Counter[tuple[str, str]] = Counter()
        self._destinations = destinations
        self._inner = open_inner(self._may_receive)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Judge a signed hop and send it with its header; send any other request as it is.

        Raises NotADestination, before anything is sent.
        """
        hop = request.extensions.get(SIGNED)
        if not isinstance(hop, SignedHop) or not hop.is_for(request):
            check_signed(str(request.url), request.method, self._destinations())
            return await self._inner.handle_async_request(request)
        url = str(request.url)
        check_destination(url, request.method, hop.send.destinations)
        key = (request.method, url)
        self._on_the_way[key] += 1
        try:
            return await self._inner.handle_async_request(_with_fields(request, hop.send.fields))
        except (httpx2.HTTPError, PapaverError) as error:
            _forget_frames(error)
            raise error.with_traceback(None) from error.__cause__
        finally:
            self._on_the_way[key] -= 1
            if not self._on_the_way[key]:
                del self._on_the_way[key]

    async def __aenter__(self) -> Self:
        await self._inner.__aenter__()
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        await self._inner.__aexit__(exc_type, exc_value, traceback)

    async def aclose(self) -> None:
        """Close the transport below."""
        await self._inner.aclose()

    def _may_receive(self, method: str, url: str) -> None:
        check_hop_signed(method, url, frozenset(self._on_the_way))


def _with_fields(request: httpx2.Request, fields: SessionFields) -> httpx2.Request:
    """A copy that carries the Session header and, signed in, token and proof; for below only."""
    headers = httpx2.Headers(request.headers)
    headers.update([*fields.declared, (fields.header, fields.jwt.reveal())])
    if fields.authorization is not None:
        headers["authorization"] = fields.authorization.reveal()
    if fields.proof is not None:
        headers["dpop"] = fields.proof.reveal()
    extensions = {name: value for name, value in request.extensions.items() if name != SIGNED}
    stream = request.stream
    return httpx2.Request(request.method, request.url, headers=headers, stream=stream, extensions=extensions)


def _forget_frames(error: BaseException) -> None:
    """Drop the frames below: a tool that reports local variables would report the header with them."""
    cause = error.__cause__ or error.__context__
    while cause is not None:
        cause.__traceback__ = None
        cause = cause.__cause__ or cause.__context__


@rule("destination.signed")
def check_signed(url: str, method: str, destinations: Destinations) -> None:
    """A destination gets no request without the header, whoever turned the signing off or redirected there (5.2, 5.6).

    Raises NotADestination.
    """
    if destinations.accept(url, method):
        raise NotADestination(
            "this request would reach the Company without its Session header",
            rule="destination.signed",
            detail=f"{method} {url}",
        )


@rule("destination.signed-hop")
def check_hop_signed(method: str, url: str, signed: frozenset[tuple[str, str]]) -> None:
    """Credentials are only on the hop that was signed a moment ago (5.2). Raises NotADestination."""
    if (method, url) not in signed:
        raise NotADestination(rule="destination.signed-hop", detail=f"{method} {url}")
