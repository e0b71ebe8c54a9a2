"""One Company's conversations in PostgreSQL: the one door through which they change, and how they are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from papaver.ports.company import PAGE_BYTES
from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, Slice
from papaver.protocol.conversation.model import Event
from papaver.protocol.conversation.state import Lease
from papaver.protocol.terms import ClientId, ConversationId, SessionId
from papaver.stores.crash import Step
from papaver.stores.notify import RegisteredWatch, WatchRegistry
from papaver.stores.postgres.holders import Holders
from papaver.stores.postgres.lists import PostgresLists
from papaver.stores.postgres.log_rounds import LogRounds
from papaver.stores.postgres.lookups import SESSION_COLUMNS, read_session
from papaver.stores.postgres.server import Server
from papaver.stores.postgres.values import is_storable
from papaver.stores.postgres.wakes import Wakes
from papaver.stores.records import Records
from papaver.stores.turns import NOTES

__all__ = ["PostgresLog"]

R = TypeVar("R")
_SOME = (
    "SELECT seq, body FROM (SELECT seq, body, sum(octet_length(body)) OVER w AS size, row_number() OVER w AS place"
    " FROM (SELECT seq, body FROM events WHERE company = $1 AND conversation = $2 AND seq {after} $3"
    " ORDER BY seq {way} LIMIT $4) AS near WINDOW w AS (ORDER BY seq {way})) AS sized"
    " WHERE size <= $5 OR place <= $6 ORDER BY seq {way}"
)
_TYPED = "NULL::text, NULL::text, NULL::text, NULL::text, NULL::text, NULL::float8, NULL::float8"
_READ = (
    f"SELECT 0::bigint AS seq, head AS body, {_TYPED} FROM conversations WHERE company = $1 AND id = $2"
    f" UNION ALL SELECT seq, body, {_TYPED} FROM ({_SOME.format(after='>', way='ASC')}) AS events"
)
_READ_WITH_SESSION = (
    f"{_READ} UNION ALL SELECT -1, NULL, {SESSION_COLUMNS} FROM sessions"
    " WHERE company = $1 AND client_id = $7 AND sid = $8"
)
"""One statement, so that head, events and Session are of one moment."""
_READ_BACK = _SOME.format(after="<", way="DESC")


class PostgresLog(PostgresLists):
    """`ConversationLog` of one Company."""

    def __init__(
        self,
        server: Server,
        company: int,
        holders: Holders,
        registry: WatchRegistry,
        wakes: Wakes,
    ) -> None:
        super().__init__(server, company, holders, wakes.wake)
        self._registry, self._wakes = registry, wakes
        self._rounds = LogRounds(server, company, wakes.wake)

    async def apply(self, keys: Keys, decide: Callable[[Loaded], Change[R]]) -> R:
        step: Step | None = None
        if keys.lease is not None:
            step = "finish"
        elif keys.receipt is not None:
            step = "accept"
        return await self._rounds.apply(keys, decide, step)

    async def journal(self, lease: Lease, key: str, value: bytes) -> bool:
        return await self._rounds.journal(lease, key.encode("utf-8", "surrogatepass"), value)

    async def read(
        self,
        conversation: ConversationId,
        after_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        session: tuple[ClientId, SessionId] | None = None,
    ) -> Slice | None:
        if not is_storable((conversation, *(session or ()))):
            return None
        values = (conversation, after_seq, max(limit, 0), max_bytes, 1)
        rows = await self._fetch(_READ if session is None else _READ_WITH_SESSION, *values, *(session or ()))
        head = found = None
        bodies: list[tuple[int, bytes]] = []
        for seq, body, *columns in rows:
            if seq > 0:
                bodies.append((seq, body))
            elif seq == 0:
                head = record.read_head(body)
            else:
                found = read_session(columns)
        if head is None:
            return None
        self._wakes.saw((self._company, conversation), head.last_seq)
        bodies.sort()
        after = max(after_seq, head.first_seq - 1)
        events = tuple([record.read(body) for _, body in bodies])
        return Slice(head=head, events=events, more=after + len(events) < head.last_seq, session=found)

    async def read_back(
        self,
        conversation: ConversationId,
        before_seq: int,
        limit: int,
        *,
        max_bytes: int = PAGE_BYTES,
        at_least: int = 1,
    ) -> Sequence[Event]:
        if not is_storable((conversation,)):
            return ()
        rows = await self._fetch(_READ_BACK, conversation, before_seq, max(limit, 0), max_bytes, at_least)
        return Records([body for _, body in reversed(rows)]) if rows else ()

    def watch(self, conversation: ConversationId) -> RegisteredWatch:
        return self._registry.watch((self._company, conversation))

    def watch_turns(self) -> RegisteredWatch:
        return self._registry.watch((self._company, ""))

    def watch_notes(self) -> RegisteredWatch:
        return self._registry.watch((self._company, NOTES))
