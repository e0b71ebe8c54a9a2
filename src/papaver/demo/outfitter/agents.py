"""The outfitter's Company Agent in each form that a Company may give it: a function, a generator, a model's agent.

All three say the same of the same shop. The third is a pydantic-ai agent whose model is a function of ours: it calls
the shop's tools as a model would, and asks nobody on the network.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from papaver.company import Handler, Turn
from papaver.company.company_agent import Confirmation, ToolCall, ToolError, Tools
from papaver.company.turn import Runs
from papaver.demo.outfitter.answers import EXCHANGE, ORDER, READ, SIZE, WRITE, answer, answer_turn, exchange, order
from papaver.demo.outfitter.database import Shop

if TYPE_CHECKING:
    from pydantic_ai.messages import ModelMessage
    from pydantic_ai.models.function import AgentInfo, DeltaToolCall

__all__ = ["AGENTS", "agent_of", "tools_of"]

AGENTS: Final = ("function", "generator", "pydantic-ai")

Call = tuple[str, Mapping[str, object]]


def agent_of(kind: str, shop: Shop, ready: Callable[[str], None]) -> Handler | Runs:
    """What answers. `ready` is called in a thread "before" each answer and "within" one in pieces, and may block.

    Raises ValueError.
    """
    if kind not in AGENTS:
        raise ValueError(f"OUTFITTER_AGENT is {kind!r}, expected one of {', '.join(AGENTS)}")

    def say(turn: Turn) -> str:
        ready("before")
        return answer_turn(shop, turn)

    async def whole(turn: Turn) -> str:
        return await asyncio.to_thread(say, turn)

    async def in_pieces(turn: Turn) -> AsyncIterator[str]:
        pieces = re.findall(r"\S+\s*", await whole(turn))
        for number, piece in enumerate(pieces):
            if number == len(pieces) // 2:
                await asyncio.to_thread(ready, "within")
            yield piece

    if kind == "pydantic-ai":
        return _with_a_model(ready)
    return whole if kind == "function" else in_pieces


def tools_of(shop: Shop) -> Tools:
    """What the shop's agent can do: anybody may ask about articles, an order needs its account."""
    tools = Tools()

    @tools.tool(public=True)
    async def look_up(call: ToolCall, question: str) -> str:
        """Answers what anybody may know: articles, prices, stock, policies."""
        return await asyncio.to_thread(answer, shop, question)

    @tools.tool(scopes={READ})
    async def find_order(call: ToolCall, number: int) -> str:
        """Says how an order of the account is."""
        return await asyncio.to_thread(order, shop, number, str(call.account_id))

    @tools.tool(scopes={READ, WRITE}, action=True, confirmation=_exchange)
    async def exchange_order(call: ToolCall, number: int, size: str) -> str:
        """Exchanges an order of the account for another size."""
        said = await asyncio.to_thread(exchange, shop, call.key, number, str(call.account_id), size)
        if not said.startswith("Done"):
            raise ToolError(said)
        return said

    return tools


def _exchange(given: Mapping[str, Any]) -> Confirmation:
    return Confirmation(f"Exchange of order #{given['number']}", f"for size {given['size']}")


def _with_a_model(ready: Callable[[str], None]) -> Runs:
    """An agent of pydantic-ai over a model that needs no network. Raises ImportError without its extra."""
    from pydantic_ai import Agent
    from pydantic_ai.models.function import FunctionModel

    from papaver.adapters.pydantic_ai import PydanticAgent

    async def streamed(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        from pydantic_ai.models.function import DeltaToolCall

        step = await asyncio.to_thread(_step, messages, ready)
        if isinstance(step, str):
            for piece in re.findall(r"\S+\s*", step):
                yield piece
        else:
            name, arguments = step
            yield {0: DeltaToolCall(name, json.dumps(arguments), tool_call_id=f"call_{len(messages)}")}

    model = FunctionModel(stream_function=streamed)
    return PydanticAgent(Agent(model, deps_type=Turn, instructions="Answer for the outfitter, in one sentence or two."))


def _step(messages: list[ModelMessage], ready: Callable[[str], None]) -> str | Call:
    """What a model does next: call the tool that the newest message is about, then say what it returned."""
    from pydantic_ai.messages import ToolReturnPart, UserPromptPart

    last = messages[-1].parts[-1]
    if isinstance(last, ToolReturnPart):
        return str(last.content)
    ready("before")
    prompt = next(part for part in reversed(messages[-1].parts) if isinstance(part, UserPromptPart))
    shown = json.loads(re.sub(r"(?s).*?`{3,}json\n(.*)\n`{3,}\Z", r"\1", str(prompt.content)))
    question = "\n\n".join(message.get("text", "") for message in shown["messages"])
    found, size = ORDER.search(question), SIZE.search(question)
    if found is None:
        return "look_up", {"question": question}
    if not EXCHANGE.search(question):
        return "find_order", {"number": int(found[1])}
    if size is None:
        return "Which size would you like instead: S, M, L or XL?"
    return "exchange_order", {"number": int(found[1]), "size": size[1]}
