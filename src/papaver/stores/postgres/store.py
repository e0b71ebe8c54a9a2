"""A Company's store in PostgreSQL: for several replicas on several hosts."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, Final

from papaver.ports.company import Erased, SharedCounts
from papaver.ports.deltas import Deltas
from papaver.protocol.terms import ClientId, CompanyId, UserId
from papaver.stores.deltas import LocalDeltas
from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic, WatchRegistry
from papaver.stores.postgres.clients import PostgresClients
from papaver.stores.postgres.grants import PostgresGrants
from papaver.stores.postgres.holders import Holders
from papaver.stores.postgres.log import PostgresLog
from papaver.stores.postgres.lookups import Lookups
from papaver.stores.postgres.migrations import migrate
from papaver.stores.postgres.notify_channel import NotifyChannel
from papaver.stores.postgres.server import PLANNED_ONCE, Connection, Server
from papaver.stores.postgres.sessions import PostgresSessions
from papaver.stores.postgres.wakes import Wakes
from papaver.values.secret import Secret

__all__ = ["PostgresStore", "PostgresTables"]

_SCHEMA: Final = re.compile(r"[a-z_][a-z0-9_]{0,47}")


class PostgresTables:
    """One Company's rows."""

    def __init__(
        self,
        log: PostgresLog,
        server: Server,
        company: int,
        secret: bytes,
        deltas: Deltas,
        counts: SharedCounts | None,
    ) -> None:
        self.log, self.secret, self.deltas, self.counts = log, secret, deltas, counts
        lookups = Lookups(server, company)
        self.sessions = PostgresSessions(server, company, lookups)
        self.clients = PostgresClients(server, company, lookups)
        self.grants = PostgresGrants(server, company)

    async def erase(self, client_id: ClientId, user_id: UserId) -> Erased:
        return await self.log.erase(client_id, user_id)


class PostgresStore:
    """A `CompanyStore`. Each process opens its own, on the event loop that uses it.

    The DSN leads to the server itself or to a pooler that leaves each connection to one client (session mode): one
    connection listens, one says that this process lives. With `redis` wake-ups and pieces of text go through it;
    without, wake-ups go through NOTIFY and a text is streamed by the replica that writes it.
    """

    def __init__(
        self,
        dsn: str | Secret,
        *,
        redis: str | Secret | None = None,
        schema: str = "papaver",
        connections: int = 10,
        timeout: float = 10.0,
    ) -> None:
        """`dsn`: postgresql://user:password@host:5432/database, as asyncpg reads it. Nothing connects before `open`.

        `redis`        redis://user:password@host:6379/0; it may be away, or go
        `schema`       made when it is not there; the Companies in it are served together
        `connections`  in the pool, at most; there are two more beside it
        `timeout`      seconds to connect, or to wait for one of the connections
        """
        if not _SCHEMA.fullmatch(schema):
            raise ValueError("a store's schema has lowercase letters, digits and underscores, at most 48 of them")
        if connections < 2 or timeout <= 0:
            raise ValueError("a store needs two connections, and time to make them")
        self._server = Server(
            dsn, schema, connections=connections, timeout=timeout, what="the store", settings=PLANNED_ONCE
        )
        self._redis = redis
        self._registry = WatchRegistry()
        self._holders = Holders(self._server)
        self._wakes: Wakes | None = None
        self._relay: Any = None
        self._tables: dict[CompanyId, PostgresTables] = {}

    def __reduce__(self) -> str:
        raise TypeError("a store is not pickled")

    def __repr__(self) -> str:
        return f"<PostgresStore in the schema {self._server.schema}>"

    @property
    def is_open(self) -> bool:
        return self._wakes is not None

    async def open(self) -> None:
        """Raises StoreUnusable, which says what to do."""
        if self._server.is_open:
            raise StoreFailed("the store is open already")
        await self._server.open()
        try:
            await self._server.first(self._migrate)
            await self._holders.open()
            wakes = Wakes(self._server, self._registry, self._holders, await self._channel())
            await wakes.open()
        except BaseException:
            await self.close()
            raise
        self._wakes = wakes

    async def _migrate(self, connection: Connection) -> int:
        async with connection.transaction():
            return await migrate(connection, self._server.schema, "store")

    async def _channel(self) -> Any:
        if self._redis is None:
            return NotifyChannel(self._server)
        from papaver.stores.redis import RedisRelay

        self._relay = RedisRelay(self._redis, prefix=f"papaver:{self._server.schema}", returned=self._registry.wake_all)
        return _RedisChannel(self._relay)

    async def close(self) -> None:
        """What this process holds is free at once. Waits for what runs."""
        wakes, self._wakes, self._relay = self._wakes, None, None
        self._tables.clear()
        if wakes is not None:
            await wakes.close()
            await self._holders.let_go()
        await self._holders.close()
        await self._server.close()

    async def probe(self) -> None:
        statement = "UPDATE probes SET n = n + 1 RETURNING n"
        await self._server.run(lambda connection: connection.fetchval(statement))

    async def tables(self, company: CompanyId) -> PostgresTables:
        if self._wakes is None:
            raise StoreFailed("the store is not open")
        if company not in self._tables:
            number, secret = await self._server.run(partial(_enter, company=company))
            log = PostgresLog(self._server, number, self._holders, self._registry, self._wakes)
            made = PostgresTables(log, self._server, number, secret, *self._shared(number, secret))
            self._tables.setdefault(company, made)
        return self._tables[company]

    def _shared(self, company: int, secret: bytes) -> tuple[Deltas, SharedCounts | None]:
        if self._relay is None:
            return LocalDeltas(company, self._registry), None
        from papaver.stores.redis import RedisCounts, RelayedDeltas

        relay = self._relay
        return RelayedDeltas(company, self._registry, relay, secret), RedisCounts(relay, secret)

    @property
    def holder(self) -> str:
        return self._holders.name


async def _enter(connection: Connection, *, company: CompanyId) -> tuple[int, bytes]:
    """The Company's number and secret, made when it is seen for the first time."""
    await connection.execute(
        "INSERT INTO companies (id, secret) VALUES ($1, $2) ON CONFLICT DO NOTHING", company, secrets.token_bytes(32)
    )
    ((number, secret),) = await connection.fetch("SELECT company, secret FROM companies WHERE id = $1", company)
    return number, bytes(secret)


class _RedisChannel:
    """Wake-ups through Redis: one topic for all of them, since each replica wants most."""

    TOPIC: Final = "wakes"

    def __init__(self, relay: Any) -> None:
        self._relay = relay

    async def open(self, received: Any) -> None:
        await self._relay.open()

        def deliver(pieces: Sequence[Any]) -> None:
            topics: list[Topic] = []
            for piece in pieces:
                match piece:
                    case [int(company), str(id)]:
                        topics.append((company, id))
                    case _:
                        pass  # a later version's
            received(topics)

        self._relay.subscribe(self.TOPIC, deliver)

    def send(self, topics: Iterable[Topic]) -> None:
        for company, id in topics:
            self._relay.publish(self.TOPIC, (company, id))

    async def look(self) -> None:
        return

    async def close(self) -> None:
        await self._relay.close()
