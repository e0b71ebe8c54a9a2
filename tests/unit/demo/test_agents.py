"""The outfitter's agent as a function, as a generator and as a model's agent: one shop, one story."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from papaver.company.company_agent import CompanyAgent
from papaver.demo.outfitter.agents import AGENTS, agent_of, tools_of
from papaver.demo.outfitter.database import ACCOUNTS, Shop
from papaver.testing.company import company_bench
from tests.house.company_tokens import SCOPES, TokenTable, bearer
from tests.house.tool_shop import ask, reply, story

pytestmark = pytest.mark.anyio


@pytest.fixture(name="shop")
def fill_shop(tmp_path: Path) -> Shop:
    """Filled from a seed."""
    shop = Shop(tmp_path / "shop.db")
    shop.fill(7)
    return shop


def settings(kind: str, shop: Shop, passed: list[str]) -> dict[str, Any]:
    """A Company with that agent, and a token of the first account that reads and one that writes."""
    table = TokenTable()
    table.issue("reads", ACCOUNTS[0], "orders:read")
    table.issue("writes", ACCOUNTS[0], "orders:read", "orders:write")
    return {
        "handler": agent_of(kind, shop, passed.append),
        "company_agent": CompanyAgent(tools_of(shop)),
        "sign_in": table,
        "scopes": SCOPES,
    }


@pytest.mark.parametrize("kind", AGENTS)
async def test_each_agent_answers_of_the_same_shop(kind: str, shop: Shop) -> None:
    """What anybody may know, an order of the account, an exchange by a token that may; a gate before each answer."""
    (order, *_) = shop.orders(ACCOUNTS[0])
    passed: list[str] = []
    exchange = f"Please exchange order #{order.number} for size XL."
    async with company_bench(**settings(kind, shop, passed)) as bench:
        assert "Unworn articles can be returned" in reply(await ask(bench, "How long may I send returns?"))["text"]
        assert story(await ask(bench, f"Where is order #{order.number}?"))[1:] == ["needs orders:read", "idle"]
        found = reply(await ask(bench, f"Where is order #{order.number}?", **bearer("reads")))["text"]
        assert found.startswith(f"Order #{order.number} ({order.sku}) is {order.status};")
        assert story(await ask(bench, exchange, **bearer("reads")))[1:] == ["needs orders:read orders:write", "idle"]
        done = reply(await ask(bench, exchange, **bearer("writes")))["text"]
        assert done.startswith(f"Done: order #{order.number} will be exchanged for ")
        asked = reply(await ask(bench, f"Exchange order #{order.number}", **bearer("writes")))["text"]
        assert asked.startswith("Which size would you like instead")
    assert passed.count("before") == 6


async def test_the_model_s_agent_tells_of_its_actions(shop: Shop) -> None:
    """In `data` too; what did not come off is told as that, in the shop's words."""
    (order, *_) = shop.orders(ACCOUNTS[0])
    async with company_bench(**settings("pydantic-ai", shop, [])) as bench:
        done = reply(await ask(bench, f"Exchange order #{order.number} in XL", **bearer("writes")))
        (action,) = done["data"]["actions"]
        assert (action["tool"], action["status"]) == ("exchange_order", "succeeded")
        assert done["text"].endswith(f"Exchange of order #{order.number}: done.\nfor size XL")
        none = reply(await ask(bench, "Exchange order #999 in size M", **bearer("writes")))
        assert none["text"] == "Exchange of order #999: this did not work. You have no order #999.\nfor size M"


def test_there_is_no_other_agent(shop: Shop) -> None:
    """A mistyped setting says what there is."""
    with pytest.raises(ValueError, match="expected one of function, generator, pydantic-ai"):
        agent_of("model", shop, print)
