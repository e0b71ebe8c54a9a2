"""JSON read without leniency and written in one form: size, depth, duplicate members, numbers, text.

Every common reader lets the last of two equal members win, so that two sides of one request can see two documents.
This one refuses them, and whatever else RFC 8259 leaves open and RFC 7493 (I-JSON) closes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Final, Never, cast

from papaver.values.errors import PapaverError

__all__ = ["JsonError", "canonical", "dumps", "loads", "loads_object"]

MAX_BYTES: Final = 262_144
MAX_DEPTH: Final = 32
MAX_DIGITS: Final = 100
"""The longest number accepted, in characters; a hundred digits are far beyond what a double can tell apart."""


class JsonError(PapaverError):
    """JSON that is not read, or a value that JSON cannot say."""

    code = "invalid_json"
    description = "not acceptable JSON"


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise JsonError("the JSON has an object with two members of one name")
    return members


def _integer(text: str) -> int:
    if len(text) > MAX_DIGITS:
        raise JsonError("the JSON has a number that is too long")
    return int(text)


def _float(text: str) -> float:
    if len(text) > MAX_DIGITS:
        raise JsonError("the JSON has a number that is too long")
    number = float(text)
    if math.isinf(number):
        raise JsonError("the JSON has a number out of range")
    return number


def _constant(text: str) -> Never:
    raise JsonError("the JSON has a number that is not finite", detail=text)


_DECODE: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_float, parse_constant=_constant
).decode
_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_ENCODE_SORTED: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
).encode

_ESCAPED_SURROGATE: Final = re.compile(r"\\u[dD][89a-fA-F]")
_STRING_OR_BRACKET: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"?|[\[{\]}]', re.DOTALL)


def loads(data: bytes | str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> object:
    """The value of a JSON text: None, bool, int, float, str, list or dict.

    `max_bytes` counts octets of UTF-8, `max_depth` nested arrays and objects. Raises `JsonError` for a text beyond
    either, a byte order mark, wrong UTF-8, a lone surrogate, two members of one name in an object, a number that is
    not finite or too long, and anything that is not JSON.
    """
    text = _text(data, max_bytes)
    if text.count("[") + text.count("{") > max_depth:
        _check_depth(text, max_depth)
    try:
        value: object = _DECODE(text)
    except json.JSONDecodeError as error:
        raise JsonError("the body is not JSON", detail=f"{error.msg} at {error.pos}") from None
    if _ESCAPED_SURROGATE.search(text) is not None:
        try:
            _ENCODE(value).encode()
        except UnicodeEncodeError:
            raise JsonError("the JSON has half a character (a lone surrogate)") from None
    return value


def loads_object(data: bytes | str, *, max_bytes: int = MAX_BYTES, max_depth: int = MAX_DEPTH) -> dict[str, object]:
    """As `loads`, for a text that has to be a JSON object."""
    value = loads(data, max_bytes=max_bytes, max_depth=max_depth)
    if not isinstance(value, dict):
        raise JsonError("the JSON is not an object")
    return cast("dict[str, object]", value)


def dumps(value: object) -> bytes:
    """`value` as compact UTF-8 JSON, members in their order. Raises `JsonError` for what JSON cannot say."""
    return _write(_ENCODE, value)


def canonical(value: object) -> bytes:
    """`value` as compact UTF-8 JSON with sorted members: one form to take fingerprints of.

    Two values have the same form exactly when they are the same JSON; 1 and 1.0 are two values. It is for our own
    stores, not RFC 8785. Raises `JsonError` for what JSON cannot say.
    """
    return _write(_ENCODE_SORTED, value)


def _text(data: bytes | str, max_bytes: int) -> str:
    """The text of `data`, at most `max_bytes` octets of UTF-8 without a byte order mark."""
    if isinstance(data, str):
        text = data
        try:
            size = len(text) if text.isascii() else len(text.encode())
        except UnicodeEncodeError:
            raise JsonError("the JSON has half a character (a lone surrogate)") from None
    else:
        size = len(data)
        try:
            text = data.decode() if size <= max_bytes else ""
        except UnicodeDecodeError:
            raise JsonError("the JSON is not UTF-8") from None
    if size > max_bytes:
        raise JsonError("the JSON is too large")
    if text.startswith("\ufeff"):
        raise JsonError("the JSON begins with a byte order mark")
    return text


def _check_depth(text: str, max_depth: int) -> None:
    """Refuse a text that nests deeper than `max_depth`, before a reader recurses into it."""
    depth = 0
    for match in _STRING_OR_BRACKET.finditer(text):
        found = match[0]
        if found in "[{":
            depth += 1
            if depth > max_depth:
                raise JsonError("the JSON is nested too deeply")
        elif found in "]}":
            depth -= 1


def _write(encode: Callable[[object], str], value: object) -> bytes:
    try:
        return encode(value).encode()
    except (ValueError, TypeError, RecursionError) as error:  # a lone surrogate is a ValueError too
        raise JsonError("the value cannot be written as JSON", detail=str(error)) from None
