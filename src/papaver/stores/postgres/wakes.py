"""Wake-ups between the replicas of a Company: after COMMIT, through NOTIFY or Redis, and a net under both.

They are hints. Once a second the net asks how far exactly those conversations are that somebody waits for, and whether
anything is due where somebody waits for that.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Final, Protocol

from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic, WatchRegistry
from papaver.stores.postgres.holders import Holders
from papaver.stores.postgres.server import Server
from papaver.stores.turns import NOTES

__all__ = ["Channel", "Wakes"]

log = logging.getLogger("papaver.stores")

EVERY: Final = 1.0
"""Seconds between two looks of the net, and between two looks at who lives half of it."""
_FAR = (
    "SELECT company, id, last_seq FROM conversations"
    " WHERE (company, id) IN (SELECT * FROM unnest($1::int[], $2::text[]))"
)
_NOW = "extract(epoch FROM clock_timestamp())::float8"
_DUE = (
    "SELECT asked.company, '' FROM unnest($1::int[]) AS asked (company) WHERE EXISTS (SELECT FROM conversations AS own"
    " WHERE own.company = asked.company AND due_since IS NOT NULL"
    f" AND (holder IS NULL OR until <= {_NOW} OR holder = ANY($3::text[])))"
    f" UNION ALL SELECT asked.company, '{NOTES}' FROM unnest($2::int[]) AS asked (company) WHERE EXISTS (SELECT"
    f" FROM notes AS own WHERE own.company = asked.company AND (free_at <= {_NOW} OR holder = ANY($3::text[])))"
)


class Channel(Protocol):
    """A way to the other replicas that may lose what it is given, and never brings back one's own."""

    async def open(self, received: Callable[[Iterable[Topic]], None]) -> None: ...

    def send(self, topics: Iterable[Topic]) -> None:
        """Never waits or raises."""
        ...

    async def look(self) -> None:
        """Called again and again: connect again where that is needed. Raises StoreFailed."""
        ...

    async def close(self) -> None: ...


class Wakes:
    """The registry of this process's watches, and what reaches it from others."""

    def __init__(self, server: Server, registry: WatchRegistry, holders: Holders, channel: Channel) -> None:
        self._server, self._registry, self._holders, self._channel = server, registry, holders, channel
        self._awaited: frozenset[Topic] = frozenset()
        self._known: dict[Topic, int] = {}
        self._net: asyncio.Task[None] | None = None
        self._is_away = False

    async def open(self) -> None:
        await self._channel.open(self._registry.wake)
        self._net = asyncio.create_task(self._run())

    async def close(self) -> None:
        if self._net is not None:
            self._net.cancel()
            await asyncio.wait({self._net})
            self._net = None
        await self._channel.close()

    def wake(self, topics: set[Topic]) -> None:
        """After COMMIT: those who wait here, and the other replicas."""
        if topics:
            self._registry.wake(topics)
            self._channel.send(topics)

    def saw(self, topic: Topic, last_seq: int) -> None:
        """Somebody read a conversation so far, and may be waiting for more: what the net compares with."""
        if self._registry.awaits(topic):
            self._known[topic] = min(last_seq, self._known.get(topic, last_seq))

    async def _run(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(EVERY / 2)
            looks += 1
            try:
                await self._channel.look()
                if await self._holders.look():
                    self._registry.wake_turns()
                    self._registry.wake([topic for topic in self._registry.topics if topic[1] == NOTES])
                if looks % 2 == 0:
                    await self._look()
                self._note(away=False)
            except StoreFailed as fault:
                self._note(away=True, detail=fault.detail)
                # The next look may work; till then those who wait are told to look for themselves.
                self._registry.wake_all()

    def _note(self, *, away: bool, detail: str = "") -> None:
        if away != self._is_away:
            self._is_away = away
            if away:
                log.error("PostgreSQL cannot be asked; it is tried every second: %s", detail)
            else:
                log.warning("PostgreSQL answers again")

    async def _look(self) -> None:
        """Wake whoever waits for a conversation that is further than it was a second ago, or for what is due."""
        awaited, before = self._registry.topics, self._awaited
        self._awaited = frozenset(awaited)
        # What is due is told by hints at first, and by the net to those who wait for longer than a second.
        due = [[company for company, name in before if name == wanted] for wanted in ("", NOTES)]
        if any(due):
            values = (*due, list(self._holders.dead))
            found = await self._server.run(lambda connection: connection.fetch(_DUE, *values))
            self._registry.wake([(company, name) for company, name in found])
        known = {topic: self._known[topic] for topic in awaited if topic in self._known}
        self._known = {}
        if known:
            companies, ids = [company for company, _ in known], [id for _, id in known]
            rows = await self._server.run(lambda connection: connection.fetch(_FAR, companies, ids))
            far: Mapping[Topic, int] = {(company, id): last_seq for company, id, last_seq in rows}
            # Those who read meanwhile read no less than this.
            self._known = {**far, **self._known}
            self._registry.wake([topic for topic, last_seq in known.items() if far.get(topic) != last_seq])
