"""The vault in PostgreSQL: the one contract, a shared key, locks that end with their connection, faults that help."""

from __future__ import annotations

import asyncio
import pickle
import traceback
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from papaver.stores.faults import StoreFailed, StoreUnusable, VaultKeyWrong
from papaver.stores.postgres import PostgresVault, VaultKey
from papaver.stores.postgres.migrations import scripts
from papaver.testing.vaults import SHARED_VAULT_CONTRACT, VAULT_CONTRACT, VaultCase, opened_vault
from papaver.values.secret import Secret, SecretBytes
from tests.stores.postgres import DSN, connect, query
from tests.stores.way import way

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres")]
KEY = bytes(range(32))


def _name(case: VaultCase) -> str:
    return getattr(case, "__name__", "case")


def made(schema: str, *, dsn: str = DSN, key: VaultKey | None = None, connections: int = 4) -> PostgresVault:
    return PostgresVault(dsn, key=key or VaultKey(KEY), schema=schema, connections=connections, timeout=5)


@pytest.mark.parametrize("case", [*VAULT_CONTRACT, *SHARED_VAULT_CONTRACT], ids=_name)
async def test_postgres_vault(case: VaultCase, schema: str) -> None:
    """A vault of many Users and processes keeps the same contract as the one in a file."""
    await case(lambda: made(schema))


async def test_one_connection_is_enough(schema: str) -> None:
    """Whoever holds a name and changes a row never waits for itself, however many do."""
    async with opened_vault(lambda: made(schema, connections=1)) as vault:

        async def count(name: str) -> None:
            async with vault.exclusive(name):
                await vault.change("session", name, lambda _: b"1")

        await asyncio.gather(*(count(f"n{n % 7}") for n in range(30)))
        assert len(await vault.rows("session")) == 7


async def test_nothing_of_a_row_can_be_read_in_the_database(schema: str) -> None:
    """Neither kind, key nor value."""
    async with opened_vault(lambda: made(schema)) as vault:
        await vault.change("canary-kind", "canary-key", lambda _: b"canary-value")
        stored = [tuple(row) for row in await query(f"SELECT * FROM {schema}.sealed")]
        stored += [tuple(row) for row in await query(f"SELECT * FROM {schema}.facts")]
        shown = b" ".join(value if isinstance(value, bytes) else str(value).encode() for row in stored for value in row)
        assert (len(stored), b"canary" in shown) == (3, False)


async def test_many_rows_are_read_and_opened(schema: str) -> None:
    """More than are decrypted on the loop's own thread."""
    async with opened_vault(lambda: made(schema)) as vault:
        await asyncio.gather(*(vault.change("outbox", f"{n}", lambda _: b"x") for n in range(300)))
        assert {key for key, _ in await vault.rows("outbox")} == {f"{n}" for n in range(300)}


async def test_rows_cannot_be_exchanged_in_the_database(schema: str) -> None:
    """A value that was moved to another row does not open there."""
    async with opened_vault(lambda: made(schema)) as vault:
        await vault.change("session", "a", lambda _: b"1")
        await vault.change("session", "b", lambda _: b"2")
        await query(f"UPDATE {schema}.sealed SET value = (SELECT value FROM {schema}.sealed WHERE n = 2) WHERE n = 1")
        with pytest.raises(StoreFailed, check=lambda fault: "does not open" in fault.detail):
            await vault.load("session", "a")
        assert await vault.load("session", "b") == b"2"


async def test_replicas_that_start_at_once_make_one_vault(schema: str) -> None:
    """The tables and the key are made by whoever comes first; the others find them."""
    vaults = [made(schema) for _ in range(5)]
    await asyncio.gather(*(vault.open() for vault in vaults))
    await asyncio.gather(*(vault.change("session", f"{n}", lambda _: b"1") for n, vault in enumerate(vaults)))
    assert {len(await vault.rows("session")) for vault in vaults} == {5}
    assert [row[0] for row in await query(f"SELECT number FROM {schema}.migrations")] == list(scripts())
    for vault in vaults:
        await vault.close()


async def test_another_key_opens_nothing(schema: str) -> None:
    """It is said before a row is touched; the right one still opens the vault."""
    async with opened_vault(lambda: made(schema)) as vault:
        await vault.change("session", "a", lambda _: b"1")
    with pytest.raises(VaultKeyWrong, match="every process needs the key"):
        await made(schema, key=VaultKey(bytes(32))).open()
    async with opened_vault(lambda: made(schema)) as vault:
        assert await vault.load("session", "a") == b"1"


