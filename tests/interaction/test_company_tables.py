"""What a Company keeps in memory stays bounded, and what it counts is counted for the right one (5.6, B10, B58)."""

from __future__ import annotations

import gc
import re
from collections import deque
from collections.abc import AsyncGenerator, Sized
from types import BuiltinMethodType, FunctionType, MethodType, ModuleType
from typing import Any, Final

import pytest

from papaver.ports.system import FetchFault
from papaver.protocol.terms import ClientId
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.keys import AgentKeys

pytestmark = pytest.mark.anyio

MANY: Final = 1000
KEPT: Final = 100
PLENTY: Final = 1_000_000
TABLES = (dict, list, set, deque, tuple)
OURS: Final = re.compile(r"papaver\.(?!stores)").match
NOT_OURS = type | ModuleType | FunctionType | MethodType | BuiltinMethodType


def length_of(value: Any) -> int | None:
    """Of a container; None for anything else."""
    table: Sized = value
    return len(table) if issubclass(value.__class__, TABLES) else None


def tables_of(bench: CompanyBench) -> dict[str, int]:
    """The length of every container that a Company's parts hold, its store and the test's own parts left out."""
    outside = {id(part) for part in (bench.company.store, bench.documents, bench.clock, bench.agent)}
    todo: list[tuple[str, Any]] = [("company", bench.company)]
    seen, found = set[int](), dict[str, int]()
    while todo:
        path, value = todo.pop()
        if id(value) in seen or id(value) in outside or isinstance(value, NOT_OURS):
            continue
        seen.add(id(value))
        length = length_of(value)
        if length is not None:
            found[f"{path} {len(found)}"] = length
        elif not OURS(value.__class__.__module__):
            continue
        todo += [(f"{path}.{value.__class__.__name__}", part) for part in gc.get_referents(value)]
    return found


@pytest.fixture
async def bench() -> AsyncGenerator[CompanyBench]:
    """A Company that keeps little and refuses nobody for asking often."""
    limits: dict[str, Any] = {
        "clients_cached": 5,
        "rates_kept": KEPT,
        "delegations": 10,
        "delegations_per_client": 5,
        "fetches_per_address": PLENTY,
        "fetches_in_all": PLENTY,
        "requests_per_address": PLENTY,
        "requests_per_client": PLENTY,
        "requests_per_user": PLENTY,
    }
    async with company_bench(turns=False, **limits) as made:
        yield made


async def strangers(bench: CompanyBench, number: int) -> None:
    """One whose documents are not there, one whose host is away, one whose key nobody knows; each from elsewhere."""
    peer = f"192.0.{number // 250}.{number % 250}"
    for host in ("missing", "away", "unknown"):
        agent = AgentKeys(f"https://{host}{number}.example/a.json", identity=IDENTITY, delegated=DELEGATED)
        if host == "away":
            bench.documents.failing[agent.client_id] = FetchFault.UNREACHABLE
        if host == "unknown":
            bench.documents.publish(agent)
            forged = agent.delegation(bench.clock.now(), signer=DELEGATED, jose={"kid": f"kid-{number}"})
            answer = await bench.start(agent=agent, peer=peer, delegation=forged)
        else:
            answer = await bench.start(agent=agent, peer=peer)
        assert answer.status in (400, 503)
    forged = bench.agent.delegation(bench.clock.now(), signer=DELEGATED, jose={"kid": f"kid-{number}"})
    assert (await bench.start(peer=peer, delegation=forged)).status == 400


async def guests(bench: CompanyBench, number: int) -> None:
    """A client, a User and a Session that are new each time, and a second delegation; all of them right."""
    agent = AgentKeys(f"https://guest{number}.example/a.json", identity=IDENTITY, delegated=DELEGATED)
    bench.documents.publish(agent)
    for client in (agent, bench.agent):
        delegation = client.delegation(bench.clock.now())
        started = await bench.start(agent=client, delegation=delegation, sid=f"sid_{number}", sub=f"usr_{number}")
        assert started.status == 201


IDENTITY = AgentKeys().identity
DELEGATED = AgentKeys().delegated


@pytest.mark.parametrize("visitors", [strangers, guests])
async def test_b10_no_table_in_memory_grows_with_who_asks(bench: CompanyBench, visitors: Any) -> None:
    """A thousand others, right or wrong: what has a limit keeps to it, and nothing else gets any longer."""
    await visitors(bench, MANY)
    before = tables_of(bench)
    for number in range(MANY):
        await visitors(bench, number)
        bench.clock.advance(0.25)
    after = tables_of(bench)
    assert len(before) > 30
    unbounded = {path: length for path, length in after.items() if length > KEPT}
    assert set(unbounded.values()) <= {length for length in before.values() if length > KEPT}, unbounded
    assert any(length == KEPT for length in after.values())
    assert sum(length == 5 for length in after.values()) >= 2


async def test_b58_what_a_proven_client_does_wrong_does_not_count_for_its_address() -> None:
    """Its own errors leave room for a stranger behind the same address, who is told what is wrong."""
    async with company_bench(turns=False, requests_per_address=3) as shared:
        for _ in range(5):
            assert (await shared.read("cnv_none")).status == 404
        for _ in range(3):
            assert (await shared.start(aud="https://other.example")).status == 400
        refused = await shared.start(aud="https://other.example")
        assert (refused.status, refused.error) == (429, "rate_limited")
        assert (await shared.start(aud="https://other.example", peer="192.0.2.8")).status == 400
        assert (await shared.start()).status == 201


async def test_b58_a_client_that_is_over_its_limit_does_not_use_up_its_address() -> None:
    """429 for what is proven counts for the client and User only."""
    async with company_bench(turns=False, requests_per_user=2, requests_per_address=2) as shared:
        answers = [(await shared.read("cnv_none")).status for _ in range(6)]
        assert answers == [404, 404, 429, 429, 429, 429]
        assert (await shared.read("cnv_none", sub="usr_other", sid="sid_other")).status == 404
        assert (await shared.start(aud="https://other.example")).status == 400


async def test_limits_come_after_what_they_count_by_and_before_what_they_spare() -> None:
    """Readings 5: a forged request does not count for its User; one over the limit is told so before all else."""
    async with company_bench(turns=False, requests_per_user=1) as shared:
        for _ in range(3):
            assert (await shared.start(key=DELEGATED)).error == "invalid_session"
        assert (await shared.send("POST", "", raw=b"{")).error == "invalid_request"
        assert (await shared.send("POST", "", raw=b"{", unread=True)).error == "rate_limited"
        assert (await shared.start(headers={"authorization": "Bearer x"})).error == "rate_limited"
        await shared.company.sessions.end(ClientId(shared.agent.client_id), (await shared.rows())[0].sid)
        assert (await shared.start()).error == "rate_limited"
        assert (await shared.start(headers={"poppy-version": "9.9"})).error == "version_unsupported"
        assert (await shared.start(headers={"poppy-session": None})).error == "invalid_session"
