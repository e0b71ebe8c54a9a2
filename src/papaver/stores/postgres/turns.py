"""The turn queue of one Company in PostgreSQL: due conversations, leases with fencing, shares of who waits."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from papaver.ports.company import LeasedTurn, Share
from papaver.protocol.conversation.record import read_head, write_head
from papaver.protocol.conversation.state import Head, Lease
from papaver.protocol.terms import ConversationId, TurnId
from papaver.stores import crash
from papaver.stores.crash import crash_point
from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic
from papaver.stores.postgres.holders import Holders
from papaver.stores.postgres.log_rows import columns
from papaver.stores.postgres.server import Connection, Server
from papaver.stores.turns import begun, continues, given_back
from papaver.values.errors import PapaverError

__all__ = ["PostgresTurns"]

_WAITS = "company = $1 AND due_since IS NOT NULL AND (holder IS NULL OR until <= $2 OR holder = ANY($3::text[]))"
_FIND = (
    "SELECT id, head, token, turn_id, until_seq, client_key, user_key FROM conversations"
    f" WHERE {_WAITS} AND client_key <> ALL($4::bigint[]) AND user_key <> ALL($5::bigint[])"
    " ORDER BY due_since LIMIT $6 FOR UPDATE{locked}"
)
_DUE, _BLOCKED = _FIND.format(locked=" SKIP LOCKED"), _FIND.format(locked="")
_TAKE = (
    "UPDATE conversations AS old SET head = new.head, token = new.token, turn_id = new.turn_id,"
    " until_seq = new.until_seq, holder = $2, until = new.until"
    " FROM unnest($3::text[], $4::bytea[], $5::bigint[], $6::text[], $7::bigint[], $8::float8[])"
    " AS new (id, head, token, turn_id, until_seq, until) WHERE old.company = $1 AND old.id = new.id"
)
_HELD = "SELECT client_key, user_key FROM conversations WHERE company = $1 AND holder = $2"
_RELEASE = (
    "UPDATE conversations SET head = $4, holder = NULL, until = NULL WHERE company = $1 AND id = $2 AND token = $3"
)


@dataclass(slots=True)
class _Ask:
    """One call of `lease`, waiting for its round."""

    holder: str
    turn_id: TurnId
    now: float
    until: float
    share: Share | None
    future: asyncio.Future[LeasedTurn | None]
    leased: LeasedTurn | None = None

    @property
    def kind(self) -> tuple[str, float, Share | None]:
        """Those of one kind are answered together."""
        return self.holder, self.now, self.share


class PostgresTurns:
    """The turns' part of `ConversationLog`. Leases that are asked for together share a transaction."""

    def __init__(self, server: Server, company: int, holders: Holders, wake: Callable[[set[Topic]], None]) -> None:
        self._server, self._company, self._holders, self._wake = server, company, holders, wake
        self._asks: list[_Ask] = []
        self._asking: asyncio.Task[None] | None = None

    async def lease(
        self, holder: str, turn_id: TurnId, *, now: float, until: float, share: Share | None = None
    ) -> LeasedTurn | None:
        ask = _Ask(holder, turn_id, now, until, share, asyncio.get_running_loop().create_future())
        self._asks.append(ask)
        if self._asking is None:
            self._asking = asyncio.create_task(self._lease_all())
        return await ask.future

    async def _lease_all(self) -> None:
        try:
            while self._asks:
                first = self._asks[0]
                alike = [ask for ask in self._asks if ask.kind == first.kind]
                self._asks = [ask for ask in self._asks if ask.kind != first.kind]
                await self._leased(alike)
        finally:
            self._asking = None
            for ask in self._asks:
                ask.future.cancel()
            self._asks.clear()

    async def _leased(self, asks: list[_Ask]) -> None:
        committing = False

        async def work(connection: Connection) -> None:
            nonlocal committing
            async with connection.transaction():
                taken = await _Leases(self._company, asks, self._holders.dead).take(connection)
                if taken and crash.WATCHED:
                    crash_point("lease.before-commit")
                committing = True
            if taken and crash.WATCHED:
                crash_point("lease.after-commit")

        try:
            await self._server.run(work, repeat=lambda: not committing)
            for ask in asks:
                if not ask.future.done():
                    ask.future.set_result(ask.leased)
        except PapaverError as fault:
            for ask in asks:
                if not ask.future.done():
                    ask.future.set_exception(StoreFailed(fault.detail) if isinstance(fault, StoreFailed) else fault)
        finally:
            # Not done when the loop ends under it: nobody waits for ever.
            for ask in asks:
                ask.future.cancel()

    async def renew(self, lease: Lease, until: float) -> bool:
        statement = (
            "UPDATE conversations SET until = $4"
            " WHERE company = $1 AND id = $2 AND token = $3 AND holder IS NOT NULL RETURNING true"
        )
        return bool(await self._value(statement, lease.conversation_id, lease.token, until))

    async def release(self, lease: Lease) -> None:
        async def work(connection: Connection) -> bool:
            async with connection.transaction():
                row = await connection.fetchval(
                    "SELECT head FROM conversations"
                    " WHERE company = $1 AND id = $2 AND token = $3 AND holder IS NOT NULL FOR UPDATE",
                    self._company,
                    lease.conversation_id,
                    lease.token,
                )
                if row is None:
                    return False
                head = write_head(given_back(read_head(row)))
                await connection.execute(_RELEASE, self._company, lease.conversation_id, lease.token, head)
                return True

        if await self._server.run(work):
            self._wake({(self._company, "")})

    async def turns_pending(self, now: float) -> tuple[int, float]:
        statement = f"SELECT count(*), min(due_since) FROM conversations WHERE {_WAITS}"
        ((count, oldest),) = await self._fetch(statement, now, list(self._holders.dead))
        return count, now if oldest is None else oldest

    async def turns_held(self, now: float) -> int:
        return await self._value(
            "SELECT count(*) FROM conversations"
            " WHERE company = $1 AND holder IS NOT NULL AND until > $2 AND holder <> ALL($3::text[])",
            now,
            list(self._holders.dead),
        )

    async def _fetch(self, statement: str, *values: object) -> Sequence[Any]:
        return await self._server.run(lambda connection: connection.fetch(statement, self._company, *values))

    async def _value(self, statement: str, *values: object) -> Any:
        return await self._server.run(lambda connection: connection.fetchval(statement, self._company, *values))


