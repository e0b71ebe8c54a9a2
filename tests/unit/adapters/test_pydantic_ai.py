"""A Company Agent from a pydantic-ai agent, with the library's own test models: no network, no model."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import pytest
from pydantic_ai import Agent, RunContext, UsageLimits
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.models.test import TestModel

from papaver.adapters.pydantic_ai import SETTLED, PydanticAgent, settled
from papaver.company import Texts, Turn
from papaver.company.company_agent import ActionPolicy, CompanyAgent, ToolCall, Tools
from papaver.company.people import Person
from tests.house.tool_shop import DONE, EXCHANGE, WRITES, Shop, ask, company, reply, story

pytestmark = pytest.mark.anyio

Step = str | Sequence[tuple[str, Mapping[str, object] | str]]


def _text(arguments: Mapping[str, object] | str) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


class Script:
    """A model that says, one response after the other, a text or some calls; what it was shown is kept."""

    def __init__(self, *steps: Step) -> None:
        self._steps, self.asked = list(steps), list[list[ModelMessage]]()
        self.offered: list[str] = []
        self.native: list[Any] = []

    def _next(self, messages: list[ModelMessage], info: AgentInfo) -> Step:
        self.asked.append(list(messages))
        self.offered = [tool.name for tool in info.function_tools]
        self.native = list(info.model_request_parameters.native_tools)
        return self._steps.pop(0)

    async def __call__(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        step = self._next(messages, info)
        if isinstance(step, str):
            return ModelResponse(parts=[TextPart(step)])
        return ModelResponse(parts=[ToolCallPart(name, _text(arguments)) for name, arguments in step])

    async def stream(
        self, messages: list[ModelMessage], info: AgentInfo
    ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
        step = self._next(messages, info)
        if isinstance(step, str):
            for piece in step.split("|"):
                yield piece
            return
        for n, (name, arguments) in enumerate(step):
            yield {n: DeltaToolCall(name, _text(arguments), tool_call_id=f"call_{n}")}

    def results(self, n: int) -> list[Any]:
        """What the model was told of its calls when it was asked the nth time."""
        last = self.asked[n][-1]
        return [getattr(part, "content", None) for part in last.parts]


def scripted(script: Script, **options: Any) -> tuple[PydanticAgent, Agent[Turn, str]]:
    agent = Agent(FunctionModel(script, stream_function=script.stream), deps_type=Turn)
    return PydanticAgent(agent, **options), agent


@pytest.mark.parametrize("stream", [True, False])
async def test_a_model_calls_the_company_s_tools_and_answers(stream: bool) -> None:
    """Result by result, and the reply is its last response; its actions are told whatever it says."""
    shop, script = Shop(), Script([("find", {"number": 7})], [("exchange", EXCHANGE)], "All |good.")
    handler, _ = scripted(script, stream=stream)
    async with company(handler, CompanyAgent(shop.tools)) as bench:
        page = await ask(bench, **WRITES)
        text = "All good." if stream else "All |good."
        assert story(page)[1:] == [f"company: {text}\n\n{DONE}", "idle"]
        assert script.offered == ["hours", "find", "exchange", "move"]
        assert script.results(1) == [{"number": 7, "of": "acc_a"}]
        assert script.results(2) == [{"sku": "boot-M"}]
        assert shop.did == ["7M of acc_a"]


@pytest.mark.requirement("ca-35", "ca-37")
async def test_c24_a_response_with_a_refused_call_ends_the_turn_and_runs_none_of_its_calls() -> None:
    """The union of what the refused ones need; the model is not asked again."""
    shop = Shop()
    script = Script([("hours", {}), ("exchange", EXCHANGE), ("move", {"street": "Main"})], "unreached")
    handler, _ = scripted(script)
    async with company(handler, CompanyAgent(shop.tools)) as bench:
        assert story(await ask(bench))[1:] == ["needs orders:read orders:write addresses", "idle"]
        assert (shop.did, shop.calls, len(script.asked)) == ([], [], 1)


@pytest.mark.requirement("ca-28", "ca-29")
async def test_an_agent_s_own_tools_are_not_there() -> None:
    """Neither to be seen nor to be called: a tool without a gate would be open to everybody."""
    shop, script = Shop(), Script([("secret", {}), ("margins", {})], "I cannot.")
    handler, agent = scripted(script)
    called: list[str] = []

    @agent.tool_plain
    def secret() -> str:
        called.append("secret")
        return "hunter2"

    async with company(handler, CompanyAgent(shop.tools)) as bench:
        assert reply(await ask(bench))["text"] == "I cannot."
        assert (called, "secret" in script.offered, script.native) == ([], False, [])
        assert all("Unknown tool name" in json.dumps(said, default=str) for said in script.results(1))


@pytest.mark.requirement("papaver-135")
async def test_a_model_may_mend_wrong_arguments() -> None:
    """It is told what is wrong; one that does not learn ends in a worded failure."""
    shop = Shop()
    script = Script([("find", {"number": "7"})], [("find", "[]")], "Sorry.")
    handler, _ = scripted(script)
    async with company(handler, CompanyAgent(shop.tools)) as bench:
        assert reply(await ask(bench, **WRITES))["text"] == "Sorry."
        assert "Expected `int`, got `str`" in str(script.results(1))
    stubborn, _ = scripted(Script(*[[("find", {"number": "7"})]] * 9))
    async with company(stubborn, CompanyAgent(shop.tools)) as bench:
        assert reply(await ask(bench, **WRITES))["text"] == Texts().failed
    assert shop.calls == []


@pytest.mark.requirement("ca-41", "ca-48")
async def test_a_model_is_told_of_a_rejection_and_its_claim_is_replaced() -> None:
    """Who decided, and that nothing ran."""
    shop, script = Shop(), Script([("exchange", EXCHANGE)], "It is exchanged!")
    handler, _ = scripted(script)
    async with company(handler, CompanyAgent(shop.tools, actions=ActionPolicy.REJECT)) as bench:
        assert reply(await ask(bench, **WRITES))["text"].startswith("Exchange order 7: this was not done.")
        assert "The Company decided so" in str(script.results(1))


@pytest.mark.requirement("ca-57")
async def test_c19_text_is_streamed_as_the_model_writes_it() -> None:
    """Each response's apart from the one before; the reply itself is the last one's."""
    tools = Tools()

    @tools.tool(public=True)
    async def hours(call: ToolCall) -> str:
        return "nine"

    written: list[str] = []

    class Talks(Script):
        async def stream(
            self, messages: list[ModelMessage], info: AgentInfo
        ) -> AsyncIterator[str | dict[int, DeltaToolCall]]:
            if not self.asked:
                self._next(messages, info)
                yield "Let me look."
                yield {1: DeltaToolCall("hours", "{}", tool_call_id="c")}
                return
            async for piece in super().stream(messages, info):
                yield piece

    script = Talks("", "We open| at nine.")
    inner, _ = scripted(script)

    class Watched:
        async def run(self, turn: Turn) -> str:
            said = await inner.run(turn)
            written.append(turn.written)
            return said

    async with company(Watched(), CompanyAgent(tools)) as bench:
        assert reply(await ask(bench))["text"] == "We open at nine."
    assert written == ["Let me look.\n\nWe open at nine."]


async def test_the_test_model_of_the_library_runs_every_tool_that_is_offered() -> None:
    """With the turn as its dependencies, and its instructions."""
    agent = Agent(TestModel(call_tools=["hours"], custom_output_text="ok"), deps_type=Turn)
    seen: list[str] = []

    @agent.instructions
    def instruct(context: RunContext[Turn]) -> str:
        seen.append(context.deps.text)
        return "Be brief."

    shop = Shop()
    async with company(PydanticAgent(agent), CompanyAgent(shop.tools)) as bench:
        assert reply(await ask(bench, "Hello"))["text"] == "ok"
    assert [call.tool.name for call in shop.calls] == ["hours"]
    assert set(seen) == {"Hello"}


async def test_what_was_said_before_is_the_message_history() -> None:
    """The User's side fenced, the Company's as its own responses, a person's marked; the new message is the prompt."""
    script = Script("one", "two")
    handler, _ = scripted(script)
    async with company(handler, CompanyAgent()) as bench:
        here = (await ask(bench, "First?")).json["conversation_id"]
        await bench.company.people.post(here, "I look into it.", author=Person("p", "Marta"))
        await bench.company.people.post(here, data={"ticket": 5})
        await bench.say(here, "Second?", query="wait=5")
        first, said, person, data, now = parts(script.asked[1])
        assert '"text": "First?"' in str(first.content)
        assert (said.content, person.content) == ("one", "(A person of the Company wrote this.)\nI look into it.")
        assert '"ticket": 5' in data.content
        assert '"text": "Second?"' in str(now.content)
        assert "First?" not in str(now.content)


