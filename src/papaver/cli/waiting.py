"""Waits for a User to come back from a sign-in: by the listener, a pasted URL, or `papaver identity --serve`.

Whatever comes first is taken. What is pasted holds a code, so it is neither logged nor shown again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from papaver.cli.failures import CliError
from papaver.cli.run import Run
from papaver.cli.typed import typed_lines
from papaver.personal_agent.sign_in import DirectSignIn, SignedIn
from papaver.personal_agent.sign_in_checks import SignInUnknown
from papaver.values.secret import Secret

__all__ = ["elsewhere", "first", "pasted", "seconds_until"]

T = TypeVar("T")

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


async def pasted(run: Run, begun: DirectSignIn, lines: asyncio.Queue[Secret | None] | None = None) -> SignedIn | None:
    """A URL that somebody pastes, for a browser on another machine; None when stdin ends.

    `lines`: what is typed, where somebody reads it already.
    """
    lines = lines or typed_lines()
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
