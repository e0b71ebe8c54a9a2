"""Rows for people: aligned under their headings, other parties' words made safe."""

from __future__ import annotations

from collections.abc import Sequence

from papaver.cli.run import Run
from papaver.cli.text import one_line

__all__ = ["show_table"]


def show_table(run: Run, headings: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Nothing without rows, and nothing for scripts."""
    if run.json or not rows:
        return
    cells = [[*headings], *([one_line(value) for value in row] for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(headings))]
    for line in cells:
        padded = [value.ljust(width) for value, width in zip(line, widths, strict=True)]
        run.say("{line}", line="  ".join(padded).rstrip())
