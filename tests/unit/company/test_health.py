"""`healthz` and `livez`: whether the store writes, turns are run, and the documents are reached (B65)."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from papaver.company import Turn
from papaver.company.health import FOREIGN
from papaver.protocol.terms import TurnId
from papaver.stores.faults import StoreFailed
from papaver.testing.company import CompanyBench, company_bench

pytestmark = pytest.mark.anyio


async def said(bench: CompanyBench) -> tuple[int, Any]:
    answer = await bench.fetch("/poppy/healthz", host="api.example.com")
    assert answer is not None
    assert answer.headers.first("cache-control") == "no-store"
    return answer.status, answer.json


async def test_b65_health_lies_below_the_public_base_url() -> None:
    """Its path is the endpoints'."""
    async with company_bench() as bench:
        assert await said(bench) == (200, {"healthy": True, "store": "ok", "turns": "ok"})


@pytest.mark.requirement("papaver-41")
@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("api.example.com", 200),
        ("API.example.com:8443", 200),
        ("example.com", 200),
        ("backend.internal", 200),
        ("backend:8000", 503),
        ("10.0.0.3", 503),
        ("www.example.com", 503),
        ("", 503),
    ],
)
async def test_b65_no_green_light_where_the_documents_are_not_reached(host: str, status: int) -> None:
    """Through a `Host` that is not ours nobody gets poppy.json: health says so, and what to do."""
    async with company_bench(internal_hosts=["backend.internal"]) as bench:
        answer = await bench.fetch("/poppy/healthz", host=host)
        document = await bench.fetch("/.well-known/poppy.json", host=host)
        assert answer is not None
        assert answer.status == status
        assert answer.json.get("host", "") == ("" if status == 200 else FOREIGN)
        assert (answer.json["store"], answer.json["turns"]) == ("ok", "ok")
        assert (document is not None) == (status == 200 and not host.lower().startswith("api."))
        assert (await bench.company.health()).status == 200


@pytest.mark.parametrize("host", ["api.example.com", "10.0.0.3:8000", ""])
async def test_b65_whoever_restarts_processes_asks_for_less(host: str) -> None:
    """By whatever name, and whatever is wrong with store and turns: restarting would not mend them."""
    async with company_bench() as bench:
        for method, status in {"GET": 200, "HEAD": 200, "POST": 405}.items():
            answer = await bench.fetch("/poppy/livez", method=method, host=host)
            assert answer is not None
            assert answer.status == status
        assert bench.company.owns(host, "/poppy/livez")


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


async def test_turns_that_others_run_are_no_fault_of_this_process() -> None:
    """One that is worked on shows that somebody works; what waits may wait for its User's share."""
    async with company_bench(turns=False) as bench:
        for _ in range(2):
            await bench.start()
        tables: Any = await bench.company.store.tables(bench.company.id)
        bench.clock.advance(61)
        assert (await said(bench))[0] == 503
        now = bench.clock.now()
        assert await tables.log.lease("another", TurnId("trn_1"), now=now, until=now + 30)
        bench.clock.advance(2)
        assert (await said(bench))[0] == 200
        bench.clock.advance(31)
        assert (await said(bench))[0] == 503


async def test_turns_that_neither_begin_nor_end_are_unhealthy() -> None:
    """All places are taken, and nobody gives one back within the time that a turn has."""

    async def waits(turn: Turn) -> str:
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        await asyncio.Event().wait()
        return "never"

    async with company_bench(handler=waits, turns_at_once=1, turn_timeout=1000, lease=2000) as bench:
        for _ in range(2):
            await bench.start()
        for _ in range(20):
            await bench.tick()
        statuses: list[int] = []
        for seconds in (100, 850, 120):
            bench.clock.advance(seconds)
            statuses.append((await said(bench))[0])
        assert statuses == [200, 200, 503]


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