async def test_a_key_of_a_file_is_made_once(schema: str, tmp_path: Path) -> None:
    """And never again for a vault that is there: a replica without the file says so."""
    first, second = tmp_path / "one.key", tmp_path / "two.key"
    async with opened_vault(lambda: made(schema, key=VaultKey.from_file(first))) as vault:
        assert vault.guarded_by == str(first)
    with pytest.raises(VaultKeyWrong, match=r"two\.key"):
        await made(schema, key=VaultKey.from_file(second)).open()
    assert not second.exists()
    second.write_bytes(first.read_bytes())
    second.chmod(0o600)
    async with opened_vault(lambda: made(schema, key=VaultKey.from_file(second))) as vault:
        assert await vault.rows("session") == ()


async def test_tables_of_a_later_version_are_left_alone(schema: str) -> None:
    """Two versions side by side: the older one says why it does not start."""
    async with opened_vault(lambda: made(schema)):
        await query(f"INSERT INTO {schema}.migrations (number) VALUES (9999)")
    with pytest.raises(StoreUnusable, match="later version"):
        await made(schema).open()


async def test_a_server_that_restarts_is_used_again(schema: str) -> None:
    """Connections that the server ended are replaced, also the one that holds the locks."""
    async with way() as own, opened_vault(lambda: made(schema, dsn=own.dsn)) as vault:
        for n in range(3):
            async with vault.exclusive("a"):
                await vault.change("session", "a", lambda _, n=n: str(n).encode())
            await own.restart()
            assert await vault.load("session", "a") == str(n).encode()


async def test_a_server_that_is_away_is_said_and_comes_back(schema: str) -> None:
    """`temporarily_unavailable` meanwhile, with the reason in our own log."""
    async with way() as own, opened_vault(lambda: made(schema, dsn=own.dsn)) as vault:
        await vault.change("session", "a", lambda _: b"1")
        await own.close()
        calls = vault.load("session", "a"), vault.change("session", "a", lambda _: b"2"), vault.rows("session")
        for fault in await asyncio.gather(*calls, return_exceptions=True):
            assert isinstance(fault, StoreFailed)
            assert fault.code == "temporarily_unavailable"
        with pytest.raises(StoreFailed):
            async with vault.exclusive("a"):
                pass
        await own.open()
        async with vault.exclusive("a"):
            assert await vault.load("session", "a") == b"1"


async def test_a_change_is_tried_again_only_while_nothing_was_written(schema: str) -> None:
    """A connection that is lost before is replaced; one that is lost later may have committed, and that is said."""
    async with way() as own, opened_vault(lambda: made(schema, dsn=own.dsn, connections=1)) as vault:
        calls: list[bytes | None] = []

        def count(value: bytes | None) -> bytes:
            calls.append(value)
            if value == b"1":
                own.cut()
            return b"%d" % (int(value or b"0") + 1)

        await vault.change("session", "b", lambda _: b"0")
        own.cut()
        assert await vault.change("session", "a", count) == b"1"
        with pytest.raises(StoreFailed):
            await vault.change("session", "a", count)
        assert calls == [None, b"1"]
        assert await vault.load("session", "a") == b"1"


async def test_a_lock_that_a_restart_took_is_taken_again(schema: str) -> None:
    """As soon as its vault asks for any lock; then another vault waits for it once more."""
    async with (
        way() as own,
        opened_vault(lambda: made(schema, dsn=own.dsn)) as one,
        opened_vault(lambda: made(schema)) as two,
    ):
        async with one.exclusive("a"):
            await own.restart()
            async with one.exclusive("b"):
                pass
            waiting = asyncio.create_task(_hold(two))
            done, _ = await asyncio.wait({waiting}, timeout=0.2)
            assert not done
        await waiting


async def _hold(vault: PostgresVault | Any) -> None:
    async with vault.exclusive("a"):
        pass


async def test_whoever_stops_waiting_for_another_vault_holds_nothing(schema: str) -> None:
    """Cancelled between two tries, or in the middle of one."""
    async with opened_vault(lambda: made(schema)) as one, opened_vault(lambda: made(schema)) as two:
        for rounds in range(12):
            async with one.exclusive("a"):
                waiting = asyncio.create_task(_hold(two))
                for _ in range(rounds):
                    await asyncio.sleep(0)
                waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            async with asyncio.timeout(10):
                await _hold(one)


