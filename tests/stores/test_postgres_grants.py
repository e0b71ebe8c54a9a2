"""Changes of grants in PostgreSQL: rounds that need more than they loaded, lost connections, replicas at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest

from papaver.ports.grants import GrantChange, GrantKeys, GrantLoaded, RefreshRow, TicketRow, digest
from papaver.protocol.conversation.change import Change, Keys, Loaded, ReplayKey
from papaver.stores.faults import StoreFailed
from papaver.stores.postgres import PostgresStore
from papaver.testing.stores.grant_samples import (
    ACCOUNT,
    DAY,
    OTHER_ACCOUNT,
    grant_row,
    refresh,
    seen,
    sign_in,
    spent_id,
    writes,
)
from papaver.testing.stores.samples import CLIENT, NOW, code_of, say, tables
from tests.stores.postgres import DSN, query
from tests.stores.way import way

pytestmark = [pytest.mark.anyio, pytest.mark.needs("postgres")]


def made(schema: str, *, dsn: str = DSN, connections: int = 4) -> PostgresStore:
    return PostgresStore(dsn, schema=schema, connections=connections, timeout=5)


async def test_a_change_that_needs_more_than_was_loaded_is_done_in_the_next_round(schema: str) -> None:
    """A change before it has named another grant, or another account; what it asked for first is not used up."""
    async with tables(lambda: made(schema)) as own:
        for grant in (grant_row(), grant_row("gra_2"), grant_row("gra_3")):
            await sign_in(own.grants, grant)
        await own.grants.disable(OTHER_ACCOUNT, True)
        elsewhere = GrantChange("", refresh=(RefreshRow(digest("moved"), "gra_2"),))
        disabled = GrantChange("", grants=(replace(grant_row("gra_3"), account_id=OTHER_ACCOUNT),))
        spent = (spent_id("jti_1"),)
        _, found, _, other, again = await asyncio.gather(
            own.grants.apply(GrantKeys(), writes(elsewhere)),
            seen(own.grants, GrantKeys(refresh=digest("moved"), spent=spent)),
            own.grants.apply(GrantKeys(refresh=digest("gra_3.1")), writes(disabled)),
            seen(own.grants, GrantKeys(grant="gra_3")),
            seen(own.grants, GrantKeys(spent=spent)),
        )
        assert found == GrantLoaded(grant=grant_row("gra_2"))
        assert (other.grant, other.disabled) == (disabled.grants[0], True)
        assert again.spent == spent


async def test_what_postgresql_does_not_store_fails_alone(schema: str) -> None:
    """A text with U+0000, as a key or in a row, while the changes beside it are written."""
    async with tables(lambda: made(schema)) as own:
        ticket = TicketRow("code", "a\0b", b"", NOW)
        bad = (
            own.grants.apply(GrantKeys((ticket.key,)), writes(GrantChange(""))),
            own.grants.apply(GrantKeys(spent=(spent_id("jti_1"),)), writes(GrantChange("", (ticket,)))),
            own.grants.access("\0"),
        )
        said = await asyncio.gather(*map(code_of, bad), code_of(sign_in(own.grants, grant_row())))
        assert said == ["temporarily_unavailable"] * 3 + [""]
        assert (await seen(own.grants, GrantKeys(grant="gra_1", spent=(spent_id("jti_1"),)))).spent == ()


async def test_a_round_whose_connection_is_lost_is_done_again(schema: str) -> None:
    """Before COMMIT nothing was done; each change is decided anew, and written once."""
    async with way() as own_way, tables(lambda: made(schema, dsn=own_way.dsn)) as own:
        await sign_in(own.grants, grant_row())
        calls: list[int] = []

        def count(loaded: GrantLoaded) -> GrantChange[int]:
            assert loaded.grant is not None
            calls.append(len(loaded.grant.scopes))
            if len(calls) == 1:
                own_way.cut()
            return GrantChange(calls[-1], grants=(replace(loaded.grant, scopes=(*loaded.grant.scopes, "more")),))

        assert await asyncio.gather(*(own.grants.apply(GrantKeys(grant="gra_1"), count) for _ in range(2))) == [2, 3]
        assert calls == [2, 3, 2, 3]


async def test_changes_fail_while_the_server_is_away_and_work_afterwards(schema: str) -> None:
    """All that wait are told."""
    async with way() as own_way, tables(lambda: made(schema, dsn=own_way.dsn)) as own:
        await sign_in(own.grants, grant_row())
        await own_way.close()
        said = await asyncio.gather(*(refresh(own.grants, "gra_1.1", "x") for _ in range(3)), return_exceptions=True)
        assert all(isinstance(one, StoreFailed) for one in said)
        await own_way.open()
        assert await refresh(own.grants, "gra_1.1", "gra_1.2") == "done"


async def test_whoever_stops_waiting_undoes_nothing(schema: str) -> None:
    """The change is made, and so are those beside it."""
    async with tables(lambda: made(schema)) as own:
        tasks = [asyncio.create_task(sign_in(own.grants, grant_row(f"gra_{n}"))) for n in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert tasks[1].cancelled()
        assert len(await own.grants.grants(ACCOUNT)) == 3


async def test_replicas_that_change_sweep_and_revoke_at_once_never_hinder_each_other(schema: str) -> None:
    """Everybody locks in one order: nothing is undone for the sake of something else."""
    async with tables(lambda: made(schema)) as one, tables(lambda: made(schema)) as two:
        for n in range(20):
            await sign_in(one.grants, grant_row(f"gra_{n}"))
        codes = [TicketRow("code", str(n), b"", NOW + n) for n in range(20)]

        def redeem(loaded: GrantLoaded) -> GrantChange[str]:
            return GrantChange("", (), tuple(loaded.tickets))

        work = [
            action
            for n in range(20)
            for own in (one, two)
            for action in (
                refresh(own.grants, f"gra_{n}.1", f"gra_{n}.2", jti=f"jti_{n}"),
                own.grants.apply(GrantKeys(), writes(GrantChange("", tuple(codes[n:] + codes[:n])))),
                own.grants.apply(GrantKeys(tuple(code.key for code in codes)), redeem),
                own.grants.sweep(NOW + n, forget_before=NOW - DAY),
                own.grants.revoke(NOW + n, account_id=ACCOUNT, client_id=CLIENT),
            )
        ]
        said = await asyncio.gather(*work, return_exceptions=True)
        assert [one for one in said if isinstance(one, BaseException)] == []


@pytest.mark.requirement("papaver-127")
async def test_a_jwt_that_comes_to_two_replicas_is_used_once(schema: str) -> None:
    """Its replay key is a row of the transaction that takes the message: of twenty at once one is taken."""
    async with tables(lambda: made(schema)) as one, tables(lambda: made(schema)) as two:
        keys = Keys(replay=ReplayKey(CLIENT, "jti_1", NOW + 60))

        def take(name: str) -> Callable[[Loaded], Change[int]]:
            take = say(name)

            def decide(loaded: Loaded) -> Change[int]:
                return Change(0) if loaded.replayed else take(loaded)

            return decide

        attempts = [own.log.apply(keys, take(f"cnv_{n}_{own is one}")) for n in range(10) for own in (one, two)]
        taken = await asyncio.gather(*attempts)
        assert len([one for one in taken if one]) == 1
        assert len(await query(f"SELECT FROM {schema}.conversations")) == 1
