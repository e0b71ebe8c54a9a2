"""A Company: what it offers, its handler, and the one entrance for requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Literal, TypeVar

from papaver.company.clients import Clients
from papaver.company.conversations import Conversations
from papaver.company.documents import Documents
from papaver.company.endpoints import Endpoints, suffix_of
from papaver.company.holding import Holding
from papaver.company.incoming import Incoming
from papaver.company.offer import DEFAULT_PROTOCOLS, Mcp, Offer, OpenApi
from papaver.company.sessions import Sessions
from papaver.company.settings import CompanyLimits
from papaver.company.texts import Texts
from papaver.company.turn import Handler
from papaver.company.turns import Turns
from papaver.ports.company import ClientStore, CompanyStore
from papaver.ports.system import Clock, Fetcher, Ids
from papaver.protocol.company import company_identifier
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.dialect import Place
from papaver.protocol.errors import ConfigurationError, PoppyError
from papaver.protocol.negotiation import Retirement
from papaver.protocol.session import VerifiedSession
from papaver.protocol.terms import CompanyId
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Response

__all__ = ["Company"]

H = TypeVar("H", bound=Handler)
SWEEP_EVERY = 60.0
TURN_STUCK = 60.0


class Company:
    """One Company without an issuer: its identifier is `https://{domain}` (3.2).

        company = Company(domain="example.com", name="Example", base_url="https://example.com/poppy", store=…)

        @company.conversation
        async def answer(turn: Turn) -> str: ...

    Add it to an app with an adapter's `Poppy(app, company)`, mount `running(company)`, or `papaver company serve` it.
    `accept="allowed"` serves only Personal Agents that the operator allowed. Raises ConfigurationError.
    """

    def __init__(
        self,
        *,
        domain: str,
        name: str,
        base_url: str,
        store: CompanyStore,
        logo_uri: str | None = None,
        apis: Sequence[OpenApi | Mcp] = (),
        website: bool = False,
        conversations: bool = True,
        protocols: Sequence[str] = DEFAULT_PROTOCOLS,
        retirements: Mapping[str, Retirement] | None = None,
        local_path: str | None = None,
        accept: Literal["all", "allowed"] = "all",
        limits: CompanyLimits | None = None,
        texts: Texts | None = None,
    ) -> None:
        self.offer = Offer(
            domain=domain,
            name=name,
            base_url=base_url,
            logo_uri=logo_uri,
            apis=apis,
            website=website,
            conversations=conversations,
            protocols=protocols,
            retirements=retirements or {},
            local_path=local_path,
        )
        self.id: CompanyId = company_identifier(self.offer.document(self.offer.versions[0]), None)
        self.store = store
        self.limits = limits or CompanyLimits()
        self._accept: Literal["all", "allowed"] = accept
        self._texts = texts or Texts()
        self._documents = Documents(self.offer)
        self._handler: Handler | None = None
        self._wired: _Wired | None = None

    def conversation(self, handler: H) -> H:
        """Decorates the one handler that answers conversations: the Company Agent."""
        if self._handler is not None:
            raise ConfigurationError(
                f"{self.offer.name} has two conversation handlers; decorate one", rule="configuration.one-handler"
            )
        if not self.offer.conversations:
            raise ConfigurationError(
                "conversations=False, but a handler is given; leave out one of them", rule="configuration.one-handler"
            )
        self._handler = handler
        return handler

    def owns(self, host: str, path: str) -> bool:
        """Whether a request is this Company's: its documents on its own host, its endpoints by path."""
        return self._documents.owns(host, path) or path == self._health or self._suffix(path) is not None

    async def handle(self, incoming: Incoming) -> Response | None:
        """Answer one request; None when it is not this Company's."""
        if self._documents.owns(incoming.host, incoming.path):
            return self._documents.answer(incoming.method, incoming.path)
        if incoming.path == self._health:
            return await self.health()
        suffix = self._suffix(incoming.path)
        if suffix is None:
            return None
        wired = self._running()
        if incoming.method == "POST":
            wired.check_turns()
        return await wired.endpoints.conversation(incoming, suffix)

    async def verify_api(self, incoming: Incoming) -> VerifiedSession:
        """The verified Session of a request to the app's own API (5.3). Raises a PoppyError; see `api_error`."""
        return await self._running().endpoints.verify(incoming)

    def api_error(self, error: PoppyError, incoming: Incoming | None = None) -> Response:
        """A PoppyError as section 7 answers it at an API."""
        return self._running().endpoints.refuse(error, None, Place.API, incoming)

    @property
    def sessions(self) -> Sessions:
        """`await company.sessions.end(client_id, sid)`; while it runs."""
        return self._running().sessions

    @property
    def clients(self) -> ClientStore:
        """The registry of Personal Agents: `judge` allows and blocks, `clients` lists; while it runs."""
        return self._running().clients

    async def health(self) -> Response:
        """200 when the store writes and turns are run; else 503 and what is wrong."""
        checks: dict[str, str] = {}
        try:
            wired = self._running()
            await self.store.probe()
            checks["store"] = "ok"
            waited = await wired.turns.due_for()
            checks["turns"] = "ok" if waited < TURN_STUCK else f"one has been due for {waited:.0f} s"
        except PapaverError as error:
            checks["store" if "store" not in checks else "turns"] = error.description
        good = all(value == "ok" for value in checks.values())
        headers = Headers([("content-type", "application/json"), ("cache-control", "no-store")])
        return Response(200 if good else 503, headers, strict_json.dumps({"healthy": good, **checks}))

    async def wire(self, clock: Clock, ids: Ids, fetcher: Fetcher, *, turns_elsewhere: bool = False) -> None:
        """Hand in the outside world; adapters call it. The store is open by then.

        `turns_elsewhere`: another process runs the turns of this store.
        """
        if self.offer.conversations and self._handler is None:
            raise ConfigurationError(
                f"{self.offer.name} offers conversations and has no handler; decorate one with @company.conversation, "
                "or say conversations=False",
                rule="configuration.one-handler",
            )
        tables = await self.store.tables(self.id)
        clients = Clients(tables.clients, fetcher, clock, self.limits, self._accept)
        sessions = Sessions(self.id, tables.sessions, clients, clock, ids, self.limits)
        events = EventIds(tables.secret)
        holding = Holding()
        conversations = Conversations(tables.log, sessions, events, clock, ids, self.limits, holding)
        turns = Turns(tables.log, self._handler, events, clock, ids, self.limits, self._texts, self.store.holder)
        endpoints = Endpoints(self.offer, sessions, conversations, self.limits)
        self._wired = _Wired(endpoints, sessions, tables.clients, turns, holding, clock, turns_elsewhere)

    def unwire(self) -> None:
        self._wired = None

    def stop(self) -> None:
        """End open polls and lease no more turns; requests are still answered. Safe to call twice."""
        if self._wired is not None:
            self._wired.holding.stop()
            self._wired.turns.stop()

    async def run_turns(self) -> None:
        """Run turns and sweep what is over, until `stop`."""
        wired = self._running()
        sweeping = asyncio.create_task(wired.sweep())
        try:
            await wired.turns.run()
        finally:
            sweeping.cancel()

    @property
    def _health(self) -> str:
        return f"{self.offer.path}/healthz"

    def _suffix(self, path: str) -> str | None:
        return suffix_of(self.offer, path) if self.offer.conversations else None

    def _running(self) -> _Wired:
        if self._wired is None:
            raise ConfigurationError(
                f"{self.offer.name} is not running: use Poppy(app, company) in an app whose lifespan runs, "
                "or `async with running(company)`",
                rule="configuration.running",
            )
        return self._wired


class _Wired:
    """A Company's parts while it runs."""

    def __init__(
        self,
        endpoints: Endpoints,
        sessions: Sessions,
        clients: ClientStore,
        turns: Turns,
        holding: Holding,
        clock: Clock,
        turns_elsewhere: bool,
    ) -> None:
        self.endpoints, self.sessions, self.clients = endpoints, sessions, clients
        self.turns, self.holding, self._clock, self._elsewhere = turns, holding, clock, turns_elsewhere

    def check_turns(self) -> None:
        """A POST that nobody would ever answer is a mistake of the set-up, not of the caller (C40)."""
        if not (self.turns.alive or self._elsewhere or self.holding.stopped):
            raise ConfigurationError(
                "no turn runner runs, so this message would not be answered: enter `running(company)`, or say "
                "`running(company, turns=False)` where another process of the same store runs them",
                rule="configuration.turn-runner",
            )

    async def sweep(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_EVERY)
            await self.sessions.sweep()
            await self.turns.sweep()
