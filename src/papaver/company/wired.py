"""A Company's parts while it runs: what `wire` puts together once the outside world is handed in."""

from __future__ import annotations

import asyncio
import hmac
import logging
from collections.abc import Mapping
from typing import Final, Literal

from papaver.company.clients import Clients
from papaver.company.company_agent.agent import CompanyAgent
from papaver.company.conversations import Conversations
from papaver.company.counters import Counters
from papaver.company.desk import Desk
from papaver.company.endpoints import Endpoints
from papaver.company.health import Health
from papaver.company.holding import Holding
from papaver.company.hooks import Hooks
from papaver.company.incoming import Incoming
from papaver.company.observed import Observed
from papaver.company.offer import Offer
from papaver.company.outbox import Outbox
from papaver.company.people import People
from papaver.company.proofs import Proofs
from papaver.company.refusals import Refusals
from papaver.company.retention import Retention
from papaver.company.runner import Runner
from papaver.company.services import Services
from papaver.company.sessions import Sessions
from papaver.company.settings import CompanyLimits
from papaver.company.sign_in import IssuerParts, RunningIssuer, SignIn
from papaver.company.staff import Staff
from papaver.company.staff_console.configuration import ConsoleConfiguration
from papaver.company.staff_console.running import ConsoleParts, RunningConsole
from papaver.company.texts import Texts, Wording
from papaver.company.tokens import Tokens
from papaver.company.turn import Handler
from papaver.company.turns import Turns
from papaver.oauth.dpop import Nonces
from papaver.ports.company import CompanyStore, CompanyTables
from papaver.ports.pages import Pages
from papaver.ports.personal_agent import Poster
from papaver.ports.staff_pages import StaffPages
from papaver.ports.system import Clock, Fetcher, Ids
from papaver.ports.telemetry import Telemetry
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.dialect import Dialect, Version
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import CompanyId
from papaver.values.errors import PapaverError
from papaver.web.messages import Response

__all__ = ["Wired", "check_turns_run"]

log = logging.getLogger("papaver.company")

SWEEP_EVERY: Final = 60.0


def check_turns_run(run: bool) -> None:
    """A POST that nobody would ever answer is a mistake of the set-up, not of the caller (C40)."""
    if not run:
        raise ConfigurationError(
            "no turn runner runs, so this message would not be answered: enter `running(company)`, or say "
            "`running(company, turns=False)` where another process of the same store runs them",
            rule="configuration.turn-runner",
        )


