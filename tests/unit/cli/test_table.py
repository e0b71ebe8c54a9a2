"""Rows for people."""

from __future__ import annotations

import pytest

from papaver.cli.run import Run
from papaver.cli.table import show_table


def test_columns_stand_under_their_headings(capsys: pytest.CaptureFixture[str]) -> None:
    """Wide enough for the longest, and one line for each row whatever is in it."""
    show_table(Run(), ("name", "seen"), [("a\nb\x1b[31m", 1), ("a longer name", "")])
    assert capsys.readouterr().out == "name           seen\na b            1\na longer name\n"


def test_nothing_has_no_heading(capsys: pytest.CaptureFixture[str]) -> None:
    """And scripts have no table."""
    show_table(Run(), ("name",), [])
    show_table(Run(json=True), ("name",), [("a",)])
    assert capsys.readouterr().out == ""
