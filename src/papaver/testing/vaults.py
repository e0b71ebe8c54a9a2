"""The contract that every Personal Agent's vault passes. Each case is a coroutine function of one maker of vaults.

    @pytest.mark.parametrize("case", VAULT_CONTRACT, ids=lambda case: case.__name__)
    async def test_my_vault(case, tmp_path):
        await case(lambda: MyVault(tmp_path / "vault"))

The maker is called several times in one case and must always open the same data; in the next case, other data. A vault
that several processes may open at once passes SHARED_VAULT_CONTRACT as well.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from papaver.ports.personal_agent import Vault
from papaver.values.errors import PapaverError

__all__ = ["SHARED_VAULT_CONTRACT", "VAULT_CONTRACT", "VaultCase", "VaultMaker", "opened_vault"]

VaultMaker = Callable[[], Vault]
"""Makes a vault, not yet opened, over always the same data."""
VaultCase = Callable[[VaultMaker], Awaitable[None]]


@asynccontextmanager
async def opened_vault(make: VaultMaker) -> AsyncGenerator[Vault]:
    vault = make()
    await vault.open()
    try:
        yield vault
    finally:
        await vault.close()


def _put(value: bytes | None) -> Callable[[bytes | None], bytes | None]:
    return lambda _: value


def _count(value: bytes | None) -> bytes:
    return str(int(value or b"0") + 1).encode()


async def a_row_is_made_changed_and_deleted(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        assert await vault.load("session", "a") is None
        for value in (b"1", b"", b"\x00\xff" * 9, None, None, b"2"):
            assert await vault.change("session", "a", _put(value)) == value
            assert await vault.load("session", "a") == value


async def a_change_sees_what_was_there(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        for _ in range(3):
            await vault.change("session", "a", _count)
        assert await vault.load("session", "a") == b"3"


async def rows_outlive_the_vault(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        await vault.change("session", "a", _put(b"1"))
        guarded_by = vault.guarded_by
    async with opened_vault(make) as vault:
        assert await vault.load("session", "a") == b"1"
        assert vault.guarded_by == guarded_by != ""


async def rows_of_one_kind_come_oldest_first(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        for key in ("c", "a", "b", "ü"):
            await vault.change("outbox", key, _put(key.encode()))
        await vault.change("session", "c", _put(b"other"))
        await vault.change("outbox", "c", _put(b"changed"))
        await vault.change("outbox", "a", _put(None))
        await vault.change("outbox", "a", _put(b"again"))
        rows = (("c", b"changed"), ("b", b"b"), ("ü", "ü".encode()), ("a", b"again"))
        assert await vault.rows("outbox") == rows
        assert await vault.rows("company") == ()


async def kinds_and_keys_do_not_run_together(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        await vault.change("ab", "c", _put(b"1"))
        assert await vault.load("a", "bc") is None
        assert await vault.load("abc", "") is None


async def changes_of_one_row_never_interleave(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        results = await asyncio.gather(*(vault.change("session", "a", _count) for _ in range(40)))
        assert sorted(int(result or b"0") for result in results) == list(range(1, 41))


async def what_decide_raises_changes_nothing(make: VaultMaker) -> None:
    def refuse(_: bytes | None) -> bytes | None:
        raise LookupError("refused")

    async with opened_vault(make) as vault:
        await vault.change("session", "a", _put(b"1"))
        try:
            await vault.change("session", "a", refuse)
        except LookupError:
            assert await vault.load("session", "a") == b"1"
        else:
            raise AssertionError("the fault of decide was swallowed")


async def one_task_at_a_time_is_exclusive(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        await _exclude(vault, vault)


async def two_names_do_not_exclude_each_other(make: VaultMaker) -> None:
    async with opened_vault(make) as vault, vault.exclusive("a"), vault.exclusive("b"):
        assert await vault.change("session", "a", _put(b"1")) == b"1"


async def whoever_leaves_early_holds_nothing(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        async with vault.exclusive("a"):
            waiting = asyncio.create_task(_hold(vault))
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
        try:
            async with vault.exclusive("a"):
                raise LookupError("out")
        except LookupError:
            await _hold(vault)


async def a_closed_vault_says_so(make: VaultMaker) -> None:
    async with opened_vault(make) as vault:
        pass
    actions = (vault.load("session", "a"), vault.change("session", "a", _count), vault.rows("session"))
    said = await asyncio.gather(*actions, return_exceptions=True)
    assert [isinstance(one, PapaverError) and "not open" in one.detail for one in said] == [True, True, True]


async def _hold(vault: Vault) -> None:
    async with vault.exclusive("a"):
        pass


async def _exclude(one: Vault, two: Vault) -> None:
    """Holders of one name never meet, whichever of the two vaults they use."""
    inside = most = 0

    async def hold(vault: Vault) -> None:
        nonlocal inside, most
        async with vault.exclusive("a"):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(hold(vault) for _ in range(5) for vault in (one, two)))
    assert most == 1


VAULT_CONTRACT: tuple[VaultCase, ...] = (
    a_row_is_made_changed_and_deleted,
    a_change_sees_what_was_there,
    rows_outlive_the_vault,
    rows_of_one_kind_come_oldest_first,
    kinds_and_keys_do_not_run_together,
    changes_of_one_row_never_interleave,
    what_decide_raises_changes_nothing,
    one_task_at_a_time_is_exclusive,
    two_names_do_not_exclude_each_other,
    whoever_leaves_early_holds_nothing,
    a_closed_vault_says_so,
)


async def two_vaults_on_one_file_agree(make: VaultMaker) -> None:
    async with opened_vault(make) as one, opened_vault(make) as two:
        await asyncio.gather(*(vault.change("session", "a", _count) for _ in range(20) for vault in (one, two)))
        assert await one.load("session", "a") == b"40"
        assert await two.rows("session") == (("a", b"40"),)


async def two_vaults_on_one_file_exclude_each_other(make: VaultMaker) -> None:
    async with opened_vault(make) as one, opened_vault(make) as two:
        await _exclude(one, two)


SHARED_VAULT_CONTRACT: tuple[VaultCase, ...] = (two_vaults_on_one_file_agree, two_vaults_on_one_file_exclude_each_other)
