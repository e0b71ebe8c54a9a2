"""`papaver requirements`: the catalogue, from the checkout or the wheel."""

from __future__ import annotations

import json
from pathlib import Path

from click.testing import CliRunner

from papaver.cli.main import cli
from papaver.cli.requirements import shown_by

SOURCE = """
import pytest

@pytest.mark.requirement("5.2-13", "5.2-14")
def test_one(): ...

@pytest.mark.parametrize("x", [pytest.param(1, marks=pytest.mark.requirement("5.2-15")), 2])
async def test_two(x): ...

@pytest.mark.requirement("5.2-13")
@pytest.mark.requirement("5.2-13")
def test_three(): ...

def test_none(): ...
"""


def _rows(*arguments: str) -> list[dict[str, object]]:
    done = CliRunner().invoke(cli, ["requirements", "--json", *arguments])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_every_row_is_listed_with_its_status() -> None:
    """All sections of the protocol."""
    rows = _rows()
    assert len(rows) > 700
    assert {"id", "section", "level", "party", "text", "status", "rules", "tests", "version"} <= rows[0].keys()


def test_a_section_has_those_inside_it() -> None:
    """5 has 5.2, and not 15."""
    sections = {str(row["section"]) for row in _rows("--section", "5")}
    assert "5.2" in sections
    assert all(section == "5" or section.startswith("5.") for section in sections)


def test_untested_rows_are_those_without_a_test() -> None:
    """And their reasons are shown."""
    assert not {row["status"] for row in _rows("--untested")} & {"tested"}


def test_a_tested_row_names_its_tests() -> None:
    """In a checkout."""
    row = next(row for row in _rows("--section", "3") if row["id"] == "3-01")
    assert "tests/unit/cli/test_company_check.py::test_the_documents_are_shown_with_their_urls" in str(row["tests"])


def test_an_unknown_section_is_a_usage_error() -> None:
    """Rather than an empty answer."""
    done = CliRunner().invoke(cli, ["requirements", "--section", "99"])
    assert done.exit_code == 2


def test_people_see_the_counts() -> None:
    """At the end."""
    shown = CliRunner().invoke(cli, ["requirements", "--section", "5.2"]).stdout
    assert " tested" in shown.splitlines()[-1]


def test_markers_are_read_from_the_source(tmp_path: Path) -> None:
    """On tests and on their parameters, each once; a wheel has no tests and says nothing."""
    tests = tmp_path / "tests"
    tests.mkdir()
    (tests / "test_x.py").write_text(SOURCE)
    assert shown_by(tests) == {
        "5.2-13": ["tests/test_x.py::test_one", "tests/test_x.py::test_three"],
        "5.2-14": ["tests/test_x.py::test_one"],
        "5.2-15": ["tests/test_x.py::test_two"],
    }
    assert shown_by(tmp_path / "none") == {}
