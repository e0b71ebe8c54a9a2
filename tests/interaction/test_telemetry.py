"""What a running Company tells of itself: requests, turns and hooks, and nothing that was said or is secret."""

from __future__ import annotations

import asyncio

import pytest
from opentelemetry.trace import StatusCode

from papaver.company.app import Company
from papaver.company.hooks import Cancelled
from papaver.company.turn import Turn
from papaver.protocol.terms import ConversationId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import company_bench
from tests.house.telemetry import Received

pytestmark = pytest.mark.anyio

SECRET = "my card is 4111-1111"


async def answer(turn: Turn) -> str:
    if turn.text == "needs":
        turn.require("orders:read")
    if turn.text == "breaks":
        raise ValueError(SECRET)
    return "Done."


def shop() -> Company:
    company = Company(
        domain="example.com",
        name="Example",
        base_url="https://api.example.com/poppy",
        store=MemoryStore(),
        staffed=True,
    )
    company.conversation(answer)
    return company


async def test_requests_turns_and_hooks_are_told() -> None:
    """By route, status and outcome; gauges say what goes on."""
    sdk, company, told = Received(), shop(), asyncio.Event()

    @company.hooks.cancelled
    async def cancelled(_: Cancelled) -> None:
        told.set()

    async with company_bench(company, telemetry=sdk.telemetry) as bench:
        for text in ("Hello", "needs", "breaks"):
            await bench.idle((await bench.start(text)).json["conversation_id"])
        conversation = (await bench.start("Hello")).json["conversation_id"]
        await bench.idle(conversation)
        await bench.send("POST", f"/{conversation}/handoff", {})
        while (await company.staff.look(ConversationId(conversation))).head.handoff_pending:
            await bench.tick()
        await company.people.unavailable(ConversationId(conversation))
        await bench.send("POST", f"/{conversation}/handoff", {})
        await bench.send("POST", f"/{conversation}/close", {})
        await told.wait()
        assert (await bench.read("cnv_unknown")).status == 404
        await bench.send("GET", "/a/b/c/d")
        metrics = sdk.metrics()
    outcomes = {point["papaver.outcome"] for point, _ in metrics["papaver.turns"]}
    assert {"answered", "needs_scopes", "failed", "handoff"} <= outcomes
    names = ("papaver.method", "papaver.route", "papaver.status")
    routes = {tuple(point[name] for name in names) for point, _ in metrics["papaver.requests"]}
    assert {("POST", "/", 201), ("GET", "/{id}/events", 200), ("GET", "/{id}/events", 404)} <= routes
    assert ("POST", "/{id}/handoff", 202) in routes
    assert ("GET", "other", 404) in routes
    assert ({"papaver.kind": "cancelled", "papaver.outcome": "done"}, 1) in metrics["papaver.hooks"]
    assert metrics["papaver.held"] == [({}, 0)]


async def test_nothing_that_was_said_or_is_secret_is_told() -> None:
    """No header value, no text, no User ID, not even what a handler raises."""
    sdk, company = Received(), shop()
    async with company_bench(company, telemetry=sdk.telemetry) as bench:
        begun = await bench.start(SECRET)
        await bench.idle(begun.json["conversation_id"])
        await bench.idle((await bench.start("breaks")).json["conversation_id"])
        header = bench.agent.header("GET", "https://api.example.com/x", company.id, now=bench.clock.now())
    told = "".join(span.to_json() for span in sdk.spans.get_finished_spans()) + repr(sdk.metrics())
    assert "papaver.turn" in told
    for hidden in (SECRET, "4111", "usr_", header.partition(".")[0]):
        assert hidden not in told
    assert not [span for span in sdk.spans.get_finished_spans() if span.status.status_code is StatusCode.ERROR]
