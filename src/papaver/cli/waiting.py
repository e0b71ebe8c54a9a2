"""Waits for a User to come back from a sign-in: by the listener, a pasted URL, or `papaver identity --serve`.

Whatever comes first is taken. What is pasted holds a code, so it is neither logged nor shown again.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from papaver.cli.failures import CliError
from papaver.cli.run import Run
from papaver.personal_agent.sign_in import DirectSignIn, SignedIn
from papaver.personal_agent.sign_in_checks import SignInUnknown
from papaver.values.secret import Secret

__all__ = ["elsewhere", "first", "pasted", "seconds_until"]

T = TypeVar("T")

LONGEST = 65_536
"""Octets of one line that are kept."""
PAUSE = 1.0
"""Seconds between two looks at the vault, where another process completes the sign-in."""


async def first(seconds: float, *ways: Awaitable[T | None]) -> T:
    """What the first of these ways brings; one that brings None is out. Raises CliError when nobody came in time."""
    waiting = {asyncio.ensure_future(way) for way in ways}
    try:
        async with asyncio.timeout(max(0.0, seconds)):
            while waiting:
                done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for one in done:
                    brought = one.result()
                    if brought is not None:
                        return brought
            await asyncio.Event().wait()
            raise AssertionError("an event that nobody sets")
    except TimeoutError:
        raise CliError(
            "nobody came back from the sign-in in time",
            code="sign_in_unknown",
            rule="sign-in.fresh",
            next="run the same command again",
        ) from None
    finally:
        for one in waiting:
            one.cancel()


async def pasted(run: Run, begun: DirectSignIn) -> SignedIn | None:
    """A URL that somebody pastes, for a browser on another machine; None when stdin ends."""
    lines = _stdin_lines()
    while (line := await lines.get()) is not None:
        if not line.reveal().strip():
            continue
        try:
            return await begun.complete(line.reveal().strip())
        except SignInUnknown as error:
            run.note(f"that is not the URL that the browser came back to: {error.description}; paste the whole of it")
    return None


async def elsewhere(look: Callable[[], Awaitable[SignedIn | None]]) -> SignedIn:
    """What another process of this home completed; it is asked for again and again."""
    while True:
        found = await look()
        if found is not None:
            return found
        await asyncio.sleep(PAUSE)


def seconds_until(expires_at: float) -> float:
    """How long that is from now."""
    return expires_at - time.time()


def _stdin_lines() -> asyncio.Queue[Secret | None]:
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
