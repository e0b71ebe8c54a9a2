"""The manifest reads strictly, and a marker that says too much or something unknown stops the run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

from papaver.testing.requirements import known_rows, read_rows, spec_folder

PLUGIN = ("-p", "papaver.testing.requirements", "-p", "no:cacheprovider", "-p", "no:anyio")
ROW = '[[requirement]]\nid = "{id}"\ntext = "Do it."\nstatus = "{status}"\n'


def _manifest(folder: Path, text: str) -> Path:
    path = folder / "requirements.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _test_file(pytester: pytest.Pytester, text: str) -> None:
    (pytester.path / "test_it.py").write_text(dedent(text))


def test_every_row_of_the_draft_is_known() -> None:
    """Both manifests are read: 733 statements of the specification and 116 capabilities."""
    rows = known_rows().values()
    assert sum(row.source == "specification" and bool(row.section) for row in rows) == 733
    assert sum(row.id.startswith("ca-") for row in rows) == 116


def test_a_deferred_row_names_the_issue_that_brings_it() -> None:
    """`deferred` is a promise with an address."""
    assert [row.id for row in known_rows().values() if row.status == "deferred" and "issue " not in row.reason] == []


def test_a_row_may_name_one_rule_or_several(tmp_path: Path) -> None:
    """`rule` is a string or a list of strings; both read as a tuple."""
    one = ROW.format(id="1-01", status="tested") + 'rule = "a.b"\n'
    two = ROW.format(id="1-02", status="tested") + 'rule = ["a.b", "c.d"]\n'
    rows = read_rows(_manifest(tmp_path, one + two))
    assert [row.rules for row in rows] == [("a.b",), ("a.b", "c.d")]


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (ROW.format(id="1-01", status="tested") * 2, "two rows have the id 1-01"),
        (ROW.format(id="1-01", status="done"), "unknown status 'done'"),
        (ROW.format(id="1-01", status="deferred"), "1-01 is deferred"),
        (ROW.format(id="1-01", status="tested") + 'reason = "none"\n', "1-01 is tested"),
    ],
)
def test_a_faulty_manifest_is_refused(tmp_path: Path, text: str, fault: str) -> None:
    """The error names the file's row and what is wrong with it."""
    with pytest.raises(ValueError, match=fault):
        read_rows(_manifest(tmp_path, text))


def test_the_checkouts_own_folder_is_found() -> None:
    """Outside a wheel the manifest is that of the checkout."""
    assert (spec_folder() / "0.4" / "requirements.toml").is_file()


def test_a_marker_with_known_rows_passes(pytester: pytest.Pytester) -> None:
    """Three rows may share one test, from one marker or from several."""
    _test_file(
        pytester,
        """
        import pytest

        @pytest.mark.requirement("3-01", "3-02")
        @pytest.mark.requirement("3-03", "3-03")
        def test_it():
            pass
    """,
    )
    pytester.runpytest_inprocess(*PLUGIN, "--strict-markers").assert_outcomes(passed=1)


@pytest.mark.parametrize(
    ("ids", "fault"),
    [
        ('"3-01", "3-999"', "*test_it: names unknown rows 3-999"),
        ('"3-01", "3-02", "3-03", "3-04"', "*test_it: names 4 rows, at most 3 go on one test"),
    ],
)
def test_a_wrong_marker_stops_the_run(pytester: pytest.Pytester, ids: str, fault: str) -> None:
    """An unknown row, or a fourth one, is a usage error before any test runs."""
    _test_file(
        pytester,
        f"""
        import pytest

        @pytest.mark.requirement({ids})
        def test_it():
            pass
    """,
    )
    result = pytester.runpytest_inprocess(*PLUGIN)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([fault])
