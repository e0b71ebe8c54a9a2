"""The limits of a Personal Agent: every one is within its bounds, or the construction says which is not."""

from __future__ import annotations

import pytest

from papaver.personal_agent.settings import AgentLimits
from papaver.protocol.errors import ConfigurationError


def test_the_defaults_hold() -> None:
    """A delegation lasts six hours; a held read is short of what proxies allow."""
    limits = AgentLimits()
    assert limits.delegation_lifetime == 6 * 3600
    assert limits.wait == 25


@pytest.mark.parametrize(
    "options",
    [
        {"delegation_lifetime": 86_401},
        {"wait": -1},
        {"attempts": 0},
        {"delegation_lifetime": 1000, "delegation_renewed": 600},
    ],
)
def test_a_limit_that_cannot_work_is_refused(options: dict[str, int]) -> None:
    """5.2 allows a delegation 24 hours, and a key has to be replaced before it ends."""
    with pytest.raises(ConfigurationError) as caught:
        AgentLimits(**options)
    assert caught.value.rule == "configuration.limits"
    assert next(iter(options)) in caught.value.description or "delegation" in caught.value.description
