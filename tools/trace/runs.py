"""A pytest plugin that maps rows to tests, and reruns tests with one check switched off."""

from __future__ import annotations

import re
import sys
import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any

import pytest

from papaver.testing.requirements import Row, marked_rows
from papaver.testing.rules import CannotSwitchOff, load_rules, switched_off
from papaver.values.errors import PapaverError

__all__ = ["Collected", "Tracer", "case_ids"]

_CASE = re.compile(r"(?:^|[^a-z0-9])([bc]\d+)(?=[^a-z0-9]|$)")
"""An edge case named in a test's name, such as `test_c10_…`."""


def case_ids(test_name: str) -> set[str]:
    """The edge cases that a test's name says it creates, in upper case."""
    return {found.upper() for found in _CASE.findall(test_name.lower())}


@dataclass(slots=True)
class Collected:
    """What one run of the tracer found.

    `tests`      row id → ids of the tests that carry it
    `cases`      ids of the edge cases that some test is named after
    `rules`      ids of every check function
    `unnoticed`  (row id, rule id): no test of the row fails while the check is off
    `raised`     (row id, rule id) → tests of the row in which that check refused something
    `broken`     tests or modules that fail with every check on
    """

    tests: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list[str]))
    cases: set[str] = field(default_factory=set[str])
    rules: set[str] = field(default_factory=set[str])
    unnoticed: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    raised: dict[tuple[str, str], list[str]] = field(default_factory=lambda: defaultdict(list[str]))
    broken: list[str] = field(default_factory=list[str])


class Tracer:
    """Runs instead of pytest's own loop: `switch` proves the rules of rows, `watch` sees which checks refuse."""

    def __init__(self, rows: Mapping[str, Row], *, switch: bool, watch: bool) -> None:
        self.found = Collected()
        self._rows = rows
        self._switch = switch
        self._watch = watch
        self._by_row: dict[str, list[pytest.Item]] = defaultdict(list)
        self._marked: list[pytest.Item] = []
        self._outcomes: list[pytest.TestReport] = []
        self._passes: dict[str, bool] = {}

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.found.broken.append(f"{report.nodeid}: cannot be collected")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        for item in items:
            self.found.cases |= case_ids(item.name)
            rows = marked_rows(item)
            if rows:
                self._marked.append(item)
            for row_id in rows:
                self._by_row[row_id].append(item)
                self.found.tests[row_id].append(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._outcomes.append(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        rules = load_rules()
        self.found.rules = set(rules)
        if self._switch:
            for row in self._rows.values():
                for rule_id in row.rules:
                    if rule_id in rules and not self._noticed(rule_id, self._by_row[row.id]):
                        self.found.unnoticed.append((row.id, rule_id))
        if self._watch:
            self._watch_all({function.__code__: rule_id for rule_id, function in rules.items()})
        return True

    def _noticed(self, rule_id: str, items: Iterable[pytest.Item]) -> bool:
        """Whether some test passes with the check on and fails with it off. Quick tests are asked first."""
        for item in sorted(items, key=_cost):
            try:
                with switched_off(rule_id):
                    passed = self._run(item)
            except CannotSwitchOff as error:
                self.found.broken.append(str(error))
                return True
            if not passed and self._passes_normally(item):
                return True
        return False

    def _passes_normally(self, item: pytest.Item) -> bool:
        if item.nodeid not in self._passes:
            self._passes[item.nodeid] = self._run(item)
            if not self._passes[item.nodeid]:
                self.found.broken.append(f"{item.nodeid}: fails with every check on")
        return self._passes[item.nodeid]

    def _run(self, item: pytest.Item) -> bool:
        """Run one test with its fixtures made anew. A test that is left out counts as passed."""
        self._outcomes = []
        item.ihook.pytest_runtest_protocol(item=item, nextitem=None)
        return not any(report.failed for report in self._outcomes)

    def _watch_all(self, codes: Mapping[CodeType, str]) -> None:
        """Run every marked test once, noting the checks that raised one of our errors in it."""
        refused: set[str] = set()

        def inside(frame: FrameType, event: str, argument: Any) -> Any:
            if event == "exception" and isinstance(argument[1], PapaverError):
                refused.add(codes[frame.f_code])
            return inside

        def enter(frame: FrameType, event: str, argument: Any) -> Any:
            return inside if frame.f_code in codes else None

        for item in self._marked:
            refused.clear()
            before, before_in_threads = sys.gettrace(), threading.gettrace()
            sys.settrace(enter)
            threading.settrace(enter)
            try:
                self._run(item)
            finally:
                sys.settrace(before)
                threading.settrace(before_in_threads)
            for row_id in marked_rows(item):
                for rule_id in refused:
                    self.found.raised[row_id, rule_id].append(item.nodeid)


def _cost(item: pytest.Item) -> tuple[bool, bool, str]:
    """Unit tests before others, examples before properties (which shrink what they find)."""
    function = getattr(item, "function", None)
    return (not item.nodeid.startswith("tests/unit/"), hasattr(function, "is_hypothesis_test"), item.nodeid)
