"""Another party's words in a line of ours."""

from __future__ import annotations

import pytest

from papaver.values.told import told


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("iat is too old", "iat is too old"),
        ("a\r\nforged: line\n", "a forged: line"),
        ("red\x1b[31m\x07 ", "red [31m"),
        ("left\u202eright", "left right"),
        ("naïve 日本", "naïve 日本"),
        ("\ud800", ""),
        ("saw eyJhbGciOi.eyJpc3MiOi.c2lnbmF0dXJl here", "saw ********** here"),
        ("x" * 201, "x" * 199 + "…"),
        ("x" * 200, "x" * 200),
    ],
)
def test_a_line_is_one_line_bounded_and_shows_all_that_it_has(text: str, line: str) -> None:
    """No line end, no escape sequence, no hidden direction, no token."""
    assert told(text) == line


def test_the_bound_is_the_caller_s() -> None:
    """Shorter, for example."""
    assert told("abcdef", 4) == "abc…"
