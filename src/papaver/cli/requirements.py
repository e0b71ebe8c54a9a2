"""`papaver requirements`: the catalogue of normative statements, and the tests that show them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click

from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.testing.requirements import Row, read_rows, spec_folder

__all__ = ["requirements", "shown_by"]


@command("requirements", network=False, example="papaver requirements --section 5.2 --untested")
@click.option("--untested", is_flag=True, help="Only rows that no test shows: deferred, or outside.")
@click.option("--section", metavar="S", help="Only this section and those inside it, such as 5 or 5.2.")
def requirements(run: Run, untested: bool, section: str | None) -> None:
    """List what the protocol requires, each row with its status. In a checkout, with the tests that show it.

    "tested" is shown by tests, "deferred" waits for what its reason names, "outside" is nothing that papaver does.
    """
    folder = spec_folder()
    tests = shown_by(folder.parent / "tests")
    found: list[Row] = []
    for path in sorted(folder.glob("*/requirements.toml")):
        for row in read_rows(path):
            if (section is None or _inside(row.section, section)) and not (untested and row.status == "tested"):
                found.append(row)
                _print(run, path.parent.name, row, tests.get(row.id, []))
    if section is not None and not found and not untested:
        raise click.UsageError(f"no row is in section {section}")
    counts = Counter(row.status for row in found)
    run.say()
    run.say(", ".join(f"{count} {status}" for status, count in counts.items()) or "no such row")


def _print(run: Run, version: str, row: Row, tests: list[str]) -> None:
    run.line(
        id=row.id,
        version=version,
        section=row.section,
        level=row.level,
        party=row.party,
        text=row.text,
        status=row.status,
        reason=row.reason,
        rules=row.rules,
        tests=tests,
    )
    run.say("{id:<8} {status:<9} {level:<7} {text}", id=row.id, status=row.status, level=row.level, text=row.text)
    if row.reason:
        run.say("         {reason}", reason=row.reason)
    for test in tests:
        run.say("         {test}", test=test)


def _inside(section: str, wanted: str) -> bool:
    return section == wanted or section.startswith(f"{wanted}.")


def shown_by(folder: Path) -> dict[str, list[str]]:
    """Row id → the tests with its marker, read from their source; nothing where there are no tests."""
    shown: dict[str, list[str]] = {}
    for path in sorted(folder.rglob("test_*.py")):
        for name, row in _markers(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.relative_to(folder.parent).as_posix()}::{name}"
            if place not in shown.setdefault(row, []):
                shown[row].append(place)
    return shown


def _markers(tree: ast.Module) -> Iterator[tuple[str, str]]:
    """(test, row) for each `requirement(...)` in a test's decorators, those of `pytest.param` included."""
    for test in ast.walk(tree):
        if isinstance(test, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in (inner for one in test.decorator_list for inner in ast.walk(one)):
                if (
                    isinstance(node, ast.Call)
                    and isinstance(node.func, ast.Attribute)
                    and node.func.attr == "requirement"
                ):
                    for row in node.args:
                        if isinstance(row, ast.Constant) and isinstance(row.value, str):
                            yield test.name, row.value
