"""What an actor may remember by."""

from __future__ import annotations

import pytest

from papaver.company.company_agent import PERSONAL_AGENT, Actor, Memory

OF_A_PERSON = Actor("acc_a", ("customer",))
OF_AN_AGENT = Actor("acc_a", ("customer", PERSONAL_AGENT))


def names(actor: Actor) -> list[str]:
    return [f"account:{actor.id}"]


@pytest.mark.requirement("ca-29")
def test_memory_and_skills_are_nothing_for_a_personal_agent() -> None:
    """Though it has the id of the account: a person's are theirs, and nobody has any where none are kept."""
    memory = Memory(names, names)
    assert (memory.memory_scopes(OF_A_PERSON), memory.skill_scopes(OF_A_PERSON)) == (("account:acc_a",),) * 2
    assert (memory.memory_scopes(OF_AN_AGENT), memory.skill_scopes(OF_AN_AGENT)) == ((), ())
    assert (Memory().memory_scopes(OF_A_PERSON), Memory().skill_scopes(OF_A_PERSON)) == ((), ())


@pytest.mark.requirement("ca-29")
def test_the_company_may_say_that_they_are_shared() -> None:
    """In so many words."""
    memory = Memory(names, names, personal_agents=True)
    assert (memory.memory_scopes(OF_AN_AGENT), memory.skill_scopes(OF_AN_AGENT)) == (("account:acc_a",),) * 2
