"""How often the operator's words on clients have changed: one number beside the database, in every process's memory.

A request asks for a verdict before anything else, and asking the database costs more than the rest of the request's
bookkeeping. The number is even while what was read holds, and odd while somebody changes it
(docs/decisions/0019-verdicts-by-generation.md).
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path

__all__ = ["Generation"]

SIZE = 8


class Generation:
    """A counter in a file that is mapped into memory. Written under the store's file lock alone."""

    __slots__ = ("_cell", "_map", "_path")

    def __init__(self, path: Path) -> None:
        self._path = path
        self._map: mmap.mmap | None = None
        self._cell: memoryview = memoryview(bytes(SIZE)).cast("Q")

    def open(self) -> None:
        """The caller holds the store's lock. Raises OSError."""
        descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if os.fstat(descriptor).st_size < SIZE:
                os.ftruncate(descriptor, SIZE)
            self._map = mmap.mmap(descriptor, SIZE)
        finally:
            os.close(descriptor)
        self._cell = memoryview(self._map).cast("Q")
        self.changed()  # a process that died while it changed something has left it odd

    def close(self) -> None:
        if self._map is not None:
            self._cell.release()
            self._map.close()
            self._cell, self._map = memoryview(bytes(SIZE)).cast("Q"), None

    @property
    def number(self) -> int:
        """What was read at an even number may be relied on until there is another one."""
        return self._cell[0]

    def changing(self) -> None:
        """Before the rows change."""
        if self._cell[0] % 2 == 0:
            self._cell[0] += 1

    def changed(self) -> None:
        """After COMMIT, or after it has failed."""
        if self._cell[0] % 2:
            self._cell[0] += 1
