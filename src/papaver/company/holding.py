"""Requests that are held open: how many a User may hold, and what ends them early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from papaver.ports.company import Watch
from papaver.protocol.errors import RateLimited
from papaver.values.rules import rule

__all__ = ["Hold", "Holding", "check_held"]

RETRY_AFTER: Final = 1


@rule("limits.held")
def check_held(user: tuple[str, str], held: int, limit: int) -> None:
    """5.6: each held request costs, so a User has only so many at once."""
    if held >= limit:
        raise RateLimited(RETRY_AFTER, rule="limits.held", detail=f"{user[1]!r} of {user[0]} holds {held} requests")


class Hold:
    """One held request, while it is entered. `over` once its caller has left or the Company stops.

    Ends the wait of its watch then; nothing is cancelled, so nothing is cut off in the middle.
    """

    __slots__ = ("_gone", "_holding", "_leaving", "_user", "_watch", "over")

    def __init__(
        self, holding: Holding, user: tuple[str, str], watch: Watch, gone: Callable[[], Awaitable[None]]
    ) -> None:
        self._holding, self._user, self._watch, self._gone = holding, user, watch, gone
        self._leaving: asyncio.Future[None] | None = None
        self.over = holding.stopped

    def __enter__(self) -> Hold:
        self._holding.add(self._user, self)
        self._leaving = asyncio.ensure_future(self._gone())
        self._leaving.add_done_callback(self._left)
        return self

    def __exit__(self, *_: object) -> None:
        self._holding.remove(self._user, self)
        if self._leaving is not None:
            self._leaving.remove_done_callback(self._left)
            self._leaving.cancel()

    def end(self) -> None:
        """Answer with what is there."""
        self.over = True
        self._watch.wake()

    def _left(self, leaving: asyncio.Future[None]) -> None:
        """A connection that fails has ended as well."""
        if not leaving.cancelled():
            leaving.exception()
        self.end()


class Holding:
    """The held requests of one Company in this process, on one event loop."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held: set[Hold] = set()
        self._users: dict[tuple[str, str], int] = {}
        self.stopped = False

    def check_place(self, user: tuple[str, str]) -> None:
        """Raises RateLimited when this User holds as many as it may."""
        check_held(user, self._users.get(user, 0), self._limit)

    def has_place(self, user: tuple[str, str]) -> bool:
        return self._users.get(user, 0) < self._limit

    def stop(self) -> None:
        """End what is held now and hold nothing from now on."""
        self.stopped = True
        for hold in tuple(self._held):
            hold.end()

    def add(self, user: tuple[str, str], hold: Hold) -> None:
        self._held.add(hold)
        self._users[user] = self._users.get(user, 0) + 1

    def remove(self, user: tuple[str, str], hold: Hold) -> None:
        self._held.discard(hold)
        left = self._users[user] - 1
        if left:
            self._users[user] = left
        else:
            del self._users[user]

    def __len__(self) -> int:
        return len(self._held)
