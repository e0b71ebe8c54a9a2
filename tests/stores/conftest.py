"""What tests of stores share: a schema in PostgreSQL for each test."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator

import pytest

from tests.stores.postgres import query


@pytest.fixture
async def schema() -> AsyncIterator[str]:
    """A name of this test's own, so that runs beside each other never meet; what it names is gone afterwards."""
    name = f"papaver_test_{secrets.token_hex(8)}"
    yield name
    await query(f"DROP SCHEMA IF EXISTS {name} CASCADE")
