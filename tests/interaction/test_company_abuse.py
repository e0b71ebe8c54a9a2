"""What one User, one client or a stranger tries to take from all others, and how much of it a Company gives."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from papaver.adapters.httpx2.transport import MAX_BYTES
from papaver.company import Turn
from papaver.company.settings import CompanyLimits
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import AgentKeys
from papaver.testing.pair import pair
from papaver.versions.v0_4.conversations import MAX_ANSWER_BYTES, MAX_BODY_BYTES

pytestmark = pytest.mark.anyio


async def tell(bench: CompanyBench, conversation: str, **members: object) -> Answer:
    return await bench.send("POST", f"/{conversation}/messages", {"message": bench.message(None, **members)})


@pytest.mark.requirement("papaver-25")
async def test_a_context_cannot_grow_with_every_message() -> None:
    """What would make it too large is refused and not recorded; the same fields said anew, or cleared, are taken."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        first = {f"first_{n}": "x" * 100 for n in range(60)}
        statuses = [
            (await tell(bench, conversation, context=context)).status
            for context in (
                first,
                {f"second_{n}": n for n in range(60)},
                first,
                dict.fromkeys(first),
                {"a": "x" * 16_384},
            )
        ]
        assert statuses == [202, 413, 202, 202, 413]
        answer = await bench.send("POST", "", {"message": bench.message(context={"a": "x" * 16_384})})
        assert (answer.status, answer.error) == (413, "invalid_request")
        assert len((await bench.read(conversation)).json["events"]) == 4
        assert (await tell(bench, conversation, context={"second": 1})).status == 202


async def test_a_company_may_take_less_context() -> None:
    """`context_bytes` is a setting."""
    async with company_bench(turns=False, context_bytes=256) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        assert (await tell(bench, conversation, context={"a": "x" * 248})).status == 202
        assert (await tell(bench, conversation, context={"a": "x" * 249})).status == 413


async def test_a_refused_message_leaves_nothing_but_its_session() -> None:
    """No event, no receipt, no replay key: its JWT and its id are as good as new."""
    async with company_bench(turns=False, context_bytes=256) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        url, large = f"/{conversation}/messages", bench.message(context={"a": "x" * 256})
        refused = [await bench.send("POST", url, {"message": large}, jti="jti_1") for _ in range(2)]
        assert [(answer.status, answer.error) for answer in refused] == [(413, "invalid_request")] * 2
        small = {"message": {**large, "context": {"a": "x"}}}
        taken = [await bench.send("POST", url, small, jti="jti_1") for _ in range(2)]
        assert [(answer.status, answer.error) for answer in taken] == [(202, None), (400, "invalid_session")]
        assert len((await bench.read(conversation)).json["events"]) == 2


