"""Changes of conversations in PostgreSQL, in rounds: what waits is loaded, decided in order, and committed at once.

One transaction at a time and Company in each process. Heads are locked before they are read, so that a change decides
on what other replicas have committed; within a round each change sees those before it. A receipt or a replay key that
another replica writes at the same moment undoes the round, which is then done again and sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, TypeVar, cast

from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, SessionRow
from papaver.protocol.conversation.model import Status
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import ConversationId
from papaver.stores import crash
from papaver.stores.crash import Step, crash_point
from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic
from papaver.stores.postgres import log_rows as rows
from papaver.stores.postgres.log_rows import Stored, columns
from papaver.stores.postgres.server import Connection, Server
from papaver.stores.postgres.sessions import read_session
from papaver.stores.postgres.values import digest, is_storable
from papaver.stores.sqlite.forms import number
from papaver.stores.turns import NOTES, attends, check_change, due_since, makes_due, prunable, seconds
from papaver.values.errors import PapaverError

__all__ = ["LogRounds", "lost"]

R = TypeVar("R")
AT_ONCE: Final = 128
"""Changes in one round, at most."""
TRIES: Final = 5
"""Times that a round is done when others write the same receipts at the same moment."""
DAY: Final = 86_400


def lost(lease: Lease, stored: Stored | None) -> bool:
    """Whether it is not the newest lease of its conversation any more."""
    return stored is None or stored.token != lease.token or stored.holder is None


@dataclass(slots=True)
class _Job:
    keys: Keys
    decide: Callable[[Loaded], Change[object]]
    step: Step | None
    future: asyncio.Future[object]
    result: object = None
    fault: Exception | None = None
    receipt: bytes | None = None
    acceptance: bytes | None = None
    replay: bytes | None = None

    def __post_init__(self) -> None:
        keys = self.keys
        self.receipt = None if keys.receipt is None else digest(*keys.receipt)
        # Two parts, where a message's key has three: the two never meet.
        self.acceptance = None if keys.acceptance is None else digest(*keys.acceptance)
        self.replay = None if keys.replay is None else digest(keys.replay.client_id, keys.replay.jti)

    def decided(self, loaded: Loaded) -> Change[object]:
        """Raises _Refused; what `decide` raised is kept."""
        try:
            return self.decide(loaded)
        except Exception as fault:
            self.fault = fault
            raise _Refused from fault


@dataclass(slots=True)
class _Step:
    """A step of a turn to write down, in the same rounds. `held`: its lease was."""

    lease: Lease
    key: bytes
    value: bytes
    future: asyncio.Future[bool]
    held: bool = False
    fault: Exception | None = None


class LogRounds:
    """The queue of one Company in one process. Its task lives as long as something waits."""

    def __init__(self, server: Server, company: int, wake: Callable[[set[Topic]], None]) -> None:
        self._server, self._company, self._wake = server, company, wake
        self._waiting: list[_Job | _Step] = []
        self._task: asyncio.Task[None] | None = None

    async def apply(self, keys: Keys, decide: Callable[[Loaded], Change[R]], step: Step | None) -> R:
        """See `ConversationLog.apply`. A caller that is cancelled undoes nothing."""
        if not is_storable(_key_texts(keys)):
            raise StoreFailed("a key with a character that PostgreSQL does not store")
        job = _Job(keys, decide, step, asyncio.get_running_loop().create_future())
        self._add(job)
        return cast(R, await job.future)

    async def journal(self, lease: Lease, key: bytes, value: bytes) -> bool:
        """See `ConversationLog.journal`."""
        step = _Step(lease, key, value, asyncio.get_running_loop().create_future())
        self._add(step)
        return await step.future

    def _add(self, one: _Job | _Step) -> None:
        self._waiting.append(one)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                jobs, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                self._waiting[:0] = await self._round(jobs)
        finally:
            self._task = None
            # Not empty when the loop ends under it: nobody waits for ever.
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()

    async def _round(self, jobs: list[_Job | _Step]) -> list[_Job | _Step]:
        """Those that have to be done in another one, in their order."""
        round, is_over, tries = _Round(self._company, jobs), False, 0
        try:
            while not is_over:
                tries += 1
                try:
                    # Once COMMIT was sent, a lost connection leaves open whether it was done: never done twice.
                    await self._server.run(round.run, repeat=lambda: not round.committing)
                    is_over = True
                except StoreFailed as fault:
                    if fault.detail.startswith(_AGAIN) and not round.committing and tries < TRIES:
                        continue
                    for job in round.done:
                        job.fault = StoreFailed(fault.detail)
                    is_over = True
                    round.topics.clear()
        finally:
            self._wake(round.topics)
            for job in round.done:
                if not is_over:
                    job.future.cancel()
                elif not job.future.done():
                    _tell(job)
        return round.put_off


_AGAIN: Final = ("UniqueViolationError", "DeadlockDetectedError", "SerializationError")


def _tell(job: _Job | _Step) -> None:
    if isinstance(job.fault, StopIteration):
        job.future.set_exception(RuntimeError(f"a change raised {job.fault!r}"))  # a future cannot carry this one
    elif job.fault is not None:
        job.future.set_exception(job.fault)
    elif isinstance(job, _Step):
        job.future.set_result(job.held)
    else:
        job.future.set_result(job.result)


class _Round:
    """One transaction. What is loaded, and written over it by the changes so far."""

    def __init__(self, company: int, jobs: list[_Job | _Step]) -> None:
        self._company = company
        self.done, self.put_off = jobs, list[_Job | _Step]()
        self._jobs = jobs
        self.committing = False
        self.topics = set[Topic]()

    def _begin(self) -> None:
        self._heads: dict[ConversationId, Stored | None] = {}
        self._receipts: dict[bytes, Receipt] = {}
        self._used: set[bytes] = set()
        self._sessions: dict[tuple[str, str], SessionRow] = {}
        self._made: set[ConversationId] = set()
        self._written: dict[ConversationId, Head] = {}
        self._ended: set[ConversationId] = set()
        self._events: list[tuple[object, ...]] = []
        self._fresh: dict[bytes, Receipt] = {}
        self._replays: dict[bytes, float] = {}
        self._notes: list[Note] = []
        self._pruned: dict[ConversationId, int] = {}
        self._journal: dict[tuple[ConversationId, bytes], bytes] = {}
        self.topics.clear()

    async def run(self, connection: Connection) -> None:
        """Called again when the connection was lost before anything could be committed."""
        self._begin()
        async with connection.transaction():
            await self._load(connection)
            self._decide()
            await self._write(connection)
            self._crash("before-commit")
            self.committing = True
        self._crash("after-commit")

    def _crash(self, moment: str) -> None:
        if crash.WATCHED:
            for step in {_step(job): None for job in self.done}:
                if step is not None:
                    crash_point(f"{step}.{moment}")

    async def _load(self, connection: Connection) -> None:
        jobs = [job for job in self._jobs if isinstance(job, _Job)]
        ids = {job.lease.conversation_id for job in self._jobs if isinstance(job, _Step)}
        for job in jobs:
            keys = job.keys
            named = keys.conversation, keys.parent, None if keys.lease is None else keys.lease.conversation_id
            ids.update(id for id in named if id is not None)
        ids |= await self._kin(connection, {job.keys.conversation for job in jobs if job.keys.relatives})
        self._heads = dict.fromkeys(ids)
        receipts = {key for job in jobs for key in (job.receipt, job.acceptance) if key is not None}
        replays = {job.replay for job in jobs if job.replay is not None}
        sessions = {job.keys.session for job in jobs if job.keys.session is not None}
        if not (receipts or replays or sessions):
            found = await connection.fetch(rows.HEADS, self._company, list(ids))
            self._heads.update(map(rows.read_stored, found))
            return
        for row in await connection.fetch(
            rows.LOAD, self._company, list(ids), list(receipts), list(replays), *columns(2, sorted(sessions))
        ):
            self._keep(row)

    async def _kin(self, connection: Connection, named: set[ConversationId | None]) -> set[ConversationId]:
        if not named:
            return set()
        found = await connection.fetch(rows.KIN, self._company, [id for id in named if id is not None])
        heads = [record.read_head(row) for _, row in found]
        return {id for head in heads for id in (head.parent, head.open_direct) if id is not None}

    def _keep(self, row: Any) -> None:
        what, id, octets, a, b, c, d, e, f, g = row
        match what:
            case "head":
                self._heads[ConversationId(id)] = rows.read_stored((id, octets, a, b, c))[1]
            case "receipt":
                receipt = self._receipts[bytes(octets)] = rows.read_receipt(id, a, b, d, e)
                self._heads.setdefault(receipt.conversation_id, None)
            case "replay":
                self._used.add(bytes(octets))
            case _:
                session = read_session((id, b, d, e, f, c, g))
                self._sessions[session.client_id, session.sid] = session

    def _decide(self) -> None:
        """In order. The first that needs what is not loaded, and all after it, are put off."""
        self.done, self.put_off = self._jobs, []
        for count, job in enumerate(self._jobs):
            job.fault = None
            try:
                if isinstance(job, _Step):
                    self._note_step(job)
                else:
                    self._change(job)
            except _NotLoaded:
                self.done, self.put_off = self._jobs[:count], self._jobs[count:]
                return
            except _Refused:
                continue
            except PapaverError as fault:
                job.fault = fault

    def _note_step(self, step: _Step) -> None:
        conversation = step.lease.conversation_id
        step.held = not lost(step.lease, self._heads[conversation])
        if step.held:
            self._journal[conversation, step.key] = step.value

    def _change(self, job: _Job) -> None:
        loaded = self._loaded(job)
        change = job.decided(loaded)
        check_change(change, job.keys, loaded, self._last_seq)
        events = [(conversation, seq, record.write(event)) for conversation, seq, event in change.events]
        for head in change.heads:
            record.write_head(head)
        self._note(job, change, loaded)
        self._events += events
        job.result = change.result

    def _loaded(self, job: _Job) -> Loaded:
        keys = job.keys
        receipt = None if job.receipt is None else self._receipts.get(job.receipt)
        acceptance = None if job.acceptance is None else self._receipts.get(job.acceptance)
        head = self._head(keys.conversation or (None if receipt is None else receipt.conversation_id))
        kin = head if keys.relatives else None
        return Loaded(
            head=head,
            parent=self._head(keys.parent or (None if kin is None else kin.parent)),
            direct=self._head(None if kin is None else kin.open_direct),
            receipt=receipt,
            acceptance=acceptance,
            accepted=self._head(None if acceptance is None else acceptance.conversation_id),
            replayed=job.replay is not None and job.replay in self._used,
            session=None if keys.session is None else self._sessions.get(keys.session),
            lease_lost=keys.lease is not None and lost(keys.lease, self._stored(keys.lease.conversation_id)),
        )

    def _stored(self, conversation: ConversationId) -> Stored | None:
        """Raises _NotLoaded when an earlier change, or another replica, made it necessary to load more."""
        if conversation not in self._heads:
            raise _NotLoaded
        return self._heads[conversation]

    def _head(self, conversation: ConversationId | None) -> Head | None:
        stored = None if conversation is None else self._stored(conversation)
        return None if stored is None else stored.head

    def _last_seq(self, conversation: ConversationId) -> int | None:
        stored = self._heads.get(conversation)
        return None if stored is None else stored.head.last_seq

    def _note(self, job: _Job, change: Change[object], loaded: Loaded) -> None:
        lease = job.keys.lease
        ended = lease.conversation_id if change.ended and lease is not None else None
        heads = {head.id: head for head in change.heads}
        if ended is not None and ended not in heads:
            stored = self._heads[ended]
            assert stored is not None
            heads[ended] = stored.head
        for head in heads.values():
            self._note_head(head, ended=head.id == ended)
        for key, receipt in ((job.receipt, change.receipt), (job.acceptance, change.acceptance)):
            if key is not None and receipt is not None:
                self._receipts[key] = self._fresh[key] = receipt
        if job.replay is not None and job.keys.replay is not None and not loaded.replayed:
            self._used.add(job.replay)
            self._replays[job.replay] = job.keys.replay.until
        self._notes += change.notes
        if change.prune:
            self._pruned.update((head.id, head.first_seq) for head in change.heads)
        self.topics.update((self._company, head.id) for head in change.heads)
        if makes_due(change, lease):
            self.topics.add((self._company, ""))
        if change.notes:
            self.topics.add((self._company, NOTES))

    def _note_head(self, head: Head, *, ended: bool) -> None:
        before = self._heads.get(head.id)
        if before is None:
            self._made.add(head.id)
        due = due_since(head, None if before is None else before.due_since, ended=ended)
        if ended:
            self._ended.add(head.id)
            for step in [step for step in self._journal if step[0] == head.id]:
                del self._journal[step]
        token, holder = (0, None) if before is None else (before.token, None if ended else before.holder)
        self._heads[head.id] = Stored(head, token, holder, due)
        self._written[head.id] = head

    async def _write(self, connection: Connection) -> None:
        if not (self._written or self._replays or self._journal):
            return
        made = [self._row(id) for id in sorted(self._made)]
        changed = [self._row(id) for id in sorted(self._written.keys() - self._made)]
        keys = [
            (key, one.fingerprint, one.conversation_id, one.accepted_as, one.status.value, one.responder.value)
            for key, one in sorted(self._fresh.items())
        ]
        told = [(note.conversation, note.kind.value, note.seq, note.first_seq) for note in self._notes]
        await connection.execute(
            rows.WRITE,
            self._company,
            *columns(12, [(*row[:7], *self._whose(row[0]), *row[7:10]) for row in made]),
            *columns(11, changed),
            *columns(3, self._events),
            *columns(6, keys),
            *columns(2, sorted(self._replays.items())),
            *columns(4, told),
            *columns(2, sorted(self._pruned.items())),
            sorted(self._ended),
            *columns(3, [(*step, value) for step, value in sorted(self._journal.items())]),
        )

    def _whose(self, id: object) -> tuple[int, int]:
        head = self._written[cast(ConversationId, id)]
        return number(head.client_id), number(head.client_id, head.user_id)

    def _row(self, id: ConversationId) -> tuple[object, ...]:
        stored = self._heads[id]
        assert stored is not None
        head, at = stored.head, seconds(stored.head)
        return (
            id,
            record.write_head(head),
            head.last_seq,
            at,
            int(at // DAY),
            head.status is Status.CLOSED,
            stored.due_since,
            *attends(head),
            prunable(head),
            id in self._ended,
        )


def _step(job: _Job | _Step) -> Step | None:
    return "journal" if isinstance(job, _Step) else job.step


def _key_texts(keys: Keys) -> Iterable[str | None]:
    yield from (keys.conversation, keys.parent)
    if keys.session is not None:
        yield from keys.session


class _NotLoaded(Exception):
    """A change needs a conversation that was not locked with the others."""


class _Refused(Exception):
    """What `decide` raised, on its way past the rest of the round."""
