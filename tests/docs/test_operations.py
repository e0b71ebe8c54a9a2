"""docs/operations.md names every line that a running Company logs as a warning or an error, and no other."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
ROOMS = ("company", "stores", "adapters")


def _lines(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="log" | "logger"), attr="warning" | "error"),
                args=[ast.Constant(value=str(line)), *_],
            ):
                yield line
            case _:
                pass


LOGGED = sorted(
    {line for room in ROOMS for path in (ROOT / "src/papaver" / room).rglob("*.py") for line in _lines(path)}
)
TABLE = re.findall(r"^\| `(.+?)` \| .+ \| .+ \|$", PAGE.partition("## What the log says")[2], re.MULTILINE)


@pytest.mark.parametrize("line", LOGGED)
def test_each_line_is_explained(line: str) -> None:
    """What it means, and what to do."""
    assert line in TABLE


def test_no_line_is_explained_that_nobody_logs() -> None:
    """A reader who searches for it finds it."""
    assert sorted(TABLE) == LOGGED


@pytest.mark.parametrize("name", ["papaver.requests", "papaver.turns", "papaver.hooks", "papaver.held"])
def test_metrics_are_named_as_they_are_told(name: str) -> None:
    """The page and the code say the same."""
    told = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src/papaver/company").glob("*.py"))
    assert f'"{name}"' in told
    assert f"`{name}`" in PAGE
