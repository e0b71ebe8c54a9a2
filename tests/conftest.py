"""What every test has: asyncio as anyio's one backend, deterministic Hypothesis, markers that mean something."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings

# The contracts' own assertions explain themselves; before anything imports them.
pytest.register_assert_rewrite("papaver.testing.stores", "papaver.testing.vaults")

pytest_plugins = ["pytester", "papaver.testing.requirements", "tests.house.services", "tools.coverage_contexts"]

# No example database and no deadline: a run depends on nothing but the code.
# `--hypothesis-profile search` looks further.
settings.register_profile(
    "papaver", database=None, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("search", database=None, deadline=None, max_examples=5_000)
settings.load_profile("papaver")


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """asyncio is the backend we serve and test; the core knows none."""
    return "asyncio"
