"""The system's clock and randomness."""

from __future__ import annotations

import time

import anyio
import pytest

from papaver.adapters.system import SystemClock, SystemIds
from papaver.ports.system import Clock, Ids
from papaver.values.base64url import decode


def test_the_clock_is_that_of_the_machine() -> None:
    """`now` is UTC with fractions, `monotonic` never goes back."""
    clock: Clock = SystemClock()
    before = time.time()
    assert before <= clock.now() <= time.time()
    assert clock.monotonic() <= clock.monotonic()


@pytest.mark.anyio
async def test_sleep_lets_others_run() -> None:
    """Also when there is nothing to wait for."""
    ran: list[str] = []

    async def other() -> None:
        ran.append("other")

    async with anyio.create_task_group() as group:
        group.start_soon(other)
        await SystemClock().sleep(0)
        await SystemClock().sleep(0)
        assert ran == ["other"]


def test_ids_are_random_and_of_the_asked_size() -> None:
    """128 bits unless more are asked for; no two alike."""
    ids: Ids = SystemIds()
    assert len(decode(ids.token())) == 16
    assert len(decode(ids.token(32))) == 32
    assert (len(ids.secret()), len(ids.secret(12))) == (32, 12)
    assert len({ids.token() for _ in range(1000)}) == 1000
