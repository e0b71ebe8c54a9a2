"""A Company: what it offers, its handler, and the one entrance for requests."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, TypeVar

from papaver.company.company_agent.agent import CompanyAgent
from papaver.company.documents import Documents
from papaver.company.health import FOREIGN, alive_response, health_response
from papaver.company.hooks import Hooks
from papaver.company.incoming import Incoming
from papaver.company.offer import CONVERSATIONS, DEFAULT_PROTOCOLS, Mcp, Offer, OpenApi
from papaver.company.people import People
from papaver.company.scopes import Scope
from papaver.company.sessions import Sessions
from papaver.company.settings import CompanyLimits
from papaver.company.sign_in import SignIn
from papaver.company.staff import Staff
from papaver.company.staff_console.configuration import Authenticate, ConsoleConfiguration, check_before_run
from papaver.company.texts import Texts
from papaver.company.turn import Handler, Runs, check_answers_async, handler_of
from papaver.company.wired import Wired
from papaver.ports.company import ClientStore, CompanyStore
from papaver.ports.pages import Pages
from papaver.ports.personal_agent import Poster
from papaver.ports.staff_pages import StaffPages
from papaver.ports.system import Clock, Fetcher, Ids
from papaver.ports.telemetry import Telemetry
from papaver.protocol.company import company_identifier
from papaver.protocol.dialect import Dialect, Version
from papaver.protocol.errors import ConfigurationError, PoppyError
from papaver.protocol.negotiation import Retirement, read_version
from papaver.protocol.session import VerifiedSession
from papaver.protocol.signed_in import OAuthCaller, SignedInSession
from papaver.protocol.terms import CompanyId
from papaver.values.rules import rule
from papaver.web.messages import Response, Stream

__all__ = ["Company"]

H = TypeVar("H", bound=Handler | Runs)


class Company:
    """One Company: its identifier is its issuer, or `https://{domain}` without one (3.2).

        company = Company(domain="example.com", name="Example", base_url="https://example.com/poppy", store=…)

        @company.conversation
        async def answer(turn: Turn) -> str: ...

    Add it to an app with an adapter's `Poppy(app, company)`, mount `running(company)`, or `papaver company serve` it.
    `accept="allowed"` serves only Personal Agents that the operator allowed. `sign_in` takes an `EmbeddedIssuer` or an
    `ExternalIssuer`; for what goes with it see `Offer`. `refuse_account_change` ends a Session that comes with another
    account (5.4); with `dpop_nonces` each DPoP proof needs a nonce (RFC 9449 9). `staffed`: people take conversations
    over, so a handoff waits for one (`company.staff`). Raises ConfigurationError.
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
        internal_hosts: Sequence[str] = (),
        sign_in: SignIn | None = None,
        domains: Sequence[str] = (),
        scopes: Sequence[Scope] = (),
        access: Literal["session", "signed_in"] = "session",
        conversation_scopes: Sequence[str] = (),
        sign_in_disabled: bool = False,
        authorization_servers: Sequence[str] = (),
        issuer_removed: bool = False,
        own_tokens: Sequence[str] = (),
        refuse_account_change: bool = False,
        dpop_nonces: bool = False,
        staffed: bool = False,
        company_agent: CompanyAgent | None = None,
        accept: Literal["all", "allowed"] = "all",
        limits: CompanyLimits | None = None,
        texts: Texts | None = None,
    ) -> None:
        check_choices(store, accept)
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
            internal_hosts=internal_hosts,
            issuer=None if sign_in is None else sign_in.issuer,
            domains=domains,
            scopes=scopes,
            access=access,
            conversation_scopes=conversation_scopes,
            sign_in_disabled=sign_in_disabled,
            authorization_servers=authorization_servers,
            issuer_removed=issuer_removed,
            own_tokens=own_tokens,
        )
        self.sign_in = sign_in
        self._refuse_account_change, self._dpop_nonces = refuse_account_change, dpop_nonces
        self._prefix = self.offer.path + CONVERSATIONS
        self._health, self._alive = f"{self.offer.path}/healthz", f"{self.offer.path}/livez"
        self.id: CompanyId = company_identifier(self.offer.document(self.offer.versions[0]), self.offer.issuer)
        self.store = store
        self.limits = limits or CompanyLimits()
        self._accept: Literal["all", "allowed"] = accept
        self._texts, self._company_agent = texts or Texts(), company_agent or CompanyAgent()
        self._company_agent.check(scopes)
        self._documents = Documents(self.offer)
        self.hooks = Hooks()
        self._staffed = staffed
        self._handler: Handler | None = None
        self._console: ConsoleConfiguration | None = None
        self._wired: Wired | None = None

    def conversation(self, handler: H) -> H:
        """Decorates the one handler that answers conversations: the Company Agent. Raises ConfigurationError.

        An object with such a `run` will do, as an adapter makes one of an agent of another library.
        """
        if self._handler is not None:
            raise ConfigurationError(
                f"{self.offer.name} has two conversation handlers; decorate one", rule="configuration.one-handler"
            )
        if not self.offer.conversations:
            raise ConfigurationError(
                "conversations=False, but a handler is given; leave out one of them", rule="configuration.one-handler"
            )
        self._handler = handler_of(handler)
        check_answers_async(self._handler)
        return handler

    def staff_console(self, *, authenticate: Authenticate, path: str | None = None) -> None:
        """Serve a page on which people take conversations over, at `path` as the app sees it; `{base_url}/staff`.

        `authenticate` says who comes: a `Person`, `SignInAt(url)`, or None for somebody who may not. Without it there
        is no page. Raises ConfigurationError.
        """
        check_before_run(self._wired)
        self._console = ConsoleConfiguration.of(self.offer, authenticate, path)

    @property
    def has_console(self) -> bool:
        """Whether there is a staff console."""
        return self._console is not None

    def check_complete(self) -> None:
        """What is checked again when it starts to run: it has a handler. Raises ConfigurationError."""
        check_handler(self.offer, self._handler)

    def owns(self, host: str, path: str) -> bool:
        """Whether a request is this Company's: its documents on its own host, its endpoints by path."""
        ours = path in (self._health, self._alive) or self._suffix(path) is not None
        ours = ours or (self._console is not None and self._console.owns(path))
        return ours or self._documents.owns(host, path) or self._issues(host, path)

    def note_unowned(self, host: str, path: str) -> None:
        """Adapters tell of a request that no Company owns; the log has a line for one that was likely meant for us."""
        self._documents.note_foreign(host, path)

    async def handle(self, incoming: Incoming) -> Response | Stream | None:
        """Answer one request; None when it is not this Company's. A Stream is to be closed in the end (`aclose`)."""
        suffix = self._suffix(incoming.path)
        if suffix is not None:
            wired = self._running()
            if incoming.method == "POST":
                wired.check_turns_run()
            return await wired.observed.request(
                incoming.method, suffix, lambda: wired.endpoints.conversation(incoming, suffix)
            )
        if self._documents.owns(incoming.host, incoming.path):
            return self._documents.answer(incoming.method, incoming.host, incoming.path)
        if incoming.path == self._health:
            return await self.health(incoming.method, incoming.host)
        if incoming.path == self._alive:
            return alive_response(incoming.method)
        if self._console is not None and self._console.owns(incoming.path):
            return await self._running().answer_staff(incoming)
        if self._issues(incoming.host, incoming.path):
            return await self._running().answer_as_issuer(incoming)
        return None

    async def verify_api(self, incoming: Incoming) -> VerifiedSession:
        """The verified Session of a request to the app's own API (5.3). Raises a PoppyError; see `api_error`.

        For a request that a proxy asks about before it lets it through (B22), `incoming` has the original one's method,
        path and query: take these from a proxy that you trust, and from nobody else.
        """
        return await self._running().endpoints.verify(incoming)

    async def verify_signed_in(self, incoming: Incoming, *scopes: str) -> SignedInSession:
        """As `verify_api`, for what needs the User's account with these scopes (5.4). Raises a PoppyError."""
        return await self._running().endpoints.verify_signed_in(incoming, *scopes)

    async def verify_without_session(self, incoming: Incoming, *scopes: str) -> OAuthCaller:
        """Who a request to the app's own API is from, at an endpoint that uses no Session (5.3).

        The Session header is not looked at; an access token is, with its scopes and its DPoP proof. Signed out is
        enough where no scope is named. Raises a PoppyError; see `api_error`.
        """
        return await self._running().endpoints.without_session(incoming, *scopes)

    def api_error(self, error: PoppyError, incoming: Incoming) -> Response:
        """A PoppyError as section 7 answers it at an API."""
        return self._running().endpoints.write(error, incoming)

    def retirement(self, session: VerifiedSession) -> tuple[tuple[str, str], ...]:
        """`Deprecation` and `Sunset` for an API's answers to this Session's version; most versions have none (3.4)."""
        version = read_version(session.version)
        return () if version is None else self._running().endpoints.retirement(version)

    @property
    def sessions(self) -> Sessions:
        """`await company.sessions.end(client_id, sid)`; while it runs."""
        return self._running().sessions

    @property
    def clients(self) -> ClientStore:
        """The registry of Personal Agents: `judge` allows and blocks, `clients` lists; while it runs."""
        return self._running().clients

    @property
    def people(self) -> People:
        """What the app's own code does in conversations: joins, posts, hands off, closes; while it runs."""
        return self._running().people

    @property
    def staff(self) -> Staff:
        """Who waits for a person, and seats for those who take over; while it runs."""
        return self._running().staff

    @property
    def held(self) -> int:
        """How many requests are held open now, in this process: polls, streams, and bodies that are still to come."""
        return 0 if self._wired is None else len(self._wired.holding)

    async def health(self, method: str = "GET", host: str | None = None) -> Response:
        """200 when the store writes and turns are run; else 503 and what is wrong.

        `host`: what the peer says it asked for. It has to be one of ours: a proxy that does not pass it on leaves the
        documents unserved however well everything else is (B65). None is not compared.
        """
        if self._wired is None:
            return health_response({"company": "it is not running"})
        ours = host is None or self._documents.served_on(host, self.offer.endpoint_host)
        return await self._wired.health.answer(method, {} if ours else {"host": FOREIGN})

    async def wire(
        self,
        clock: Clock,
        ids: Ids,
        fetcher: Fetcher,
        *,
        pages: Pages | None = None,
        poster: Poster | None = None,
        staff_pages: StaffPages | None = None,
        turns_elsewhere: bool = False,
        telemetry: Telemetry | None = None,
    ) -> None:
        """Hand in the outside world; adapters call it. The store is open by then.

        `pages`: renders what an embedded issuer shows to Users. `poster`: asks an external issuer about tokens.
        `staff_pages`: renders the staff console.
        `turns_elsewhere`: another process runs the turns. `telemetry`: what spans and metrics are told to.
        """
        self.check_complete()
        check_not_running(self.offer, self._wired)
        self._wired = Wired(
            self.id,
            self.offer,
            self._dialects(),
            self.limits,
            self._texts,
            self._company_agent,
            self._handler,
            self._accept,
            self.store,
            await self.store.tables(self.id),
            clock,
            ids,
            fetcher,
            turns_elsewhere,
            self.sign_in,
            pages,
            poster,
            self._refuse_account_change,
            self._dpop_nonces,
            self.hooks,
            self._staffed,
            self._console,
            staff_pages,
            telemetry,
        )

    def unwire(self) -> None:
        self._wired = None

    def start_turns(self) -> asyncio.Task[None]:
        """Run turns, and sweep what is over, until `stop`; the task ends then."""
        return self._running().start_turns()

    def start_sweeping(self) -> asyncio.Task[None]:
        """Only sweep, where another process runs the turns of this store; until the task is cancelled."""
        return self._running().start_sweeping()

    def stop(self) -> None:
        """End open polls and streams and lease no more turns; requests are still answered. Safe to call twice."""
        if self._wired is not None:
            self._wired.stop()

    def _issues(self, host: str, path: str) -> bool:
        """Whether a request is the running issuer's: metadata, an endpoint, a page."""
        issuer = None if self._wired is None else self._wired.issuer
        return issuer is not None and issuer.owns(host, path)

    def _suffix(self, path: str) -> str | None:
        """What follows the conversation endpoint in a path as the app sees it; None when it is not below it."""
        prefix = self._prefix
        if not path.startswith(prefix) or not self.offer.conversations:
            return None
        suffix = path[len(prefix) :]
        return suffix if not suffix or suffix[0] == "/" else None

    def _dialects(self) -> Mapping[Version, Dialect]:
        """The served ones, with this Company's limit on the Session header."""
        limit = self.limits.header_bytes
        return {
            version: replace(dialect, session=replace(dialect.session, max_bytes=limit))
            for version, dialect in self.offer.dialects.items()
        }

    def _running(self) -> Wired:
        if self._wired is None:
            raise ConfigurationError(
                f"{self.offer.name} is not running: use Poppy(app, company) in an app whose lifespan runs, "
                "or `async with running(company)`",
                rule="configuration.running",
            )
        return self._wired


@rule("configuration.choices")
def check_choices(store: object, accept: object) -> None:
    """Without a store no Session can be verified, and a mistyped policy would accept everybody (C2)."""
    if not callable(getattr(store, "tables", None)):
        raise ConfigurationError(
            f"store is {store!r}, expected a store such as SqliteStore('poppy.db')", rule="configuration.choices"
        )
    if accept not in ("all", "allowed"):
        raise ConfigurationError(f"accept is {accept!r}, expected 'all' or 'allowed'", rule="configuration.choices")


@rule("configuration.one-handler")
def check_handler(offer: Offer, handler: Handler | None) -> None:
    """Who offers conversations can answer them."""
    if offer.conversations and handler is None:
        raise ConfigurationError(
            f"{offer.name} offers conversations and has no handler; decorate one with @company.conversation, "
            "or say conversations=False",
            rule="configuration.one-handler",
        )


@rule("configuration.runs-once")
def check_not_running(offer: Offer, wired: object) -> None:
    """One Company runs once in a process: two runners of it would share nothing but its name."""
    if wired is not None:
        raise ConfigurationError(
            f"{offer.name} is running already; make one Company for each app", rule="configuration.runs-once"
        )
