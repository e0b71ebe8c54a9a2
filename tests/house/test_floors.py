"""How recorded coverage is judged: whose test file is whose, and what a gap looks like."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import coverage
import pytest

from tools import floors


class _Recorded:
    """Stands for coverage's own report: the same JSON, from numbers given here."""

    def __init__(self, **files: tuple[list[int], list[list[int]]]) -> None:
        self._files = files

    def json_report(self, outfile: str, **_options: Any) -> None:
        parts = (
            f'"src/papaver/{name.replace("__", "/")}.py": {{"summary": {{"covered_lines": {10 - len(lines)}, '
            f'"num_statements": 10, "covered_branches": {4 - len(jumps)}, "num_branches": 4}}, '
            f'"missing_lines": {lines}, "missing_branches": {jumps}}}'
            for name, (lines, jumps) in self._files.items()
        )
        Path(outfile).write_text(f'{{"files": {{{", ".join(parts)}}}}}')


def _judged(**files: tuple[list[int], list[list[int]]]) -> list[str]:
    return floors.rooms(cast(coverage.Coverage, _Recorded(**files)))


def test_one_missing_branch_of_the_core_is_a_fault() -> None:
    """The core's floor is everything, and the fault names the jump that nobody made."""
    faults = _judged(web__urls=([], [[3, -1]]), jose__keys=([], []))
    assert faults == ["web/urls.py: every line and branch of the core is shown; missing 3->exit"]


def test_missing_lines_are_told_as_ranges_without_their_jumps() -> None:
    """A line that never ran is said once."""
    faults = _judged(web__urls=([4, 5, 6, 9], [[3, 4], [6, 9]]))
    assert faults == ["web/urls.py: every line and branch of the core is shown; missing 4-6, 9"]


def test_another_room_may_miss_a_little() -> None:
    """Outside the core a whole room is judged against its floor."""
    assert _judged(company__app=([1, 2], [])) == []
    faults = _judged(company__app=([1, 2, 3], []))
    assert faults == ["company: 78.6 % of lines and branches, the floor is 85 %"]


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        ("web/sse.py", ["test_sse.py", "test_sse_reading.py"]),
        ("web/sse_wire.py", ["test_sse_wire.py"]),
        ("web/urls.py", []),
        ("versions/__init__.py", ["test_init.py"]),
    ],
)
def test_a_modules_own_tests_mirror_its_name(
    module: str, expected: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`test_<module>.py` and its parts, but not the file of a module whose name only begins alike."""
    for name in ("web/test_sse.py", "web/test_sse_reading.py", "web/test_sse_wire.py", "versions/test_init.py"):
        path = tmp_path / "tests" / "unit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    monkeypatch.setattr(floors, "ROOT", tmp_path)
    modules = [Path("web/sse.py"), Path("web/sse_wire.py"), Path("web/urls.py"), Path("versions/__init__.py")]
    assert [path.name for path in floors.own_tests(Path(module), modules)] == expected