async def test_a_change_waits_for_the_row_alone(schema: str) -> None:
    """A row that somebody locks holds up no other row."""
    async with opened_vault(lambda: made(schema)) as vault:
        await vault.change("session", "a", lambda _: b"1")
        connection = await connect()
        async with connection.transaction():
            await connection.execute(f"SELECT FROM {schema}.sealed FOR UPDATE")
            waiting = asyncio.create_task(vault.change("session", "a", lambda _: b"2"))
            assert await vault.change("session", "b", lambda _: b"3") == b"3"
            assert not waiting.done()
        assert await waiting == b"2"
        await connection.close()


async def test_what_cannot_be_reached_says_what_to_do(schema: str) -> None:
    """With the remedy, and the password nowhere: not in the message, the cause or the repr."""
    parts = urlsplit(DSN)
    where = f"{parts.hostname}:{parts.port or 5432}"
    wrong = {
        f"postgresql://postgres:canary%2Fwarbler@{where}/nowhere_{schema}": "make the database",
        "postgresql://postgres:canary%2Fwarbler@127.0.0.1:1/postgres": "start the server",
        "mysql://postgres:canary%2Fwarbler@127.0.0.1/postgres": "has the form postgresql://",
        "postgresql://postgres:canary/warbler@127.0.0.1/postgres": "has the form postgresql://",
        "postgresql://127.0.0.1:1/?password=canary%2Fwarbler": "start the server",
        "postgresql://127.0.0.1:1/?sslmode=canary": "has the form postgresql://",
    }
    for dsn, remedy in wrong.items():
        vault = made(schema, dsn=dsn)
        with pytest.raises(StoreUnusable, match=remedy) as caught:
            await vault.open()
        told = "".join(traceback.format_exception(caught.value)) + caught.value.detail + repr(vault)
        assert "canary" not in told
        assert "warbler" not in told


async def test_a_role_that_may_not_make_the_schema_says_what_to_do(schema: str) -> None:
    """The statement that an administrator runs is in the message."""
    role = f"{schema}_role"
    await query(f"CREATE ROLE {role} LOGIN PASSWORD 'canary'")
    try:
        parts = urlsplit(DSN)
        host = parts.netloc.rpartition("@")[2]
        dsn = parts._replace(netloc=f"{role}:canary@{host}").geturl()
        with pytest.raises(StoreUnusable, match=f'CREATE SCHEMA "{schema}"'):
            await made(schema, dsn=dsn).open()
        await query(f"CREATE SCHEMA {schema} AUTHORIZATION {role}")
        async with opened_vault(lambda: made(schema, dsn=dsn)) as vault:
            assert await vault.change("session", "a", lambda _: b"1") == b"1"
    finally:
        await query(f"DROP OWNED BY {role}")
        await query(f"DROP ROLE {role}")


async def test_a_fault_of_decide_is_its_own(schema: str) -> None:
    """Also one that looks like the network's; it is not tried again."""
    calls: list[bytes | None] = []

    def refuse(value: bytes | None) -> bytes | None:
        calls.append(value)
        raise ConnectionResetError("not the server's")

    async with opened_vault(lambda: made(schema)) as vault:
        with pytest.raises(ConnectionResetError, match="not the server's"):
            await vault.change("session", "a", refuse)
        assert calls == [None]


async def test_a_vault_is_opened_once(schema: str) -> None:
    """A second `open` is a mistake that harms nothing."""
    async with opened_vault(lambda: made(schema)) as vault:
        with pytest.raises(StoreFailed, check=lambda fault: "open already" in fault.detail):
            await vault.open()
        assert await vault.rows("session") == ()


def test_a_vault_is_never_pickled_or_shown() -> None:
    """Nor is its address, nor its key."""
    vault = made("papaver_vault", dsn="postgresql://me:canary@host/db", key=VaultKey(SecretBytes(KEY)))
    with pytest.raises(TypeError):
        pickle.dumps(vault)
    assert "canary" not in repr(vault)
    assert repr(PostgresVault(Secret("x"), key=VaultKey(KEY))) == (
        "<PostgresVault in the schema papaver_vault, guarded by the caller>"
    )


@pytest.mark.parametrize("schema_name", ["", "Upper", "1st", 'a"b', "a-b", "x" * 64])
def test_a_schema_is_a_plain_name(schema_name: str) -> None:
    """It is written into statements."""
    with pytest.raises(ValueError):
        made(schema_name)
