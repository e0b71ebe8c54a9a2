"""What somebody types, or a script writes, line by line, while other things go on."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from typing import Final

from papaver.values.secret import Secret

__all__ = ["typed_lines"]

LONGEST: Final = 65_536
"""Octets of one line that are kept."""


def typed_lines() -> asyncio.Queue[Secret | None]:
    """The lines of stdin, then None. The thread that reads ends with the process: a read cannot be called off."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[Secret | None]()

    def put(line: Secret | None) -> None:
        try:
            loop.call_soon_threadsafe(lines.put_nowait, line)
        except RuntimeError:
            pass  # nobody waits any more

    def read() -> None:
        rest = b""
        try:
            # Not through sys.stdin: a thread that waits there holds its lock, which the interpreter takes at its end.
            while octets := os.read(sys.stdin.fileno(), 65_536):
                *whole, rest = (rest + octets)[-LONGEST:].split(b"\n")
                for line in whole:
                    put(Secret(line.decode(errors="replace")))
        except (OSError, ValueError, AttributeError):
            pass
        if rest:
            put(Secret(rest.decode(errors="replace")))
        put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines
