"""Wake-ups between the replicas of a Company: after COMMIT, through NOTIFY or Redis, and a net under both.

They are hints. Once a second the net asks how far exactly those conversations are that somebody waits for.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Protocol, cast

from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic, WatchRegistry
from papaver.stores.postgres.holders import Holders
from papaver.stores.postgres.server import Connection, Server

__all__ = ["Channel", "NotifyChannel", "Wakes"]

log = logging.getLogger("papaver.stores")

EVERY: Final = 1.0
"""Seconds between two looks of the net."""
MOST_PAYLOAD: Final = 7_000
"""Octets of one NOTIFY; PostgreSQL takes under 8,000."""
_FAR = (
    "SELECT company, id, last_seq FROM conversations"
    " WHERE (company, id) IN (SELECT * FROM unnest($1::int[], $2::text[]))"
)


class Channel(Protocol):
    """A way to the other replicas that may lose what it is given."""

    async def open(self, received: Callable[[Iterable[Topic]], None]) -> None: ...

    def send(self, topics: Iterable[Topic]) -> None:
        """Never waits or raises."""
        ...

    async def look(self) -> None:
        """Called once a second: connect again where that is needed."""
        ...

    async def close(self) -> None: ...


class NotifyChannel:
    """LISTEN on a connection of its own, NOTIFY from the pool: never in the transaction that is told of."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._name = f"papaver_{server.schema}"[:63]
        self._connection: Connection | None = None
        self._received: Callable[[Iterable[Topic]], None] | None = None
        self._waiting: set[Topic] = set()
        self._sending: asyncio.Task[None] | None = None

    async def open(self, received: Callable[[Iterable[Topic]], None]) -> None:
        self._received = received
        await self.look()

    def send(self, topics: Iterable[Topic]) -> None:
        self._waiting.update(topics)
        if self._waiting and self._sending is None:
            self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """What gathers while one is on its way goes together with the next."""
        try:
            while self._waiting:
                topics, self._waiting = self._waiting, set()
                for payload in _payloads(topics):
                    await self._server.run(
                        lambda connection, payload=payload: connection.fetchval(
                            "SELECT pg_notify($1, $2)", self._name, payload
                        )
                    )
        except StoreFailed as fault:
            self._waiting.clear()
            log.warning("other replicas are not woken; they look once a second: %s", fault.detail)
        finally:
            self._sending = None

    async def look(self) -> None:
        connection = self._connection
        if connection is not None and not connection.is_closed():
            return
        connection = await self._server.connect()
        async with self._server.told():
            await cast(Any, connection).add_listener(self._name, self._heard)
        self._connection = connection

    def _heard(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        if self._received is not None:
            self._received([(company, id) for company, id in json.loads(payload)])

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})
        if connection is not None:
            connection.terminate()


class Wakes:
    """The registry of this process's watches, and what reaches it from others."""

    def __init__(self, server: Server, registry: WatchRegistry, holders: Holders, channel: Channel) -> None:
        self._server, self._registry, self._holders, self._channel = server, registry, holders, channel
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

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(EVERY)
            try:
                await self._channel.look()
                if await self._holders.look():
                    self._registry.wake_turns()
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
        """Wake whoever waits for a conversation that is further than it was a second ago."""
        awaited = [topic for topic in self._registry.topics if len(topic[1]) > 1]
        if not awaited:
            self._known.clear()
            return
        companies, ids = [company for company, _ in awaited], [id for _, id in awaited]
        rows = await self._server.run(lambda connection: connection.fetch(_FAR, companies, ids))
        far: Mapping[Topic, int] = {(company, id): last_seq for company, id, last_seq in rows}
        self._registry.wake([topic for topic in awaited if far.get(topic) != self._known.get(topic)])
        self._known = dict(far)


def _payloads(topics: Iterable[Topic]) -> Iterable[str]:
    """JSON arrays of [company, id], each short enough."""
    some: list[Topic] = []
    size = 0
    for topic in topics:
        length = len(topic[1]) + 24
        if some and size + length > MOST_PAYLOAD:
            yield json.dumps(some)
            some, size = [], 0
        some.append(topic)
        size += length
    if some:
        yield json.dumps(some)
