"""The samples about the Company Agent do what their page says."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic_ai.models.test import TestModel

from docs_src import company_agent, company_agent_model, company_agent_words
from papaver.testing.company import CompanyBench, company_bench
from tests.house.company_tokens import SCOPES, TokenTable, bearer
from tests.house.tool_shop import ask, reply, story

pytestmark = pytest.mark.anyio

WRITES = bearer("writes")


def settings(handler: Any, agent: Any) -> dict[str, Any]:
    """With a token of account A that writes."""
    table = TokenTable()
    table.issue("writes", "acc_a", "orders:read", "orders:write")
    return {"handler": handler, "company_agent": agent, "sign_in": table, "scopes": SCOPES}


async def said(bench: CompanyBench, text: str, **context: object) -> Any:
    """The reply to a message with this context, by the account."""
    message = {"message": bench.message(text, context=context)}
    return reply(await bench.send("POST", "", message, query="wait=5", **WRITES))


async def test_a_tool_is_open_or_needs_scopes_and_an_action_is_told() -> None:
    """Signed out a public one answers and an action is asked for; what failed is told in place of a claim."""
    async with company_bench(**settings(company_agent.answer, company_agent.agent)) as bench:
        assert reply(await ask(bench, "When?"))["text"] == "Monday to Friday, nine to five."
        assert story(await ask(bench, "Please cancel 5"))[1:] == ["needs orders:read orders:write", "idle"]
        done = reply(await ask(bench, "Please cancel 5", **WRITES))
        assert done["text"] == "I have taken care of it.\n\nCancel order 5: done.\nThe payment is returned."
        assert done["data"]["actions"][0]["result"].startswith("cancelled under ")
        failed = reply(await ask(bench, "Please cancel 7", **WRITES))
        assert failed["text"].startswith("Cancel order 7: this did not work. It was sent already.")
    found = await company_agent.find_order(_call("acc_a"), 5)
    assert found == {"number": 5, "of": "acc_a", "status": "packed"}


def _call(account: str) -> Any:
    class Call:
        account_id = account

    return Call()


async def test_wording_actors_and_the_company_s_own_say() -> None:
    """In the language of the conversation, with the app's roles, and with the User asked for a question."""
    async with company_bench(**settings(company_agent_words.answer, company_agent_words.agent)) as bench:
        german = await said(bench, "gift, please", locale="de-DE", office="open")
        assert german["text"] == "Of course.\n\nWrap gift: erledigt."
        closed = await said(bench, "gift, please")
        assert closed["text"] == "Wrap gift: this was not done. Our office has to be open for this."
        page = await ask(bench, "Hello", **WRITES)
        (event,) = [event for event in page.json["events"] if event["type"] == "user_requested"]
        assert event["reason"] == "Which paper would you like?"


async def test_a_model_s_agent_answers() -> None:
    """Here the test model of pydantic-ai; the tools are the Company's."""
    model = TestModel(call_tools=["opening_hours"], custom_output_text="Nine to five.")
    with company_agent_model.model_agent.override(model=model):
        async with company_bench(**settings(company_agent_model.answer, company_agent_model.agent)) as bench:
            assert reply(await ask(bench, "When?"))["text"] == "Nine to five."
    assert model.last_model_request_parameters is not None
    offered = [tool.name for tool in model.last_model_request_parameters.function_tools]
    assert offered == ["opening_hours", "find_order", "cancel_order"]
