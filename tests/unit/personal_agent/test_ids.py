"""User IDs and Agent IDs: drawn once, stored, and telling nothing about anybody (5.1)."""

from __future__ import annotations

import re

import pytest

from papaver.personal_agent.ids import agent_id, message_id, session_id, user_id
from papaver.protocol.terms import CompanyId
from papaver.testing.clock import SeededIds
from tests.house.agent_world import World

SHOP, BANK = CompanyId("https://shop.example"), CompanyId("https://bank.example")


@pytest.mark.requirement("5.1-01", "5.1-02", "5.1-03")
def test_one_user_id_for_each_user_and_company() -> None:
    """It stays the same for a User at a Company, and is another everywhere else."""
    world = World()
    pairs = [("dana", SHOP), ("dana", BANK), ("sam", SHOP)]
    first = [world.run(user_id(world.ids, user, company)) for user, company in pairs]
    again = [world.run(user_id(world.ids, user, company)) for user, company in pairs]
    assert first == again
    assert len(set(first)) == 3


@pytest.mark.requirement("5.1-08", "5.1-10", "5.1-09")
def test_one_agent_id_for_each_agent_and_company() -> None:
    """It is random, stored, and different for each Company."""
    world = World()
    named = [("dana", "travel", SHOP), ("dana", "travel", BANK), ("dana", "shopping", SHOP), ("sam", "travel", SHOP)]
    first = [world.run(agent_id(world.ids, *one)) for one in named]
    assert first == [world.run(agent_id(world.ids, *one)) for one in named]
    assert len(set(first)) == 4
    assert not any("travel" in one or "dana" in one for one in first)


@pytest.mark.requirement("5.1-04")
def test_a_user_id_is_derived_from_nothing() -> None:
    """Another draw of randomness gives another ID for the same User at the same Company."""
    drawn: set[str] = set()
    for seed in ("a", "b"):
        world = World()
        drawn.add(world.run(user_id(SeededIds(seed), "dana@example.com", SHOP)))
    assert len(drawn) == 2
    for one in drawn:
        assert re.fullmatch(r"usr_[A-Za-z0-9_-]{22}", one)


def test_the_first_stored_id_counts() -> None:
    """Whoever comes second takes what is there, whatever they drew."""
    world = World()
    first = world.run(user_id(SeededIds("a"), "dana", SHOP))
    assert world.run(user_id(SeededIds("b"), "dana", SHOP)) == first


@pytest.mark.requirement("5.2-10", "8.3-04")
def test_session_and_message_ids_are_random() -> None:
    """128 bits each, in the alphabet of 8.2, and never twice."""
    ids = SeededIds()
    drawn = [*(session_id(ids) for _ in range(50)), *(message_id(ids) for _ in range(50))]
    assert len(set(drawn)) == 100
    assert all(re.fullmatch(r"(msg_)?[A-Za-z0-9_-]{22}", one) for one in drawn)
