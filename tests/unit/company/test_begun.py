"""Work whose first step is taken before anybody waits for it."""

from __future__ import annotations

import asyncio

import pytest

from papaver.company.begun import Begun

pytestmark = pytest.mark.anyio


async def test_what_is_there_is_over_at_once() -> None:
    """Nothing waits; what it raises is raised where it begins."""

    async def at_once() -> str:
        return "here"

    async def raises() -> str:
        raise LookupError("not here")

    begun = Begun(at_once())
    assert (begun.is_over, begun.value) == (True, "here")
    with pytest.raises(LookupError):
        Begun(raises())


async def test_what_takes_longer_goes_on_where_it_stands() -> None:
    """However often it waits."""
    gates = [asyncio.Event() for _ in range(3)]
    steps: list[int] = []

    async def later() -> str:
        for n, gate in enumerate(gates):
            await gate.wait()
            steps.append(n)
        return "here"

    begun = Begun(later())
    assert (begun.is_over, steps) == (False, [])
    for gate in gates:
        asyncio.get_running_loop().call_soon(gate.set)
    assert (await begun, steps) == ("here", [0, 1, 2])


@pytest.mark.parametrize("stubborn", [False, True])
async def test_a_time_limit_reaches_the_work(stubborn: bool) -> None:
    """In its first wait as in a later one; it may still tidy up, and even wait for that."""
    ended: list[str] = []

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            if stubborn:
                await asyncio.sleep(0)
            ended.append("tidied up")

    begun = Begun(never())
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await begun
    assert ended == ["tidied up"]


async def test_what_is_dropped_tidies_up() -> None:
    """And is waited for by nobody."""
    ended: list[str] = []

    async def never() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("tidied up")

    Begun(never()).drop()
    assert ended == ["tidied up"]
