"""What a tool takes: what a model is shown of it, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypedDict

import pytest

from papaver.company.company_agent import ToolError
from papaver.company.company_agent.arguments import arguments_of
from papaver.protocol.errors import ConfigurationError

if TYPE_CHECKING:
    from papaver.company.company_agent import ToolCall


@dataclass
class Address:
    street: str
    city: str | None = None


class Line(TypedDict):
    sku: str


async def exchange(
    call: ToolCall,
    number: Annotated[int, "the order's number"],
    size: Literal["S", "M"] = "S",
    to: Address | None = None,
    lines: list[Line] | None = None,
    *,
    weight: float = 1.5,
) -> str:
    return ""


async def nothing(call: object) -> None:
    """Takes none."""


def test_a_model_is_shown_what_the_annotations_say() -> None:
    """JSON Schema that allows nothing else; the first parameter is no part of it, and need not be there at run time."""
    schema: Any = arguments_of(exchange).schema
    assert schema["properties"]["number"] == {"type": "integer", "description": "the order's number"}
    assert schema["properties"]["weight"] == {"type": "number", "default": 1.5}
    assert (schema["type"], schema["required"], schema["additionalProperties"]) == ("object", ["number"], False)
    assert set(schema["$defs"]) == {"Address", "Line"}
    assert arguments_of(nothing).schema == {
        "type": "object",
        "properties": {},
        "required": [],
        "additionalProperties": False,
    }


def test_a_schema_of_one_s_own_is_shown_and_changes_no_check() -> None:
    """The annotations are what counts."""
    own = arguments_of(exchange, {"type": "object", "title": "mine"})
    assert own.schema == {"type": "object", "title": "mine"}
    with pytest.raises(ToolError):
        own.read({"number": "1"})


def test_arguments_come_back_in_their_types() -> None:
    """An object or its JSON text; what is left out has its default."""
    found = arguments_of(exchange).read('{"number": 7, "to": {"street": "Main"}, "lines": [{"sku": "x"}], "weight": 2}')
    assert found == {"number": 7, "size": "S", "to": Address("Main"), "lines": [{"sku": "x"}], "weight": 2.0}
    assert arguments_of(nothing).read({}) == arguments_of(nothing).read("") == {}


@pytest.mark.requirement("papaver-135")
@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ('{"number": "7"}', "Expected `int`, got `str` - at `$.number`"),
        ({"number": True}, "Expected `int`, got `bool`"),
        ({"number": 1.0}, "Expected `int`, got `float`"),
        ({}, "missing required field `number`"),
        ({"number": 7, "order": 1}, "unknown field `order`"),
        ({"number": 7, "size": "XL"}, "Invalid enum value 'XL'"),
        ({"number": 7, "to": {}}, "missing required field `street`"),
        ("[7]", "not an object"),
        ("{", "not JSON"),
        ('{"number": 7, "number": 8}', "two members of one name"),
        ('{"number": ' + "[" * 5000 + "]" * 5000 + "}", "nested too deeply"),
        ({"number": {7}}, "cannot be written as JSON"),
        ({"number": 7, "size": "\ud800"}, "cannot be written as JSON"),
    ],
    ids=range(13),
)
def test_what_a_tool_does_not_take_is_refused_in_words(arguments: Any, says: str) -> None:
    """Nothing is turned into something else; the words tell whoever made the call what to mend."""
    with pytest.raises(ToolError) as refused:
        arguments_of(exchange).read(arguments)
    assert refused.value.rule == "tool.arguments"
    assert says in refused.value.description


async def takes_anything(call: object, *numbers: int) -> None: ...
async def takes_names(call: object, **names: int) -> None: ...
async def says_no_type(call: object, number: int) -> None: ...
async def takes_nothing() -> None: ...
async def takes_an_object(call: object, value: pytest.Item) -> None: ...


del says_no_type.__annotations__["number"]


def local() -> Callable[..., Any]:
    class Here: ...

    async def tool(call: object, value: Here) -> None: ...

    return tool


@pytest.mark.requirement("papaver-135")
@pytest.mark.parametrize(
    "function",
    [takes_anything, takes_names, says_no_type, takes_nothing, takes_an_object, local()],
    ids=lambda function: function.__name__,
)
def test_a_tool_that_does_not_say_what_it_takes_is_none(function: Callable[..., Any]) -> None:
    """Each parameter has a name and a type that JSON has, and can be found."""
    with pytest.raises(ConfigurationError) as refused:
        arguments_of(function)
    assert refused.value.rule == "tool.parameters"
    assert function.__name__ in refused.value.description
