"""A vault's server without one: the driver that is missing, a DSN that is none, and what is shown of it."""

from __future__ import annotations

import pickle
import sys
import traceback

import pytest

from papaver.stores.faults import StoreFailed, StoreUnusable
from papaver.stores.postgres import PostgresVault, VaultKey
from papaver.stores.postgres.server import Server

pytestmark = pytest.mark.anyio


def vault(dsn: str) -> PostgresVault:
    return PostgresVault(dsn, key=VaultKey(bytes(32)), timeout=5)


async def test_a_missing_driver_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """When the vault is opened: importing papaver needs no driver."""
    monkeypatch.setitem(sys.modules, "asyncpg", None)
    with pytest.raises(StoreUnusable, match="extra `postgres`"):
        await vault("postgresql://localhost/x").open()


@pytest.mark.parametrize(
    "dsn",
    [
        "mysql://me:canary%2F1@localhost/x",
        "postgresql://me:canary/1@localhost/x",
        "postgresql://localhost:1/x?password=canary&sslmode=never",
        "postgresql://me:canary@[::1/x",
    ],
)
async def test_a_dsn_that_is_none_is_not_repeated(dsn: str) -> None:
    """Its password is in it: the message shows the form alone."""
    pytest.importorskip("asyncpg", reason="needs asyncpg")
    with pytest.raises(StoreUnusable, match="has the form postgresql://") as caught:
        await vault(dsn).open()
    assert "canary" not in "".join(traceback.format_exception(caught.value))


async def test_a_server_that_is_not_open_says_so() -> None:
    """As for every vault; neither shown nor pickled is where it is."""
    server = Server("postgresql://me:canary@localhost/x", "papaver_vault", connections=1, timeout=1)

    async def never(_: object) -> None:
        raise AssertionError

    with pytest.raises(StoreFailed, check=lambda fault: "not open" in fault.detail):
        await server.run(never)
    await server.close()
    assert (repr(server), server.is_open) == ("<Server with the schema papaver_vault>", False)
    with pytest.raises(TypeError):
        pickle.dumps(server)


@pytest.mark.parametrize(("connections", "timeout"), [(0, 1), (1, 0)])
def test_a_vault_has_a_connection_and_time(connections: int, timeout: float) -> None:
    """Nothing waits for ever."""
    with pytest.raises(ValueError):
        PostgresVault("postgresql://x", key=VaultKey(bytes(32)), connections=connections, timeout=timeout)