async def test_in_a_direct_conversation_the_model_knows_the_one_before_and_speaks_first() -> None:
    """The newest of it, in its order, before what was said since (8.10)."""
    script = Script("Hello Dana.", "Gladly.")
    handler, _ = scripted(script)

    async def answer(turn: Turn) -> str:
        if turn.direct:
            return await handler.run(turn)
        turn.request_user("We need your yes.")
        return "One moment."

    async with company(answer, CompanyAgent()) as bench:
        parent = await ask(bench, "Exchange it")
        (event,) = [event["id"] for event in parent.json["events"] if event["type"] == "user_requested"]
        opening = {"parent_conversation_id": parent.json["conversation_id"], "user_requested_event_id": event}
        opened = await bench.send("POST", "", opening, query="wait=5")
        assert reply(opened)["text"] == "Hello Dana."
        await bench.say(opened.json["conversation_id"], "Yes", query="wait=5")
        first, said, now = parts(script.asked[0])
        assert ('"text": "Exchange it"' in first.content, said.content) == (True, "One moment.")
        assert ("speak first" in now.content, '"direct": true' in now.content) == (True, True)
        assert [str(part.content)[-12:] for part in parts(script.asked[1])[1:3]] == ["One moment.", "Hello Dana."]
        assert "speak first" not in parts(script.asked[1])[-1].content


