"""Changes of grants in PostgreSQL, in rounds: what waits is loaded, decided one after the other, and committed at once.

One transaction at a time and Company in each process. Rows are locked before they are read, so that a change decides on
what other replicas have committed; within a round each change sees those before it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from papaver.ports.grants import (
    AccessRow,
    GrantChange,
    GrantKeys,
    GrantLoaded,
    GrantRow,
    Spent,
    TicketKey,
    TicketRow,
)
from papaver.protocol.terms import AccountId
from papaver.stores import crash
from papaver.stores.crash import crash_point
from papaver.stores.faults import StoreFailed
from papaver.stores.postgres import grant_rows as rows
from papaver.stores.postgres.server import Connection, Server
from papaver.stores.postgres.values import digest, is_storable

__all__ = ["GrantRounds"]

R = TypeVar("R")
AT_ONCE: Final = 128
"""Changes in one round, at most."""
TRIES: Final = 5
"""Times that a round is done when the database undoes it for the sake of another transaction."""
_AGAIN: Final = ("DeadlockDetectedError", "SerializationError", "UniqueViolationError")


@dataclass(slots=True)
class _Job:
    keys: GrantKeys
    decide: Callable[[GrantLoaded], GrantChange[object]]
    future: asyncio.Future[object]
    result: object = None
    fault: Exception | None = None

    def decided(self, loaded: GrantLoaded) -> GrantChange[object]:
        """Raises _Refused; what `decide` raised is kept."""
        try:
            return self.decide(loaded)
        except Exception as fault:
            self.fault = fault
            raise _Refused from fault


class GrantRounds:
    """The queue of one Company in one process. Its task lives as long as something waits."""

    def __init__(self, server: Server, company: int) -> None:
        self._server = server
        self._company = company
        self._waiting: list[_Job] = []
        self._task: asyncio.Task[None] | None = None

    async def apply(self, keys: GrantKeys, decide: Callable[[GrantLoaded], GrantChange[R]]) -> R:
        """See `GrantStore.apply`. A caller that is cancelled undoes nothing."""
        if not is_storable(_key_texts(keys)):
            raise StoreFailed("a key with a character that PostgreSQL does not store")
        job = _Job(keys, decide, asyncio.get_running_loop().create_future())
        self._waiting.append(job)
        if self._task is None:
            self._task = asyncio.create_task(self._run())
        return cast(R, await job.future)

    async def _run(self) -> None:
        try:
            while self._waiting:
                jobs, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                put_off = await self._round(jobs)
                self._waiting[:0] = put_off
        finally:
            self._task = None
            # Not empty when the loop ends under it: nobody waits for ever.
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()

    async def _round(self, jobs: list[_Job]) -> list[_Job]:
        """Those that have to be done in another one, in their order."""
        round = _Round(self._company, jobs)
        is_over = False
        try:
            fault = await self._try(round)
            if fault is not None:
                for job in round.done:
                    job.fault = StoreFailed(fault.detail)
            is_over = True
        finally:
            for job in round.done:
                if not is_over:
                    job.future.cancel()
                elif not job.future.done():
                    _tell(job)
        return round.put_off

    async def _try(self, round: _Round) -> StoreFailed | None:
        """Why it is not known to be committed."""
        tries = 0
        while True:
            tries += 1
            try:
                # Once COMMIT was sent, a lost connection leaves open whether it was done: never done twice.
                await self._server.run(round.run, repeat=lambda: not round.committing)
            except StoreFailed as fault:
                if round.committing or tries == TRIES or not fault.detail.startswith(_AGAIN):
                    return fault
            else:
                return None


def _tell(job: _Job) -> None:
    if job.fault is None:
        job.future.set_result(job.result)
    elif isinstance(job.fault, StopIteration):
        job.future.set_exception(RuntimeError(f"a change raised {job.fault!r}"))  # a future cannot carry this one
    else:
        job.future.set_exception(job.fault)


class _Round:
    """One transaction. What is loaded, and written over it by the changes so far."""

    def __init__(self, company: int, jobs: list[_Job]) -> None:
        self._company = company
        self.done, self.put_off = jobs, list[_Job]()
        self._jobs = jobs
        self.committing = False

    def _begin(self) -> None:
        self._tickets: dict[TicketKey, TicketRow] = {}
        self._grants: dict[str, GrantRow] = {}
        self._refresh: dict[str, str] = {}
        self._disabled: dict[AccountId, bool] = {}
        self._known: dict[bytes, float] = {}
        self._put: dict[TicketKey, TicketRow] = {}
        self._dropped: set[TicketKey] = set()
        self._written: dict[str, GrantRow] = {}
        self._issued: dict[str, str] = {}
        self._access: dict[str, AccessRow] = {}
        self._longer: dict[bytes, float] = {}

    async def run(self, connection: Connection) -> None:
        """Called again when the connection was lost before anything could be committed."""
        self._begin()
        async with connection.transaction():
            await self._load(connection)
            self._decide()
            await self._write(connection)
            if crash.WATCHED:
                crash_point("grant.before-commit")
            self.committing = True
        if crash.WATCHED:
            crash_point("grant.after-commit")

    async def _load(self, connection: Connection) -> None:
        company, all_keys = self._company, [job.keys for job in self._jobs]
        ids = dict[bytes, float]()
        for one in (one for keys in all_keys for one in keys.spent):
            ids[_id(one)] = max(one.until, ids.get(_id(one), one.until))
        self._fresh = set[bytes]()
        if ids:
            fresh = await connection.fetch(rows.ADD_SPENT, company, list(ids), list(ids.values()))
            self._fresh = {row[0] for row in fresh}
            self._known = {id: 0.0 for id in ids if id not in self._fresh}
        asked = sorted({key for keys in all_keys for key in keys.tickets})
        if asked:
            found = await connection.fetch(rows.LOCK_TICKETS, company, *map(list, zip(*asked, strict=True)))
            self._tickets = {ticket.key: ticket for ticket in map(rows.read_ticket, found)}
        self._asked = {keys.grant for keys in all_keys if keys.grant is not None}
        refresh = {keys.refresh for keys in all_keys if keys.refresh is not None}
        if self._asked or refresh:
            for row in await connection.fetch(rows.LOAD_GRANTS, company, list(self._asked), list(refresh)):
                self._keep(row)
        accounts = {keys.account for keys in all_keys if keys.account is not None} - set(self._disabled)
        if accounts:
            disabled = {row[0] for row in await connection.fetch(rows.LOAD_ACCOUNTS, company, list(accounts))}
            self._disabled.update((account, account in disabled) for account in accounts)

    def _keep(self, row: Any) -> None:
        *columns, disabled, tokens = row
        grant = rows.read_grant(columns)
        self._grants[grant.id] = grant
        self._disabled[grant.account_id] = disabled
        self._refresh.update((token, grant.id) for token in tokens)

    def _decide(self) -> None:
        """In order. The first that needs what is not loaded, and all after it, are put off."""
        self.done, self.put_off = self._jobs, []
        for count, job in enumerate(self._jobs):
            job.fault = None
            try:
                loaded = self._loaded(job.keys)
            except LookupError:
                self.done, self.put_off = self._jobs[:count], self._jobs[count:]
                return
            try:
                change = job.decided(loaded)
            except _Refused:
                continue
            if is_storable(_texts(change)):
                job.result = change.result
                self._note(job.keys, change)
            else:
                job.fault = StoreFailed("a text with a character that PostgreSQL does not store")

    def _loaded(self, keys: GrantKeys) -> GrantLoaded:
        """Raises LookupError when an earlier change of this round made it necessary to load more."""
        id = keys.grant if keys.refresh is None else self._refresh.get(keys.refresh)
        grant = None if id is None else self._grants.get(id)
        if grant is None and id is not None and id not in self._asked:
            raise LookupError(id)
        account = keys.account if keys.account is not None or grant is None else grant.account_id
        return GrantLoaded(
            tickets={key: self._tickets[key] for key in keys.tickets if key in self._tickets},
            grant=grant,
            disabled=account is not None and self._disabled[account],
            spent=tuple(one for one in keys.spent if _id(one) in self._known),
        )

    def _note(self, keys: GrantKeys, change: GrantChange[object]) -> None:
        for one in keys.spent:
            self._known[_id(one)] = max(one.until, self._known.get(_id(one), 0.0))
            self._longer[_id(one)] = self._known[_id(one)]
        for key in change.drop_tickets:
            self._tickets.pop(key, None)
            self._put.pop(key, None)
            self._dropped.add(key)
        for ticket in change.put_tickets:
            self._tickets[ticket.key] = self._put[ticket.key] = ticket
            self._dropped.discard(ticket.key)
        for grant in change.grants:
            self._grants[grant.id] = self._written[grant.id] = grant
        for row in change.refresh:
            self._refresh[row.digest] = self._issued[row.digest] = row.grant_id
        self._access.update((row.digest, row) for row in change.access)

    async def _write(self, connection: Connection) -> None:
        company = self._company
        changed = (self._dropped, self._put.values(), self._written.values(), self._issued.items())
        if any(changed) or self._access:
            values = rows.written(company, *changed, self._access.values())
            await connection.execute(rows.WRITE, *values)
        unused = [id for id in self._fresh if id not in self._known]
        if unused:
            await connection.execute(rows.FORGET_SPENT, company, unused)
        used_again = {id: until for id, until in self._longer.items() if id not in self._fresh}
        if used_again:
            await connection.execute(rows.KEEP_SPENT, company, list(used_again), list(used_again.values()))


def _id(spent: Spent) -> bytes:
    return digest(spent.client_id, spent.kind, spent.jti)


def _texts(change: GrantChange[object]) -> Iterable[str | None]:
    for ticket in change.put_tickets:
        yield from ticket.key
    for grant in change.grants:
        whose = grant.client_id, grant.client_name, grant.account_id
        yield from (grant.id, *whose, *grant.scopes, grant.kind, grant.current, grant.previous)
    for token in change.refresh:
        yield from (token.digest, token.grant_id)
    for row in change.access:
        whose = row.client_id, row.account_id
        yield from (row.digest, row.grant_id, *whose, *row.scopes, row.resource, row.jkt)


def _key_texts(keys: GrantKeys) -> Iterable[str | None]:
    for key in keys.tickets:
        yield from key
    yield from (keys.refresh, keys.grant, keys.account)


class _Refused(Exception):
    """What `decide` raised, on its way past the rest of the round."""
