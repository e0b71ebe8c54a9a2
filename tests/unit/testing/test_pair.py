"""The pair: its sample runs as it stands, its clock passes by sleeping, its parties live and die as processes do."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Awaitable, Callable

import pytest

from papaver.company.app import Company
from papaver.company.turn import Turn
from papaver.stores.memory import MemoryStore
from papaver.testing import pair as module
from papaver.testing.clock import ManualClock
from papaver.testing.pair import AgentClock, echoing, pair

pytestmark = pytest.mark.anyio


async def test_the_sample_of_the_docstring_runs() -> None:
    """The lines that a user copies."""
    sample = (module.__doc__ or "").split("\n\n", 1)[1].rsplit("\n\n", 1)[0]
    names: dict[str, Callable[[Company], Awaitable[None]]] = {}
    exec(compile(textwrap.dedent(sample), "sample", "exec"), names)
    base_url = "https://api.example.com/poppy"
    company = Company(domain="example.com", name="Example", base_url=base_url, store=MemoryStore())

    @company.conversation
    async def answer(turn: Turn) -> str:
        return "Yes, in three days."

    await names["test_my_company"](company)


async def test_who_sleeps_with_others_wakes_with_them() -> None:
    """Time moves on to the end of each sleep, and not by their sum."""
    world = ManualClock(100)
    clock = AgentClock(world)
    clock.ahead = 5
    await asyncio.gather(clock.sleep(3), clock.sleep(10), clock.sleep(10))
    assert (world.now(), clock.now(), clock.monotonic()) == (110, 115, 110)
    assert clock.slept == [3, 10, 10]
    await clock.sleep(1)
    assert world.now() == 111


async def test_two_pairs_are_the_same_in_every_run() -> None:
    """Ids are seeded, so that a failure can be looked at again."""
    seen: list[object] = []
    for _ in range(2):
        async with pair() as both:
            session = (await both.agent.discover("example.com")).session("dana")
            conversation = await session.ask("Hi")
            seen.append((session.sid, session.user_id, conversation.id))
    assert seen[0] == seen[1]


async def test_a_restarted_agent_has_its_vault_and_nothing_else() -> None:
    """The old one's Sessions are over; the vault, the keys and the wire stay."""
    async with pair() as both:
        before = both.agent
        session = (await before.discover("example.com")).session("dana")
        await session.ask("Hi")
        again = await both.restart()
        assert both.agent is again is not before
        assert session.live.ended
        assert [one.domain for one in await again.companies()] == ["example.com"]


async def test_another_agent_has_documents_of_its_own() -> None:
    """It is a client that the Company can know, with keys that the first one does not have."""
    async with pair() as both:
        other = await both.another("https://other.example/agent.json")
        await (await other.discover("example.com")).session("dana").ask("Hi")
        assert [one.by for one in both.wire.exchanges][:3] == ["https://other.example/agent.json"] * 3
        assert {one.request.url.split("/")[2] for one in both.wire.sent("example.com")} == {"other.example"}


async def test_without_turns_nobody_answers() -> None:
    """What was accepted stays accepted, and the Company stays at work."""
    async with pair(echoing(), turns=False) as both:
        conversation = await (await both.agent.discover("example.com")).session("dana").ask("Hi")
        assert conversation.status.value == "working"
        assert both.company is both.companies[0]
