"""A shop whose tools note what they did, and a Company with accounts that has them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from papaver.company import Scope, Texts
from papaver.company.company_agent import CompanyAgent, Confirmation, ToolCall, ToolError, Tools
from papaver.testing.company import Answer, CompanyBench, company_bench
from tests.house.company_tokens import TokenTable, bearer

__all__ = [
    "DONE",
    "EXCHANGE",
    "HOME",
    "READ",
    "READS",
    "TEXTS",
    "WRITE",
    "WRITES",
    "Shop",
    "ask",
    "company",
    "exchanged",
    "reply",
    "story",
]

READS, WRITES = bearer("reads"), bearer("writes")
READ, WRITE, HOME = "orders:read", "orders:write", "addresses"
SCOPES = (Scope(READ, "See orders"), Scope(WRITE, "Change orders"), Scope(HOME, "Change addresses"))
TEXTS = Texts()


class Shop:
    """Tools that note what they did."""

    def __init__(self) -> None:
        self.did: list[str] = []
        self.calls: list[ToolCall] = []
        self.tools = Tools()
        tool = self.tools.tool
        tool(public=True)(self.hours)
        tool(scopes={READ})(self.find)
        tool(scopes={READ, WRITE}, action=True, confirmation=exchanged)(self.exchange)
        tool(scopes={HOME}, action=True)(self.move)
        tool(roles={"staff"})(self.margins)

    async def hours(self, call: ToolCall) -> str:
        self.calls.append(call)
        return "nine to five"

    async def find(self, call: ToolCall, number: int) -> dict[str, object]:
        self.calls.append(call)
        return {"number": number, "of": call.account_id}

    async def exchange(self, call: ToolCall, number: int, size: str) -> dict[str, str]:
        self.calls.append(call)
        if number == 0:
            raise RuntimeError("password is hunter2")
        if number == 1:
            raise ToolError("Order 1 was sent already.")
        self.did.append(f"{number}{size} of {call.account_id}")
        return {"sku": f"boot-{size}"}

    async def move(self, call: ToolCall, street: str) -> None:
        self.did.append(street)

    async def margins(self, call: ToolCall) -> int:
        return 40


def exchanged(given: Mapping[str, Any]) -> Confirmation:
    return Confirmation(f"Exchange order {given['number']}", f"for size {given['size']}")


@asynccontextmanager
async def company(handler: Any, agent: CompanyAgent, **options: Any) -> AsyncGenerator[CompanyBench]:
    """Tokens of account A: one reads, one writes too, one does everything."""
    table = TokenTable()
    table.issue("reads", "acc_a", READ)
    table.issue("writes", "acc_a", READ, WRITE)
    table.issue("all", "acc_a", READ, WRITE, HOME)
    settings: dict[str, Any] = {
        "handler": handler,
        "sign_in": table,
        "scopes": SCOPES,
        "company_agent": agent,
        **options,
    }
    async with company_bench(**settings) as bench:
        yield bench


async def ask(bench: CompanyBench, text: str = "Please", **who: Any) -> Answer:
    return await bench.start(text, query="wait=5", **who)


def story(page: Answer) -> list[str]:
    """Each event in a few words."""
    found: list[str] = []
    for event in page.json["events"]:
        match event["type"]:
            case "message":
                found.append(f"{event['message']['role']}: {event['message'].get('text')}")
            case "authorization":
                found.append(f"needs {event['scope']}")
            case _:
                found.append(event["status"])
    return found


def reply(page: Answer) -> dict[str, Any]:
    """The last message of the Company."""
    messages: list[dict[str, Any]] = [event["message"] for event in page.json["events"] if event["type"] == "message"]
    return next(message for message in reversed(messages) if message["role"] == "company")


EXCHANGE: dict[str, object] = {"number": 7, "size": "M"}
DONE = "Exchange order 7: done.\nfor size M"
