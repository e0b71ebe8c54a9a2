"""A Personal Agent with a network: the guarded fetcher for documents, and for each Session a client that signs."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from http.cookiejar import CookieJar, DefaultCookiePolicy
from types import TracebackType

import httpx2

from papaver.adapters.httpx2.auth import SessionAuth, read_response
from papaver.adapters.httpx2.failures import failure_of
from papaver.adapters.httpx2.fetcher import GuardedFetcher
from papaver.adapters.httpx2.network import Network, NetworkSettings
from papaver.adapters.httpx2.poster import GuardedPoster
from papaver.adapters.httpx2.session_transport import SIGNED, SessionTransport, SignedHop
from papaver.adapters.httpx2.transport import ACCEPT_ENCODING, USER_AGENT, GuardedTransport, MayReceive, is_event_stream
from papaver.adapters.system import SystemClock, SystemIds
from papaver.personal_agent.app import PersonalAgent as CorePersonalAgent
from papaver.personal_agent.driver import Ports
from papaver.personal_agent.flows.effects import Send, StreamedResponse
from papaver.personal_agent.identity import Identity, IdentityKeys
from papaver.personal_agent.live import LiveSession
from papaver.personal_agent.session import Session
from papaver.personal_agent.settings import AgentLimits
from papaver.ports.personal_agent import Poster, Vault
from papaver.ports.system import Clock, Fetcher, FetchPolicy, Ids
from papaver.protocol.terms import ClientId
from papaver.web.messages import Headers, Request, Response
from papaver.web.sse import MEDIA_TYPE

__all__ = ["HttpSession", "PersonalAgent", "Trace"]

Trace = Callable[[str, str, int], None]
"""(method, URL, status) of each exchange. No header and no body, so no secret."""


class HttpSession(Session):
    """A Session whose `http` is an httpx2 client that signs each request.

    Hand the client to any library that takes one. It follows no redirect unless told to; a redirect never carries the
    Session header. It has connections of its own, so that no Company sees two Users share one (5.1).
    """

    http: httpx2.AsyncClient

    def __init__(
        self,
        live: LiveSession,
        ports: Ports,
        open_inner: Callable[[MayReceive], httpx2.AsyncBaseTransport],
        trace: Trace | None,
    ) -> None:
        super().__init__(live, ports, self._send)

        async def traced(response: httpx2.Response) -> None:
            if trace is not None:
                trace(response.request.method, str(response.request.url), response.status_code)

        held = live.setup.limits.wait + 15.0
        self.http = httpx2.AsyncClient(
            transport=SessionTransport(open_inner, live.destinations),
            auth=SessionAuth(live, ports),
            timeout=httpx2.Timeout(connect=5.0, read=held, write=10.0, pool=10.0),
            follow_redirects=False,
            trust_env=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            headers={"User-Agent": USER_AGENT, "Accept-Encoding": ACCEPT_ENCODING},
            event_hooks={"response": [traced]},
        )

    async def aclose(self) -> None:
        """Close the client; an anonymous Session leaves nothing behind (5.1)."""
        await super().aclose()
        await self.http.aclose()

    async def _send(self, effect: Send) -> Response:
        """One hop of a flow that signs for itself. Raises FetchFailed."""
        asked = effect.request
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in asked.headers]
        request = self.http.build_request(asked.method, asked.url, headers=headers, content=asked.body or None)
        request.extensions[SIGNED] = SignedHop(effect)
        streams = MEDIA_TYPE in (asked.headers.first("accept") or "")
        try:
            response = await self.http.send(request, auth=httpx2.Auth(), follow_redirects=False, stream=streams)
            if streams and is_event_stream(response):
                head = await read_response(response, body=False)
                return StreamedResponse(head.status, head.headers, url=head.url, chunks=_chunks(response, asked.url))
            if not streams:
                return await read_response(response)
            try:
                return await read_response(response)
            finally:
                await response.aclose()
        except httpx2.HTTPError as error:
            raise failure_of(error, asked.url) from error


async def _chunks(response: httpx2.Response, url: str) -> AsyncGenerator[bytes]:
    """A stream's octets as they come. Raises FetchFailed when it breaks, or is silent for too long."""
    try:
        async for octets in response.aiter_bytes():
            yield octets
    except httpx2.HTTPError as error:
        raise failure_of(error, url) from error
    finally:
        await response.aclose()


