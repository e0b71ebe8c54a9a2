"""A tool's arguments: what a model is told of them, and the check of what it sends."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Annotated, Any, Final, Protocol, cast, get_args, get_origin, get_type_hints

import msgspec

from papaver.protocol.errors import ConfigurationError
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.values.rules import rule

__all__ = ["Arguments", "ToolError", "arguments_of", "check_arguments", "check_first_parameter"]

_NAMED: Final = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


class ToolError(PapaverError):
    """A call that came to nothing, in words for whoever made it: a model may correct it and call again.

    A tool raises it to say why, such as `ToolError("no order has this number")`. The words may be shown to the User.
    """

    code = "tool_error"


class _Made(Protocol):
    """The class that msgspec makes of a tool's parameters."""

    __struct_fields__: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a tool takes. `schema` is JSON Schema, as a model is shown it."""

    schema: Mapping[str, object]
    _kind: type[_Made]

    def read(self, arguments: Mapping[str, object] | str) -> dict[str, object]:
        """The values to call the tool with, of the types that it names. Raises ToolError, which says what is wrong.

        Text is JSON. A member that is unknown or missing, and a value of another type, is an error: nothing is turned
        into something else.
        """
        found = _object(arguments)
        check_arguments(found, self._kind)
        made = msgspec.convert(found, self._kind)
        return {name: getattr(made, name) for name in made.__struct_fields__}


def arguments_of(function: Callable[..., object], schema: Mapping[str, object] | None = None) -> Arguments:
    """Those of a tool's function: all parameters but the first, which is the call.

    Their annotations are basic types, `Literal`, lists, dicts, unions, dataclasses and TypedDicts; text in `Annotated`
    describes one to the model. `schema` is shown in place of the one made of them, and changes no check.
    Raises ConfigurationError for anything else.
    """
    parameters = list(inspect.signature(function).parameters.values())
    name = getattr(function, "__name__", repr(function))
    check_first_parameter(name, parameters)
    hints = _hints(function, name, [one.name for one in parameters[1:]])
    fields: list[tuple[str, Any, Any]] = [
        (one.name, hints[one.name], msgspec.NODEFAULT if one.default is one.empty else one.default)
        for one in parameters[1:]
    ]
    try:
        kind: Any = msgspec.defstruct(name, fields, kw_only=True, forbid_unknown_fields=True, module=__name__)
        made = _schema(kind, name)
    except TypeError as error:
        raise ConfigurationError(
            f"the tool {name} has a parameter that no JSON can be: {str(error).splitlines()[-1]}",
            rule="tool.parameters",
        ) from None
    return Arguments(made if schema is None else schema, cast("type[_Made]", kind))


@rule("tool.parameters")
def check_first_parameter(name: str, parameters: list[inspect.Parameter]) -> None:
    """The first is the call, and each other one has a name and a type. Raises ConfigurationError."""
    named = parameters and all(one.kind in _NAMED and one.annotation is not one.empty for one in parameters[1:])
    if not named:
        raise ConfigurationError(
            f"the tool {name} does not say what it takes; expected a function such as "
            f"`async def {name}(call, number: int)`",
            rule="tool.parameters",
        )


@rule("tool.arguments")
def check_arguments(arguments: Mapping[str, object], kind: type[object]) -> None:
    """They are what the tool says that it takes, and nothing else. Raises ToolError."""
    try:
        msgspec.convert(arguments, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ToolError(f"the arguments are wrong: {error}", rule="tool.arguments") from None


def _object(arguments: Mapping[str, object] | str) -> Mapping[str, object]:
    """Plain JSON, within the bounds of what is read from others."""
    try:
        text = strict_json.dumps(arguments) if not isinstance(arguments, str) else arguments or "{}"
        return strict_json.loads_object(text)
    except strict_json.JsonError as error:
        raise ToolError(f"the arguments are wrong: {error.description}", rule="tool.arguments") from None


def _hints(function: Callable[..., object], name: str, parameters: list[str]) -> dict[str, Any]:
    """The types of these parameters. The first parameter's is not looked at, and may be a name for type checkers."""
    plain = inspect.unwrap(function)
    written = {one: plain.__annotations__[one] for one in parameters}
    try:
        found = get_type_hints(
            SimpleNamespace(__annotations__=written), globalns=plain.__globals__, include_extras=True
        )
    except NameError as error:
        raise ConfigurationError(
            f"the tool {name}: {error.name} cannot be found in its module; a type of a parameter is not local to a "
            "function",
            rule="tool.parameters",
        ) from None
    return {one: _described(found[one]) for one in parameters}


def _described(hint: Any) -> Any:
    """Text in `Annotated` is the description that a model is shown."""
    if get_origin(hint) is not Annotated:
        return hint
    kind, *notes = get_args(hint)
    words = [note for note in notes if isinstance(note, str)]
    others = tuple(note for note in notes if not isinstance(note, str))
    said = (msgspec.Meta(description=" ".join(words)),) if words else ()
    return Annotated[(kind, *others, *said)] if others or said else kind


def _schema(kind: type[object], name: str) -> Mapping[str, object]:
    _, parts = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    parts = cast("dict[str, dict[str, object]]", json.loads(json.dumps(parts)))
    schema = {key: value for key, value in parts.pop(name).items() if key != "title"}
    schema.setdefault("additionalProperties", False)
    return {**schema, "$defs": parts} if parts else schema