async def test_of_a_long_conversation_before_the_newest_is_shown() -> None:
    """Bounded, whatever was said there."""
    script = Script("Hello.")
    handler, _ = scripted(script)

    async def answer(turn: Turn) -> str | None:
        if turn.direct:
            return await handler.run(turn)
        turn.request_user("We need your yes.")
        return None

    async with company(answer, CompanyAgent()) as bench:
        parent = await ask(bench, "Exchange it")
        here = parent.json["conversation_id"]
        for n in range(60):
            await bench.company.people.post(here, f"News {n}")
        page = await bench.read(here)
        (event,) = [event["id"] for event in page.json["events"] if event["type"] == "user_requested"]
        opening = {"parent_conversation_id": here, "user_requested_event_id": event}
        await bench.send("POST", "", opening, query="wait=5")
        shown = parts(script.asked[0])
        assert (len(shown), shown[0].content, shown[-2].content) == (51, "News 10", "News 59")


def parts(messages: list[ModelMessage]) -> list[Any]:
    return [part for message in messages for part in message.parts]


async def test_an_application_may_bring_a_history_of_its_own() -> None:
    """A dead turn's call in it is settled, so that the next turn works; bounds of use are the application's too."""
    kept: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("Exchange it")]),
        ModelResponse(parts=[ToolCallPart("exchange", EXCHANGE, "c1"), ToolCallPart("find", {"number": 7}, "c2")]),
        ModelRequest(parts=[ToolReturnPart("exchange", "done", "c1")]),
    ]

    async def history(turn: Turn) -> list[ModelMessage]:
        return kept

    script = Script("ok")
    handler, _ = scripted(script, history=history, usage_limits=UsageLimits(request_limit=1))
    async with company(handler, CompanyAgent(Shop().tools)) as bench:
        assert reply(await ask(bench, **WRITES))["text"] == "ok"
        ended = {part.tool_call_id: part.content for part in parts(script.asked[0]) if isinstance(part, ToolReturnPart)}
        assert ended == {"c1": "done", "c2": SETTLED}


def test_calls_without_an_end_are_settled_where_they_stand() -> None:
    """At the end of a history and in it; what is whole stays as it is."""
    call, other = ToolCallPart("find", {}, "a"), ToolCallPart("find", {}, "b")
    whole: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart("x")]),
        ModelResponse(parts=[call]),
        ModelRequest(parts=[ToolReturnPart("find", 1, "a")]),
        ModelResponse(parts=[TextPart("y")]),
    ]
    assert settled(whole) == whole
    dangling: list[ModelMessage] = [ModelResponse(parts=[call]), ModelResponse(parts=[other])]
    found = settled(dangling)
    assert [type(one).__name__ for one in found] == ["ModelResponse", "ModelRequest"] * 2
    assert [
        part.tool_call_id for one in (found[1], found[3]) for part in one.parts if isinstance(part, ToolReturnPart)
    ] == ["a", "b"]
    mixed: list[ModelMessage] = [ModelResponse(parts=[call, other]), ModelRequest(parts=[UserPromptPart("again")])]
    assert len(parts(settled(mixed))) == 5


@pytest.mark.requirement("ca-45")
async def test_a_model_asks_a_person_by_a_tool_that_the_company_declares() -> None:
    """One line of the application; who is asked is the policy's to say."""
    tools = Tools()

    @tools.tool(public=True)
    async def ask_person(call: ToolCall, questions: list[str]) -> str:
        """Ask what only a person can answer."""
        return await call.turn.tools.ask(*questions)

    script = Script([("ask_person", {"questions": ["Which colour?"]})], "One question:")
    handler, _ = scripted(script)
    async with company(handler, CompanyAgent(tools, on_question="ask_agent")) as bench:
        assert reply(await ask(bench))["text"] == "One question:\n\nWhich colour?"
        assert "end here, and assume nothing" in str(script.results(1))
