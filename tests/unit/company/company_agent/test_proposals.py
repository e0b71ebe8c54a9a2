"""What is proposed here and carried out by a task of its own."""

from __future__ import annotations

import asyncio

import pytest
from anyio.lowlevel import checkpoint

from papaver.company.company_agent import Actor, ProposalsHere, ToolError

pytestmark = pytest.mark.anyio

ACTOR = Actor("acc_a")


async def fails() -> object:
    raise ToolError("the carrier refused")


@pytest.mark.requirement("ca-42")
async def test_an_approved_proposal_is_carried_out_once_and_its_end_awaited() -> None:
    """Proposed twice it is one; nothing runs before it is decided; every waiter gets the result."""
    ran: list[int] = []

    async def run() -> object:
        ran.append(1)
        return "sent"

    proposals = ProposalsHere()
    assert proposals.propose("p", run) == proposals.propose("p", fails)
    waiting = asyncio.create_task(proposals.wait("p"))
    await checkpoint()
    assert ran == []
    await proposals.decide("p", True, ACTOR)
    assert (await proposals.wait("p"), await waiting, ran) == ("sent", "sent", [1])


@pytest.mark.requirement("ca-42")
async def test_a_late_decision_is_refused() -> None:
    """So is one about what nobody proposed."""
    proposals = ProposalsHere()
    proposals.propose("p", fails)
    await proposals.decide("p", False, ACTOR)
    for name in ("p", "q"):
        with pytest.raises(ToolError) as refused:
            await proposals.decide(name, True, ACTOR)
        assert refused.value.rule == "proposal.open"
    with pytest.raises(ToolError, match="not approved"):
        await proposals.wait("p")
    with pytest.raises(ToolError, match="no such proposal"):
        await proposals.wait("q")


async def test_a_proposal_that_fails_says_so_and_one_that_is_stopped_too() -> None:
    """A waiter that goes away stops nothing."""

    async def stops() -> object:
        raise asyncio.CancelledError

    started, go = asyncio.Event(), asyncio.Event()

    async def slow() -> object:
        started.set()
        await go.wait()
        return "late"

    proposals = ProposalsHere()
    for name, run in (("fails", fails), ("stops", stops), ("slow", slow)):
        proposals.propose(name, run)
        await proposals.decide(name, True, ACTOR)
    with pytest.raises(ToolError, match="the carrier refused"):
        await proposals.wait("fails")
    with pytest.raises(asyncio.CancelledError):
        await proposals.wait("stops")
    gone = asyncio.create_task(proposals.wait("slow"))
    await started.wait()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    go.set()
    assert await proposals.wait("slow") == "late"
