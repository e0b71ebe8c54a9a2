"""Processes of child.py: started, heard, told to go on, and killed."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["Child", "children", "hear"]

CHILD = Path(__file__).with_name("child.py")


class Child:
    """A started child: `tell` it to go on, `hear` its next line."""

    def __init__(self, job: str, path: Path, *arguments: str, **variables: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", str(CHILD), job, str(path), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **variables},
        )

    def tell(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write("go\n")
        self.process.stdin.flush()

    def hear(self) -> Any:
        """None once it has ended."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def kill(self) -> int:
        self.process.kill()
        return self.process.wait()

    def end(self) -> int:
        """Its exit code."""
        for pipe in (self.process.stdin, self.process.stdout):
            assert pipe is not None
            pipe.close()
        return self.process.wait()


@contextmanager
def children(*started: Child) -> Generator[tuple[Child, ...]]:
    """Kills whoever is still there."""
    try:
        yield started
    finally:
        for child in started:
            child.kill()
            child.end()


async def hear(child: Child) -> Any:
    """`Child.hear` without holding up the event loop."""
    return await asyncio.to_thread(child.hear)
