"""The limits of a Company as settings."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company import CompanyLimits
from papaver.protocol.errors import ConfigurationError


def test_the_defaults_are_those_of_the_table() -> None:
    """A few that others rely on."""
    limits = CompanyLimits()
    assert (limits.iat_window, limits.header_bytes, limits.body_bytes, limits.text_bytes) == (60, 8192, 262_144, 65_536)
    assert (limits.wait_cap, limits.page, limits.transcript, limits.turn_timeout) == (25, 100, 200, 120)
    assert (limits.requests_per_client, limits.requests_per_user, limits.requests_per_address) == (60_000, 120, 120)


@pytest.mark.parametrize(
    "settings",
    [{"iat_window": 301}, {"iat_window": 0}, {"wait_cap": -1}, {"page": 0}, {"text_bytes": 65_537}, {"lease": 15}],
    ids=lambda settings: "-".join(f"{name}={value}" for name, value in settings.items()),
)
def test_a_limit_that_cannot_work_is_refused(settings: dict[str, Any]) -> None:
    """With its name, when the settings are made."""
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.limits") as caught:
        CompanyLimits(**settings)
    assert next(iter(settings)) in caught.value.description
