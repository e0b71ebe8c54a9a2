"""What another party sent is safe to print."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.cli import text
from papaver.cli.text import LONGEST, LONGEST_LINE, clean, one_line


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


STARTS = [
    "\x1b]",
    "\x9d",
    "\x1bP",
    "\x90",
    "\x1bX",
    "\x9f",
    "\x1b[",
    "\x9b",
    "\x1b",
    "\x9b1;",
    "\x1b(",
    "\x1b[1 ",
    "\r",
]


@pytest.mark.parametrize("piece", STARTS)
@pytest.mark.parametrize("rest", ["", "\x9c"])
def test_a_company_cannot_hang_the_terminal_with_starts_that_have_no_end(piece: str, rest: str) -> None:
    """A million characters of unfinished sequences are gone through once; a second pass for each would take hours."""
    shown = clean(piece * (LONGEST // len(piece)) + rest)
    assert not set(shown) & set("\x1b\x9b\x9d\x90\x9f\x07\x9c\r")


def test_the_end_of_a_sequence_is_looked_for_once_and_never_again_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """Counted: characters that searches went over, for twice the text at most twice as many."""

    class Counted:
        """A pattern that counts what it went over."""

        def __init__(self, pattern: re.Pattern[str]) -> None:
            self.pattern, self.over = pattern, 0

        def search(self, text: str, at: int) -> re.Match[str] | None:
            found = self.pattern.search(text, at)
            self.over += (len(text) if found is None else found.end()) - at
            return found

    def cost(of: str) -> int:
        patterns = [Counted(pattern) for pattern in (text.START, *text.ENDS.values())]
        start, osc, string = patterns
        monkeypatch.setattr(text, "START", start)
        monkeypatch.setattr(text, "ENDS", {"osc": osc, "string": string})
        text.without_escapes(of)
        monkeypatch.undo()
        return sum(pattern.over for pattern in patterns)

    for piece in (*STARTS, "\x9d\x90", "\x90\x07\x9d", "\x9d \x07 \x90"):
        assert cost(piece * 2_000) <= 3 * len(piece * 2_000)


@given(st.text(st.sampled_from("\x1b\x9b\x9d\x90\x07\x9c\\[]P01; @mA\r\n\u202e"), max_size=60))
def test_whatever_is_sent_nothing_that_steers_a_terminal_is_left(sent: str) -> None:
    """Neither a control character nor a hidden one."""
    assert not set(clean(sent)) & set("\x1b\x9b\x9d\x90\x07\x9c\r\u202e")


def test_what_nobody_can_read_to_its_end_is_cut_off() -> None:
    """A name of 100 KiB is no name; a message is shown whole."""
    assert clean("x" * LONGEST) == "x" * LONGEST
    assert clean("x" * (LONGEST + 1)) == "x" * (LONGEST - 1) + "…"
    assert one_line("x" * 45_000) == "x" * (LONGEST_LINE - 1) + "…"
