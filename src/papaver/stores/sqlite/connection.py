"""Opening the database file: its settings, its permissions, and whether its disk can carry it."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path

from papaver.stores.faults import StoreUnusable
from papaver.stores.file_lock import check_lockable

__all__ = ["check_local", "connect_reader", "connect_writer", "create_file"]

NETWORK = frozenset(
    ("nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "fuse.glusterfs", "fuse.sshfs", "lustre")
)
"""File systems of several hosts: SQLite's WAL needs shared memory, and a lease needs to see whether a process lives."""
BUSY_SECONDS = 10.0
"""How long the writer waits for a program that ignores our file lock, such as the sqlite3 shell."""
READER_BUSY_SECONDS = 1.0
"""Readers wait only while another process repairs the log after a crash; some of them do so on the event loop."""
CACHE_KIB = 32 * 1024


def create_file(path: Path) -> None:
    """Make the file and its folder, readable by us alone. What exists keeps its permissions."""
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    except OSError as fault:
        raise StoreUnusable(f"{path} cannot be opened: {fault.strerror}", detail=str(fault)) from fault


def check_local(path: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Raises StoreUnusable when the file is on a network file system, or where locks do not work."""
    kind = _file_system(path, mounts)
    if kind in NETWORK:
        raise StoreUnusable(f"{path} is on a network file system ({kind}); SQLite needs a local disk")
    check_lockable(path.with_name(f"{path.name}-lock"))


def _file_system(path: Path, mounts: Path) -> str | None:
    """What mount(8) calls the file system under this path; None where that cannot be told."""
    try:
        lines = mounts.read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    device = path.stat().st_dev
    number = f"{os.major(device)}:{os.minor(device)}"
    for line in lines:
        own, _, rest = line.partition(" - ")
        if own.split()[2] == number:
            return rest.split()[0]
    return None


def connect_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes. The caller holds the file lock.

    FULL: COMMIT returns when the log is on the disk. Checkpoints are ours to time (never automatic), because SQLite
    before 3.51.3 can corrupt a file in which two connections checkpoint and commit at once.
    """
    connection = _connect(path, BUSY_SECONDS)
    mode = connection.execute("PRAGMA journal_mode = WAL").fetchone()[0]
    if mode != "wal":
        connection.close()
        raise StoreUnusable(f"{path} cannot use SQLite's write-ahead log (journal_mode is {mode})")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA fullfsync = ON")
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that reads: never blocked by the writer, and never able to write."""
    connection = _connect(path, READER_BUSY_SECONDS)
    connection.execute("PRAGMA wal_autocheckpoint = 0")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path, busy_seconds: float) -> sqlite3.Connection:
    # One thread at a time uses it, yet not always the one that opened it.
    connection = sqlite3.connect(
        path, timeout=busy_seconds, isolation_level=None, check_same_thread=False, cached_statements=256
    )
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    return connection
