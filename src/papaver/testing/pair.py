"""Both parties in one process: a Personal Agent in front of a Company, with no socket and no clock that runs by itself.

    from papaver import Company, MessageAdded
    from papaver.testing.pair import pair

    async def test_my_company(company: Company) -> None:
        async with pair(company) as both:
            shop = await both.agent.discover("example.com")
            conversation = await shop.session(user="dana").ask("Do you ship to Oslo?")
            replies = [event.message.text async for event in conversation.events() if isinstance(event, MessageAdded)]
            assert replies[-1] == "Yes, in three days."
            assert both.wire.exchanges[-1].place.endswith("/events")

The real HTTP clients and guards of both parties run above a wire in memory (`papaver.testing.wire`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from anyio.lowlevel import checkpoint

from papaver.adapters.httpx2.fetcher import GuardedFetcher
from papaver.adapters.httpx2.personal_agent import PersonalAgent
from papaver.adapters.running import running
from papaver.company.app import Company
from papaver.company.turn import Turn
from papaver.jose.keys import PrivateKey, PublicKey
from papaver.personal_agent.settings import AgentLimits
from papaver.ports.personal_agent import Vault
from papaver.stores.memory import MemoryStore
from papaver.stores.memory_vault import MemoryVault
from papaver.testing.clock import ManualClock, SeededIds
from papaver.testing.keys import NOW
from papaver.testing.wire import Wire, asgi_site, documents_site
from papaver.web.urls import host_of

__all__ = ["CALLBACK", "CLIENT_ID", "AgentClock", "HeldKeys", "Pair", "echoing", "pair"]

CLIENT_ID: Final = "https://agent.example/agent.json"
CALLBACK: Final = "https://agent.example/oauth/callback"
"""Where a User's browser comes back to after a Direct Sign-In."""


class AgentClock:
    """The Personal Agent's clock beside the world's: its sleeping takes no time here, and passes the world's time.

    Who sleeps at once with others wakes with them: the world's time moves on to the end of each sleep, not by its sum.

    `ahead`  seconds that this clock is wrong by      `slept`  how long each sleep was
    """

    def __init__(self, world: ManualClock) -> None:
        self.ahead = 0.0
        self.slept: list[float] = []
        self._world = world

    def now(self) -> float:
        return self._world.now() + self.ahead

    def monotonic(self) -> float:
        return self._world.monotonic()

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        end = self._world.now() + seconds
        await checkpoint()
        if self._world.now() < end:
            self._world.advance(end - self._world.now())


@dataclass(slots=True)
class HeldKeys:
    """Identity keys in memory. `keys` may be changed: the first one signs, all of them are published."""

    keys: list[PrivateKey] = field(default_factory=lambda: [PrivateKey.generate()])

    @property
    def current(self) -> PrivateKey:
        return self.keys[0]

    @property
    def public_keys(self) -> Sequence[PublicKey]:
        return [key.public for key in self.keys]


class Pair:
    """A Personal Agent and its Companies, as `pair` gives them.

    `agent`      discovers and asks      `company`  the first Company, `companies` all of them
    `wire`       what is said between them, and who may interfere
    `clock`      the world's time; `advance` moves it, and so does the agent's sleeping
    `agent_clock`, `keys`, `vault`  the Personal Agent's own
    """

    def __init__(self, companies: Sequence[Company], agent_options: Mapping[str, Any]) -> None:
        self.companies = tuple(companies)
        self.clock = ManualClock(NOW)
        self.agent_clock = AgentClock(self.clock)
        self.wire = Wire(self.clock)
        self.keys = HeldKeys()
        self.vault = MemoryVault()
        self.ids = SeededIds("agent")
        self._options = agent_options
        self._stack = AsyncExitStack()
        self._life = AsyncExitStack()
        self.agent = self._made(CLIENT_ID, self.keys, self.vault, self.ids)
        self.wire.sites[host_of(CLIENT_ID)] = documents_site(lambda: self.agent.documents())

    @property
    def company(self) -> Company:
        return self.companies[0]

    async def restart(self) -> PersonalAgent:
        """The Personal Agent's process ends and another begins: all that it has is its vault and its keys."""
        await self._life.aclose()
        self.agent = self._made(CLIENT_ID, self.keys, self.vault, self.ids)
        return await self._life.enter_async_context(self.agent)

    async def another(self, client_id: str) -> PersonalAgent:
        """A Personal Agent of another operator on the same wire, with keys and a vault of its own."""
        agent = self._made(client_id, HeldKeys(), MemoryVault(), SeededIds(client_id))
        self.wire.sites[host_of(client_id)] = documents_site(agent.documents)
        return await self._stack.enter_async_context(agent)

    async def run(self, company: Company, *, turns: bool = True) -> None:
        """Put one more Company on the wire and run it until the end."""
        domain = company.offer.domain
        endpoint = await self._stack.enter_async_context(
            running(
                company,
                clock=self.clock,
                ids=SeededIds(domain),
                fetcher=GuardedFetcher(self.wire.network(domain)),
                turns=turns,
            )
        )
        for host in company.offer.all_hosts:
            self.wire.sites[host] = asgi_site(endpoint)

    async def __aenter__(self) -> Pair:
        self._stack.push_async_callback(self.wire.close)
        await self._life.enter_async_context(self.agent)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._life.aclose()
        await self._stack.aclose()

    def _made(self, client_id: str, keys: HeldKeys, vault: Vault, ids: SeededIds) -> PersonalAgent:
        by = "agent" if client_id == CLIENT_ID else client_id
        return PersonalAgent(
            client_id,
            keys=keys,
            vault=vault,
            network=self.wire.network(by),
            clock=self.agent_clock,
            ids=ids,
            redirect_uris=[CALLBACK] if client_id == CLIENT_ID else [],
            **self._options,
        )


def echoing(domain: str = "example.com", **options: Any) -> Company:
    """A Company that repeats what it is told, under `https://api.{domain}/poppy` unless `options` say otherwise."""
    usual: dict[str, Any] = {"name": "Example", "base_url": f"https://api.{domain}/poppy", "store": MemoryStore()}
    company = Company(domain=domain, **{**usual, **options})

    @company.conversation
    async def echo(turn: Turn) -> str:
        return f"You said: {turn.text}"

    return company


@asynccontextmanager
async def pair(
    *companies: Company,
    extensions: Mapping[str, Sequence[str]] | None = None,
    limits: AgentLimits | None = None,
    turns: bool = True,
) -> AsyncGenerator[Pair]:
    """A Personal Agent and Companies that it can discover; without any, one at `example.com` that echoes.

    `extensions`, `limits`  of the Personal Agent
    `turns`                 False: accepted messages wait, because nobody runs the turns of these Companies
    """
    options: dict[str, Any] = {"extensions": extensions, "limits": limits}
    async with Pair(companies or (echoing(),), options) as both:
        for company in both.companies:
            await both.run(company, turns=turns)
        yield both
