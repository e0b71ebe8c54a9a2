"""The demo's two processes: started, killed, started again, and never left behind."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from papaver.demo.outcome import DemoFailed

__all__ = ["AgentProcess", "Child", "run_once"]

PATIENCE = 60.0
"""Seconds in which a process has to say something; a slow machine needs a few."""


GRACE = 10.0
"""Seconds in which a process that is told to end has to."""


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """Ours, without what the caller's own Personal Agent is told, and with no keyring but files."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PAPAVER_", "OUTFITTER_"))}
    return {**kept, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring", **more}


def run_once(command: Sequence[str], **environment: str) -> str:
    """Run a command of `papaver` to its end; its output. Raises DemoFailed."""
    done = subprocess.run(
        [sys.executable, "-m", "papaver.cli", *command],
        env=_environment(environment),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    if done.returncode:
        raise DemoFailed(f"papaver {command[0]} ended with {done.returncode}", (done.stderr or done.stdout).strip())
    return done.stdout


class Child:
    """A process of ours that says JSON lines on stdout; its stderr goes to a file. In a session of its own, so that
    Ctrl-C reaches only us and we end it in order.
    """

    def __init__(self, name: str, command: Sequence[str], log: Path, **environment: str) -> None:
        self.name, self._log = name, log
        with log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, "-m", *command],
                env=_environment(environment),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                start_new_session=True,
            )
        self._lines: queue.Queue[bytes] = queue.Queue()
        self._reader = threading.Thread(target=self._listen, daemon=True)
        self._reader.start()

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._lines.put(line)
        self._lines.put(b"")

    @property
    def pid(self) -> int:
        return self._process.pid

    def hear(self, seconds: float = PATIENCE) -> dict[str, Any]:
        """The next line it says. Raises DemoFailed when that is an error, and when it ends or stays silent."""
        try:
            line = self._lines.get(timeout=seconds)
        except queue.Empty:
            raise DemoFailed(f"the {self.name} said nothing for {seconds:.0f} s", self.errors()) from None
        if not line:
            raise DemoFailed(f"the {self.name} ended ({self._process.wait()})", self.errors())
        said = cast("dict[str, Any]", json.loads(line))
        if "error" in said:
            told = f"{said['error']}: {said.get('detail', '')}\n{self.errors()}"
            raise DemoFailed(f"the {self.name} failed", told.strip())
        return said

    def tell(self, **members: object) -> None:
        """Say one JSON line to it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(members).encode() + b"\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            raise DemoFailed(f"the {self.name} ended ({self._process.wait()})", self.errors()) from None

    def kill(self) -> int:
        """SIGKILL, so that nothing can be tidied up; the exit status."""
        self._process.kill()
        return self._close()

    def end(self) -> None:
        """SIGTERM, and SIGKILL when that is not enough."""
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(GRACE)
            except subprocess.TimeoutExpired:
                self._process.kill()
        self._close()

    def errors(self) -> str:
        """The end of what it wrote to stderr."""
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-20:])

    def _close(self) -> int:
        status = self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                try:
                    pipe.close()
                except BrokenPipeError:
                    pass
        return status


class AgentProcess(Child):
    """The Personal Agent: told what to do, it says what came of it."""

    def do(self, what: str, **members: object) -> dict[str, Any]:
        """One command and its answer. Raises DemoFailed."""
        self.tell(do=what, **members)
        return self.hear()
