"""Requests that are held open: how many a User may hold, and what ends them early."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

from papaver.company.limits import Held, HeldOne

__all__ = ["Holding"]


class Holding:
    """Ends every held request at `stop`, and one whose caller has left. Lives on one event loop."""

    def __init__(self) -> None:
        self._held = Held()
        self._tasks: set[asyncio.Task[object]] = set()
        self.stopped = False

    def one(self, user: str, limit: int) -> HeldOne:
        """A place among this User's held requests; raises RateLimited when they are all taken."""
        return self._held.one(user, limit)

    def stop(self) -> None:
        """End what is held now and hold nothing from now on."""
        self.stopped = True
        for task in tuple(self._tasks):
            task.cancel()

    @asynccontextmanager
    async def until_gone(self, gone: Callable[[], Awaitable[None]]) -> AsyncGenerator[None]:
        """A block that is left quietly, wherever it waits, when the caller has left or the Company stops."""
        task = asyncio.current_task()
        assert task is not None
        watched = asyncio.ensure_future(gone())
        left = False

        def leave(_: object) -> None:
            nonlocal left
            left = True
            task.cancel()

        self._tasks.add(task)
        watched.add_done_callback(leave)
        try:
            yield
        except asyncio.CancelledError:
            if not (left or self.stopped):
                raise
            task.uncancel()
        finally:
            watched.remove_done_callback(leave)
            watched.cancel()
            self._tasks.discard(task)
