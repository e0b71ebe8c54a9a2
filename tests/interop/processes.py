"""Real processes on loopback: one local authority, `papaver` as a subprocess, and servers that end in time."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papaver.demo.authority import Authority

__all__ = ["Place", "Running", "environment", "papaver", "started"]

ROOT = Path(__file__).parents[2]


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ours without what a developer's shell says; coverage and the path to the checkout stay."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PAPAVER_", "OUTFITTER_"))}
    path = os.pathsep.join([str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])])
    return {**kept, "PYTHONPATH": path, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring", **(more or {})}


def papaver(
    *arguments: object, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end."""
    return subprocess.run(
        [sys.executable, "-m", "papaver.cli", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        cwd=cwd,
        env=environment(env),
    )


class Running:
    """A server process; `lines` reads what it says on stdout."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        """The next line; "" when it ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def said(self) -> dict[str, Any]:
        """The next line as JSON."""
        return json.loads(self.line())

    def end(self, number: int = signal.SIGTERM) -> int:
        """Send a signal and wait for the end."""
        self.process.send_signal(number)
        return self.process.wait(20)


@contextmanager
def started(
    command: Sequence[object], cwd: Path | None = None, errors: Path | None = None, env: Mapping[str, str] | None = None
) -> Generator[Running]:
    """A process for as long as the block lasts; `command` follows `python`. Its stderr is ours, or goes to `errors`."""
    with open(os.devnull if errors is None else errors, "ab") as file:
        process = subprocess.Popen(
            [sys.executable, *map(str, command)],
            stdout=subprocess.PIPE,
            stderr=None if errors is None else file,
            text=True,
            cwd=cwd,
            env=environment(env),
        )
    try:
        yield Running(process)
    finally:
        if process.poll() is None:
            process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        assert process.stdout is not None
        process.stdout.close()


@dataclass(frozen=True)
class Place:
    """A folder with a local authority, and certificates for the names of a test."""

    folder: Path
    authority: Authority

    @classmethod
    def make(cls, folder: Path) -> Place:
        return cls(folder, Authority(folder))

    @property
    def ca_file(self) -> Path:
        return self.authority.ca_file

    def tls(self, *names: str) -> list[object]:
        """`--tls-cert` and `--tls-key` for these names."""
        certificate, key = self.authority.issue(*names)
        return ["--tls-cert", certificate, "--tls-key", key]
