"""The memory of an anonymous Session: a vault that keeps nothing, but shares what is known of Companies."""

from __future__ import annotations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from papaver.personal_agent.anonymous import AnonymousVault
from tests.house.agent_ports import MemoryVault

pytestmark = pytest.mark.anyio


async def test_nothing_reaches_the_vault_but_what_is_known_of_companies() -> None:
    """A known issuer protects anonymous Sessions, too; everything else stays in memory."""
    real = MemoryVault()
    vault = AnonymousVault(real)
    await vault.open()
    for kind in ("company", "user-id", "outbox"):
        assert await vault.change(kind, "k", lambda _: b"v") == b"v"
        assert await vault.load(kind, "k") == b"v"
        assert await vault.rows(kind) == (("k", b"v"),)
    assert list(real.stored) == [("company", "k")]
    assert vault.guarded_by == "memory"


async def test_closing_forgets() -> None:
    """The rows are gone, and a deleted row is gone before."""
    vault = AnonymousVault(MemoryVault())
    await vault.change("user-id", "k", lambda _: b"v")
    await vault.change("outbox", "k", lambda _: b"v")
    assert await vault.change("outbox", "k", lambda _: None) is None
    assert await vault.load("outbox", "k") is None
    assert await vault.change("outbox", "other", lambda _: None) is None
    await vault.close()
    assert await vault.load("user-id", "k") is None


async def test_one_task_at_a_time_is_exclusive() -> None:
    """Names do not hold each other up."""
    vault = AnonymousVault(MemoryVault())
    order: list[str] = []

    async def hold(name: str, tag: str) -> None:
        async with vault.exclusive(name):
            order.append(f"+{tag}")
            await checkpoint()
            order.append(f"-{tag}")

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(hold, "a", "1")
        tasks.start_soon(hold, "a", "2")
    assert order in (["+1", "-1", "+2", "-2"], ["+2", "-2", "+1", "-1"])
