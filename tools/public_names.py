"""Lists every public name of the package: `python -m tools.public_names`; `--write` renews the reviewed snapshot."""

from __future__ import annotations

import ast
import sys
from pathlib import Path

__all__ = ["SNAPSHOT", "exported", "public_names"]

ROOT = Path(__file__).parents[1]
SNAPSHOT = ROOT / "tests" / "architecture" / "public_names.txt"


def exported(tree: ast.Module) -> list[str]:
    """The names in a module's `__all__`, read without importing it."""
    lists = (
        node for node in tree.body if isinstance(node, ast.Assign) and isinstance(node.value, ast.List | ast.Tuple)
    )
    for node in lists:
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets):
            return [str(item.value) for item in ast.walk(node.value) if isinstance(item, ast.Constant)]
    return []


def public_names() -> list[str]:
    """Every name in an `__all__` of a module without a leading underscore, dotted and sorted."""
    source = ROOT / "src"
    names: list[str] = []
    for path in sorted((source / "papaver").rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        if any(part.startswith("_") and part != "__init__" for part in parts):
            continue
        module = ".".join(parts).removesuffix(".__init__")
        names += [f"{module}.{name}" for name in exported(ast.parse(path.read_text(encoding="utf-8")))]
    return sorted(names)


def main(arguments: list[str]) -> int:
    text = "".join(f"{name}\n" for name in public_names())
    if arguments == ["--write"]:
        SNAPSHOT.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
