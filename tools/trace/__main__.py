"""`python -m tools.trace`: judges the manifest against the tests, and prints the counts."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from papaver.testing.requirements import STATUSES, Row, known_rows, spec_folder
from tools.trace.manifests import adopt, link, read_cases, source_ids
from tools.trace.runs import Collected, Tracer

ROOT = Path(__file__).parents[2]
SOURCE = ROOT.parent / "shared" / "spec" / "requirements.toml"
EVERY_TEST = ("-o", "addopts=", "--import-mode=importlib", "--strict-markers", "-p", "no:terminal", "-p", "no:xdist")
QUIET = ("-W", "ignore::pytest.PytestAssertRewriteWarning")
"""The manifest's reader is a plugin and is in use before pytest starts."""
ONE_TEST = ("-o", "timeout_func_only=true", "--timeout", "30")


def trace(rows: Mapping[str, Row], *, switch: bool, watch: bool) -> Collected:
    """Collect every test, and run those that are wanted, in this process."""
    tracer = Tracer(rows, switch=switch, watch=watch)
    status = pytest.main([*EVERY_TEST, *QUIET, *ONE_TEST, str(ROOT / "tests")], plugins=[tracer])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.NO_TESTS_COLLECTED):
        tracer.found.broken.append("pytest refused to run, see above")
    return tracer.found


def shown_by(row: Row, found: Collected) -> Sequence[str]:
    """The tests of a row; a row that only restates another may lean on that one's."""
    return found.tests.get(row.id) or found.tests.get(row.restates) or ()


def faults_of(rows: Mapping[str, Row], found: Collected, *, strict: bool) -> list[str]:
    """Everything that makes `make trace` fail."""
    faults = list(dict.fromkeys(found.broken))
    if found.broken and not found.rules:
        return faults  # nothing ran, and everything else would only repeat that
    faults += [f"{row_id}: our manifest lacks this row" for row_id in sorted(source_ids(SOURCE) - rows.keys())]
    for row in rows.values():
        if row.status == "tested" and not shown_by(row, found):
            faults.append(f"{row.id}: tested, but no test carries it: {row.text}")
        if row.status == "open" and strict:
            hint = "has a test, run `python -m tools.trace --adopt`" if shown_by(row, found) else row.text
            faults.append(f"{row.id}: open: {hint}")
        faults += [f"{row.id}: no check has the rule id {rule}" for rule in row.rules if rule not in found.rules]
    for row_id, rule_id in found.unnoticed:
        faults.append(f"{row_id}: every test of it still passes with {rule_id} switched off")
    if strict:
        cases = read_cases(spec_folder() / "edge-cases.toml")
        faults += [f"{case.id}: no test is named after it: {case.text}" for case in cases if case.id not in found.cases]
    return faults


def table(title: str, rows: Iterable[tuple[str, Row]]) -> str:
    """Counts of every status, for each key in order of appearance."""
    counts: dict[str, Counter[str]] = {}
    for key, row in rows:
        counts.setdefault(key, Counter())[row.status] += 1
    lines = [f"{title:<24}" + "".join(f"{status:>10}" for status in STATUSES)]
    for key, counter in counts.items():
        lines.append(f"{key:<24}" + "".join(f"{counter[status] or '·':>10}" for status in STATUSES))
    total = sum(counts.values(), Counter[str]())
    lines.append(f"{'in all':<24}" + "".join(f"{total[status] or '·':>10}" for status in STATUSES))
    return "\n".join(lines)


def print_counts(rows: Mapping[str, Row], found: Collected) -> None:
    statements = [row for row in rows.values() if row.section]
    capabilities = [row for row in rows.values() if not row.section]
    print(table("section", ((row.section, row) for row in statements)))
    print()
    print(table("level", ((row.level, row) for row in sorted(statements, key=lambda row: row.level))))
    print()
    print(table("Company Agent", ((f"issue {row.issue}" if row.issue else "outside", row) for row in capabilities)))
    linked = {rule_id for row in rows.values() for rule_id in row.rules}
    named = len(found.rules & linked)
    print(f"\n{len(found.rules)} check functions; {named} are named by a row, and each of these was switched off")


def print_suggestions(rows: Mapping[str, Row], found: Collected) -> None:
    for (row_id, rule_id), tests in sorted(found.raised.items()):
        if rule_id not in rows[row_id].rules:
            print(f"{row_id}={rule_id}  refused something in {tests[0]}")
            print(f"    {rows[row_id].text}")


def edit(changes: Mapping[str, Sequence[str]], *, rules: bool) -> int:
    """Write statuses or rule ids into the manifests. Returns the exit status."""
    for path in (*sorted(spec_folder().glob("*/requirements.toml")), spec_folder() / "company-agent.toml"):
        text, changed = (link if rules else adopt)(path.read_text(encoding="utf-8"), changes)
        path.write_text(text, encoding="utf-8")
        print(f"{path.relative_to(ROOT)}: {len(changed)} rows changed {' '.join(changed)}")
    return 0


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(prog="python -m tools.trace", description=__doc__)
    made.add_argument("--strict", action="store_true", help="open rows and untried edge cases are faults")
    made.add_argument("--adopt", action="store_true", help="turn `open` into `tested` where a test carries the row")
    made.add_argument("--unlinked", action="store_true", help="list the check functions that no row names")
    made.add_argument("--suggest", action="store_true", help="list the checks that refuse something in a row's tests")
    made.add_argument("--link", nargs="+", metavar="ROW=RULE", help="name these rules on these rows")
    return made


def main(arguments: list[str] | None = None) -> int:
    options = parser().parse_args(arguments)
    rows = known_rows()
    if options.link:
        wanted: dict[str, list[str]] = {}
        for pair in options.link:
            row_id, _, rule_id = str(pair).partition("=")
            wanted.setdefault(row_id, []).append(rule_id)
        return edit(wanted, rules=True)
    judging = not (options.adopt or options.unlinked or options.suggest)
    found = trace(rows, switch=judging, watch=options.suggest)
    if options.adopt:
        return edit({row.id: shown_by(row, found) for row in rows.values()}, rules=False)
    if options.unlinked:
        linked = {rule_id for row in rows.values() for rule_id in row.rules}
        print("\n".join(sorted(found.rules - linked)))
        return 0
    if options.suggest:
        print_suggestions(rows, found)
        return 0
    print_counts(rows, found)
    faults = faults_of(rows, found, strict=options.strict)
    if faults:
        print(f"\n{len(faults)} faults:")
        print("\n".join(f"  {fault}" for fault in faults))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
