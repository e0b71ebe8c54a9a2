"""Every store passes the one contract."""

from __future__ import annotations

from pathlib import Path

import pytest

from papaver.stores.memory import MemoryStore
from papaver.stores.postgres import PostgresStore
from papaver.stores.sqlite import SqliteStore
from papaver.testing.stores import SHARED_STORE_CONTRACT, STORE_CONTRACT, StoreCase
from tests.stores.postgres import DSN

pytestmark = pytest.mark.anyio


def _name(case: StoreCase) -> str:
    return getattr(case, "__name__", "case")


@pytest.mark.requirement("ca-101", "ca-103")
@pytest.mark.parametrize("case", STORE_CONTRACT, ids=_name)
async def test_memory(case: StoreCase) -> None:
    """The store of the tests behaves as the real ones do."""
    store = MemoryStore()
    await case(lambda: store)


@pytest.mark.requirement("ca-103")
@pytest.mark.parametrize("case", [*STORE_CONTRACT, *SHARED_STORE_CONTRACT], ids=_name)
async def test_sqlite(case: StoreCase, tmp_path: Path) -> None:
    """The default store of a Company keeps the contract."""
    await case(lambda: SqliteStore(tmp_path / "store.db"))


@pytest.mark.needs("postgres")
@pytest.mark.requirement("ca-99", "ca-103")
@pytest.mark.parametrize("case", [*STORE_CONTRACT, *SHARED_STORE_CONTRACT], ids=_name)
async def test_postgres(case: StoreCase, schema: str) -> None:
    """The store of several replicas keeps the contract, with NOTIFY between them."""
    await case(lambda: PostgresStore(DSN, schema=schema))
