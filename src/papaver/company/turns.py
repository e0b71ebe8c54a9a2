"""The durable turn runner: leases turns, runs the handler, journals its outcome, and posts it, whatever crashes.

    lease ──► handler(Turn) ──► journal the outcome ──► apply it: reply, state and the end of the lease at once

A turn never runs inside the POST that caused it. A failure of the handler ends in a worded message and `idle`; it ends
neither the runner nor the app. The turn's id stays the same over crashes: it is the handler's idempotency key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime

from papaver.company.outcome import Outcome, read_outcome, write_outcome
from papaver.company.settings import CompanyLimits
from papaver.company.texts import Texts
from papaver.company.turn import Handler, Reply, Turn
from papaver.ports.company import ConversationLog, LeasedTurn
from papaver.ports.system import Clock, Ids
from papaver.protocol.conversation import operations
from papaver.protocol.conversation.content import as_company_message
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import Author, AuthorType, Message, MessageAdded, Role
from papaver.protocol.conversation.operations import Answer, Expire, Fail, LeaseLost, TurnCommand, Unavailable
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.terms import MessageId, TurnId
from papaver.values import strict_json
from papaver.values.errors import PapaverError

__all__ = ["Turns"]

log = logging.getLogger("papaver.company.turns")

OUTCOME = "outcome"
STEP = "step:"
AGENT = Author(AuthorType.AGENT)


class Turns:
    """Runs the turns of one Company in this process; several processes share one store."""

    def __init__(
        self,
        store_log: ConversationLog,
        handler: Handler | None,
        events: EventIds,
        clock: Clock,
        ids: Ids,
        limits: CompanyLimits,
        texts: Texts,
        holder: str,
    ) -> None:
        self._log, self._handler, self._events = store_log, handler, events
        self._clock, self._ids, self._limits, self._texts, self._holder = clock, ids, limits, texts, holder
        self._stopped = asyncio.Event()
        self._running: set[asyncio.Task[None]] = set()
        self.alive = False

    def stop(self) -> None:
        """Lease nothing more; turns that run are given back, due at once for another process."""
        self._stopped.set()

    async def run(self) -> None:
        """Until `stop`. One failed round, such as of a store that is away, is logged and tried again."""
        self.alive = True
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            with self._log.watch_turns() as watch:
                while not self._stopped.is_set():
                    try:
                        leased = await self._lease_all()
                    except PapaverError as error:
                        log.error("turns cannot be leased: %s", error)
                        leased = False
                    if not leased:
                        waiting = asyncio.ensure_future(watch.wait(1.0))
                        await asyncio.wait({waiting, stopped}, return_when=asyncio.FIRST_COMPLETED)
                        waiting.cancel()
                    elif len(self._running) >= self._limits.turns_at_once:
                        await asyncio.wait({*self._running, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.alive = False
            stopped.cancel()
            for task in tuple(self._running):
                task.cancel()
            await asyncio.gather(*self._running, return_exceptions=True)

    async def _lease_all(self) -> bool:
        """Start what is due, up to the limit; False when nothing more is due."""
        while len(self._running) < self._limits.turns_at_once:
            now = self._clock.now()
            turn = await self._log.lease(
                self._holder, TurnId("trn_" + self._ids.token()), now=now, until=now + self._limits.lease
            )
            if turn is None:
                return False
            task = asyncio.create_task(self._guarded(turn))
            self._running.add(task)
            task.add_done_callback(self._running.discard)
            if self._stopped.is_set():
                return False
        return True

    async def _guarded(self, leased: LeasedTurn) -> None:
        """One turn, and nothing that leaves it: the runner goes on."""
        try:
            await self._turn(leased)
        except asyncio.CancelledError:
            await self._log.release(leased.lease)
            raise
        except LeaseLost:
            log.warning("turn %s was taken over by another process", leased.lease.turn_id)
        except PapaverError as error:
            log.error("turn %s stays due: %s", leased.lease.turn_id, error, exc_info=error)

    async def _turn(self, leased: LeasedTurn) -> None:
        if leased.head.handoff_pending:
            await self._apply(Unavailable(leased.lease, self._message(Reply(self._texts.nobody))))
            return
        if OUTCOME in leased.journal:
            outcome = read_outcome(leased.journal[OUTCOME])
        elif leased.head.failures > self._limits.turn_attempts:
            log.error("turn %s was begun %d times and never ended", leased.lease.turn_id, leased.head.failures - 1)
            outcome = Outcome((self._message(Reply(self._texts.failed)),), failed=True)
        else:
            outcome = await self._outcome(leased)
            if not await self._log.journal(leased.lease, OUTCOME, write_outcome(outcome)):
                raise LeaseLost(detail="before its outcome was journaled")
        await self._apply(self._command(leased, outcome))

    def _command(self, leased: LeasedTurn, outcome: Outcome) -> TurnCommand:
        if outcome.failed:
            return Fail(leased.lease, leased.until_seq, outcome.messages[0])
        return Answer(leased.lease, leased.until_seq, outcome.messages)

    async def _apply(self, command: TurnCommand) -> None:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        await self._log.apply(operations.keys(command), lambda loaded: decide(command, loaded, now, self._events))

    async def _outcome(self, leased: LeasedTurn) -> Outcome:
        """Run the handler with a renewed lease and a time limit; what it raises becomes a worded failure.

        It runs as a task of its own: one that swallows its cancellation is left behind, and holds nothing up.
        """
        turn = await self._prepare(leased)
        renewing = asyncio.create_task(self._renew(leased))
        calling = asyncio.create_task(self._replies(turn))
        try:
            done, _ = await asyncio.wait({calling}, timeout=self._limits.turn_timeout)
        finally:
            calling.cancel()
            renewing.cancel()
        if not done:
            log.error("turn %s: the handler took over %d s", turn.id, self._limits.turn_timeout)
            return Outcome((self._message(Reply(self._texts.timed_out)),), failed=True)
        if not calling.cancelled():
            found = calling.result()
            if not isinstance(found, BaseException):
                return Outcome(found)
            log.error("turn %s: the handler raised", turn.id, exc_info=found)
        return Outcome((self._message(Reply(self._texts.failed)),), failed=True)

    async def _replies(self, turn: Turn) -> tuple[Message, ...] | BaseException:
        """What the handler says. Whatever the Company's own code raises ends this turn, never the runner or the app."""
        try:
            return tuple(as_company_message(self._message(reply)) for reply in await self._call(turn))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - the handler is not our code
            return error

    async def _call(self, turn: Turn) -> list[Reply]:
        if self._handler is None:
            raise RuntimeError("no handler: decorate one with @company.conversation")
        answer = self._handler(turn)
        if isinstance(answer, AsyncIterator):
            text = "".join([piece async for piece in answer])
            return [Reply(text)] if text else []
        said = await answer
        if said is None or said == "":
            return []
        return [said if isinstance(said, Reply) else Reply(str(said))]

    def _message(self, reply: Reply) -> Message:
        return Message(
            id=MessageId("msg_" + self._ids.token()),
            author=reply.author or AGENT,
            role=Role.COMPANY,
            text=reply.text,
            data=reply.data,
        )

    async def _renew(self, leased: LeasedTurn) -> None:
        while True:
            await self._clock.sleep(self._limits.lease_renewed)
            await self._log.renew(leased.lease, self._clock.now() + self._limits.lease)

    async def _prepare(self, leased: LeasedTurn) -> Turn:
        """The unanswered messages and the transcript's tail: a turn's cost does not grow with the conversation."""
        head, until = leased.head, leased.until_seq
        limit = self._limits.transcript
        tail = await self._log.read_back(head.id, until + 1, limit)
        transcript = [event.message for event in tail if isinstance(event, MessageAdded)]
        unanswered = until - head.answered_seq
        fresh = tail[-unanswered:] if unanswered <= len(tail) else await self._unanswered(leased)
        messages = [
            event.message for event in fresh if isinstance(event, MessageAdded) and event.message.role is Role.USER
        ]
        return Turn(
            id=leased.lease.turn_id,
            conversation_id=head.id,
            client_id=head.client_id,
            user_id=head.user_id,
            messages=messages,
            transcript=transcript,
            context=head.context,
            attempt=head.failures,
            _step=self._steps(leased),
            _history=self._history(leased, until + 1 - len(tail)),
        )

    async def _unanswered(self, leased: LeasedTurn) -> tuple[object, ...]:
        found = await self._log.read_back(
            leased.head.id, leased.until_seq + 1, leased.until_seq - leased.head.answered_seq
        )
        return tuple(found)

    def _steps(self, leased: LeasedTurn) -> Callable[[str, Callable[[], Awaitable[object]]], Awaitable[object]]:
        done = {key: value for key, value in leased.journal.items() if key.startswith(STEP)}

        async def once(name: str, call: Callable[[], Awaitable[object]]) -> object:
            key = STEP + name
            if key not in done:
                value = strict_json.dumps(await call())
                if not await self._log.journal(leased.lease, key, value):
                    raise LeaseLost(detail=f"before step {name!r} was journaled")
                done[key] = value
            return strict_json.loads(done[key])

        return once

    def _history(self, leased: LeasedTurn, before: int) -> Callable[[int | None], AsyncIterator[Message]]:
        async def pages(size: int | None) -> AsyncIterator[Message]:
            seq = before
            while seq > 1:
                found = await self._log.read_back(leased.head.id, seq, size or self._limits.page)
                if not found:
                    return
                for event in reversed(found):
                    if isinstance(event, MessageAdded):
                        yield event.message
                seq -= len(found)

        return pages

    async def sweep(self) -> int:
        """Close conversations that nothing has changed for long (8.12); how many."""
        idle_since = self._clock.now() - self._limits.inactivity
        found = await self._log.conversations(idle_since=idle_since, limit=100)
        for conversation in found:
            await self._apply(Expire(conversation, datetime.fromtimestamp(idle_since, UTC)))
        return len(found)

    async def due_for(self) -> float:
        """Seconds for which the oldest due turn has waited; 0 when none is."""
        count, since = await self._log.turns_pending(self._clock.now())
        return max(0.0, self._clock.now() - since) if count else 0.0
