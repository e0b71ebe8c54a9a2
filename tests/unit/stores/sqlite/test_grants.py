"""Grants in SQLite: what a failed commit leaves, which indices serve, and how a sweep walks through the tokens."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from papaver.ports.company import CompanyTables
from papaver.ports.grants import AccessRow, GrantChange, GrantKeys, GrantStore, RefreshRow, digest
from papaver.protocol.terms import AccountId, ClientId, ConversationId
from papaver.stores.sqlite import SqliteStore, grants, writer
from papaver.stores.sqlite.grant_rows import revocation
from papaver.stores.sqlite.group import Group
from papaver.stores.sqlite.log import SqliteLog
from papaver.testing.stores.grant_samples import (
    ACCOUNT,
    DAY,
    access_row,
    grant_row,
    refresh,
    seen,
    sign_in,
    spent_id,
    writes,
)
from papaver.testing.stores.samples import CLIENT, NOW, code_of, speak, tables

pytestmark = pytest.mark.anyio
A = ConversationId("cnv_a")


def fail(name: str) -> None:
    if name.endswith("before-commit"):
        raise sqlite3.OperationalError("disk I/O error")


async def test_a_failed_commit_leaves_no_token_and_no_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was held back for it is not written by the next change, though that one names no id."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        await sign_in(own.grants, grant_row())
        with monkeypatch.context() as patched:
            patched.setattr("papaver.stores.crash.WATCHED", True)
            patched.setattr(writer, "crash_point", fail)
            assert await code_of(refresh(own.grants, "gra_1.1", "lost", jti="jti_1")) == "temporarily_unavailable"
        assert await seen(own.grants, GrantKeys(refresh=digest("lost"))) == await seen(own.grants, GrantKeys())
        assert await own.grants.access(digest("lost.access")) is None
        assert await refresh(own.grants, "gra_1.1", "gra_1.2", jti="jti_1") == "done"


async def test_an_id_whose_row_fails_is_new_again(tmp_path: Path) -> None:
    """Also when a change without an id comes in between: it does not write what another one held back."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        keys = GrantKeys(spent=(spent_id("jti_1"),))
        with closing(sqlite3.connect(path)) as other:
            other.execute("CREATE TRIGGER bad BEFORE INSERT ON spent BEGIN SELECT RAISE(ABORT, 'bad row'); END")
            assert await code_of(seen(own.grants, keys)) == "temporarily_unavailable"
            other.execute("DROP TRIGGER bad")
            await sign_in(own.grants, grant_row())
            assert other.execute("SELECT count(*) FROM spent").fetchone() == (0,)
        assert (await seen(own.grants, keys)).spent == ()


async def test_a_token_that_no_column_takes_fails_alone(tmp_path: Path) -> None:
    """Its group is undone and done again without it."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        bad = replace(access_row("bad", grant_row()), jkt="\ud800")
        failing = own.grants.apply(GrantKeys(), writes(GrantChange("", access=(bad,))))
        codes = await asyncio.gather(*(code_of(one) for one in (sign_in(own.grants, grant_row()), failing)))
        assert codes == ["", "temporarily_unavailable"]
        assert await own.grants.access(digest("gra_1.access.1")) is not None


def _group(own: CompanyTables) -> Group:
    assert isinstance(own.log, SqliteLog)
    return own.log.group


async def test_a_change_of_grants_leaves_what_the_log_remembers(tmp_path: Path) -> None:
    """Heads stay in memory: a proof that is spent with each message costs the conversation nothing."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        await speak(own.log, A)
        group = _group(own)
        for n in range(3):
            await seen(own.grants, GrantKeys(spent=(spent_id(f"jti_{n}"),)))
            assert group.known(A) is not None
            assert await speak(own.log, A) == n + 2


@pytest.mark.parametrize(
    ("account", "client", "index"),
    [
        (ACCOUNT, None, "grants_of_account (company=? AND account_id=?)"),
        (ACCOUNT, CLIENT, "grants_of_account (company=? AND account_id=? AND client_id=?)"),
        (None, CLIENT, "grants_of_client (company=? AND client_id=?)"),
    ],
)
async def test_a_revocation_reads_the_grants_of_whom_it_names(
    tmp_path: Path, account: AccountId | None, client: ClientId | None, index: str
) -> None:
    """And not the whole table."""
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)):
        with closing(sqlite3.connect(path)) as other:
            statement, values = revocation(1, NOW, account, client, 9)
            plan = other.execute(f"EXPLAIN QUERY PLAN {statement}", values).fetchall()
    assert any(index in step[-1] for step in plan)
    assert sum("SEARCH" in step[-1] for step in plan) == len(plan) - sum("LIST" in step[-1] for step in plan)


async def test_a_sweep_goes_on_where_the_last_one_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Tokens of forgotten grants go little by little; none that stands is lost."""
    monkeypatch.setattr(grants, "LOOKED_AT", 20)
    monkeypatch.setattr(grants, "PAGE", 10)
    monkeypatch.setattr(grants, "AT_ONCE", 4)
    path = tmp_path / "store.db"
    async with tables(lambda: SqliteStore(path)) as own:
        await fill(own.grants)
        swept = [await own.grants.sweep(NOW, forget_before=NOW) for _ in range(5)]
        assert sum(swept) == 1 + 35
        assert all(count <= 21 for count in swept)
        with closing(sqlite3.connect(path)) as other:
            assert other.execute("SELECT count(*) FROM refresh_tokens").fetchone() == (30,)
        assert await own.grants.sweep(NOW, forget_before=NOW) == 0
        assert len(await own.grants.grants(ACCOUNT)) == 1


async def fill(store: GrantStore) -> None:
    """A grant that stands, with 30 refresh tokens, and one that is over, with 35."""
    rows = grant_row("gra_s"), grant_row("gra_o", begun=-9 * DAY, lasts=DAY)
    tokens = tuple(RefreshRow(digest(f"{n}"), rows[n >= 30].id) for n in range(65))
    await store.apply(GrantKeys(), writes(GrantChange("", grants=rows, refresh=tokens)))


async def test_an_access_token_outlives_a_sweep_but_not_its_grant(tmp_path: Path) -> None:
    """A token whose grant is forgotten is no token, whatever is left of it."""
    async with tables(lambda: SqliteStore(tmp_path / "store.db")) as own:
        await sign_in(own.grants, grant_row(begun=-9 * DAY, lasts=DAY))
        orphan = AccessRow("orphan", "gra_none", CLIENT, ACCOUNT, (), NOW + DAY)
        await own.grants.apply(GrantKeys(), writes(GrantChange("", access=(orphan,))))
        assert await own.grants.sweep(NOW, forget_before=NOW) == 2
        assert [await own.grants.access(one) for one in (digest("gra_1.access.1"), "orphan")] == [None, None]
