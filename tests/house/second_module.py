"""A module in a test's own folder, under a name that no other test has used in this process."""

from __future__ import annotations

from itertools import count
from pathlib import Path

_NUMBERS = count()


def module_named(folder: Path, source: str) -> str:
    """Write the module; its name."""
    name = f"module_of_a_test_{next(_NUMBERS)}"
    (folder / f"{name}.py").write_text(source)
    return name
