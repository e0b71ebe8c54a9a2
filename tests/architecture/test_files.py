"""Files stay small, finished and in our words, and say nothing about the machine they were written on."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.architecture.source import PACKAGE, ROOT, every_file, modules, tree

MOST_LINES = 400
UNFINISHED = re.compile(r"NotImplementedError|\b(?:TODO|FIXME|XXX)\b")
_HOSTS = ("pypi" + r"\.org", "python" + "hosted", "npm" + r"js\.")
FORBIDDEN = re.compile("|".join((r"(?<![\w.])/(?:work|root|home|opt)/\w", *_HOSTS)))
"""Paths of some machine, and hosts of package registries: a lock or a page that names one binds its reader to it."""
VAGUE_NAMES = re.compile(r"^(?:get|process)_|manager|helper|utils?$|^base$|^Base[A-Z]", re.IGNORECASE)

FOREIGN_NAMES = {"get_command", "get_extra_info", "get_password", "get_tools"}
"""Names that another library chose: a protocol that describes its objects has to use them."""


@pytest.mark.parametrize("module", modules(), ids=str)
def test_a_module_is_small(module: Path) -> None:
    """One job fits in 400 lines; what does not is two jobs."""
    assert (PACKAGE / module).read_text(encoding="utf-8").count("\n") <= MOST_LINES


def test_every_module_says_its_job_first() -> None:
    """The first line of a file's docstring is its one responsibility; only an empty room has none."""
    silent = [str(module) for module in modules() if tree(module).body and not ast.get_docstring(tree(module))]
    assert silent == []


def test_nothing_is_left_unfinished() -> None:
    """A room is empty or done: no markers for later, no stubs."""
    found = [str(module) for module in modules() if UNFINISHED.search((PACKAGE / module).read_text(encoding="utf-8"))]
    assert found == []


def test_no_file_names_a_machine_or_a_registry() -> None:
    """The checkout means the same on every machine and behind every mirror."""
    found: list[str] = []
    for file in every_file():
        try:
            text = (ROOT / file).read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        found += [f"{file}:{text.count(chr(10), 0, hit.start()) + 1}: {hit[0]}" for hit in FORBIDDEN.finditer(text)]
    assert found == []


def test_names_say_what_a_thing_is() -> None:
    """No `get_`, `process_`, `manager`, `helper`, `utils` or `base`: each hides the verb or the noun that is meant."""
    vague = [str(module) for module in modules() if VAGUE_NAMES.search(module.stem)]
    for module in modules():
        for node in ast.walk(tree(module)):
            named = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            if named and node.name not in FOREIGN_NAMES and VAGUE_NAMES.search(node.name.lstrip("_")):
                vague.append(f"{module}:{node.lineno}: {node.name}")
    assert vague == []
