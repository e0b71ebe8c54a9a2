"""The turn runner: it leases what is due, outlives what fails, and gives back what it cannot finish."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from papaver.company import Texts, Turn
from papaver.company.outcome import read_outcome
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import TurnId
from papaver.stores.faults import StoreFailed
from papaver.stores.memory import MemoryStore
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.keys import AgentKeys

pytestmark = pytest.mark.anyio

FAILED = Texts().failed


def replies(page: Any) -> list[str]:
    messages = [event["message"] for event in page.json["events"] if event["type"] == "message"]
    return [message["text"] for message in messages if message["role"] == "company"]


async def log_of(bench: CompanyBench) -> Any:
    """The conversations' rows in the store, for a test to break."""
    tables: Any = await bench.company.store.tables(bench.company.id)
    return tables.log


class Calls:
    """A handler that counts its calls and waits for `go`."""

    def __init__(self, *, waits: bool = False) -> None:
        self.turns: list[Turn] = []
        self.called = asyncio.Event()
        self.go = asyncio.Event()
        self.side_by_side = self.most = 0
        if not waits:
            self.go.set()

    async def answer(self, turn: Turn) -> str:
        self.turns.append(turn)
        self.called.set()
        self.side_by_side += 1
        self.most = max(self.most, self.side_by_side)
        try:
            await self.go.wait()
        finally:
            self.side_by_side -= 1
        return f"re {turn.text}"


@pytest.mark.parametrize("fault", [StoreFailed("the disk is full"), ValueError("a bug")])
async def test_a_round_that_fails_is_tried_again(fault: Exception, caplog: pytest.LogCaptureFixture) -> None:
    """A store that is away for a moment, or a row that cannot be read: the runner lives, and so does its health."""
    calls = Calls()
    async with company_bench(handler=calls.answer, turns=False) as bench:
        log = await log_of(bench)
        lease = log.lease

        async def fails_once(*arguments: Any, **options: Any) -> Any:
            log.lease = lease
            raise fault

        log.lease = fails_once
        bench.company.start_turns()
        conversation = (await bench.start()).json["conversation_id"]
        assert replies(await bench.idle(conversation)) == ["re Hello"]
    assert [record.message for record in caplog.records] == ["turns cannot be leased"]


async def test_c79_a_journaled_outcome_is_posted_without_the_handler() -> None:
    """The store failed between the journal and the end of the turn: once the lease is over, the outcome is used."""
    calls = Calls()
    async with company_bench(handler=calls.answer) as bench:
        log = await log_of(bench)
        apply, failed = log.apply, asyncio.Event()

        async def fails_at_the_end(keys: Any, decide: Any) -> Any:
            if keys.lease is not None:
                log.apply = apply
                failed.set()
                raise StoreFailed("the disk is full")
            return await apply(keys, decide)

        log.apply = fails_at_the_end
        conversation = (await bench.start()).json["conversation_id"]
        await failed.wait()
        assert replies(await bench.read(conversation)) == []
        bench.clock.advance(bench.company.limits.lease + 1)
        assert replies(await bench.idle(conversation)) == ["re Hello"]
        assert len(calls.turns) == 1


