"""The contract of changes of grants: one door, each sees the one before, tickets and ids are used once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from papaver.ports.grants import (
    AccessFound,
    AccessRow,
    GrantChange,
    GrantKeys,
    GrantLoaded,
    GrantRow,
    TicketRow,
    digest,
)
from papaver.testing.stores.grant_samples import (
    ACCOUNT,
    DAY,
    OTHER_ACCOUNT,
    OTHER_CLIENT,
    access_row,
    grant_row,
    refresh,
    seen,
    sign_in,
    spent_id,
    writes,
)
from papaver.testing.stores.samples import CLIENT, NOW, StoreMaker, tables

__all__ = ["GRANT_CASES"]


async def nothing_is_found_in_an_empty_store(make: StoreMaker) -> None:
    async with tables(make) as own:
        keys = GrantKeys((("code", digest("c")),), digest("gra_1.1"), "gra_1", ACCOUNT, (spent_id("jti_1"),))
        assert await seen(own.grants, keys) == GrantLoaded()
        assert await own.grants.access(digest("gra_1.access.1")) is None
        assert await own.grants.ticket(("code", digest("c"))) is None
        assert await own.grants.grants(ACCOUNT) == ()
        assert await own.grants.revoke(NOW, account_id=ACCOUNT, client_id=None) == 0
        assert await own.grants.sweep(NOW, forget_before=NOW) == 0


async def a_grant_is_found_by_its_id_and_by_each_of_its_refresh_tokens(make: StoreMaker) -> None:
    async with tables(make) as own:
        grant = grant_row()
        await sign_in(own.grants, grant)
        await sign_in(own.grants, grant_row("gra_2", account=OTHER_ACCOUNT))
        for keys in (GrantKeys(grant="gra_1"), GrantKeys(refresh=digest("gra_1.1"))):
            assert await seen(own.grants, keys) == GrantLoaded(grant=grant)
        assert await refresh(own.grants, "gra_1.1", "gra_1.2") == "done"
        rotated = replace(grant, current=digest("gra_1.2"), previous=digest("gra_1.1"), rotated_at=NOW + 1)
        for token in ("gra_1.1", "gra_1.2"):
            assert await seen(own.grants, GrantKeys(refresh=digest(token))) == GrantLoaded(grant=rotated)
        assert await seen(own.grants, GrantKeys(refresh="gra_1.2")) == GrantLoaded(), "a token is no digest"


async def every_field_of_a_row_is_kept(make: StoreMaker) -> None:
    async with tables(make) as own:
        full = GrantRow("gra_f", CLIENT, "", ACCOUNT, (), "device", 0.5, NOW, "c", "p", 1.25, 2.75)
        bound = AccessRow("a_1", "gra_f", CLIENT, ACCOUNT, (), NOW + 0.125, "https://api.shop.example/", "thumb")
        plain = replace(bound, digest="a_2", scopes=("poppy", "a"), resource=None, jkt=None)
        tickets = tuple(TicketRow(kind, "d", bytes(range(256)), NOW + 0.5) for kind in ("code", "device"))
        change = GrantChange("done", tickets, grants=(full,), access=(bound, plain))
        assert await own.grants.apply(GrantKeys(), writes(change)) == "done"
        assert await seen(own.grants, GrantKeys(grant="gra_f")) == GrantLoaded(grant=full)
        for row in (bound, plain):
            assert await own.grants.access(row.digest) == AccessFound(row, full, False)
        for ticket in tickets:
            assert await own.grants.ticket(ticket.key) == ticket


async def a_row_that_is_written_again_is_replaced(make: StoreMaker) -> None:
    async with tables(make) as own:
        await sign_in(own.grants, grant_row())
        other = replace(grant_row(account=OTHER_ACCOUNT, revoked=5), scopes=("a",), kind="device", client_name="B")
        await sign_in(own.grants, other)
        assert await seen(own.grants, GrantKeys(grant="gra_1")) == GrantLoaded(grant=other)
        assert await own.grants.access(digest("gra_1.access.1")) == AccessFound(
            access_row("gra_1.access.1", other), other, False
        )
        assert await own.grants.grants(ACCOUNT) == ()


async def what_decide_raises_writes_nothing(make: StoreMaker) -> None:
    """Not the ids either: a request that is refused for another reason may come again."""

    def refuse(_: GrantLoaded) -> GrantChange[str]:
        raise LookupError("refused")

    async with tables(make) as own:
        await sign_in(own.grants, grant_row())
        keys = GrantKeys(grant="gra_1", spent=(spent_id("jti_1"),))
        refused = [own.grants.apply(keys, refuse) for _ in range(3)]
        (*faults, done) = await asyncio.gather(*refused, seen(own.grants, keys), return_exceptions=True)
        assert [type(fault) for fault in faults] == [LookupError] * 3
        assert done == GrantLoaded(grant=grant_row())


async def a_change_is_written_although_it_is_an_error(make: StoreMaker) -> None:
    """A reused token ends its family; the fault is the result."""
    async with tables(make) as own:
        await sign_in(own.grants, grant_row())
        tokens = ("gra_1.1", "gra_1.1", "gra_1.2")
        said = [await refresh(own.grants, token, "gra_1.2", jti=f"jti_{n}") for n, token in enumerate(tokens)]
        assert said == ["done", "reused", "refused"]
        found = await own.grants.access(digest("gra_1.2.access"))
        assert found is not None
        assert (found.grant.revoked_at, found.disabled) == (NOW + 1, False)
        spent = tuple(spent_id(f"jti_{n}") for n in range(4))
        assert (await seen(own.grants, GrantKeys(spent=spent))).spent == spent[:3]


async def of_many_changes_of_one_grant_each_sees_the_one_before(make: StoreMaker) -> None:
    async with tables(make) as own:
        await sign_in(own.grants, grant_row())

        def add(loaded: GrantLoaded) -> GrantChange[int]:
            assert loaded.grant is not None
            more = replace(loaded.grant, scopes=(*loaded.grant.scopes, f"s{len(loaded.grant.scopes)}"))
            return GrantChange(len(more.scopes), grants=(more,))

        lengths = await asyncio.gather(*(own.grants.apply(GrantKeys(grant="gra_1"), add) for _ in range(20)))
        assert sorted(lengths) == list(range(3, 23))


async def of_many_refreshes_of_one_token_one_is_done(make: StoreMaker) -> None:
    """The second one is a reuse; those after it find the family revoked."""
    async with tables(make) as own:
        await sign_in(own.grants, grant_row())
        said = await asyncio.gather(*(refresh(own.grants, "gra_1.1", f"gra_1.2.{n}") for n in range(20)))
        assert said == ["done", "reused", *["refused"] * 18]


async def a_chain_of_refreshes_goes_on_within_one_round(make: StoreMaker) -> None:
    """A token is found as soon as the change that made it was decided."""
    async with tables(make) as own:
        await sign_in(own.grants, grant_row())
        said = await asyncio.gather(*(refresh(own.grants, f"gra_1.{n}", f"gra_1.{n + 1}") for n in range(1, 21)))
        assert said == ["done"] * 20
        found = await own.grants.access(digest("gra_1.21.access"))
        assert found is not None
        assert found.grant.current == digest("gra_1.21")


async def an_id_is_used_once(make: StoreMaker) -> None:
    async with tables(make) as own:
        one = spent_id("jti_1")
        used = [(await seen(own.grants, GrantKeys(spent=(one,)))).spent for _ in range(2)]
        assert used == [(), (one,)]
        others = (spent_id("jti_1", kind="dpop"), replace(one, client_id=OTHER_CLIENT), spent_id("jti_2"))
        assert (await seen(own.grants, GrantKeys(spent=(*others, one)))).spent == (one,)
        at_once = await asyncio.gather(*(seen(own.grants, GrantKeys(spent=(spent_id("jti_3"),))) for _ in range(20)))
        assert sum(not loaded.spent for loaded in at_once) == 1


async def tickets_are_put_replaced_and_dropped(make: StoreMaker) -> None:
    async with tables(make) as own:
        code = TicketRow("code", "d", b"1", NOW + 60)
        device = replace(code, kind="device", value=b"")
        keys = GrantKeys((code.key, device.key, ("page", "d")))
        await own.grants.apply(keys, writes(GrantChange("", (code, device))))
        assert (await seen(own.grants, keys)).tickets == {code.key: code, device.key: device}
        newer = replace(code, value=b"2", expires_at=NOW + 90)
        await own.grants.apply(keys, writes(GrantChange("", (newer,), (device.key,))))
        assert (await seen(own.grants, keys)).tickets == {code.key: newer}
        assert [await own.grants.ticket(key) for key in keys.tickets] == [newer, None, None]
        await own.grants.apply(keys, writes(GrantChange("", (code,), (code.key,))))
        assert await own.grants.ticket(code.key) == code, "what is put stays, whatever is dropped along with it"


async def a_ticket_is_redeemed_once(make: StoreMaker) -> None:
    async with tables(make) as own:
        code = TicketRow("code", "d", b"1", NOW + 60)
        await own.grants.apply(GrantKeys(), writes(GrantChange("", (code,))))

        def redeem(loaded: GrantLoaded) -> GrantChange[bool]:
            return GrantChange(code.key in loaded.tickets, drop_tickets=(code.key,))

        redeemed = await asyncio.gather(*(own.grants.apply(GrantKeys((code.key,)), redeem) for _ in range(20)))
        assert redeemed.count(True) == 1


async def an_expired_ticket_or_token_is_found_until_it_is_swept(make: StoreMaker) -> None:
    """Whoever asks decides what is over: the store has no clock."""
    async with tables(make) as own:
        code = TicketRow("code", "d", b"1", 1.0)
        grant = grant_row(begun=-2 * DAY, lasts=DAY)
        await own.grants.apply(GrantKeys(), writes(GrantChange("", (code,))))
        await sign_in(own.grants, grant)
        assert (await seen(own.grants, GrantKeys((code.key,), digest("gra_1.1")))).grant == grant
        assert await own.grants.ticket(code.key) == code
        assert await own.grants.access(digest("gra_1.access.1")) is not None


GRANT_CASES = (
    nothing_is_found_in_an_empty_store,
    a_grant_is_found_by_its_id_and_by_each_of_its_refresh_tokens,
    every_field_of_a_row_is_kept,
    a_row_that_is_written_again_is_replaced,
    what_decide_raises_writes_nothing,
    a_change_is_written_although_it_is_an_error,
    of_many_changes_of_one_grant_each_sees_the_one_before,
    of_many_refreshes_of_one_token_one_is_done,
    a_chain_of_refreshes_goes_on_within_one_round,
    an_id_is_used_once,
    tickets_are_put_replaced_and_dropped,
    a_ticket_is_redeemed_once,
    an_expired_ticket_or_token_is_found_until_it_is_swept,
)
