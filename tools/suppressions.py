"""Counts the silenced checks of each folder: `python -m tools.suppressions`. Their number may only fall."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SILENCED = re.compile(r"#\s*(?:type:\s*ignore|pyright:\s*ignore|noqa|pragma:\s*no cover)")


def count(folder: Path) -> int:
    """How many lines under a folder silence a check."""
    texts = (path.read_text(encoding="utf-8") for path in folder.rglob("*.py"))
    return sum(bool(SILENCED.search(line)) for text in texts for line in text.splitlines())


def main() -> int:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    most: dict[str, int] = project["tool"]["papaver"]["suppressions"]
    failed = False
    for folder, limit in most.items():
        found = count(ROOT / folder)
        failed = failed or found > limit
        print(f"{folder}: {found} silenced checks, at most {limit}")
    if failed:
        print("mend the code instead; [tool.papaver.suppressions] in pyproject.toml is only ever lowered")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
