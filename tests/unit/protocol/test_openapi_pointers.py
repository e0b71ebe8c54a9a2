"""References inside one document, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.protocol.openapi_pointers import follow, members_of, seen

DOCUMENT: dict[str, Any] = {
    "a": {"b/c": {"~d": {"found": 1}}},
    "list": [{"found": 2}],
    "chain": {"$ref": "#/a/b~1c/~0d"},
    "circle": {"$ref": "#/circle"},
    "away": {"$ref": "https://other.example/x.json#/a"},
    "beside": {"$ref": "other.json"},
    "whole": {"$ref": "#"},
    "odd": {"$ref": 3},
    "text": "x",
}


@pytest.mark.parametrize(
    ("reference", "found"),
    [("#/chain", {"found": 1}), ("#/list/0", {"found": 2}), ("#/a/b%7E1c/~0d", {"found": 1})],
)
def test_a_local_reference_is_followed(reference: str, found: object) -> None:
    """Through escapes of JSON pointers and of URLs, lists, and references to references."""
    assert follow(DOCUMENT, {"$ref": reference}) == found


@pytest.mark.parametrize(
    "reference",
    [
        "#/circle", "#/away", "#/beside", "#/whole", "#/odd", "#/text", "#/text/more", "#/list/1", "#/list/x",
        "#/list/-1", "#/list/01", "#/none", "#/none/more", "https://x.example/", "",
    ],
)  # fmt: skip
def test_any_other_reference_leads_nowhere(reference: str) -> None:
    """Circles, other documents, nothing: what they would lead to is left out, never fetched."""
    assert follow(DOCUMENT, {"$ref": reference}) is None


def test_what_is_no_reference_is_itself() -> None:
    """An object is; anything else is none."""
    assert follow(DOCUMENT, {"x": 1}) == {"x": 1}
    assert follow(DOCUMENT, [1]) is None


def test_members_of_anything_else_are_none() -> None:
    """A wrong type where an object is expected is as good as an absent one."""
    assert members_of({"a": 1}) == {"a": 1}
    assert members_of([1]) == {}


def test_a_place_is_told_as_a_pointer() -> None:
    """RFC 6901."""
    assert seen("paths", "/a~b", 3) == "/paths/~1a~0b/3"