@pytest.mark.requirement("papaver-26")
async def test_a_page_of_long_messages_ends_before_it_is_too_large() -> None:
    """So many as have a mebibyte, and `has_more`; whoever goes on gets them all."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        for _ in range(9):
            assert (await tell(bench, conversation, data={"x": "y" * 250_000})).status == 202
        page, sizes = await bench.read(conversation), list[int]()
        while page.json["events"]:
            sizes.append(len(page.response.body))
            assert page.json["has_more"] is (len(sizes) < 3)
            page = await bench.read(conversation, f"cursor={page.json['cursor']}")
        assert [size // 250_000 for size in sizes] == [4, 4, 1]


@pytest.mark.requirement("papaver-26")
async def test_our_own_agent_reads_every_page_that_a_company_may_write() -> None:
    """However high the limit is set: one more message of the largest kind still fits into an answer."""
    (highest,) = (one.metadata["high"] for one in fields(CompanyLimits) if one.name == "page_bytes")
    assert 2 * highest + MAX_BODY_BYTES < MAX_ANSWER_BYTES <= MAX_BYTES
    async with pair() as both:
        conversation = await (await both.agent.discover("example.com")).session("dana").ask("Hi")
        for _ in range(43):
            await conversation.say("x", data={"k": "y" * 250_000})
            both.clock.advance(1)
        assert len([event async for event in conversation.events()]) > 43


async def test_a_turn_is_not_given_all_the_octets_that_were_ever_said(tmp_path: Path) -> None:
    """The newest of them, those that it answers, and the rest when it asks for them."""
    seen: list[tuple[int, int, int]] = []

    async def count(turn: Turn) -> None:
        seen.append((len(turn.messages), len(turn.transcript), len([one async for one in turn.history()])))

    async with company_bench(handler=count, store=SqliteStore(tmp_path / "store.db"), transcript_bytes=1200) as bench:
        conversation = (await bench.start("x" * 300)).json["conversation_id"]
        for text in ("y" * 300, "z" * 300, "last " * 300):
            await bench.idle(conversation)
            await bench.say(conversation, text)
        await bench.idle(conversation)
    assert seen == [(1, 1, 0), (1, 2, 0), (1, 2, 1), (1, 1, 3)]


@pytest.mark.requirement("papaver-27")
async def test_an_address_far_over_its_limit_costs_no_signature_check_more() -> None:
    """Up to ten times its limit a neighbour behind the same address is served; from then on nobody of it is."""
    async with company_bench(turns=False, requests_per_address=3) as bench:
        verified: list[str] = []
        sessions: Any = bench.company.sessions
        verify = sessions._verify

        async def counted(*arguments: Any) -> Any:
            verified.append("once")
            return await verify(*arguments)

        sessions._verify = counted
        forged = [(await bench.start(iat=1)).status for _ in range(40)]
        assert (forged, len(verified)) == ([400] * 3 + [429] * 37, 31)
        answer = await bench.start()
        assert (answer.status, answer.error, len(verified)) == (429, "rate_limited", 31)
        assert (await bench.start(peer="192.0.2.8")).status == 201
        bench.clock.advance(int(answer.headers.first("retry-after") or "0"))
        assert (await bench.start()).status == 201
        assert (await bench.start()).status == 201


async def test_a_flood_through_our_own_proxy_keeps_nobody_out() -> None:
    """It hides who they are: what verifies is served, as ever."""
    async with company_bench(turns=False, requests_per_address=3) as bench:
        forged = [(await bench.start(iat=1, peer="127.0.0.1")).status for _ in range(40)]
        assert forged == [400] * 3 + [429] * 37
        assert (await bench.start(peer="127.0.0.1")).status == 201


async def test_strangers_leave_no_rows_for_ever(tmp_path: Path) -> None:
    """Neither those whose documents came and went, nor those who proved themselves once."""

    def rows() -> list[int]:
        with closing(sqlite3.connect(tmp_path / "store.db")) as file:
            return [file.execute(f"SELECT count(*) FROM {table}").fetchone()[0] for table in ("documents", "clients")]

    strangers = [AgentKeys(f"https://s{n}.example/agent.json") for n in range(5)]
    many: dict[str, Any] = {"fetches_per_address": 1000, "fetches_in_all": 1000}
    async with company_bench(turns=False, store=SqliteStore(tmp_path / "store.db"), **many) as bench:
        for stranger in strangers:
            bench.documents.publish(stranger)
            unproven = await bench.start(agent=AgentKeys(stranger.client_id), peer="192.0.2.8")
            assert unproven.error == "invalid_session"
        bench.documents.bodies.clear()
        bench.clock.advance(61)
        for stranger in strangers:
            assert (await bench.start(agent=stranger)).error == "invalid_session"
        assert rows() == [0, 0]
        bench.clock.advance(61)
        for stranger in strangers:
            bench.documents.publish(stranger)
            assert (await bench.start(agent=stranger)).status == 201
        assert rows() == [10, 5]
        await bench.company.sessions.sweep()
        assert rows() == [10, 5]
        bench.clock.advance(31 * 86_400)
        assert await bench.company.sessions.sweep() == 5
        assert rows() == [0, 0]
