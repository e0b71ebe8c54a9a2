"""A Company in one process with a Personal Agent's documents beside it: no sockets, a clock that stands still."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import fields
from typing import Any, Final

from anyio.lowlevel import checkpoint

from papaver.adapters.running import staff_pages_of
from papaver.company.app import Company
from papaver.company.incoming import Incoming
from papaver.company.settings import CompanyLimits
from papaver.company.turn import Turn
from papaver.ports.company import SessionRow
from papaver.ports.pages import Pages
from papaver.ports.personal_agent import Poster
from papaver.ports.system import FetchFailed, FetchFault, FetchPolicy
from papaver.ports.telemetry import Telemetry
from papaver.protocol.errors import PayloadTooLarge
from papaver.protocol.session import VerifiedSession
from papaver.stores.memory import MemoryStore
from papaver.testing.clock import ManualClock, SeededIds
from papaver.testing.keys import NOW, AgentKeys
from papaver.versions import DIALECTS
from papaver.web.messages import Headers, Response, Stream
from papaver.web.sse import MEDIA_TYPE, Decoder, ServerEvent

__all__ = ["Answer", "CompanyBench", "Documents", "Streamed", "company_bench"]

WITHIN: Final = 60.0
"""Seconds after which a test gives up waiting. Nothing is ever asserted about time."""
VERSION: Final = str(next(iter(DIALECTS)))
LIMITS: Final = frozenset(field.name for field in fields(CompanyLimits))


class Documents:
    """A fetcher that serves what it was given. `failing` maps a URL to what happens instead; `asked` counts fetches."""

    def __init__(self) -> None:
        self.bodies: dict[str, bytes] = {}
        self.headers: dict[str, Headers] = {}
        self.failing: dict[str, FetchFault | int] = {}
        self.asked: list[str] = []

    def publish(self, agent: AgentKeys) -> None:
        self.bodies.update(agent.documents())

    async def fetch(self, url: str, policy: FetchPolicy, headers: Headers = Headers()) -> Response:
        self.asked.append(url)
        fault = self.failing.get(url)
        if isinstance(fault, FetchFault):
            raise FetchFailed(fault, "the test says so", url=url)
        if fault is not None:
            return Response(fault, Headers(), b"", url)
        if url not in self.bodies:
            return Response(404, Headers(), b"", url)
        return Response(200, self.headers.get(url, Headers()), self.bodies[url], url)


class Answer:
    """A response, with its JSON at hand."""

    def __init__(self, response: Response) -> None:
        self.response = response
        self.status = response.status
        self.headers = response.headers

    @property
    def json(self) -> Any:
        return json.loads(self.response.body)

    @property
    def error(self) -> str | None:
        """The code in the body, if any."""
        body: dict[str, Any] = json.loads(self.response.body) if self.response.body else {}
        return body.get("error")

    def __repr__(self) -> str:
        return f"<{self.status} {self.response.body[:300]!r}>"


class Streamed:
    """An open event stream. Nothing is read of it that is not asked for; close it in the end (`async with`)."""

    def __init__(self, stream: Stream) -> None:
        self.status, self.headers = stream.status, stream.headers
        self._chunks, self._decoder = stream.chunks, Decoder()
        self._events: deque[ServerEvent] = deque()

    async def chunk(self) -> bytes:
        """What comes next; empty once the stream has ended."""
        async with asyncio.timeout(WITHIN):
            try:
                return await anext(self._chunks)
            except StopAsyncIteration:
                return b""

    async def event(self) -> ServerEvent | None:
        """The next event, comments left out; None once the stream has ended."""
        while not self._events:
            chunk = await self.chunk()
            if not chunk:
                return None
            self._events.extend(self._decoder.feed(chunk))
        return self._events.popleft()

    async def events(self) -> list[ServerEvent]:
        """All up to the end."""
        found: list[ServerEvent] = []
        while (event := await self.event()) is not None:
            found.append(event)
        return found

    async def __aenter__(self) -> Streamed:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._chunks.aclose()


class CompanyBench:
    """Sends requests to a Company as a Personal Agent would, or would not."""

    def __init__(self, company: Company, agent: AgentKeys, clock: ManualClock, documents: Documents) -> None:
        self.company, self.agent, self.clock, self.documents = company, agent, clock, documents
        self._count = 0

    def message(self, text: str | None = "Hello", **members: object) -> dict[str, object]:
        """A message with an id of its own."""
        self._count += 1
        body: dict[str, object] = {"id": f"msg_{self._count}", "author": {"type": "agent"}}
        if text is not None:
            body["text"] = text
        return {**body, **members}

    async def send(self, method: str, suffix: str, body: object = None, **options: Any) -> Answer:
        """One request to the conversation endpoint, with the options of `handled`."""
        response = await self.handled(method, suffix, body, **options)
        assert isinstance(response, Response), response
        return Answer(response)

    async def handled(
        self,
        method: str,
        suffix: str,
        body: object = None,
        *,
        query: str = "",
        headers: Mapping[str, str | None] | None = None,
        more_headers: tuple[tuple[str, str], ...] = (),
        raw: bytes | None = None,
        agent: AgentKeys | None = None,
        host: str | None = None,
        gone: asyncio.Event | None = None,
        peer: str = "192.0.2.7",
        unread: bool = False,
        token: str | None = None,
        scheme: str = "Bearer",
        **claims: Any,
    ) -> Response | Stream | None:
        """One request to the conversation endpoint. `headers` with None leaves one out; `claims` go into the JWT.

        `token`: signed in, with this access token. `unread`: asking for the body is a failure.
        """
        offer = self.company.offer
        url = offer.endpoint + suffix
        signer = agent or self.agent
        sent: dict[str, str | None] = {
            "poppy-version": VERSION,
            "content-type": "application/json" if method == "POST" else None,
        }
        if token is not None:
            sent["authorization"] = f"{scheme} {token}"
        if headers is None or "poppy-session" not in headers:
            said: dict[str, Any] = {"now": self.clock.now(), "access_token": token, **claims}
            sent["poppy-session"] = signer.header(method, url, self.company.id, **said)
        sent.update(headers or {})
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        left = gone or asyncio.Event()

        async def read(limit: int) -> bytes:
            assert not unread, "the body was asked for"
            if len(content) > limit:
                raise PayloadTooLarge(rule="limits.body")
            return content

        async def leave() -> None:
            await left.wait()

        return await self.company.handle(
            Incoming(
                method,
                offer.path + "/conversations" + suffix,
                query,
                offer.endpoint_host if host is None else host,
                Headers([*_present(sent), *more_headers]),
                peer,
                read,
                leave,
            )
        )

    async def start(self, text: str = "Hello", **options: Any) -> Answer:
        return await self.send("POST", "", {"message": self.message(text)}, **options)

    async def say(self, conversation: str, text: str = "And?", **options: Any) -> Answer:
        return await self.send("POST", f"/{conversation}/messages", {"message": self.message(text)}, **options)

    async def read(self, conversation: str, query: str = "", **options: Any) -> Answer:
        return await self.send("GET", f"/{conversation}/events", query=query, **options)

    async def stream(
        self, conversation: str, query: str = "", *, last: str | None = None, accept: str = MEDIA_TYPE, **options: Any
    ) -> Streamed:
        """A read that asks for a stream and gets one. `last` is sent as Last-Event-ID."""
        headers = {"accept": accept, "last-event-id": last, **options.pop("headers", {})}
        response = await self.handled("GET", f"/{conversation}/events", query=query, headers=headers, **options)
        assert isinstance(response, Stream), response
        return Streamed(response)

    async def idle(self, conversation: str) -> Answer:
        """Read all events once the Company has nothing left to do."""
        page = await self.read(conversation)
        while page.json["status"] in ("working", "queued"):
            page = await self.read(conversation, f"cursor={page.json['cursor']}&wait=5")
        return await self.read(conversation)

    async def held(self, count: int) -> None:
        """Return once exactly so many requests are held open."""
        while self.company.held != count:
            await checkpoint()

    async def sleepers(self, count: int) -> None:
        """Return once so many tasks wait for the clock."""
        while self.clock.sleepers < count:
            await checkpoint()

    async def tick(self) -> None:
        """Let every other task go on a step."""
        await checkpoint()

    async def verify(
        self,
        method: str,
        path: str,
        *,
        query: str = "",
        headers: Mapping[str, str | None] | None = None,
        token: str | None = None,
        scheme: str = "Bearer",
        needs: tuple[str, ...] = (),
        **claims: Any,
    ) -> VerifiedSession:
        """The Session of a request to an API of the app, at `path` as the app sees it. Raises the PoppyError.

        With `needs`, of a route that needs these scopes.
        """
        said: dict[str, Any] = {"now": self.clock.now(), "access_token": token, **claims}
        header = self.agent.header(method, self.company.offer.app_url + path, self.company.id, **said)
        sent: dict[str, str | None] = {"poppy-version": VERSION, "poppy-session": header}
        if token is not None:
            sent["authorization"] = f"{scheme} {token}"
        incoming = self.bare(method, path, query, Headers(_present({**sent, **(headers or {})})))
        if needs:
            return await self.company.verify_signed_in(incoming, *needs)
        return await self.company.verify_api(incoming)

    def bare(self, method: str, path: str, query: str = "", headers: Headers = Headers(), host: str = "") -> Incoming:
        """A request without a body, as an adapter hands it in."""

        async def nothing(_: int = 0) -> bytes:
            return b""

        async def leave() -> None:
            return None

        return Incoming(method, path, query, host, headers, "192.0.2.7", nothing, leave)

    async def rows(self) -> list[SessionRow]:
        """The Sessions in the memory store."""
        tables: Any = await self.company.store.tables(self.company.id)
        return list(tables.sessions.rows.values())

    async def fetch(self, path: str, *, method: str = "GET", host: str | None = None) -> Answer | None:
        """A document; None when the Company leaves the request to the app."""
        domain = self.company.offer.domain if host is None else host
        response = await self.company.handle(self.bare(method, path, "", Headers(), domain))
        assert not isinstance(response, Stream)
        return None if response is None else Answer(response)


def _present(sent: Mapping[str, str | None]) -> list[tuple[str, str]]:
    return [(name, value) for name, value in sent.items() if value is not None]


async def echo(turn: Turn) -> str:
    """The handler of a bench that names none."""
    return f"You said: {turn.text}"


@asynccontextmanager
async def company_bench(
    company: Company | None = None,
    *,
    turns: bool = True,
    agent: AgentKeys | None = None,
    handler: Any = None,
    pages: Pages | None = None,
    poster: Poster | None = None,
    telemetry: Telemetry | None = None,
    **options: Any,
) -> AsyncGenerator[CompanyBench]:
    """A Company that echoes or has this `handler`, or the given one, run with a memory store unless it has another.

    `options` go to Company, or, when they are limits, into its limits. `turns=False`: messages stay unanswered.
    """
    if company is None:
        limits = {name: options.pop(name) for name in LIMITS & options.keys()}
        settings: dict[str, Any] = {
            "domain": "example.com",
            "name": "Example",
            "base_url": "https://api.example.com/poppy",
            "store": MemoryStore(),
            "limits": CompanyLimits(**limits),
            **options,
        }
        company = Company(**settings)

        company.conversation(handler or echo)

    agent = agent or AgentKeys()
    documents = Documents()
    documents.publish(agent)
    clock = ManualClock(NOW)
    opening = not company.store.is_open
    if opening:
        await company.store.open()
    await company.wire(
        clock,
        SeededIds(),
        documents,
        pages=pages,
        poster=poster,
        staff_pages=staff_pages_of(company),
        turns_elsewhere=not turns,
        telemetry=telemetry,
    )
    runner = company.start_turns() if turns else None
    try:
        yield CompanyBench(company, agent, clock, documents)
    finally:
        company.stop()
        if runner is not None:
            await asyncio.wait({runner})
        company.unwire()
        if opening:
            await company.store.close()
