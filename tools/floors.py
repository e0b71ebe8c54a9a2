"""Judges one recorded run of the tests: `python -m tools.floors rooms` and `... own`.

rooms   every line and branch of the core ran; every other room reaches its floor
own     every core module is complete by its own test file alone, as tests/unit mirrors src
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import coverage

from tools.coverage_contexts import CORE, IMPORT_CONTEXT

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "papaver"
FLOOR = 85.0
"""Percent of lines and branches together, for each room outside the core."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What ran of one file: `covered` of `total` lines and branches, and what did not."""

    covered: int
    total: int
    missing: str

    @property
    def complete(self) -> bool:
        return self.covered == self.total


def _read(file: Mapping[str, Any]) -> Seen:
    summary: Mapping[str, int] = file["summary"]
    lines: list[int] = file["missing_lines"]
    jumps: list[tuple[int, int]] = file.get("missing_branches", [])
    # A jump from or to a line that never ran says nothing new.
    told = [jump for jump in jumps if not {abs(line) for line in jump} & set(lines)]
    return Seen(
        covered=summary["covered_lines"] + summary.get("covered_branches", 0),
        total=summary["num_statements"] + summary.get("num_branches", 0),
        missing=", ".join([*_ranges(lines), *(f"{source}->{'exit' if to < 0 else to}" for source, to in told)]),
    )


def _ranges(lines: Iterable[int]) -> list[str]:
    """`[3, 4, 5, 9]` as `["3-5", "9"]`."""
    ranges: list[list[int]] = []
    for line in sorted(lines):
        if ranges and line == ranges[-1][-1] + 1:
            ranges[-1].append(line)
        else:
            ranges.append([line])
    return [f"{run[0]}-{run[-1]}" if len(run) > 1 else str(run[0]) for run in ranges]


def _report(recorded: coverage.Coverage, **options: Any) -> dict[Path, Seen]:
    """File, relative to the package → what ran of it, from coverage's own JSON report."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "report.json"
        recorded.json_report(outfile=str(out), **options)
        files: Mapping[str, Mapping[str, Any]] = json.loads(out.read_text())["files"]
    return {(ROOT / name).resolve().relative_to(PACKAGE): _read(file) for name, file in files.items()}


def _room(file: Path) -> str:
    return file.parts[0] if len(file.parts) > 1 else ""


def rooms(recorded: coverage.Coverage) -> list[str]:
    """The faults of a run: core files with a gap, other rooms under their floor."""
    faults: list[str] = []
    by_room: dict[str, list[Seen]] = defaultdict(list)
    for file, seen in sorted(_report(recorded).items()):
        by_room[_room(file)].append(seen)
        if _room(file) in CORE and not seen.complete:
            faults.append(f"{file}: every line and branch of the core is shown; missing {seen.missing}")
    for room, files in sorted(by_room.items()):
        covered, total = sum(seen.covered for seen in files), sum(seen.total for seen in files)
        percent = 100.0 * covered / total if total else 100.0
        print(f"{percent:6.1f} %  {room or '(package)'}")
        if room not in CORE and percent < FLOOR:
            faults.append(f"{room}: {percent:.1f} % of lines and branches, the floor is {FLOOR:.0f} %")
    return faults


def own_tests(file: Path, modules: Iterable[Path]) -> list[Path]:
    """The test files that mirror one module: `test_<module>.py`, and its parts `test_<module>_<part>.py`."""
    folder, name = file.parent, file.stem
    if name == "__init__":
        candidates = [folder / "test_init.py", folder.parent / f"test_{folder.name}.py"]
        return [path for path in candidates if (ROOT / "tests" / "unit" / path).is_file()]
    others = {f"test_{other.stem}" for other in modules if other.parent == folder and other != file}
    found = sorted((ROOT / "tests" / "unit" / folder).glob(f"test_{name}*.py"))
    return [
        folder / path.name
        for path in found
        if path.stem == f"test_{name}" or (path.stem.startswith(f"test_{name}_") and path.stem not in others)
    ]


def own(recorded: coverage.Coverage) -> list[str]:
    """The core modules that their own test file does not complete."""
    faults: list[str] = []
    modules = [path.relative_to(PACKAGE) for room in CORE for path in sorted((PACKAGE / room).rglob("*.py"))]
    for file in modules:
        tests = own_tests(file, modules)
        names = "|".join([IMPORT_CONTEXT, *(re.escape(f"tests/unit/{path.as_posix()}") for path in tests)])
        seen = _report(recorded, morfs=[str(PACKAGE / file)], contexts=[f"^({names})$"]).get(file)
        if seen is None or seen.complete:
            continue
        wanted = f"no test file tests/unit/{file.parent}/test_{file.stem.strip('_')}.py"
        where = ", ".join(path.as_posix() for path in tests) or wanted
        faults.append(f"{file} by {where}: missing {seen.missing}")
    print(f"{len(modules) - len(faults)} of {len(modules)} core modules are complete by their own test file")
    return faults


def main(arguments: list[str]) -> int:
    judges = {"rooms": rooms, "own": own}
    if len(arguments) != 1 or arguments[0] not in judges:
        print(__doc__, file=sys.stderr)
        return 2
    recorded = coverage.Coverage(config_file=str(ROOT / "pyproject.toml"))
    recorded.load()
    faults = judges[arguments[0]](recorded)
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
