"""What an OpenAPI description lets a Personal Agent send: destinations, the scopes of an operation, a request of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, cast
from urllib.parse import quote

from papaver.protocol.destinations import Destination
from papaver.protocol.openapi import Need, OpenApi, Operation, Parameter, Place
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError, dumps
from papaver.web.messages import Headers, Request

__all__ = ["BadCall", "check_parameters", "described_destinations", "needed", "operation_request"]

MOST_DESTINATIONS: Final = 5000
"""Destinations of one description; far more than any API of a Company has."""


class BadCall(PapaverError):
    """A call that the description of its operation does not allow, or that cannot be written."""

    code = "invalid_parameter"
    description = "the operation cannot be called so"


def described_destinations(api: OpenApi) -> Mapping[str, tuple[Destination, ...]]:
    """The requests that a description describes (5.2): server → each path below it, by its methods."""
    methods: dict[tuple[str, str], set[str]] = {}
    for operation in api.operations:
        for server in operation.servers:
            key = server, operation.path
            if key in methods or len(methods) < MOST_DESTINATIONS:
                methods.setdefault(key, set()).add(operation.method)
    destinations: dict[str, tuple[Destination, ...]] = {}
    for server in dict.fromkeys(server for server, _ in methods):
        below = server.removesuffix("/")
        destinations[server] = tuple(
            Destination(below, path, frozenset(allowed)) for (at, path), allowed in methods.items() if at == server
        )
    return destinations


def needed(operation: Operation, held: Collection[str] = ()) -> Need:
    """The way to be allowed that asks for least, beyond the scopes that are held.

    A scheme that we cannot serve (`others`) counts most, then each scope that is missing, then an account at all.
    """
    return min(
        operation.needs,
        key=lambda need: (len(need.others), len([one for one in need.scopes if one not in held]), need.account),
        default=Need(),
    )


def operation_request(operation: Operation, parameters: Mapping[str, object], body: object = None) -> Request:
    """The request that calls an operation on its first server.

    `parameters` are texts, numbers, booleans and lists of them, by name; where a path, a query and a header have one
    name, it goes into each. `body` is what JSON can say; None for none. Raises BadCall.
    """
    check_parameters(operation, parameters, body)
    if not operation.servers:
        raise BadCall("the description names no https server for this operation", rule="openapi.server")
    path, query, headers = operation.path, list[str](), list[tuple[str, str]]()
    for parameter in operation.parameters:
        value = parameters.get(parameter.name)
        if value is None:
            continue
        texts = _texts(parameter, value)
        if parameter.place == "path":
            path = path.replace(f"{{{parameter.name}}}", ",".join(map(_escaped, texts)))
        elif parameter.place == "query":
            query += _query(parameter, texts)
        else:
            headers.append((parameter.name, _header(parameter, texts)))
    if any(segment in (".", "..") for segment in path.split("/")):
        raise BadCall("a path parameter makes a dot segment, which would be another path", rule="openapi.dot-segment")
    url = operation.servers[0].removesuffix("/") + path + ("?" + "&".join(query) if query else "")
    content = b""
    if body is not None:
        headers.append(("content-type", _json_type(operation)))
        content = _json(body)
    return Request(operation.method, url, Headers(headers), content)


@rule("openapi.parameters")
def check_parameters(operation: Operation, parameters: Mapping[str, object], body: object) -> None:
    """A call has what the description requires, and nothing that it does not know. Raises BadCall."""
    known = {one.name for one in operation.parameters}
    missing = [one.name for one in operation.parameters if one.required and parameters.get(one.name) is None]
    missing += _places_without(operation)
    unknown = [name for name in parameters if name not in known]
    wrong: list[str] = []
    if missing:
        wrong.append(f"these parameters are missing: {', '.join(missing)}")
    if unknown:
        wrong.append(f"these are not among its parameters: {', '.join(unknown)}")
    if operation.body_required and body is None:
        wrong.append("the body is missing")
    if body is not None and not operation.body_types:
        wrong.append("it takes no body")
    if wrong:
        raise BadCall(f"the operation cannot be called so: {'; '.join(wrong)}", rule="openapi.parameters")


def _places_without(operation: Operation) -> Iterator[str]:
    """The `{name}` places of the path that no parameter fills: the description is at fault."""
    names = {one.name for one in operation.parameters if one.place == "path"}
    for piece in operation.path.split("{")[1:]:
        name = piece.partition("}")[0]
        if name not in names:
            yield name


def _texts(parameter: Parameter, value: object) -> list[str]:
    """One text for each value of a parameter."""
    values = cast("Sequence[object]", value) if isinstance(value, list | tuple) else [value]
    texts: list[str] = []
    for one in values:
        if isinstance(one, bool):
            texts.append("true" if one else "false")
        elif isinstance(one, str | int | float):
            texts.append(str(one))
        else:
            raise _bad(parameter.name, parameter.place, "is no text, number, boolean or list of them")
    if parameter.place == "path" and not all(texts or [""]):
        raise _bad(parameter.name, parameter.place, "is empty, which would be another path")
    return texts


def _query(parameter: Parameter, texts: Sequence[str]) -> list[str]:
    name = _escaped(parameter.name)
    if parameter.exploded:
        return [f"{name}={_escaped(text)}" for text in texts]
    return [f"{name}={','.join(map(_escaped, texts))}"]


def _header(parameter: Parameter, texts: Sequence[str]) -> str:
    value = ",".join(texts)
    if not parameter.name.replace("-", "").replace("_", "").isalnum() or not parameter.name.isascii():
        raise _bad(parameter.name, parameter.place, "has a name that no header field can have")
    if not value.isascii() or not value.isprintable():
        raise _bad(parameter.name, parameter.place, "has characters that no header field can have")
    return value


def _json_type(operation: Operation) -> str:
    for one in operation.body_types:
        kind = one.partition(";")[0].strip().lower()
        if kind == "application/json" or (kind.endswith("+json") and kind.isprintable() and kind.isascii()):
            return kind
        if kind in ("*/*", "application/*"):
            return "application/json"
    raise BadCall(
        f"its body is {', '.join(operation.body_types)}, and only JSON is written here", rule="openapi.body-json"
    )


def _json(body: object) -> bytes:
    try:
        return dumps(body)
    except JsonError as error:
        raise BadCall("the body is nothing that JSON can say", rule="openapi.text", detail=error.detail) from None


def _escaped(text: str) -> str:
    """Everything but the unreserved characters as octets of UTF-8 (RFC 3986 2.5)."""
    try:
        return quote(text, safe="")
    except UnicodeEncodeError:
        raise BadCall("a value has half a character (a lone surrogate)", rule="openapi.text") from None


def _bad(name: str, place: Place, why: str) -> BadCall:
    return BadCall(f"the {place} parameter {name} {why}", rule="openapi.value")
