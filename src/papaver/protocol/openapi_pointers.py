"""References inside one OpenAPI description: `#/…` alone, followed a bounded number of times, and never fetched."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, cast
from urllib.parse import unquote

__all__ = ["Members", "follow", "members_of", "seen"]

MOST_HOPS: Final = 16
"""References that lead to references; a circle ends here as well."""

_INDEX: Final = re.compile(r"0|[1-9][0-9]{0,5}")
_MARKS: Final = str.maketrans({"~": "~0", "/": "~1"})

Members = Mapping[str, object]
"""A JSON object whose values may be anything."""


def members_of(value: object) -> Members:
    """The members of a JSON object; of anything else, none."""
    return cast("Members", value) if isinstance(value, dict) else {}


def seen(*names: object) -> str:
    """The JSON pointer (RFC 6901) of a place in the document, for findings."""
    return "".join(f"/{str(name).translate(_MARKS)}" for name in names)


def follow(document: Members, value: object) -> Members | None:
    """The object that `value` is, or that its `$ref` leads to in this document.

    None for what is no object, a reference to another document or to nothing, and a chain without an end.
    """
    for _ in range(MOST_HOPS):
        if not isinstance(value, dict):
            return None
        found = cast("Members", value)
        reference = found.get("$ref")
        if reference is None:
            return found
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return None
        value = _at(document, reference[2:])
    return None


def _at(document: Members, pointer: str) -> object:
    """What is at a pointer, written as the fragment of a URL; None for nothing."""
    value: object = document
    for token in pointer.split("/"):
        name = unquote(token).replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict):
            value = cast("Members", value).get(name)
        elif isinstance(value, list) and _INDEX.fullmatch(name):
            items = cast("list[object]", value)
            value = items[int(name)] if int(name) < len(items) else None
        else:
            return None
    return value
