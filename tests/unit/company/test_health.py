"""`healthz`: whether the store writes and whether turns are run (B65)."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.stores.faults import StoreFailed
from papaver.testing.company import CompanyBench, company_bench

pytestmark = pytest.mark.anyio


async def said(bench: CompanyBench) -> tuple[int, Any]:
    answer = await bench.fetch("/poppy/healthz", host="anything.internal")
    assert answer is not None
    assert answer.headers.first("cache-control") == "no-store"
    return answer.status, answer.json


async def test_b65_health_lies_below_the_public_base_url() -> None:
    """On whatever host a probe names, for its path is the endpoints'."""
    async with company_bench() as bench:
        assert await said(bench) == (200, {"healthy": True, "store": "ok", "turns": "ok"})


async def test_a_store_that_does_not_write_is_unhealthy() -> None:
    """In the public words: the private reason is for the log."""
    async with company_bench() as bench:

        async def fails() -> None:
            raise StoreFailed("/var/lib/poppy.db: the disk is full")

        store: Any = bench.company.store
        probe, store.probe = store.probe, fails
        status, body = await said(bench)
        assert (status, body["healthy"], body["turns"]) == (503, False, "ok")
        assert "/var/lib" not in str(body)
        store.probe = probe
        bench.clock.advance(1)
        assert (await said(bench))[0] == 200


async def test_a_turn_that_nobody_runs_is_unhealthy() -> None:
    """Another process runs them, it is said, and none does."""
    async with company_bench(turns=False) as bench:
        await bench.start()
        assert (await said(bench))[0] == 200
        bench.clock.advance(61)
        status, body = await said(bench)
        assert (status, body["turns"]) == (503, "one has been due for 61 s")


async def test_many_probes_are_one_look_a_second() -> None:
    """Anybody may ask, and a look writes."""
    async with company_bench() as bench:
        store: Any = bench.company.store
        probe, looks = store.probe, list[int]()

        async def counted() -> None:
            looks.append(1)
            await probe()

        store.probe = counted
        for _ in range(50):
            await said(bench)
        assert len(looks) == 1
        bench.clock.advance(1)
        await said(bench)
        assert len(looks) == 2


async def test_a_company_that_does_not_run_is_unhealthy() -> None:
    """Its path answers all the same."""
    async with company_bench() as bench:
        company = bench.company
    assert (await company.health()).status == 503
    assert company.held == 0
    company.stop()
