"""`tools/setup`: one sentence when it cannot work, and an installation only when something changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[2] / "tools" / "setup"
INTERPRETER = """#!/bin/sh
printf '%s\\n' "$*" >> "{log}"
case "$*" in *"{refused}"*) exit 1 ;; esac
exit 0
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with the script, a lock and a project file, and nothing installed."""
    (tmp_path / "tools").mkdir()
    shutil.copy(SETUP, tmp_path / "tools" / "setup")
    (tmp_path / "requirements").mkdir()
    (tmp_path / "requirements" / "demo.txt").write_text("one==1\n")
    (tmp_path / "pyproject.toml").write_text("[project]\n")
    return tmp_path


def _interpreter(path: Path, refused: str = "never") -> Path:
    """A stand-in for Python that notes how it was called, and fails when its arguments contain `refused`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(INTERPRETER.format(log=path.with_suffix(".log"), refused=refused))
    path.chmod(0o755)
    return path


def _set_up(checkout: Path, python: Path | str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": str(python)}
    script = str(checkout / "tools" / "setup")
    return subprocess.run([script, "demo"], env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_missing_venv_module_is_said_in_one_sentence(checkout: Path) -> None:
    """The sentence names the package to install; nothing else is printed and nothing is left behind."""
    done = _set_up(checkout, _interpreter(checkout / "python", refused="import venv"))
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "no venv module" in done.stderr
    assert "apt install python3-venv" in done.stderr
    assert not (checkout / ".venv").exists()


def test_an_old_python_is_said_in_one_sentence(checkout: Path) -> None:
    """The sentence names the interpreter that was tried and how to name another."""
    old = _interpreter(checkout / "python", refused="version_info")
    done = _set_up(checkout, old)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert f"'{old}' is not a Python 3.11 or newer" in done.stderr
    assert "PYTHON=" in done.stderr


def test_an_installation_is_made_once_and_again_when_the_lock_changes(checkout: Path) -> None:
    """The second run calls no pip; a changed lock calls it again; every command is printed."""
    inside = _interpreter(checkout / ".venv" / "bin" / "python")
    log = inside.with_suffix(".log")

    def installations() -> int:
        return log.read_text().count("pip install")

    first = _set_up(checkout, "unused")
    assert first.returncode == 0
    assert installations() == 2
    assert "--require-hashes -r requirements/demo.txt" in first.stdout
    assert _set_up(checkout, "unused").stdout == ""
    assert installations() == 2
    (checkout / "requirements" / "demo.txt").write_text("one==2\n")
    _set_up(checkout, "unused")
    assert installations() == 4


def test_a_failed_installation_is_tried_again(checkout: Path) -> None:
    """A half-made environment is not taken for a finished one."""
    _interpreter(checkout / ".venv" / "bin" / "python", refused="pip install")
    assert _set_up(checkout, "unused").returncode != 0
    inside = _interpreter(checkout / ".venv" / "bin" / "python")
    assert _set_up(checkout, "unused").returncode == 0
    assert "pip install" in inside.with_suffix(".log").read_text()
