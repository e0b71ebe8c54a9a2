"""The embedded issuer's limits: their defaults and their bounds."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import pytest

from papaver.company.authserver.settings import IssuerLimits
from papaver.protocol.errors import ConfigurationError

DEFAULTS = {
    "access_token": 3600,
    "refresh_token": 7_776_000,
    "rotation_grace": 60,
    "authorization_request": 600,
    "code": 60,
    "device_code": 600,
    "poll_interval": 5,
    "poll_slower": 5,
    "user_codes_per_address": 10,
    "tries_per_user_code": 10,
    "assertion": 300,
    "skew": 30,
    "dpop_window": 60,
    "dpop_nonce_lifetime": 300,
    "page_session": 900,
}


@pytest.mark.requirement("papaver-64")
def test_the_defaults_are_those_of_the_table() -> None:
    """Each number that the design fixes."""
    limits = IssuerLimits()
    assert {name: getattr(limits, name) for name in DEFAULTS} == DEFAULTS


@pytest.mark.requirement("papaver-64")
@pytest.mark.parametrize("name", [one.name for one in fields(IssuerLimits)])
def test_each_limit_has_a_range(name: str) -> None:
    """Below it is a configuration error, above it too where there is an end."""
    (one,) = (one for one in fields(IssuerLimits) if one.name == name)
    bad: list[Any] = [one.metadata["low"] - 1]
    if one.metadata["high"] != float("inf"):
        bad.append(one.metadata["high"] + 1)
    for value in bad:
        options: dict[str, Any] = {name: value}
        with pytest.raises(ConfigurationError) as error:
            IssuerLimits(**options)
        assert error.value.rule == "configuration.issuer-limits"
