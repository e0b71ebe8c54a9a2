"""What another party sent is safe to print."""

from __future__ import annotations

import pytest

from papaver.cli.text import clean, one_line


@pytest.mark.parametrize(
    ("sent", "shown"),
    [
        ("plain\ttext\n", "plain    text"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07after", "after"),
        ("\x1b]8;;https://evil.example\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bP1;payload\x1b\\after", "after"),
        ("\x9b31mC1 colour", "C1 colour"),
        ("\x9d0;title\x9cafter", "after"),
        ("\x1bcreset", "reset"),
        ("bell\x07 null\x00 delete\x7f", "bell null delete"),
        ("right\u202eto left", "rightto left"),
        ("isolate\u2066d\u2069", "isolated"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("a\r\nb\rc\u2028d", "a\nb\nc\nd"),
        ("half\ud800pair", "halfpair"),
        ("family \U0001f469\u200d\U0001f467", "family \U0001f469\u200d\U0001f467"),
        ("ünïcödé, 漢字", "ünïcödé, 漢字"),
        ("unfinished \x1b[", "unfinished "),
    ],
)
def test_control_and_escape_sequences_are_removed_and_words_stay(sent: str, shown: str) -> None:
    """A terminal does nothing with the text but show it."""
    assert clean(sent) == shown


def test_further_lines_are_indented_so_that_they_cannot_pose_as_ours() -> None:
    """A Company that writes a line end does not begin a line of the program's own."""
    assert clean("Hello\npapaver: signed in", "  ") == "Hello\n  papaver: signed in"


def test_a_value_takes_one_line() -> None:
    """Names and ids have no line ends."""
    assert one_line("Shop\n\x1b[2Jname") == "Shop name"
    assert one_line(3) == "3"
