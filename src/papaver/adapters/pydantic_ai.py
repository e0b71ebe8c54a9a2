"""A Company Agent from a pydantic-ai agent: it is offered the Company's tools and no others, and streams its text."""

from __future__ import annotations

from collections.abc import AsyncIterable, Awaitable, Callable, Sequence
from typing import Any, Final

from pydantic_ai import Agent, ModelRetry, RunContext, ToolFailed, UsageLimits
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from papaver.company.company_agent import Tool, ToolError, render_for_model, render_message
from papaver.company.company_agent.rendering import fenced
from papaver.company.turn import Turn
from papaver.protocol.conversation.model import AuthorType, Message, Role

__all__ = ["PydanticAgent", "settled", "spoken"]

SETTLED: Final = (
    "This call has no result, because its turn ended before. Nothing is known of it: do not say that it was done."
)
_TRIES: Final = 2
_EARLIER: Final = 50
_OBJECT: Final = SchemaValidator(core_schema.dict_schema(core_schema.str_schema()))

History = Callable[[Turn], Awaitable[Sequence[ModelMessage]]]
"""What an application kept of earlier runs, in place of what was said in the conversation."""


class PydanticAgent:
    """`company.conversation(PydanticAgent(agent))`.

    The agent's own tools, toolsets and native tools are not used: what a Personal Agent's request may lead to is
    declared in `Company(company_agent=CompanyAgent(tools))`. The turn is the agent's dependencies. What the User's side
    says comes as fenced data in the prompt; a call that the User's token does not cover ends the turn, together with
    all calls that the model made beside it, before any of them runs (8.11).

    `history`  replaces the conversation as message history; calls in it that have no result are settled
    `stream`   False for a model that cannot; readers then get the reply whole
    """

    def __init__(
        self,
        agent: Agent[Turn, str],
        *,
        history: History | None = None,
        usage_limits: UsageLimits | None = None,
        stream: bool = True,
    ) -> None:
        self._agent, self._history, self._limits, self._stream = agent, history, usage_limits, stream

    async def run(self, turn: Turn) -> str:
        """The reply. Raises what the model's library raises, and ScopesNeeded."""
        history = await spoken(turn) if self._history is None else settled(await self._history(turn))
        with self._agent.override(tools=(), toolsets=[_TurnToolset(turn)], native_tools=()):
            async with self._agent.iter(
                render_for_model(turn), deps=turn, message_history=history, usage_limits=self._limits
            ) as run:
                async for node in run:
                    if Agent.is_model_request_node(node) and self._stream:
                        async with node.stream(run.ctx) as events:
                            await _write(turn, events)
                    elif Agent.is_call_tools_node(node):
                        calls = node.model_response.tool_calls
                        turn.tools.check(*((call.tool_name, call.args or {}) for call in calls))
        assert run.result is not None
        return run.result.output


async def _write(turn: Turn, events: AsyncIterable[object]) -> None:
    """Say the text of one response as it comes, apart from that of the one before."""
    begun = False
    async for event in events:
        match event:
            case PartStartEvent(part=TextPart(content=piece)):
                pass
            case PartDeltaEvent(delta=TextPartDelta(content_delta=piece)):
                pass
            case _:
                continue
        if piece and not begun and turn.written:
            await turn.write("\n\n")
        begun = begun or bool(piece)
        await turn.write(piece)


class _TurnToolset(AbstractToolset[Turn]):
    """The tools that one turn offers; each call goes the way of `turn.tools.call`."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn

    @property
    def id(self) -> str | None:
        return None

    async def get_tools(self, ctx: RunContext[Turn]) -> dict[str, ToolsetTool[Turn]]:
        return {tool.name: self._offered(tool) for tool in self._turn.tools.offered()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Turn], tool: ToolsetTool[Turn]
    ) -> object:
        try:
            return await self._turn.tools.call(name, tool_args)
        except ToolError as error:
            if error.rule == "tool.arguments":
                raise ModelRetry(error.description) from None
            raise ToolFailed(error.description) from None

    def _offered(self, tool: Tool) -> ToolsetTool[Turn]:
        shown = ToolDefinition(
            name=tool.name, description=tool.description, parameters_json_schema=dict(tool.arguments.schema)
        )
        return ToolsetTool(toolset=self, tool_def=shown, max_retries=_TRIES, args_validator=_OBJECT)


async def spoken(turn: Turn) -> list[ModelMessage]:
    """What was said before the unanswered messages, as message history.

    In a Direct Conversation it begins with the newest of what was said in the earlier one (8.10).
    """
    unanswered = {message.id for message in turn.messages}
    earlier: list[ModelMessage] = []
    async for message in turn.parent_history():
        if len(earlier) == _EARLIER:
            break
        earlier.append(_said(turn, message))
    here = (one for one in turn.transcript if one.role is Role.COMPANY or one.id not in unanswered)
    return [*reversed(earlier), *(_said(turn, one) for one in here)]


def _said(turn: Turn, message: Message) -> ModelMessage:
    if message.role is Role.USER:
        return ModelRequest(parts=[UserPromptPart(render_message(turn, message))])
    text = message.text or fenced(message.data or {})
    if message.author.type is AuthorType.HUMAN:
        text = f"(A person of the Company wrote this.)\n{text}"
    return ModelResponse(parts=[TextPart(text)])


def settled(history: Sequence[ModelMessage]) -> list[ModelMessage]:
    """The same with a result for each call that has none: a turn that died would else break every one after it."""
    found: list[ModelMessage] = []
    for n, message in enumerate(history):
        found.append(message)
        if not isinstance(message, ModelResponse) or not message.tool_calls:
            continue
        following = history[n + 1] if n + 1 < len(history) else None
        parts = following.parts if isinstance(following, ModelRequest) else ()
        ended = {getattr(part, "tool_call_id", None) for part in parts}
        left = [call for call in message.tool_calls if call.tool_call_id not in ended]
        if left:
            found.append(
                ModelRequest(parts=[ToolReturnPart(call.tool_name, SETTLED, call.tool_call_id) for call in left])
            )
    return found
