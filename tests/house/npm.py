"""The npm packages of tests/node: installed once into build/node/tests, by the first test to need one."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["MODULES", "installed", "why_not"]

ROOT = Path(__file__).parents[2]
LISTED = ROOT / "tests" / "node"
PLACE = ROOT / "build" / "node" / "tests"
MODULES = PLACE / "node_modules"
FILES = ("package.json", "package-lock.json", ".npmrc")


def _is_current() -> bool:
    done = PLACE / "installed.json"
    return done.exists() and done.read_bytes() == (LISTED / "package-lock.json").read_bytes()


@cache
def why_not() -> str:
    """Install what the lock file names, unless it is there. Why that was impossible; empty when it is there now."""
    PLACE.mkdir(parents=True, exist_ok=True)
    with (PLACE / "lock").open("w") as lock:
        # Test processes start together: one installs, the others wait for it.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if _is_current():
            return ""
        npm = shutil.which("npm")
        if npm is None:
            return "npm not found"
        for name in FILES:
            shutil.copy(LISTED / name, PLACE / name)
        command = [npm, "ci", "--no-fund", "--no-audit", "--ignore-scripts", "--loglevel=error"]
        try:
            done = subprocess.run(command, cwd=PLACE, capture_output=True, text=True, timeout=300, check=False)
        except (OSError, subprocess.SubprocessError) as error:
            return f"npm ci: {type(error).__name__}"
        if done.returncode != 0:
            return (
                f"npm ci ended with {done.returncode}: {(done.stderr.strip().splitlines() or ['it said nothing'])[0]}"
            )
        shutil.copy(LISTED / "package-lock.json", PLACE / "installed.json")
    return ""


def installed(package: str) -> Path:
    """The folder of an installed package."""
    assert why_not() == "", why_not()
    return MODULES / package
