"""What an actor may remember by: memory and skills resolve to nothing for a Personal Agent unless that was said.

A Personal Agent that acts for an account has the account's id. Whatever finds memory by that id would read what a
person said to the Company themselves, and write into it; so nothing is found before the Company said that it may be.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from papaver.company.company_agent.actors import Actor

__all__ = ["Memory", "ScopesFor"]

ScopesFor = Callable[[Actor], Sequence[str]]
"""The names under which something is kept for an actor, such as `account:acc_1`."""


def _nothing(actor: Actor) -> Sequence[str]:
    return ()


@dataclass(frozen=True, slots=True)
class Memory:
    """Where an agent's memory and skills are, by actor. Tools ask here as well, also those that come with a framework.

    `personal_agents`  True: a Personal Agent shares them with the account that it acts for
    """

    scopes: ScopesFor = _nothing
    skills: ScopesFor = _nothing
    personal_agents: bool = False

    def memory_scopes(self, actor: Actor) -> tuple[str, ...]:
        """Names of the memory that this actor reads and writes."""
        return self._open(actor, self.scopes)

    def skill_scopes(self, actor: Actor) -> tuple[str, ...]:
        """Names of the skills that this actor uses."""
        return self._open(actor, self.skills)

    def _open(self, actor: Actor, scopes: ScopesFor) -> tuple[str, ...]:
        return () if actor.personal_agent and not self.personal_agents else tuple(scopes(actor))
