"""The sample about accounts does what its page says."""

from __future__ import annotations

from typing import Any

import pytest

from docs_src.company_account import with_the_account
from papaver.testing.company import company_bench
from tests.house.company_tokens import SCOPES, TokenTable, bearer

pytestmark = pytest.mark.anyio


async def test_a_handler_asks_for_the_account_when_it_needs_it() -> None:
    """Public questions are answered signed out; an action is asked for by an event, and done with a token."""
    table = TokenTable()
    writes = bearer(table.issue("writes", "acc_a", "orders:read", "orders:write"))
    settings: dict[str, Any] = {"handler": with_the_account, "sign_in": table, "scopes": SCOPES}
    async with company_bench(**settings) as bench:
        opened = await bench.start("When are you open?", query="wait=5")
        assert opened.json["events"][1]["message"]["text"] == "We are open from nine to five."
        asked = await bench.start("Please cancel it.", query="wait=5")
        assert [event["type"] for event in asked.json["events"]] == ["message", "authorization", "state"]
        here, cursor = asked.json["conversation_id"], asked.json["cursor"]
        await bench.read(here, **writes)
        page = await bench.read(here, f"cursor={cursor}", **writes)
        while page.json["status"] != "idle":
            page = await bench.read(here, f"cursor={page.json['cursor']}&wait=5", **writes)
        (said,) = [
            event["message"]["text"]
            for event in (await bench.read(here, f"cursor={cursor}", **writes)).json["events"]
            if event["type"] == "message"
        ]
        assert said == "Order 1042 of acc_a is cancelled."
