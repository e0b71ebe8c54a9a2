"""Public names are on purpose: they equal a reviewed list, they exist, and they cost nothing until they are used."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path

import pytest

import papaver
from tests.architecture.source import PACKAGE, modules, tree
from tools.public_names import SNAPSHOT, exported, public_names

FRAMEWORKS = ("anyio", "asyncio", "click", "fastapi", "httpx2", "pydantic", "starlette", "uvicorn", "cryptography")


def _imported_by(statement: str) -> set[str]:
    """The top-level modules that a fresh interpreter holds after one statement."""
    code = f"{statement}\nimport sys\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        env={"PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return set(done.stdout.split())


def test_the_public_names_are_the_reviewed_ones() -> None:
    """A new public name is a line of the snapshot in the same change: `python -m tools.public_names --write`."""
    reviewed = SNAPSHOT.read_text(encoding="utf-8").splitlines()
    assert public_names() == reviewed


@pytest.mark.parametrize("module", [module for module in modules() if exported(tree(module))], ids=str)
def test_every_exported_name_exists(module: Path) -> None:
    """`__all__` promises nothing that the module does not hold."""
    dotted = ".".join(("papaver", *module.with_suffix("").parts)).removesuffix(".__init__")
    loaded = importlib.import_module(dotted)
    assert [name for name in exported(tree(module)) if not hasattr(loaded, name)] == []


def test_every_public_name_of_the_package_is_found_in_its_room() -> None:
    """Each lazy name resolves, and is kept so that the second time costs nothing."""
    for name in papaver.__all__:
        assert getattr(papaver, name) is vars(papaver)[name]


def test_lazy_names_are_the_ones_that_type_checkers_see() -> None:
    """The table of rooms and the imports for type checkers name the same things."""
    imports = [node for node in ast.walk(tree(Path("__init__.py"))) if isinstance(node, ast.ImportFrom)]
    seen = {alias.name for node in imports if (node.module or "").startswith("papaver.") for alias in node.names}
    assert seen | {"__version__"} == set(papaver.__all__)
    assert set(papaver.__all__) <= set(dir(papaver))


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A typo fails as on any module."""
    with pytest.raises(AttributeError, match="'papaver' has no attribute 'Compnay'"):
        getattr(papaver, "Compnay")  # noqa: B009  # the name is wrong on purpose


def test_importing_the_package_imports_no_framework() -> None:
    """`import papaver` is the interpreter and one file."""
    assert _imported_by("import papaver").isdisjoint(FRAMEWORKS)


@pytest.mark.parametrize("room", ["values", "web", "jose", "oauth", "protocol"])
def test_a_core_room_imports_no_framework(room: str) -> None:
    """Whoever wants only signatures or only the protocol gets no web stack and no event loop with it."""
    names = [
        ".".join(("papaver", *module.with_suffix("").parts)).removesuffix(".__init__")
        for module in modules()
        if module.parts[0] == room
    ]
    held = _imported_by(f"import {', '.join(names)}")
    assert held.isdisjoint({"anyio", "click", "fastapi", "httpx2", "pydantic", "starlette", "uvicorn"})
