"""Event streams of a Company (8.6): who gets one, what is in it, and what ends it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from papaver.ports.deltas import Delta
from papaver.protocol.terms import ClientId, ConversationId, MessageId, SessionId
from papaver.testing.company import CompanyBench, company_bench
from papaver.web.messages import Response
from papaver.web.sse import MEDIA_TYPE

pytestmark = pytest.mark.anyio

CLIENT, SID = ClientId("https://agent.example/agent.json"), SessionId("sid_Yx2b7Qd")


async def started(bench: CompanyBench, **claims: Any) -> tuple[str, str]:
    """A conversation with nothing left to do, and the cursor at its end."""
    conversation = (await bench.start(**claims)).json["conversation_id"]
    page = await bench.read(conversation, **claims)
    return conversation, page.json["cursor"]


async def publish(bench: CompanyBench, conversation: str, *deltas: Delta) -> None:
    """As a turn does that writes."""
    tables: Any = await bench.company.store.tables(bench.company.id)
    for delta in deltas:
        tables.deltas.publish(ConversationId(conversation), delta)


@pytest.mark.requirement("8.6-01", "8.6-04")
async def test_a_read_that_asks_for_a_stream_gets_what_a_page_has() -> None:
    """The id of each event is the id of the SSE event, its JSON the data; what follows comes as it happens."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        async with await bench.stream(conversation) as stream:
            assert stream.status == 200
            assert stream.headers.all("content-type") == (MEDIA_TYPE,)
            page = (await bench.read(conversation)).json["events"]
            events = [await stream.event() for _ in page]
            assert [(event.id, event.event, json.loads(event.data)) for event in events if event] == [
                (event["id"], "message", event) for event in page
            ]
            await bench.say(conversation, "more")
            event = await stream.event()
            assert event is not None
            assert json.loads(event.data)["message"]["text"] == "more"
            assert bench.company.held == 1
        assert bench.company.held == 0
        later = await bench.read(conversation, f"cursor={cursor}")
        assert [later.json["events"][0]["id"]] == [event.id]
