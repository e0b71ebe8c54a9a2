"""Actions that are proposed in one place and carried out in another: they are decided, and their end is awaited.

A turn that waits looks at nothing again and again, and what it waits for needs nothing that the turn holds: whoever
carries proposals out does so on time of its own, else both would wait for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from papaver.company.company_agent.actors import Actor
from papaver.company.company_agent.arguments import ToolError
from papaver.values.rules import rule

__all__ = ["Proposals", "ProposalsHere", "Proposed", "check_open"]


@dataclass(frozen=True, slots=True)
class Proposed:
    """What an acting tool returns that has proposed something and done nothing yet."""

    id: str


class Proposals(Protocol):
    """Where an application keeps what is proposed: a table, a queue, a workflow."""

    async def decide(self, proposal: str, approved: bool, by: Actor) -> None:
        """It is approved or not, once: a second decision is refused with a ToolError."""
        ...

    async def wait(self, proposal: str) -> object:
        """The result, once it is carried out. Raises ToolError, in words for the User, when that failed."""
        ...


@dataclass(slots=True)
class _Proposal:
    run: Callable[[], Awaitable[object]]
    ended: asyncio.Future[object]
    running: asyncio.Task[object] | None = None
    decided: bool = False


@rule("proposal.open")
def check_open(proposal: str, decided: bool | None) -> None:
    """What is unknown, or was decided already, is not decided (again). Raises ToolError."""
    if decided is None:
        raise ToolError("there is no such proposal", rule="proposal.open", detail=proposal)
    if decided:
        raise ToolError("that was decided already", rule="proposal.open", detail=proposal)


class ProposalsHere:
    """Proposals of one process, carried out by tasks of their own. They do not outlive it."""

    def __init__(self) -> None:
        self._proposals: dict[str, _Proposal] = {}

    def propose(self, proposal: str, run: Callable[[], Awaitable[object]]) -> Proposed:
        """Remember what is to run once it is approved. One that is there already stays as it is."""
        if proposal not in self._proposals:
            self._proposals[proposal] = _Proposal(run, asyncio.get_running_loop().create_future())
        return Proposed(proposal)

    async def decide(self, proposal: str, approved: bool, by: Actor) -> None:
        found = self._proposals.get(proposal)
        check_open(proposal, None if found is None else found.decided)
        assert found is not None
        found.decided = True
        if approved:
            found.running = asyncio.create_task(_carried_out(found))
            found.running.add_done_callback(partial(_end, found))
        else:
            found.ended.set_exception(ToolError("that was not approved"))
            found.ended.exception()

    async def wait(self, proposal: str) -> object:
        """As `Proposals.wait`; a waiter that goes away stops nothing."""
        found = self._proposals.get(proposal)
        if found is None:
            raise ToolError("there is no such proposal", rule="proposal.open", detail=proposal)
        return await asyncio.shield(found.ended)


async def _carried_out(proposal: _Proposal) -> object:
    return await proposal.run()


def _end(proposal: _Proposal, task: asyncio.Task[object]) -> None:
    """What became of it, for whoever waits; nobody has to."""
    error = asyncio.CancelledError() if task.cancelled() else task.exception()
    if error is None:
        proposal.ended.set_result(task.result())
    elif isinstance(error, asyncio.CancelledError):
        proposal.ended.cancel()
    else:
        proposal.ended.set_exception(error)
        proposal.ended.exception()
