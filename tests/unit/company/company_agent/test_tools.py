"""The registry: who reaches a tool, and what is a mistake of whoever wrote it."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest

from papaver.company import Scope
from papaver.company.company_agent import PERSONAL_AGENT, Actor, CompanyAgent, Confirmation, ToolCall, Tools
from papaver.protocol.errors import ConfigurationError

READ, WRITE = Scope("orders:read", "See", "none", personal_data=True), Scope("orders:write", "Change")
NOBODY = Actor("x")
AGENT = Actor("poppy:1", (PERSONAL_AGENT,))
READER = Actor("acc_a", ("scope:orders:read", PERSONAL_AGENT))
WRITER = Actor("acc_a", ("scope:orders:read", "scope:orders:write", PERSONAL_AGENT))


async def look(call: ToolCall, number: int) -> str:
    """Finds an order."""
    return f"{number}"


def one(**options: Any) -> Tools:
    tools = Tools()
    tools.tool(**options)(look)
    return tools


@pytest.mark.requirement("papaver-134", "ca-28")
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, "who reaches it"),
        ({"scopes": set[str]()}, "who reaches it"),
        ({"public": True, "scopes": {"orders:read"}}, "who reaches it"),
        ({"public": True, "roles": {"staff"}}, "who reaches it"),
        ({"scopes": "orders:read"}, "as one text"),
        ({"roles": "staff"}, "as one text"),
        ({"roles": {"scope:orders:read"}}, "say scopes={'orders:read'}"),
    ],
    ids=range(7),
)
def test_a_tool_says_who_reaches_it(options: dict[str, Any], says: str) -> None:
    """One that does not is a mistake where it is written, and never open."""
    with pytest.raises(ConfigurationError) as refused:
        one(**options)
    assert refused.value.rule == "tool.reach"
    assert says in refused.value.description


@pytest.mark.requirement("papaver-134")
def test_a_tool_has_one_name_that_models_can_say() -> None:
    """Its function's, or another."""
    assert list(one(public=True, name="find_order")) == ["find_order"]
    for name in ("", "find order", "1st", "x" * 65, "größe"):
        with pytest.raises(ConfigurationError) as refused:
            one(public=True, name=name or " ")
        assert refused.value.rule == "tool.name"
    tools = one(public=True)
    with pytest.raises(ConfigurationError) as refused:
        tools.tool(public=True)(look)
    assert refused.value.rule == "tool.distinct"


@pytest.mark.requirement("papaver-134")
def test_a_tool_is_async() -> None:
    """One that is not would stop every turn of the process."""

    def blocks(call: ToolCall) -> str:
        return ""

    function: Any = blocks
    with pytest.raises(ConfigurationError) as refused:
        Tools().tool(public=True)(function)
    assert refused.value.rule == "tool.async"


@pytest.mark.requirement("ca-30", "ca-31", "ca-34")
def test_a_tool_is_offered_to_whom_it_may_be_asked_for_and_allowed_to_whom_the_token_covers_it() -> None:
    """Public ones to everybody; a missing scope keeps nobody from knowing; a missing role does."""
    public, reads = one(public=True)["look"], one(scopes={"orders:read"})["look"]
    everyone, staff = one(roles={PERSONAL_AGENT})["look"], one(roles={"staff", "admin"})["look"]
    both = one(roles={"staff"}, scopes={"orders:read"})["look"]
    clerk = Actor("c", ("staff", PERSONAL_AGENT))
    assert [tool.offered(AGENT) for tool in (public, reads, everyone, staff, both)] == [True, True, True, False, False]
    assert [tool.allowed(AGENT) for tool in (public, reads, everyone, staff, both)] == [True, False, True, False, False]
    assert [tool.allowed(READER) for tool in (public, reads, both)] == [True, True, False]
    assert (staff.offered(clerk), both.offered(clerk), both.allowed(clerk)) == (True, True, False)
    assert (everyone.offered(NOBODY), public.offered(NOBODY)) == (False, True)


@pytest.mark.requirement("ca-32")
def test_an_action_needs_all_its_scopes() -> None:
    """Not one of them."""
    both = one(scopes={"orders:write", "orders:read"}, action=True)["look"]
    assert both.scopes == ("orders:read", "orders:write")
    assert (both.allowed(READER), both.allowed(WRITER)) == (False, True)


@pytest.mark.requirement("ca-32")
def test_a_hint_that_contradicts_an_action_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    """Where all the scopes of what acts are hinted at as changing nothing; never for what reads."""
    CompanyAgent(one(scopes={"orders:read"})).check([READ, WRITE])
    CompanyAgent(one(scopes={"orders:read", "orders:write"}, action=True)).check([READ, WRITE])
    CompanyAgent(one(public=True, action=True)).check([])
    assert caplog.records == []
    CompanyAgent(one(scopes={"orders:read"}, action=True)).check([READ, WRITE])
    (record,) = caplog.records
    assert (record.levelno, "the tool look changes something" in record.message) == (logging.WARNING, True)


@pytest.mark.requirement("papaver-134")
def test_a_tool_needs_a_scope_that_the_company_offers() -> None:
    """One that nobody can grant would end each turn in a request that nobody can meet."""
    with pytest.raises(ConfigurationError) as refused:
        CompanyAgent(one(scopes={"orders:writes"})).check([READ, WRITE])
    assert refused.value.rule == "tool.scopes-offered"
    assert "add Scope('orders:writes', …)" in refused.value.description


def test_an_action_is_worded_by_its_own_confirmation_or_by_its_name() -> None:
    """And described by its docstring, or other words."""
    tool = one(public=True, description="  Finds one. ", name="find_order")["find_order"]
    assert (tool.description, tool.confirm({})) == ("Finds one.", Confirmation("Find order"))

    def find(given: Mapping[str, Any]) -> Confirmation:
        return Confirmation(f"Find {given['number']}")

    worded = one(public=True, confirmation=find)["look"]
    assert (worded.description, worded.confirm({"number": 7})) == ("Finds an order.", Confirmation("Find 7"))
    assert len(one(public=True)) == 1


@pytest.mark.requirement("ca-41")
@pytest.mark.parametrize("options", [{"actions": "reject"}, {"on_question": "ask"}, {"actions": True}], ids=range(3))
def test_a_policy_is_one_that_there_is(options: dict[str, Any]) -> None:
    """A mistyped one would be one that nobody chose."""
    with pytest.raises(ConfigurationError) as refused:
        CompanyAgent(**options)
    assert refused.value.rule == "configuration.agent-policies"
