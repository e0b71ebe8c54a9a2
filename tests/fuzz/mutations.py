"""Valid JSON documents, spoiled in a few places: values replaced, removed, repeated, renamed."""

from __future__ import annotations

import copy
from typing import Any, cast

from hypothesis import strategies as st

__all__ = ["mutated"]

URLS = (
    "http://example.com",
    "https://example.com",
    "https://EXAMPLE.com/",
    "https://example.com:443",
    "https://[::1]/x",
    "https://user@example.com",
    "https://example.com/%",
    "//example.com",
    "https://",
    "javascript:alert(1)",
    "https://example.com/\u00e4",
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=12)
)
TEXTS = st.sampled_from((*URLS, "", "0.4", "1.0", "0.4.0", "poppy", "signed_in", "example.com", "EXAMPLE.com.", "\x00"))
VALUES = st.recursive(
    SCALARS | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)


def _places(value: dict[str, Any] | list[Any]) -> list[tuple[Any, Any]]:
    """Every (container, key) of a document."""
    found: list[tuple[Any, Any]] = []
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        found.append((value, key))
        if isinstance(inner, dict | list):
            found.extend(_places(cast("dict[str, Any]", inner)))
    return found


@st.composite
def mutated(draw: st.DrawFn, documents: tuple[dict[str, Any], ...]) -> Any:
    """One of these documents with one to three members spoiled; now and then another value altogether."""
    document: Any = copy.deepcopy(draw(st.sampled_from(documents)))
    for _ in range(draw(st.integers(1, 3))):
        places = _places(document)
        if not places:
            break
        container, key = draw(st.sampled_from(places))
        match draw(st.sampled_from(("replace", "replace", "remove", "wrap", "add"))):
            case "remove":
                del container[key]
            case "wrap":
                container[key] = [container[key]]
            case "add" if isinstance(container, dict):
                container[draw(st.text(max_size=8))] = draw(VALUES)
            case _:
                container[key] = draw(VALUES)
    return document if draw(st.integers(0, 20)) else draw(VALUES)
