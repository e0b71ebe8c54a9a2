"""The crash points: off unless a test asks for them when the process starts."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import get_args

import pytest

from papaver.stores import crash
from papaver.stores.crash import CRASH_POINTS, GRANT_CRASH_POINTS, Step, crash_point
from papaver.stores.faults import StoreFailed


def test_nothing_is_watched_by_default() -> None:
    """No server of a Company even calls the hook."""
    assert not crash.WATCHED
    crash_point("accept.before-commit")


def test_each_step_has_two_moments() -> None:
    """Before its COMMIT and after it."""
    moments = tuple(f"{step}.{side}-commit" for step in get_args(Step) for side in ("before", "after"))
    assert moments == (*CRASH_POINTS, *GRANT_CRASH_POINTS)


def test_names_are_noted_in_order(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Appended, one a line."""
    monkeypatch.setattr(crash, "_LOG", str(tmp_path / "names"))
    for name in CRASH_POINTS[:3]:
        crash_point(name)
    assert (tmp_path / "names").read_text().splitlines() == list(CRASH_POINTS[:3])


def test_the_named_moment_is_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """SIGKILL to this very process, and to no other moment's."""
    killed: list[tuple[int, int]] = []

    def kill(pid: int, number: int) -> None:
        killed.append((pid, number))

    monkeypatch.setattr(os, "kill", kill)
    monkeypatch.setattr(crash, "_AT", "lease.before-commit")
    crash_point("accept.before-commit")
    assert killed == []
    crash_point("lease.before-commit")
    assert killed == [(os.getpid(), signal.SIGKILL)]


def test_a_failed_store_tells_its_reason_to_us_alone() -> None:
    """The other party reads `description`; `detail` is for our log."""
    fault = StoreFailed("OperationalError: disk I/O error")
    assert (fault.code, fault.retry_after) == ("temporarily_unavailable", 1)
    assert "disk" not in str(fault)
    assert "disk" in fault.detail