class _Leases:
    """One transaction of leases: those that are due longest, and of whom nobody has more than a share."""

    def __init__(self, company: int, asks: list[_Ask], dead: frozenset[str]) -> None:
        self._company, self._asks, self._dead, self._now = company, asks, dead, asks[0].now
        self._clients: Counter[int] = Counter()
        self._users: Counter[int] = Counter()

    async def take(self, connection: Connection) -> int:
        """How many there were."""
        for ask in self._asks:
            ask.leased = None
        asks = list(self._asks)
        holder, share = asks[0].holder, asks[0].share
        if share is not None:
            held = await connection.fetch(_HELD, self._company, holder)
            self._clients.update(client for client, _ in held)
            self._users.update(user for _, user in held)
        found: list[tuple[_Ask, Any, Head]] = []
        taken: set[str] = set()
        while asks:
            wanted = len(asks) + len(taken)
            due = await self._due(connection, _DUE, share, wanted)
            if not due:
                # Those that somebody has locked at this moment were passed over: wait for one, and hold none meanwhile.
                due = await self._due(connection, _BLOCKED, share, 1)
            fresh = [row for row in due if row[0] not in taken]
            if not fresh:
                break
            for row in fresh:
                taken.add(row[0])
                if asks and not self._is_full(share, row[5], row[6]):
                    self._clients[row[5]] += 1
                    self._users[row[6]] += 1
                    found.append((asks.pop(0), row, begun(read_head(row[1]))))
        if found:
            await self._write(connection, holder, found)
        return len(found)

    async def _due(self, connection: Connection, statement: str, share: Share | None, limit: int) -> Sequence[Any]:
        full = self._full(share)
        return await connection.fetch(statement, self._company, self._now, list(self._dead), *full, limit)

    def _full(self, share: Share | None) -> tuple[list[int], list[int]]:
        if share is None:
            return [], []
        return (
            [client for client, count in self._clients.items() if count >= share.client],
            [user for user, count in self._users.items() if count >= share.user],
        )

    def _is_full(self, share: Share | None, client: int, user: int) -> bool:
        return share is not None and (self._clients[client] >= share.client or self._users[user] >= share.user)

    async def _write(self, connection: Connection, holder: str, found: list[tuple[_Ask, Any, Head]]) -> None:
        taken: list[tuple[object, ...]] = []
        goes_on: list[str] = []
        afresh: list[str] = []
        for ask, (id, _, token, turn_id, until_seq, *_), head in found:
            if turn_id is not None and continues(head, until_seq):
                goes_on.append(id)
            else:
                if turn_id is not None:
                    afresh.append(id)
                turn_id, until_seq = ask.turn_id, head.asked_seq
            lease = Lease(ConversationId(id), TurnId(turn_id), token + 1, holder, ask.until)
            ask.leased = LeasedTurn(lease, head, until_seq)
            taken.append((id, write_head(head), lease.token, lease.turn_id, until_seq, ask.until))
        await connection.execute(_TAKE, self._company, holder, *columns(6, taken))
        if afresh:
            await connection.execute(
                "DELETE FROM journal WHERE company = $1 AND conversation = ANY($2::text[])", self._company, afresh
            )
        if goes_on:
            await self._read_journals(connection, goes_on)

    async def _read_journals(self, connection: Connection, ids: list[str]) -> None:
        journals: dict[str, dict[str, bytes]] = {}
        for conversation, key, value in await connection.fetch(
            "SELECT conversation, key, value FROM journal WHERE company = $1 AND conversation = ANY($2::text[])",
            self._company,
            ids,
        ):
            journals.setdefault(conversation, {})[bytes(key).decode("utf-8", "surrogatepass")] = bytes(value)
        for ask in self._asks:
            leased = ask.leased
            if leased is not None and leased.lease.conversation_id in journals:
                journal = journals[leased.lease.conversation_id]
                ask.leased = LeasedTurn(leased.lease, leased.head, leased.until_seq, journal)
