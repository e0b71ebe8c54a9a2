"""An advisory lock on a file, between processes and within one: flock, or msvcrt.locking on Windows."""

from __future__ import annotations

import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from papaver.stores.faults import StoreUnusable

__all__ = ["FileLock", "check_lockable"]

if sys.platform == "win32":  # pragma: no cover - another platform's half
    import msvcrt

    def _take(descriptor: int, *, wait: bool) -> bool:
        mode = msvcrt.LK_LOCK if wait else msvcrt.LK_NBLCK
        while True:
            os.lseek(descriptor, 0, os.SEEK_SET)
            try:
                msvcrt.locking(descriptor, mode, 1)
            except OSError:
                if not wait:
                    return False
                continue  # LK_LOCK gives up after ten tries
            return True

    def _give_back(descriptor: int) -> None:
        os.lseek(descriptor, 0, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_UNLCK, 1)

    def _remove(descriptor: int, path: Path) -> None:
        os.close(descriptor)
        try:
            path.unlink(missing_ok=True)
        except PermissionError:
            return  # its next holder has it open already

else:
    import fcntl

    def _take(descriptor: int, *, wait: bool) -> bool:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
        except BlockingIOError:
            return False
        return True

    def _give_back(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_UN)

    def _remove(descriptor: int, path: Path) -> None:
        path.unlink(missing_ok=True)
        os.close(descriptor)


class FileLock:
    """One open lock file. Two of them on one path exclude each other, in one process as well; death releases.

    `close` leaves the file: a lock on a deleted file would exclude nobody, unless all of them ask `is_at_path`.
    """

    __slots__ = ("_descriptor", "path")

    def __init__(self, path: Path) -> None:
        """Raises OSError when the file cannot be opened."""
        self.path = path
        self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)

    def take(self) -> None:
        """Wait for it, blocking this thread."""
        _take(self._descriptor, wait=True)

    def try_take(self) -> bool:
        return _take(self._descriptor, wait=False)

    def is_at_path(self) -> bool:
        """Whether the locked file still is the one that others find: its last holder may have deleted it."""
        try:
            return os.path.samestat(os.fstat(self._descriptor), os.stat(self.path))
        except FileNotFoundError:
            return False

    def give_back(self) -> None:
        _give_back(self._descriptor)

    def close(self) -> None:
        """Also gives it back."""
        os.close(self._descriptor)

    def remove(self) -> None:
        """Delete the file and close; for a lock that is held. Whoever waits for it has to ask `is_at_path`."""
        _remove(self._descriptor, self.path)

    @contextmanager
    def held(self) -> Generator[None]:
        self.take()
        try:
            yield
        finally:
            self.give_back()


def check_lockable(path: Path) -> None:
    """Whether locks on this file work at all: one that is taken twice is none. Raises StoreUnusable."""
    try:
        first = FileLock(path)
        try:
            first.take()
            second = FileLock(path)
            try:
                excluded = not second.try_take()
            finally:
                second.close()
        finally:
            first.close()
    except OSError as fault:
        raise StoreUnusable(
            f"{path.parent} cannot hold a store: file locks do not work there", detail=str(fault)
        ) from fault
    if not excluded:
        raise StoreUnusable(f"{path.parent} cannot hold a store: file locks exclude nobody there")
