"""What the architecture tests look at: the files of the checkout, read once, and their syntax trees."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tools.coverage_contexts import CORE

__all__ = ["CORE", "PACKAGE", "ROOT", "core_modules", "every_file", "modules", "tree"]

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "papaver"


@cache
def modules() -> tuple[Path, ...]:
    """Every Python file of the package, relative to it."""
    return tuple(sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py")))


def core_modules() -> Iterator[Path]:
    """The modules of the rooms that know neither clock nor chance, and the ports beside them."""
    return (module for module in modules() if module.parts[0] in (*CORE, "ports"))


@cache
def tree(module: Path) -> ast.Module:
    """The syntax tree of one module of the package."""
    return ast.parse((PACKAGE / module).read_text(encoding="utf-8"), filename=str(module))


@cache
def every_file() -> tuple[Path, ...]:
    """Every file that git knows or would add, relative to the root; all files where there is no git."""
    listing = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(listing, capture_output=True, text=True, check=True).stdout.split("\0")
    except (OSError, subprocess.CalledProcessError):
        hidden = {".venv", "build", "node_modules", "__pycache__", ".git"}
        found = (path.relative_to(ROOT) for path in ROOT.rglob("*") if path.is_file())
        return tuple(path for path in found if not hidden & set(path.parts))
    return tuple(Path(name) for name in sorted(listed) if name and (ROOT / name).is_file())
