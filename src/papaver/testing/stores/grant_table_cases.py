"""The contract of grants as a table: accounts, lists, revocations, sweeps, two Companies, several stores."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import pairwise

from papaver.ports.grants import (
    AccessRow,
    GrantChange,
    GrantKeys,
    GrantLoaded,
    RefreshRow,
    TicketRow,
    digest,
)
from papaver.protocol.terms import AccountId
from papaver.testing.stores.grant_samples import (
    ACCOUNT,
    DAY,
    HOUR,
    OTHER_ACCOUNT,
    OTHER_CLIENT,
    grant_row,
    refresh,
    seen,
    sign_in,
    spent_id,
    writes,
)
from papaver.testing.stores.samples import CLIENT, COMPANY, NOW, OTHER_COMPANY, StoreMaker, code_of, opened, tables

__all__ = ["GRANT_TABLE_CASES", "SHARED_GRANT_CASES"]


async def a_disabled_account_is_told_with_each_of_its_tokens(make: StoreMaker) -> None:
    async with tables(make) as own:
        await sign_in(own.grants, grant_row())
        await sign_in(own.grants, grant_row("gra_2", account=OTHER_ACCOUNT))
        for disabled in (True, True, False, False, True):
            await own.grants.disable(ACCOUNT, disabled)
            for keys in (GrantKeys(grant="gra_1"), GrantKeys(refresh=digest("gra_1.1")), GrantKeys(account=ACCOUNT)):
                assert (await seen(own.grants, keys)).disabled is disabled
            found = await own.grants.access(digest("gra_1.access.1"))
            assert found is not None
            assert found.disabled is disabled
            other = await own.grants.access(digest("gra_2.access.1"))
            assert other is not None
            assert not other.disabled
        assert not (await seen(own.grants, GrantKeys(grant="gra_1", account=OTHER_ACCOUNT))).disabled
        assert (await seen(own.grants, GrantKeys(grant="gra_2", account=ACCOUNT))).disabled
        assert not (await seen(own.grants, GrantKeys(grant="gra_2"))).disabled
        assert await refresh(own.grants, "gra_1.1", "gra_1.2") == "refused"


async def grants_of_an_account_come_newest_first(make: StoreMaker) -> None:
    """Those that have expired too, and none that was revoked."""
    async with tables(make) as own:
        rows = [
            grant_row("gra_a", begun=1),
            grant_row("gra_b", begun=3, client=OTHER_CLIENT),
            grant_row("gra_c", begun=2, lasts=1),
            grant_row("gra_d", begun=4, revoked=5),
            grant_row("gra_e", begun=5, account=OTHER_ACCOUNT),
        ]
        for row in rows:
            await sign_in(own.grants, row)
        a, b, c, _, e = rows
        assert await own.grants.grants(ACCOUNT) == (b, c, a)
        assert await own.grants.grants(ACCOUNT, CLIENT) == (c, a)
        assert await own.grants.grants(OTHER_ACCOUNT) == (e,)
        assert await own.grants.grants(OTHER_ACCOUNT, OTHER_CLIENT) == ()


async def standing_grants_are_revoked_by_account_and_client(make: StoreMaker) -> None:
    async with tables(make) as own:
        whose = [(ACCOUNT, CLIENT), (ACCOUNT, OTHER_CLIENT), (OTHER_ACCOUNT, CLIENT), (OTHER_ACCOUNT, OTHER_CLIENT)]
        for n, (account, client) in enumerate(whose * 2):
            await sign_in(own.grants, grant_row(f"gra_{n}", account=account, client=client))
        await sign_in(own.grants, grant_row("gra_over", lasts=9))
        await sign_in(own.grants, grant_row("gra_revoked", revoked=1))

        async def ended(id: str) -> float | None:
            grant = (await seen(own.grants, GrantKeys(grant=id))).grant
            assert grant is not None
            return grant.revoked_at

        assert await own.grants.revoke(NOW + 9, account_id=ACCOUNT, client_id=CLIENT) == 2
        assert [await ended(f"gra_{n}") for n in range(8)] == [NOW + 9, None, None, None] * 2
        assert await own.grants.revoke(NOW + 10, account_id=ACCOUNT, client_id=None) == 2
        assert await own.grants.revoke(NOW + 11, account_id=None, client_id=CLIENT) == 2
        assert await own.grants.revoke(NOW + 12, account_id=None, client_id=CLIENT) == 0
        assert await own.grants.revoke(NOW + 12, account_id=AccountId(""), client_id=OTHER_CLIENT) == 0
        assert [await ended(f"gra_{n}") for n in range(8)] == [NOW + 9, NOW + 10, NOW + 11, None] * 2
        assert (await ended("gra_over"), await ended("gra_revoked")) == (None, NOW + 1)
        found = await own.grants.access(digest("gra_1.access.1"))
        assert found is not None
        assert not found.grant.stands(NOW + 10)
        assert await refresh(own.grants, "gra_0.1", "gra_0.2", at=12) == "refused"
        nobody = own.grants.revoke(NOW + 13, account_id=None, client_id=None)
        assert await code_of(nobody) == "store_misused"
        assert await refresh(own.grants, "gra_3.1", "gra_3.2", at=13) == "done"


async def many_grants_are_revoked_and_swept(make: StoreMaker) -> None:
    """More than any part of it does at once."""
    async with tables(make) as own:
        rows = [grant_row(f"gra_{n}", client=CLIENT if n % 2 else OTHER_CLIENT) for n in range(2200)]
        first = tuple(RefreshRow(row.current, row.id) for row in rows)
        await own.grants.apply(GrantKeys(), writes(GrantChange("", grants=tuple(rows), refresh=first)))
        assert await own.grants.revoke(NOW + 1, account_id=None, client_id=CLIENT) == 1100
        assert len(await own.grants.grants(ACCOUNT)) == 1100
        assert await own.grants.sweep(NOW + 2, forget_before=NOW + 2) == 2200
        assert await own.grants.sweep(NOW + 2, forget_before=NOW + 2) == 0
        assert (await seen(own.grants, GrantKeys(refresh=digest("gra_2.1")))).grant == rows[2]
        assert (await seen(own.grants, GrantKeys(refresh=digest("gra_3.1")))).grant is None


async def a_sweep_keeps_what_stands_and_forgets_what_ended(make: StoreMaker) -> None:
    async with tables(make) as own:
        stands, over, revoked = grant_row("gra_s"), grant_row("gra_o", lasts=HOUR), grant_row("gra_r", revoked=100)
        for grant in (stands, over, revoked):
            await sign_in(own.grants, grant)
        assert await refresh(own.grants, "gra_s.1", "gra_s.2") == "done"
        tickets = tuple(TicketRow("code", str(n), b"", NOW + n) for n in (100, 200))
        spent = tuple(spent_id(f"jti_{until}", until=until) for until in (100, 200, 9 * HOUR))
        await own.grants.apply(GrantKeys(spent=spent), writes(GrantChange("", tickets)))
        longer = AccessRow("longer", "gra_s", CLIENT, ACCOUNT, (), NOW + 2 * HOUR)
        await own.grants.apply(GrantKeys(), writes(GrantChange("", access=(longer,))))

        assert await own.grants.sweep(NOW + 99, forget_before=NOW + 99) == 0
        assert await own.grants.sweep(NOW + 150, forget_before=NOW) == 2, "a ticket and an id"
        assert [await own.grants.ticket(row.key) for row in tickets] == [None, tickets[1]]
        assert (await seen(own.grants, GrantKeys(refresh=digest("gra_r.1")))).grant == revoked
        assert await own.grants.sweep(NOW + 150, forget_before=NOW + 101) == 2, "the revoked grant and its token"
        assert await own.grants.access(digest("gra_r.access.1")) is None
        assert await own.grants.sweep(NOW + HOUR, forget_before=NOW + 101) == 6, "four tokens, a ticket, an id"
        assert await own.grants.access(digest("gra_s.access.1")) is None
        assert (await seen(own.grants, GrantKeys(grant="gra_o"))).grant == over
        assert await own.grants.sweep(NOW + HOUR, forget_before=NOW + HOUR + 1) == 2, "the expired grant and its token"
        found = await own.grants.access("longer")
        assert found is not None
        assert found.grant.current == digest("gra_s.2")
        for token in ("gra_s.1", "gra_s.2"):
            assert (await seen(own.grants, GrantKeys(refresh=digest(token)))).grant == found.grant
        assert await own.grants.sweep(NOW + HOUR, forget_before=NOW + HOUR + 1) == 0


async def an_id_is_remembered_until_it_is_over(make: StoreMaker) -> None:
    async with tables(make) as own:
        ids = tuple(spent_id(f"jti_{n}", until=n) for n in (10, 20, 30))
        await seen(own.grants, GrantKeys(spent=ids))
        await seen(own.grants, GrantKeys(spent=(spent_id("jti_20", until=40),)))
        await own.grants.sweep(NOW + 20, forget_before=0)
        kept = await seen(own.grants, GrantKeys(spent=ids))
        assert kept.spent == ids[1:]


async def grants_outlive_the_store(make: StoreMaker) -> None:
    async with tables(make) as own:
        await sign_in(own.grants, grant_row())
        await seen(own.grants, GrantKeys(spent=(spent_id("jti_1"),)))
        await own.grants.disable(ACCOUNT, True)
    async with tables(make) as own:
        keys = GrantKeys(refresh=digest("gra_1.1"), spent=(spent_id("jti_1"),))
        assert await seen(own.grants, keys) == GrantLoaded(grant=grant_row(), disabled=True, spent=keys.spent)


async def two_companies_share_no_grant(make: StoreMaker) -> None:
    async with opened(make) as store:
        own, other = (await store.tables(COMPANY)).grants, (await store.tables(OTHER_COMPANY)).grants
        code = TicketRow("code", "d", b"1", NOW + 60)
        await sign_in(own, grant_row())
        await own.apply(GrantKeys(spent=(spent_id("jti_1"),)), writes(GrantChange("", (code,))))
        keys = GrantKeys((code.key,), digest("gra_1.1"), "gra_1", ACCOUNT, (spent_id("jti_1"),))
        assert await seen(other, keys) == GrantLoaded()
        assert await other.access(digest("gra_1.access.1")) is None
        assert (await other.ticket(code.key), await other.grants(ACCOUNT)) == (None, ())
        assert await other.revoke(NOW, account_id=ACCOUNT, client_id=None) == 0
        await other.apply(GrantKeys(), writes(GrantChange("", drop_tickets=(code.key,))))
        await other.disable(ACCOUNT, True)
        await other.sweep(NOW + 999 * DAY, forget_before=NOW + 999 * DAY)
        assert await seen(own, keys) == GrantLoaded({code.key: code}, grant_row(), spent=keys.spent)
        assert await own.grants(ACCOUNT) == (grant_row(),)


async def a_value_that_cannot_be_stored_concerns_its_own_change(make: StoreMaker) -> None:
    """The changes beside it are written, and of it nothing is, or all of it."""
    async with tables(make) as own:
        bad = replace(grant_row("gra_bad"), client_name="\ud800")
        code = TicketRow("code", "d", b"1", NOW + 60)
        failing = own.grants.apply(GrantKeys(), writes(GrantChange("", (code,), grants=(bad,))))
        good = [sign_in(own.grants, grant_row(f"gra_{n}")) for n in range(3)]
        said = await asyncio.gather(*(code_of(one) for one in (*good[:2], failing, good[2])))
        assert (said[:2], said[3]) == (["", ""], "")
        stored = await own.grants.ticket(code.key) is not None
        assert stored is (said[2] == "")
        assert len(await own.grants.grants(ACCOUNT)) == 3 + stored


GRANT_TABLE_CASES = (
    a_disabled_account_is_told_with_each_of_its_tokens,
    grants_of_an_account_come_newest_first,
    standing_grants_are_revoked_by_account_and_client,
    many_grants_are_revoked_and_swept,
    a_sweep_keeps_what_stands_and_forgets_what_ended,
    an_id_is_remembered_until_it_is_over,
    grants_outlive_the_store,
    two_companies_share_no_grant,
    a_value_that_cannot_be_stored_concerns_its_own_change,
)


async def a_change_of_grants_is_seen_by_the_other_store_at_once(make: StoreMaker) -> None:
    async with tables(make) as one, tables(make) as two:
        await sign_in(one.grants, grant_row())
        assert await two.grants.access(digest("gra_1.access.1")) is not None
        tokens = [f"gra_1.{n}" for n in range(1, 8)]
        stores = (one, two)
        said = [await refresh(stores[n % 2].grants, *pair, jti=f"jti_{n}") for n, pair in enumerate(pairwise(tokens))]
        assert said == ["done"] * 6
        assert await refresh(one.grants, tokens[-1], "x", jti="jti_0") == "refused", "its id was used at the other"
        for disabled in (True, False):
            await one.grants.disable(ACCOUNT, disabled)
            found = await two.grants.access(digest("gra_1.2.access"))
            assert found is not None
            assert found.disabled is disabled
        assert await one.grants.revoke(NOW + 2, account_id=ACCOUNT, client_id=None) == 1
        found = await two.grants.access(digest("gra_1.2.access"))
        assert found is not None
        assert found.grant.revoked_at == NOW + 2


async def two_stores_redeem_a_token_once(make: StoreMaker) -> None:
    async with tables(make) as one, tables(make) as two:
        await sign_in(one.grants, grant_row())
        attempts = [refresh(own.grants, "gra_1.1", f"gra_1.2.{n}") for n in range(10) for own in (one, two)]
        assert sorted(await asyncio.gather(*attempts)) == ["done", *["refused"] * 18, "reused"]


SHARED_GRANT_CASES = (a_change_of_grants_is_seen_by_the_other_store_at_once, two_stores_redeem_a_token_once)