class Wired:
    """Everything of one Company that needs a store, a clock, randomness and the network."""

    def __init__(
        self,
        company_id: CompanyId,
        offer: Offer,
        dialects: Mapping[Version, Dialect],
        limits: CompanyLimits,
        texts: Texts,
        agent: CompanyAgent,
        handler: Handler | None,
        accept: Literal["all", "allowed"],
        store: CompanyStore,
        tables: CompanyTables,
        clock: Clock,
        ids: Ids,
        fetcher: Fetcher,
        turns_elsewhere: bool,
        sign_in: SignIn | None,
        pages: Pages | None,
        poster: Poster | None,
        refuse_account_change: bool,
        dpop_nonces: bool,
        hooks: Hooks,
        staffed: bool,
        console: ConsoleConfiguration | None,
        staff_pages: StaffPages | None,
        telemetry: Telemetry | None,
    ) -> None:
        events = EventIds(tables.secret)
        wording = Wording(texts, agent.texts_for)
        self._counters = Counters(tables.counts)
        registry = Clients(tables.clients, fetcher, clock, limits, accept, self._counters)
        self.clients = tables.clients
        self.issuer: RunningIssuer | None = None
        if sign_in is not None:
            self.issuer = sign_in.run(IssuerParts(offer, tables, registry, clock, ids, fetcher, limits, pages, poster))
        nonces = Nonces(hmac.digest(tables.secret, b"papaver dpop nonces", "sha256")) if dpop_nonces else None
        bound = sign_in is not None and sign_in.dpop
        tokens = Tokens(
            None if self.issuer is None else self.issuer.verifier,
            Services(offer.own_tokens),
            frozenset(offer.resources),
            registry,
            tables,
            clock,
            limits,
            Proofs(tables.grants, clock, limits.dpop_window, nonces) if bound else None,
            refuse_account_change=refuse_account_change,
        )
        self.sessions = Sessions(company_id, tables.sessions, registry, tokens, clock, ids, limits)
        self.holding = Holding(limits)
        self.endpoints = Endpoints(
            offer,
            self.sessions,
            Conversations(offer, tables.log, self.sessions, events, clock, ids, limits, self.holding, tables.deltas),
            Refusals(company_id, dialects[offer.versions[0]]),
            dialects,
            limits,
            self.holding,
        )
        offered = frozenset(scope.name for scope in offer.scopes)
        self.people = People(tables.log, events, clock, ids, wording, offered)
        self.staff = Staff(tables.log, self.people, self.holding)
        self._console: RunningConsole | None = None
        if console is not None:
            secret = tables.secret
            parts = ConsoleParts(
                offer, self.staff, self.people, tables.log, self.holding, clock, ids, secret, staff_pages
            )
            self._console = RunningConsole(console, parts)
        desk = Desk(tables.log, hooks, ids, limits, wording, staffed=staffed)
        self._turns = Turns(
            tables.log,
            handler,
            events,
            clock,
            ids,
            limits,
            wording,
            tables.deltas,
            desk,
            telemetry,
            agent=agent,
            company=company_id,
            sessions=self.sessions,
        )
        self._retention = Retention(tables.log, events, clock, limits)
        self._runner = Runner(tables.log, self._turns, clock, ids, limits, store.holder)
        self._outbox = Outbox(tables.log, hooks, clock, limits, store.holder, telemetry)
        self.health = Health(store, self._runner, self._turns_run, clock)
        self.observed = Observed(telemetry, clock)
        if telemetry is not None:
            telemetry.gauge("papaver.held", lambda: len(self.holding))
            telemetry.gauge("papaver.turns.running", lambda: len(self._runner))
        self._clock, self._elsewhere = clock, turns_elsewhere
        self._running: asyncio.Task[None] | None = None

    async def answer_as_issuer(self, incoming: Incoming) -> Response:
        """Answer a request that the issuer owns."""
        assert self.issuer is not None
        return await self.issuer.answer(incoming)

    async def answer_staff(self, incoming: Incoming) -> Response:
        """Answer a request that the staff console owns."""
        assert self._console is not None
        return await self._console.answer(incoming)

    def check_turns_run(self) -> None:
        """Raises ConfigurationError when a message could not be answered. After `stop` the next start answers it."""
        check_turns_run(self.holding.stopped or self._turns_run())

    def start_turns(self) -> asyncio.Task[None]:
        """Run turns and sweep what is over, until `stop`; the task ends then."""
        if self._running is not None and not self._running.done():
            raise ConfigurationError("its turns are run already", rule="configuration.turn-runner")
        self._running = asyncio.create_task(self._run())
        return self._running

    def start_sweeping(self) -> asyncio.Task[None]:
        """Only sweep what is over, where another process runs the turns; until the task is cancelled."""
        return asyncio.create_task(self._sweep())

    def stop(self) -> None:
        self.holding.stop()
        self._runner.stop()
        self._outbox.stop()

    def _turns_run(self) -> bool:
        return self._elsewhere or (self._running is not None and not self._running.done())

    async def _run(self) -> None:
        sweeping, telling = asyncio.create_task(self._sweep()), asyncio.create_task(self._outbox.run())
        try:
            await self._runner.run()
        finally:
            sweeping.cancel()
            self._outbox.stop()
            await asyncio.wait({sweeping, telling})

    async def _sweep(self) -> None:
        counting = asyncio.create_task(self._counters.run(self._clock))
        try:
            await self._sweep_on()
        finally:
            counting.cancel()
            await asyncio.wait({counting})

    async def _sweep_on(self) -> None:
        while True:
            await self._clock.sleep(SWEEP_EVERY)
            try:
                await self.sessions.sweep()
                if not self._elsewhere:
                    await self._retention.sweep()
                if self.issuer is not None:
                    # In each process: each remembers in its own memory which one-time ids were used.
                    await self.issuer.sweep()
            except PapaverError as error:
                log.error("what is over cannot be swept", exc_info=error)