@pytest.mark.parametrize("row", [b"rubbish", b"[]", b"{}", b'{"messages": [{}], "failed": false}'])
async def test_a_journaled_outcome_that_cannot_be_read_is_made_again(row: bytes) -> None:
    """Better an answer twice thought of than none."""
    calls = Calls()
    async with company_bench(handler=calls.answer, turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        log, now = await log_of(bench), bench.clock.now()
        leased = await log.lease("dead", TurnId("trn_1"), now=now, until=now + 1)
        assert await log.journal(leased.lease, "outcome", row)
        bench.clock.advance(2)
        bench.company.start_turns()
        assert replies(await bench.idle(conversation)) == ["re Hello"]
        assert [turn.id for turn in calls.turns] == ["trn_1"]


async def test_a_turn_that_was_begun_too_often_is_answered_with_a_failure(caplog: pytest.LogCaptureFixture) -> None:
    """A message that kills its process three times is not tried a fourth time."""
    calls = Calls()
    async with company_bench(handler=calls.answer, turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        log = await log_of(bench)
        for n in range(3):
            now = bench.clock.now()
            assert await log.lease("dead", TurnId(f"trn_{n}"), now=now, until=now + 1) is not None
            bench.clock.advance(2)
        bench.company.start_turns()
        assert replies(await bench.idle(conversation)) == [FAILED]
        assert calls.turns == []
    assert "begun 3 times" in caplog.text


async def test_so_many_turns_run_side_by_side() -> None:
    """The others wait their turn, and none is forgotten."""
    calls = Calls(waits=True)
    async with company_bench(handler=calls.answer, turns_at_once=2) as bench:
        conversations = [(await bench.start(str(n))).json["conversation_id"] for n in range(5)]
        while calls.side_by_side < 2:
            await bench.tick()
        calls.go.set()
        for n, conversation in enumerate(conversations):
            assert replies(await bench.idle(conversation)) == [f"re {n}"]
        assert calls.most == 2


@pytest.mark.parametrize("sub", ["usr_0", None])
async def test_slow_turns_of_one_client_keep_nobody_else_from_theirs(sub: str | None) -> None:
    """Of one User or of many: there is a place for another client, and what waited comes as soon as one has ended."""
    other, calls = AgentKeys("https://honest.example/agent.json"), Calls(waits=True)

    async def answer(turn: Turn) -> str:
        if turn.client_id == other.client_id:
            return "re honest"
        return await calls.answer(turn)

    async with company_bench(handler=answer, turns_at_once=8, turns_per_client=6, lease=300) as bench:
        bench.documents.publish(other)
        users = [sub or f"usr_{n}" for n in range(12)]
        all_of_them = [
            (await bench.start(f"{n}", sub=user, sid=f"sid_{user}")).json["conversation_id"]
            for n, user in enumerate(users)
        ]
        most = 6 if sub is None else 4
        while calls.side_by_side < most:
            await bench.tick()
        mine = (await bench.start(agent=other)).json["conversation_id"]
        while (page := await bench.read(mine, agent=other)).json["status"] != "idle":
            await bench.tick()
        assert (replies(page), calls.most) == (["re honest"], most)
        bench.clock.advance(61)
        assert (await bench.company.health()).status == 200, "who waits for a place of their own is no fault"
        calls.go.set()
        for n, (user, conversation) in enumerate(zip(users, all_of_them, strict=True)):
            while (page := await bench.read(conversation, sub=user, sid=f"sid_{user}")).json["status"] != "idle":
                await bench.tick()
            assert replies(page) == [f"re {n}"]
        assert calls.most == most


async def test_stop_gives_running_turns_back() -> None:
    """Another runner has them at once, though the lease has long to go, and it counts as the first attempt."""
    calls = Calls(waits=True)
    store = MemoryStore()
    async with company_bench(handler=calls.answer, store=store) as one:
        conversation = (await one.start()).json["conversation_id"]
        await calls.called.wait()
        one.company.stop()
        while calls.side_by_side:
            await one.tick()
        calls.go.set()
        async with company_bench(handler=calls.answer, store=store, agent=one.agent) as two:
            assert replies(await two.idle(conversation)) == ["re Hello"]
    assert [turn.attempt for turn in calls.turns] == [1, 1]
    assert len({turn.id for turn in calls.turns}) == 1


async def test_a_turn_whose_task_never_began_is_given_back_too() -> None:
    """It was leased in the moment of the stop."""
    calls = Calls()
    async with company_bench(handler=calls.answer, turns=False) as bench:
        log = await log_of(bench)
        lease = log.lease
        released: list[Any] = []

        async def stops(*arguments: Any, **options: Any) -> Any:
            bench.company.stop()
            return await lease(*arguments, **options)

        async def released_too(lease: Any) -> None:
            released.append(lease)

        log.lease, log.release = stops, released_too
        await bench.start()
        await bench.company.start_turns()
        assert (len(released), calls.turns) == (1, [])


async def test_a_store_that_fails_at_the_end_keeps_nobody_from_ending(caplog: pytest.LogCaptureFixture) -> None:
    """The turn is due when its lease is over."""
    calls = Calls(waits=True)
    async with company_bench(handler=calls.answer) as bench:
        log = await log_of(bench)

        async def fails(lease: Any) -> None:
            raise StoreFailed("closed")

        log.release = fails
        await bench.start()
        await calls.called.wait()
    assert "is due when its lease is over" in caplog.text


async def test_c78_a_turn_that_was_taken_over_ends_its_handler_and_says_nothing() -> None:
    """Its lease ran out while this process was paused; the new holder's word counts."""
    calls = Calls(waits=True)
    async with company_bench(handler=calls.answer) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        await calls.called.wait()
        log, limits, now = await log_of(bench), bench.company.limits, bench.clock.now()
        await bench.sleepers(2)
        late = now + limits.lease + 1
        taken = await log.lease("other", TurnId("trn_2"), now=late, until=late + limits.lease)
        assert taken.lease.turn_id == calls.turns[0].id
        bench.clock.advance(limits.lease_renewed)
        while calls.side_by_side:
            await bench.tick()
        calls.go.set()
        assert replies(await bench.read(conversation)) == []


async def test_c78_an_outcome_that_comes_too_late_is_dropped(caplog: pytest.LogCaptureFixture) -> None:
    """The journal knows the newest lease."""
    calls = Calls(waits=True)
    async with company_bench(handler=calls.answer) as bench:
        caplog.set_level(logging.WARNING)
        conversation = (await bench.start()).json["conversation_id"]
        await calls.called.wait()
        log, late = await log_of(bench), bench.clock.now() + bench.company.limits.lease + 1
        await log.lease("other", TurnId("trn_2"), now=late, until=late + 30)
        calls.go.set()
        while "taken over" not in caplog.text:
            await bench.tick()
        assert replies(await bench.read(conversation)) == []


async def test_a_lease_is_renewed_while_the_handler_runs(caplog: pytest.LogCaptureFixture) -> None:
    """Also after a renewal that the store could not make."""
    calls = Calls(waits=True)
    async with company_bench(handler=calls.answer) as bench:
        log, renewed = await log_of(bench), asyncio.Event()
        until: list[float] = []
        renew = log.renew

        async def fails_once(lease: Any, at: float) -> bool:
            log.renew = noted
            raise StoreFailed("locked")

        async def noted(lease: Any, at: float) -> bool:
            until.append(at)
            renewed.set()
            return await renew(lease, at)

        log.renew = fails_once
        conversation = (await bench.start()).json["conversation_id"]
        await calls.called.wait()
        for _ in range(2):
            await bench.sleepers(2)
            bench.clock.advance(bench.company.limits.lease_renewed)
        await renewed.wait()
        calls.go.set()
        assert replies(await bench.idle(conversation)) == ["re Hello"]
        assert until == [bench.clock.now() + bench.company.limits.lease]
    assert "cannot be renewed" in caplog.text


async def test_c40_a_post_that_nobody_would_answer_names_the_remedy() -> None:
    """It is a mistake of the set-up. Reads go on; so do posts where another process runs the turns."""
    async with company_bench() as bench:
        conversation = (await bench.start()).json["conversation_id"]
        await bench.idle(conversation)
        (runner,) = [task for task in asyncio.all_tasks() if "Wired._run" in repr(task)]
        runner.cancel()
        await asyncio.wait({runner})
        with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.turn-runner") as caught:
            await bench.say(conversation)
        assert "running(company" in caught.value.description
        assert (await bench.read(conversation)).status == 200
        health = await bench.company.health()
        assert (health.status, b"no turn runner" in health.body) == (503, True)
    async with company_bench(turns=False) as bench:
        assert (await bench.start()).status == 201


async def test_turns_are_run_once_in_a_process() -> None:
    """A second runner of one Company is a mistake."""
    async with company_bench() as bench:
        with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.turn-runner"):
            bench.company.start_turns()


async def test_a_sweep_that_fails_is_made_again(caplog: pytest.LogCaptureFixture) -> None:
    """A minute later."""
    async with company_bench() as bench:
        tables: Any = await bench.company.store.tables(bench.company.id)
        swept, sweep = asyncio.Event(), tables.sessions.sweep

        async def fails_once(**options: float) -> int:
            tables.sessions.sweep = noted
            raise StoreFailed("locked")

        async def noted(**options: float) -> int:
            swept.set()
            return await sweep(**options)

        tables.sessions.sweep = fails_once
        for _ in range(2):
            await bench.sleepers(1)
            bench.clock.advance(60)
        await swept.wait()
    assert "cannot be swept" in caplog.text


def test_outcomes_are_read_as_they_were_written() -> None:
    """The form of the journal."""
    row = b'{"failed":false,"messages":[{"id":"m","author":{"type":"agent","id":null,"name":null,"image":null},'
    outcome = read_outcome(row + b'"text":"Hi","data":null}]}')
    assert [message.text for message in outcome.messages] == ["Hi"]
