"""Which processes live: each store locks a file of its own name, and a lock ends with its process, whatever its pid."""

from __future__ import annotations

import os
import re
import secrets
from pathlib import Path

from papaver.stores.file_lock import FileLock

__all__ = ["Holders"]

_OURS = re.compile(r"sqlite-\d+-[0-9a-f]{16}\Z")


class Holders:
    """The folder of lock files beside a database, and our own one in it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: FileLock | None = None
        self.name = ""

    def open(self) -> None:
        """Take a fresh name and remove the files of the dead. Blocks a moment; the caller holds the store's lock."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        for path in list(self._folder.iterdir()):
            if _OURS.match(path.name) and not self.lives(path.name):
                path.unlink(missing_ok=True)
        self.name = f"sqlite-{os.getpid()}-{secrets.token_hex(8)}"
        self._own = FileLock(self._folder / self.name)
        self._own.take()

    def close(self) -> None:
        if self._own is not None:
            self._own.remove()
            self._own = None

    def lives(self, name: str) -> bool:
        """Whether the process of this name may still be at work. A name that no store of ours made is believed."""
        if not _OURS.match(name) or (name == self.name and self._own is not None):
            return True
        path = self._folder / name
        if not path.exists():
            return False
        try:
            lock = FileLock(path)
        except OSError:
            return True
        try:
            return not lock.try_take()
        finally:
            lock.close()
