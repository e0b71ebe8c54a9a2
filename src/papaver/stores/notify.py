"""Who waits for what, in one process: a registry of watches that every store shares. One small object per waiter.

Everything here runs on the event loop's thread; a store that commits on another thread hands its wake-ups over with
`loop.call_soon_threadsafe(registry.wake, topics)`. Wake-ups are hints: a watcher always reads afterwards.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

__all__ = ["RegisteredWatch", "Topic", "WatchRegistry"]

Topic = tuple[int, str]
"""(the store's number of the Company, conversation); the empty conversation stands for the Company's turns."""


class RegisteredWatch:
    """One waiter's registration. Made by `WatchRegistry.watch`; registered while it is entered."""

    __slots__ = ("_registry", "_topic", "_waiter", "_woken")

    def __init__(self, registry: WatchRegistry, topic: Topic) -> None:
        self._registry = registry
        self._topic = topic
        self._woken = False
        self._waiter: asyncio.Future[None] | None = None

    def __enter__(self) -> RegisteredWatch:
        self._registry.add(self._topic, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._registry.remove(self._topic, self)

    def wake(self) -> None:
        """Note one wake-up and end the `wait` that runs."""
        self._woken = True
        if self._waiter is not None:
            _end(self._waiter)

    async def wait(self, seconds: float) -> bool:
        """True as soon as there was a wake-up since the last `wait` (or since it was entered); False after `seconds`.

        For one task at a time.
        """
        if not self._woken and seconds > 0:
            loop = asyncio.get_running_loop()
            self._waiter = waiter = loop.create_future()
            timer = loop.call_later(seconds, _end, waiter)
            try:
                await waiter
            finally:
                timer.cancel()
                self._waiter = None
        woken, self._woken = self._woken, False
        return woken


def _end(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)


class WatchRegistry:
    """Topic → its watches. Costs nothing while nobody waits."""

    __slots__ = ("_turns", "_watches")

    def __init__(self) -> None:
        self._watches: dict[Topic, set[RegisteredWatch]] = {}
        self._turns: set[Topic] = set()

    def watch(self, topic: Topic) -> RegisteredWatch:
        return RegisteredWatch(self, topic)

    def add(self, topic: Topic, watch: RegisteredWatch) -> None:
        self._watches.setdefault(topic, set()).add(watch)
        if not topic[1]:
            self._turns.add(topic)

    def remove(self, topic: Topic, watch: RegisteredWatch) -> None:
        watches = self._watches.get(topic)
        if watches is not None:
            watches.discard(watch)
            if not watches:
                del self._watches[topic]
                self._turns.discard(topic)

    def wake(self, topics: Iterable[Topic]) -> None:
        for topic in topics:
            for watch in self._watches.get(topic, ()):
                watch.wake()

    def wake_all(self) -> None:
        """For when it is not known what changed."""
        for watches in self._watches.values():
            for watch in watches:
                watch.wake()

    @property
    def topics(self) -> tuple[Topic, ...]:
        """What is waited for now."""
        return tuple(self._watches)

    def awaits(self, topic: Topic) -> bool:
        return topic in self._watches

    @property
    def awaits_turns(self) -> bool:
        return bool(self._turns)

    def wake_turns(self) -> None:
        """Every Company's turns: a holder died, whoever it was."""
        self.wake(tuple(self._turns))
