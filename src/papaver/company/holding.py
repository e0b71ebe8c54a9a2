"""Requests that are held open, polls and streams: how many of them, and whose, and what ends them early."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from papaver.company.begun import Begun
from papaver.company.settings import CompanyLimits
from papaver.protocol.errors import InvalidRequest, RateLimited
from papaver.values.rules import rule

__all__ = ["Hold", "Holding", "Places", "Waits", "check_held"]

RETRY_AFTER: Final = 1
User = tuple[str, str]
"""A client and one User of it."""


class Places:
    """How many requests are open: at most so many of one User, of one client, and in all."""

    __slots__ = ("_clients", "_in_all", "_limits", "_users")

    def __init__(self, limits: CompanyLimits) -> None:
        self._limits = limits
        self._users: dict[User, int] = {}
        self._clients: dict[str, int] = {}
        self._in_all = 0

    def has_room(self, user: User) -> bool:
        """Whether one more may be open."""
        limits = self._limits
        return (
            self._users.get(user, 0) < limits.held_per_user
            and self._clients.get(user[0], 0) < limits.held_per_client
            and self._in_all < limits.held_in_all
        )

    def take(self, user: User) -> None:
        self._in_all += 1
        self._users[user] = self._users.get(user, 0) + 1
        self._clients[user[0]] = self._clients.get(user[0], 0) + 1

    def give_back(self, user: User) -> None:
        self._in_all -= 1
        _one_less(self._users, user)
        _one_less(self._clients, user[0])

    def __len__(self) -> int:
        return self._in_all


K = TypeVar("K")


def _one_less(counts: dict[K, int], key: K) -> None:
    left = counts[key] - 1
    if left:
        counts[key] = left
    else:
        del counts[key]


class Waits(Protocol):
    """What is held open, as a Watch is: `wake` ends its wait, so that it looks again."""

    def wake(self) -> None: ...


@rule("limits.held")
def check_held(user: User, places: Places) -> None:
    """5.6: each open request costs, so nobody has more than so many at once. Raises RateLimited."""
    if not places.has_room(user):
        raise RateLimited(RETRY_AFTER, rule="limits.held", detail=f"no room for one more of {user[1]!r} of {user[0]}")


class Hold:
    """One held request, while it is entered. `over` once its caller has left or the Company stops.

    Wakes what waits then; nothing is cancelled, so nothing is cut off in the middle.
    """

    __slots__ = ("_gone", "_holding", "_leaving", "_user", "_waits", "over")

    def __init__(self, holding: Holding, user: User, waits: Waits, gone: Callable[[], Awaitable[None]]) -> None:
        self._holding, self._user, self._waits, self._gone = holding, user, waits, gone
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
        self._waits.wake()

    def _left(self, leaving: asyncio.Future[None]) -> None:
        """A connection that fails has ended as well."""
        if not leaving.cancelled():
            leaving.exception()
        self.end()


class Holding:
    """The open requests of one Company in this process, on one event loop: polls, streams, and bodies still to come."""

    def __init__(self, limits: CompanyLimits) -> None:
        self._held: set[Hold] = set()
        self._polls, self._bodies, self._seconds = Places(limits), Places(limits), limits.body_seconds
        self.stopped = False

    def check_place(self, user: User) -> None:
        """Raises RateLimited when no more polls and streams of this User are held."""
        check_held(user, self._polls)

    def has_place(self, user: User) -> bool:
        return self._polls.has_room(user)

    @contextmanager
    def reserved(self, user: User) -> Generator[None]:
        """A place that nobody else takes meanwhile; none is needed once all is stopped. Raises RateLimited."""
        if self.stopped:
            yield
            return
        self.check_place(user)
        self._polls.take(user)
        try:
            yield
        finally:
            self._polls.give_back(user)

    async def body(self, user: User, read: Callable[[int], Awaitable[bytes]], limit: int) -> bytes:
        """What `read(limit)` returns, if that is soon. What is there already needs no place.

        Raises InvalidRequest when it does not come in time, RateLimited when too many are waited for.
        """
        reading = Begun(read(limit))
        if reading.is_over:
            return reading.value
        try:
            check_held(user, self._bodies)
        except RateLimited:
            reading.drop()
            raise
        self._bodies.take(user)
        try:
            async with asyncio.timeout(self._seconds):
                return await reading
        except TimeoutError:
            raise InvalidRequest(
                f"the body did not come within {self._seconds} seconds", rule="request.body-in-time"
            ) from None
        finally:
            self._bodies.give_back(user)

    def stop(self) -> None:
        """End what is held now and hold nothing from now on."""
        self.stopped = True
        for hold in tuple(self._held):
            hold.end()

    def add(self, user: User, hold: Hold) -> None:
        self._held.add(hold)
        self._polls.take(user)

    def remove(self, user: User, hold: Hold) -> None:
        self._held.discard(hold)
        self._polls.give_back(user)

    def __len__(self) -> int:
        return len(self._polls) + len(self._bodies)
