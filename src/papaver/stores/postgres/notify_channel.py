"""Wake-ups through PostgreSQL itself: LISTEN on a connection of its own, NOTIFY from the pool."""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic
from papaver.stores.postgres.server import Connection, Server

__all__ = ["NotifyChannel"]

log = logging.getLogger("papaver.stores")

MOST_PAYLOAD: Final = 7_000
"""Octets of one NOTIFY; PostgreSQL takes under 8,000."""
_NOTIFY: Final = "SELECT pg_notify($1, said) FROM unnest($2::text[]) AS said"


class NotifyChannel:
    """A `Channel`. Told is never in the transaction that it is told of: NOTIFY holds a lock of the whole server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._name = f"papaver_{server.schema}"
        self._origin = secrets.token_hex(4)
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
                said = list(_payloads(self._origin, topics))
                await self._server.run(lambda connection, said=said: connection.fetch(_NOTIFY, self._name, said))
        except StoreFailed as fault:
            self._waiting.clear()
            log.warning("other replicas are not woken; they look once a second: %s", fault.detail)
        finally:
            self._sending = None

    async def look(self) -> None:
        connection = self._connection
        if connection is not None and not connection.is_closed():
            try:
                await connection.fetchval("SELECT 1")
                return
            except (TimeoutError, *self._server.lost):
                connection.terminate()
        self._connection = None
        connection = await self._server.connect()
        try:
            async with self._server.told():
                await cast(Any, connection).add_listener(self._name, self._heard)
        except BaseException:
            connection.terminate()
            raise
        self._connection = connection

    def _heard(self, _connection: object, _pid: int, _channel: str, payload: str) -> None:
        if self._received is not None:
            self._received(_topics(payload, self._origin))

    async def close(self) -> None:
        connection, self._connection = self._connection, None
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.wait({self._sending})
        if connection is not None:
            connection.terminate()


def _topics(payload: str, own: str) -> list[Topic]:
    """What others say, `own` being our origin; nothing of what is not theirs: who may connect may say anything here."""
    try:
        said = json.loads(payload)
    except (ValueError, RecursionError):
        return []
    topics: list[Topic] = []
    match said:
        case [str(origin), [*found]] if origin != own:
            for one in found:
                match one:
                    case [int(company), str(id)]:
                        topics.append((company, id))
                    case _:
                        pass  # a later version's
        case _:
            pass  # our own, or nobody's of ours
    return topics


def _payloads(origin: str, topics: Iterable[Topic]) -> Iterable[str]:
    """JSON of [origin, [[company, id], …]], each short enough."""
    some: list[Topic] = []
    size = 0
    for topic in topics:
        length = len(json.dumps(topic)) + 2
        if some and size + length > MOST_PAYLOAD:
            yield json.dumps((origin, some))
            some, size = [], 0
        some.append(topic)
        size += length
    if some:
        yield json.dumps((origin, some))
