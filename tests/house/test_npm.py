"""The npm packages are installed once, and what prevents it is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house import npm


@pytest.fixture(name="place")
def make_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty place, and a PATH with nothing in it."""
    place = tmp_path / "place"
    monkeypatch.setattr(npm, "PLACE", place)
    monkeypatch.setenv("PATH", str(tmp_path))
    return place


def script(place: Path, text: str) -> None:
    """What `npm` is."""
    program = place.parent / "npm"
    program.write_text(f"#!/bin/sh\n{text}\n")
    program.chmod(0o755)


def test_without_npm_there_are_none(place: Path) -> None:
    """Which the summary of a run then says."""
    assert npm.why_not.__wrapped__() == "npm not found"


def test_why_npm_failed_is_said(place: Path) -> None:
    """Its first line, and nothing counts as installed."""
    script(place, "echo 'npm error code ENOTFOUND' >&2; echo more >&2; exit 1")
    for _ in range(2):
        assert npm.why_not.__wrapped__() == "npm ci ended with 1: npm error code ENOTFOUND"


def test_what_the_lock_file_names_is_installed_once(place: Path) -> None:
    """The next process finds it; another lock file would be installed again."""
    script(place, "echo ran >> ran")
    assert [npm.why_not.__wrapped__() for _ in range(2)] == ["", ""]
    assert (place / "ran").read_text() == "ran\n"
    (place / "installed.json").write_text("{}")
    assert npm.why_not.__wrapped__() == ""
    assert (place / "ran").read_text() == "ran\nran\n"
