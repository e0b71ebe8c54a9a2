"""The tracer itself: it notices a test that would not miss its rule, and edits only the rows it means."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from papaver.testing.requirements import Row
from papaver.testing.rules import load_rules
from papaver.values.rules import RULES
from tools.trace.__main__ import faults_of
from tools.trace.manifests import adopt, link, read_cases, source_ids
from tools.trace.runs import Collected, Tracer, case_ids

MANIFEST = """\
# A comment.

[[requirement]]
id = "5.2-01"
text = "First."
status = "open"

[[requirement]]
id = "5.2-02"
text = "Second."
rule = "session.old"
status = "open"

[[requirement]]
id = "5.2-03"
text = "Third."
status = "deferred"
reason = "issue 2"
"""
CHECKED = """
    import pytest
    from papaver.values.errors import PapaverError
    from papaver.values.rules import RULES, rule

    RULES.pop("trace.limit", None)

    @rule("trace.limit")
    def check_limit(value):
        if value > 3:
            raise PapaverError("too much", rule="trace.limit")

    @pytest.mark.requirement("5.2-01")
    def test_c10_and_b2_limit():
        {body}
"""


@pytest.fixture(scope="module", autouse=True)
def _every_room_is_imported() -> None:
    """An inner run forgets the modules that it imports first, and importing them again would claim rules twice."""
    load_rules()


def _traced(pytester: pytest.Pytester, body: str, *, switch: bool = True, watch: bool = False) -> Collected:
    (pytester.path / "test_it.py").write_text(dedent(CHECKED).format(body=body))
    rows = {"5.2-01": Row("5.2-01", "First.", "tested", section="5.2", rules=("trace.limit",))}
    tracer = Tracer(rows, switch=switch, watch=watch)
    inner: Any = pytester
    inner.inline_run("-p", "no:cacheprovider", plugins=[tracer])
    RULES.pop("trace.limit", None)
    return tracer.found


def test_a_test_that_misses_its_rule_satisfies_the_row(pytester: pytest.Pytester) -> None:
    """Passing with the check on and failing with it off is what a row's test is for."""
    found = _traced(pytester, 'with pytest.raises(PapaverError, match="limit"): check_limit(9)')
    assert found.unnoticed == []
    assert found.broken == []
    assert list(found.tests) == ["5.2-01"]
    assert found.cases == {"B2", "C10"}


def test_a_test_that_passes_without_its_rule_is_a_fault(pytester: pytest.Pytester) -> None:
    """A marker on a test that never meets the check shows nothing."""
    found = _traced(pytester, "check_limit(2)")
    assert found.unnoticed == [("5.2-01", "trace.limit")]


def test_a_test_that_always_fails_shows_nothing(pytester: pytest.Pytester) -> None:
    """Failing with the check off counts only if the test passes with it on."""
    found = _traced(pytester, "assert False")
    assert found.unnoticed == [("5.2-01", "trace.limit")]
    assert found.broken == ["test_it.py::test_c10_and_b2_limit: fails with every check on"]


def test_watching_names_the_checks_that_refuse_in_a_rows_tests(pytester: pytest.Pytester) -> None:
    """`--suggest` sees which check raised while a row's test ran."""
    found = _traced(pytester, "with pytest.raises(PapaverError): check_limit(9)", switch=False, watch=True)
    assert dict(found.raised) == {("5.2-01", "trace.limit"): ["test_it.py::test_c10_and_b2_limit"]}


def test_an_error_of_another_kind_is_not_a_refusal(pytester: pytest.Pytester) -> None:
    """A check that crashes has refused nothing."""
    found = _traced(pytester, "with pytest.raises(TypeError): check_limit(None)", switch=False, watch=True)
    assert dict(found.raised) == {}


def test_a_module_that_cannot_be_collected_is_a_fault(pytester: pytest.Pytester) -> None:
    """A test file with a broken import must not make its rows vanish silently."""
    found = _traced(pytester, "pass\n\nraise KeyError")
    assert found.broken == ["test_it.py: cannot be collected"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (Row("5.2-01", "First.", "tested"), "5.2-01: tested, but no test carries it: First."),
        (Row("5.2-01", "First.", "open"), "5.2-01: open: First."),
        (Row("5.2-01", "First.", "outside", rules=("no.such",)), "5.2-01: no check has the rule id no.such"),
    ],
)
def test_a_row_that_promises_too_much_is_a_fault(row: Row, fault: str) -> None:
    """A tested row needs a test, an open row is refused when strict, and a rule id has to exist."""
    assert fault in faults_of({row.id: row}, Collected(), strict=True)


def test_an_open_row_passes_when_not_strict() -> None:
    """While work goes on, open rows are only counted."""
    row = Row("5.2-01", "First.", "open")
    assert [fault for fault in faults_of({row.id: row}, Collected(), strict=False) if "lacks" not in fault] == []


def test_a_row_that_only_restates_leans_on_the_other_ones_test() -> None:
    """An obligation that is said twice needs one test."""
    rows = {"1-01": Row("1-01", "First.", "tested"), "2-01": Row("2-01", "Again.", "tested", restates="1-01")}
    found = Collected()
    found.tests["1-01"].append("test_it.py::test_it")
    assert [fault for fault in faults_of(rows, found, strict=False) if "lacks" not in fault] == []


def test_a_row_of_the_source_that_ours_lacks_is_a_fault(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Our manifest grew from the source and loses nothing of it."""
    source = tmp_path / "requirements.toml"
    source.write_text(MANIFEST)
    monkeypatch.setattr("tools.trace.__main__.SOURCE", source)
    row = Row("5.2-01", "First.", "outside")
    faults = faults_of({row.id: row}, Collected(), strict=False)
    assert faults == ["5.2-02: our manifest lacks this row", "5.2-03: our manifest lacks this row"]


def test_absent_sources_are_empty(tmp_path: Path) -> None:
    """A checkout on its own has neither the source nor, in a wheel, the edge cases."""
    assert source_ids(tmp_path / "none.toml") == frozenset()
    assert read_cases(tmp_path / "none.toml") == ()


def test_adopting_turns_only_open_rows_that_have_a_test() -> None:
    """Comments and every other row stay byte for byte."""
    text, changed = adopt(MANIFEST, {"5.2-02": ["test"], "5.2-03": ["test"]})
    assert changed == ["5.2-02"]
    assert text == MANIFEST.replace('"session.old"\nstatus = "open"', '"session.old"\nstatus = "tested"')


def test_linking_adds_rules_and_keeps_those_that_are_there() -> None:
    """One rule is a string, several are a list, and a second time changes nothing."""
    wanted = {"5.2-01": ["a.b"], "5.2-02": ["a.b"]}
    text, changed = link(MANIFEST, wanted)
    assert changed == ["5.2-01", "5.2-02"]
    assert 'text = "First."\nrule = "a.b"\nstatus = "open"' in text
    assert 'text = "Second."\nrule = ["a.b", "session.old"]\nstatus = "open"' in text
    assert link(text, wanted) == (text, [])


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("test_c10_id_reused", {"C10"}),
        ("test_retry[C9-again]", {"C9"}),
        ("test_b5_b6_both", {"B5", "B6"}),
        ("test_abc10_is_no_case", set[str]()),
    ],
)
def test_an_edge_case_is_named_in_the_tests_name(name: str, ids: set[str]) -> None:
    """A test name, or a parameter's id, holds the case's id as a word."""
    assert case_ids(name) == ids
