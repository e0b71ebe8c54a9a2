"""The parameters of an OAuth request, in a body or a query: application/x-www-form-urlencoded, read strictly.

A parameter that two readers could understand in two ways is refused: one given twice, or text that is not UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Never
from urllib.parse import quote_plus, unquote_to_bytes

from papaver.oauth.errors import InvalidOAuthRequest
from papaver.values.rules import rule

__all__ = ["FORM", "Form", "check_form_encoding", "check_form_size", "check_parameter_once", "read_form", "write_form"]

FORM: Final = "application/x-www-form-urlencoded"
"""The media type."""

MAX_PARAMETERS: Final = 100
MAX_CHARACTERS: Final = 65_536

_ENCODED: Final = re.compile(r"(?:[!-$&-~]++|%[0-9A-Fa-f]{2})*+", re.ASCII).fullmatch


class Form(Mapping[str, tuple[str, ...]]):
    """Parameters by name, the values of each in their order. Its values may be secrets: it shows only names."""

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]] = ()) -> None:
        values: dict[str, tuple[str, ...]] = {}
        for name, value in pairs:
            values[name] = (*values[name], value) if name in values else (value,)
        self._values = values

    def one(self, name: str) -> str | None:
        """The parameter's value; None when it is absent or empty (RFC 6749 3.1).

        Raises `InvalidOAuthRequest` when it is given twice.
        """
        values = self._values.get(name, ())
        check_parameter_once(name, values)
        return "".join(values[:1]) or None

    def all(self, name: str) -> tuple[str, ...]:
        """Every value that is not empty, for what may be repeated: `resource` (RFC 8707 2)."""
        return tuple([value for value in self._values.get(name, ()) if value])

    def __getitem__(self, name: str) -> tuple[str, ...]:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Form({list(self._values)})"

    def __reduce__(self) -> Never:
        raise TypeError("a form is never pickled")


def read_form(body: bytes | str) -> Form:
    """The parameters of a body or of a query. Raises `InvalidOAuthRequest`."""
    text = body if isinstance(body, str) else body.decode("latin-1")
    parts = [part for part in text.split("&") if part]
    check_form_size(text, len(parts))
    check_form_encoding(text)
    try:
        return Form([_read_pair(part) for part in parts])
    except UnicodeDecodeError:
        raise InvalidOAuthRequest("a parameter is not UTF-8", rule="oauth.form-encoding") from None


def write_form(pairs: Iterable[tuple[str, str]]) -> bytes:
    """The body, or the query, of these parameters."""
    return "&".join([f"{quote_plus(name)}={quote_plus(value)}" for name, value in pairs]).encode("ascii")


@rule("oauth.form-size")
def check_form_size(text: str, parameters: int) -> None:
    """Bounded before anything is decoded."""
    if len(text) > MAX_CHARACTERS or parameters > MAX_PARAMETERS:
        raise InvalidOAuthRequest(
            "the request has too many parameters, or they are too long",
            rule="oauth.form-size",
            detail=f"{parameters} parameters, {len(text)} characters",
        )


@rule("oauth.form-encoding")
def check_form_encoding(text: str) -> None:
    """RFC 6749 appendix B: visible ASCII with complete percent escapes. White space and controls are escaped."""
    if _ENCODED(text) is None:
        raise InvalidOAuthRequest(
            "the parameters are not application/x-www-form-urlencoded", rule="oauth.form-encoding"
        )


@rule("oauth.parameter-once")
def check_parameter_once(name: str, values: tuple[str, ...]) -> None:
    """RFC 6749 3.1: no parameter is there twice, not even with equal values."""
    if len(values) > 1:
        raise InvalidOAuthRequest(
            "a parameter is there twice", rule="oauth.parameter-once", detail=f"{name} {len(values)} times"
        )


def _read_pair(part: str) -> tuple[str, str]:
    name, _, value = part.partition("=")
    return _decoded(name), _decoded(value)


def _decoded(text: str) -> str:
    if "+" in text:
        text = text.replace("+", " ")
    if "%" not in text:
        return text
    # Most escapes are those of a URL or URN. What has no other is decoded by this alone, at a fraction of the cost.
    usual = text.replace("%3A", ":").replace("%2F", "/")
    return usual if "%" not in usual else unquote_to_bytes(text).decode()
