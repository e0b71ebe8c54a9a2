"""One round of changes in PostgreSQL: one transaction that locks and loads, decides in order, and writes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from papaver.protocol.conversation import record
from papaver.protocol.conversation.change import Change, Keys, Loaded, Note, SessionRow
from papaver.protocol.conversation.model import Status
from papaver.protocol.conversation.state import Head, Lease, Receipt
from papaver.protocol.terms import ConversationId
from papaver.stores import crash
from papaver.stores.crash import Step, crash_point
from papaver.stores.digests import number
from papaver.stores.notify import Topic
from papaver.stores.postgres import log_rows as rows
from papaver.stores.postgres.log_rows import Stored, columns
from papaver.stores.postgres.lookups import read_session
from papaver.stores.postgres.server import Connection
from papaver.stores.postgres.values import digest, is_storable
from papaver.stores.turns import NOTES, attends, check_change, due_since, makes_due, prunable, seconds
from papaver.values.errors import PapaverError

__all__ = ["Job", "JournalStep", "Round", "lost"]

DAY: Final = 86_400


def lost(lease: Lease, stored: Stored | None) -> bool:
    """Whether it is not the newest lease of its conversation any more."""
    return stored is None or stored.token != lease.token or stored.holder is None


@dataclass(slots=True)
class Job:
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
class JournalStep:
    """A step of a turn to write down, in the same rounds. `held`: its lease was."""

    lease: Lease
    key: bytes
    value: bytes
    future: asyncio.Future[bool]
    held: bool = False
    fault: Exception | None = None


class Round:
    """What is loaded, and written over it by the changes so far.

    `done`        those that were decided           `put_off`  those that need what was not locked with the others
    `committing`  COMMIT was sent                   `topics`   who is woken once it is done
    `now`         when its newest head was changed, by the clock of who changed it
    """

    def __init__(self, company: int, jobs: list[Job | JournalStep]) -> None:
        self._company = company
        self.done, self.put_off = jobs, list[Job | JournalStep]()
        self._jobs = jobs
        self.committing = False
        self.topics = set[Topic]()
        self.now = 0.0
        self._begin()

    @property
    def replays(self) -> int:
        """Replay keys that it has written."""
        return len(self._replays)

    def _begin(self) -> None:
        self._heads: dict[ConversationId, Stored | None] = {}
        self._receipts: dict[bytes, Receipt] = {}
        self._used: set[bytes] = set()
        self._sessions: dict[tuple[str, str], SessionRow] = {}
        self._made: set[ConversationId] = set()
        self._written: dict[ConversationId, bytes] = {}
        self._ended: set[ConversationId] = set()
        self._events: list[tuple[ConversationId, int, bytes]] = []
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
        jobs = [job for job in self._jobs if isinstance(job, Job)]
        ids = {job.lease.conversation_id for job in self._jobs if isinstance(job, JournalStep)}
        for job in jobs:
            keys = job.keys
            named = keys.conversation, keys.parent, None if keys.lease is None else keys.lease.conversation_id
            ids.update(id for id in named if id is not None)
        ids |= await self._kin(connection, {job.keys.conversation for job in jobs if job.keys.relatives})
        self._heads = dict.fromkeys(ids)
        receipts = {key for job in jobs for key in (job.receipt, job.acceptance) if key is not None}
        replays = {job.replay for job in jobs if job.replay is not None}
        sessions = {job.keys.session for job in jobs if job.keys.session is not None}
        # What PostgreSQL cannot store is not there.
        if not is_storable(ids) or not is_storable(text for one in sessions for text in one):
            ids = {id for id in ids if is_storable((id,))}
            sessions = {one for one in sessions if is_storable(one)}
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
        ids = [id for id in named if id is not None and is_storable((id,))]
        found = await connection.fetch(rows.KIN, self._company, ids)
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
                if isinstance(job, JournalStep):
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

    def _note_step(self, step: JournalStep) -> None:
        conversation = step.lease.conversation_id
        step.held = not lost(step.lease, self._heads[conversation])
        if step.held:
            self._journal[conversation, step.key] = step.value

    def _change(self, job: Job) -> None:
        loaded = self._loaded(job)
        change = job.decided(loaded)
        check_change(change, job.keys, loaded, self._last_seq)
        # What cannot be stored raises here, before anything of it is noted.
        events = [(conversation, seq, record.write(event)) for conversation, seq, event in change.events]
        self._note(job, change, loaded, {head.id: record.write_head(head) for head in change.heads})
        self._events += events
        job.result = change.result

    def _loaded(self, job: Job) -> Loaded:
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

    def _note(self, job: Job, change: Change[object], loaded: Loaded, records: dict[ConversationId, bytes]) -> None:
        lease = job.keys.lease
        ended = lease.conversation_id if change.ended and lease is not None else None
        if ended is not None and ended not in records:
            stored = self._heads[ended]
            assert stored is not None
            self._note_head(stored.head, record.write_head(stored.head), ended=True)
        for head in change.heads:
            self._note_head(head, records[head.id], ended=head.id == ended)
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

    def _note_head(self, head: Head, row: bytes, *, ended: bool) -> None:
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
        self._written[head.id] = row
        self.now = max(self.now, seconds(head))

    async def _write(self, connection: Connection) -> None:
        if not (self._written or self._replays or self._journal or self._fresh or self._notes):
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
            *columns(12, [(*row[:7], *whose, *row[7:10]) for row, whose in made]),
            *columns(11, [row for row, _ in changed]),
            *columns(3, [row for row in self._events if row[1] >= self._pruned.get(row[0], 0)]),
            *columns(6, keys),
            *columns(2, sorted(self._replays.items())),
            *columns(4, told),
            *columns(2, sorted(self._pruned.items())),
            sorted(self._ended),
            *columns(3, [(*step, value) for step, value in sorted(self._journal.items())]),
        )

    def _row(self, id: ConversationId) -> tuple[tuple[object, ...], tuple[int, int]]:
        """Its columns as they are now, and those that are written once."""
        stored = self._heads[id]
        assert stored is not None
        head, at = stored.head, seconds(stored.head)
        row = (
            id,
            self._written[id],
            head.last_seq,
            at,
            int(at // DAY),
            head.status is Status.CLOSED,
            stored.due_since,
            *attends(head),
            prunable(head),
            id in self._ended,
        )
        return row, (number(head.client_id), number(head.client_id, head.user_id))


def _step(job: Job | JournalStep) -> Step | None:
    return "journal" if isinstance(job, JournalStep) else job.step


class _NotLoaded(Exception):
    """A change needs a conversation that was not locked with the others."""


class _Refused(Exception):
    """What `decide` raised, on its way past the rest of the round."""
