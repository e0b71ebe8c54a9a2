"""Dying on purpose: the moments of a turn or a grant at which a test may kill this very process.

`PAPAVER_CRASH_AT=accept.before-commit` sends SIGKILL there; `PAPAVER_CRASH_LOG=path` appends the names that are passed.
Both are read once, when this module is imported; without them a store does not even call `crash_point`.
"""

from __future__ import annotations

import os
import signal
from typing import Final, Literal

__all__ = ["CRASH_POINTS", "GRANT_CRASH_POINTS", "WATCHED", "Step", "crash_point"]

Step = Literal["accept", "lease", "journal", "finish", "grant"]

CRASH_POINTS: Final = (
    "accept.before-commit",
    "accept.after-commit",
    "lease.before-commit",
    "lease.after-commit",
    "journal.before-commit",
    "journal.after-commit",
    "finish.before-commit",
    "finish.after-commit",
)
"""In the order of one turn. After COMMIT means: before anyone is told of it."""

GRANT_CRASH_POINTS: Final = ("grant.before-commit", "grant.after-commit")
"""Of each change of grants, tokens and tickets."""

_AT = os.environ.get("PAPAVER_CRASH_AT")
_LOG = os.environ.get("PAPAVER_CRASH_LOG")
WATCHED: Final = bool(_AT or _LOG)


def crash_point(name: str) -> None:
    """Note that this moment was reached; die here when asked to."""
    if _LOG:
        log = os.open(_LOG, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        try:
            os.write(log, f"{name}\n".encode())
        finally:
            os.close(log)
    if name == _AT:
        os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