class PersonalAgent(CorePersonalAgent[HttpSession]):
    """A Personal Agent over the internet. Use it as a context: it opens and closes the vault and every connection.

    `client_id`      the https URL where its client metadata document is published (4.1)
    `keys`           its identity keys, such as a KeyFile
    `vault`          where User IDs, delegated keys and conversations are kept, such as a SqliteVault
    `network`        exceptions for local work (`--resolve`, `--ca-file`), or a Network
    `jwks_uri`, `name`, `logo_uri`, `redirect_uris`  for the documents to publish
    `extensions`     what is implemented: name → versions, the preferred one first
    `trace`          told of each exchange: method, URL, status
    `clock`, `ids`, `fetcher`, `transport`  in place of the system's, for tests
    """

    def __init__(
        self,
        client_id: str,
        *,
        keys: IdentityKeys,
        vault: Vault,
        network: Network | NetworkSettings | None = None,
        jwks_uri: str | None = None,
        name: str | None = None,
        logo_uri: str | None = None,
        redirect_uris: Sequence[str] = (),
        limits: AgentLimits | None = None,
        extensions: Mapping[str, Sequence[str]] | None = None,
        trace: Trace | None = None,
        clock: Clock | None = None,
        ids: Ids | None = None,
        fetcher: Fetcher | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        used = Network.of(network or NetworkSettings()) if fetcher is None or transport is None else None
        self._fetcher = None if used is None or fetcher is not None else GuardedFetcher(used)
        self._trace = trace
        self._sessions: list[HttpSession] = []
        self._transport = transport
        self._network = used
        port = fetcher or self._fetcher
        assert port is not None
        self._poster = GuardedPoster(used, transport)
        poster = _TracedPoster(self._poster, trace)
        super().__init__(
            Identity(ClientId(client_id), keys, jwks_uri, name, logo_uri, tuple(redirect_uris)),
            Ports(vault, _Traced(port, trace), clock or SystemClock(), ids or SystemIds(), poster),
            self._open,
            limits=limits,
            extensions=extensions,
        )

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in self._sessions:
            await session.aclose()
        if self._fetcher is not None:
            await self._fetcher.aclose()
        if self._transport is None:
            await self._poster.aclose()
        await super().__aexit__(kind, error, trace)

    def _open(self, live: LiveSession, ports: Ports) -> HttpSession:
        session = HttpSession(live, ports, self._inner, self._trace)
        self._sessions = [one for one in self._sessions if not one.live.ended]
        self._sessions.append(session)
        return session

    def _inner(self, may_receive: MayReceive) -> httpx2.AsyncBaseTransport:
        if self._transport is not None:
            return self._transport
        assert self._network is not None
        return GuardedTransport(self._network, may_receive=may_receive)


class _Traced:
    """A Fetcher that tells of each answer."""

    def __init__(self, fetcher: Fetcher, trace: Trace | None) -> None:
        self._fetcher = fetcher
        self._trace = trace

    async def fetch(self, url: str, policy: FetchPolicy, headers: Headers = Headers()) -> Response:
        response = await self._fetcher.fetch(url, policy, headers)
        if self._trace is not None:
            self._trace("GET", response.url or url, response.status)
        return response


class _TracedPoster:
    """A Poster that tells of each answer."""

    def __init__(self, poster: Poster, trace: Trace | None) -> None:
        self._poster = poster
        self._trace = trace

    async def post(self, request: Request, seconds: float, max_bytes: int) -> Response:
        response = await self._poster.post(request, seconds, max_bytes)
        if self._trace is not None:
            self._trace(request.method, request.url, response.status)
        return response
