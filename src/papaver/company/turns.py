"""One turn: what the handler is given, what becomes of its answer, and the end that each of them has.

    lease ──► handler(Turn) ──► journal the outcome ──► apply it: reply, state and the end of the lease at once

The outcome of one that needs the User's account is an `authorization` event in place of a reply (8.11).
A failure of the handler ends in a worded message and `idle` (readings 65). The turn's id stays the same over crashes:
it is the handler's idempotency key. A turn whose conversation was closed or taken over by a person is stopped, and says
nothing (8.7, 8.12).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from itertools import dropwhile
from typing import Final, cast

from papaver.company.account import Account
from papaver.company.company_agent.actions import ActionFailed, ActionRejected
from papaver.company.company_agent.actors import Principal
from papaver.company.company_agent.acts import Acts
from papaver.company.company_agent.agent import CompanyAgent
from papaver.company.journal import Steps
from papaver.company.observed import Silent
from papaver.company.outcome import Outcome, read_outcome, write_outcome
from papaver.company.sessions import Sessions
from papaver.company.settings import CompanyLimits
from papaver.company.texts import Wording
from papaver.company.turn import Handler, Reply, Transcript, Turn, check_author, messages_of
from papaver.company.writing import Writing
from papaver.ports.company import ConversationLog, LeasedTurn
from papaver.ports.deltas import Deltas
from papaver.ports.system import Clock, Ids
from papaver.ports.telemetry import Telemetry
from papaver.protocol.conversation import operations
from papaver.protocol.conversation.content import as_company_message
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import Author, AuthorType, Message, Role
from papaver.protocol.conversation.operations import (
    Answer,
    CompanyCommand,
    Fail,
    LeaseLost,
    Park,
    Supersede,
    TurnCommand,
    Unavailable,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Access, Asker, Head
from papaver.protocol.conversation.turn_decide import superseded
from papaver.protocol.session import AccountAccess
from papaver.protocol.terms import AccountId, ClientId, CompanyId, ConversationId, MessageId
from papaver.values.errors import PapaverError

__all__ = ["Desk", "Turns"]

log = logging.getLogger("papaver.company.turns")

OUTCOME: Final = "outcome"
AGENT: Final = Author(AuthorType.AGENT)
LOOK_AFTER: Final = 0.5
"""Seconds between two looks whether a turn is superseded: each piece of a streamed reply wakes its conversation."""

Desk = Callable[[LeasedTurn], Awaitable[TurnCommand]]
"""Finds a person for a handoff: what comes of it, as Queued, Joined or Unavailable (8.9)."""


class Turns:
    """Takes leased turns of one Company to their end."""

    def __init__(
        self,
        store_log: ConversationLog,
        handler: Handler | None,
        events: EventIds,
        clock: Clock,
        ids: Ids,
        limits: CompanyLimits,
        wording: Wording,
        deltas: Deltas,
        desk: Desk | None = None,
        telemetry: Telemetry | None = None,
        *,
        agent: CompanyAgent,
        company: CompanyId,
        sessions: Sessions,
    ) -> None:
        self._log, self._handler, self._events, self._deltas = store_log, handler, events, deltas
        self._clock, self._ids, self._limits, self._wording = clock, ids, limits, wording
        self._agent, self._company, self._sessions = agent, company, sessions
        self._desk, self._telemetry = desk or self._nobody, telemetry or Silent()

    async def run(self, leased: LeasedTurn) -> None:
        """Raises LeaseLost when another process has taken it over, or what the store raises."""
        head, telemetry, began = leased.head, self._telemetry, self._clock.monotonic()
        with telemetry.span(
            "papaver turn", conversation=head.id, turn=leased.lease.turn_id, attempt=head.failures
        ) as span:
            how = await self._run(leased)
            span.note(outcome=how)
        telemetry.count("papaver.turns", outcome=how)
        telemetry.measure("papaver.turn.duration", self._clock.monotonic() - began, outcome=how)

    async def _run(self, leased: LeasedTurn) -> str:
        """How it ended, in a word."""
        head = leased.head
        if head.handoff_pending:
            await self._apply(await self._desk(leased))
            return "handoff"
        outcome, access = self._journaled(leased), None
        if outcome is None:
            access, acts = head.access, self._acts(leased)
            if head.failures > self._limits.turn_attempts:
                log.error("turn %s was begun %d times and never ended", leased.lease.turn_id, head.failures - 1)
                outcome = self._failed(acts)
            else:
                outcome = await self._outcome(leased, acts)
            done = self._done(acts)
            if outcome is None:
                await self._apply(Supersede(leased.lease, done))
                return "superseded"
            outcome = replace(outcome, done=done)
            if not await self._log.journal(leased.lease, OUTCOME, write_outcome(outcome)):
                raise LeaseLost(detail="before its outcome was journaled")
        await self._apply(_command(leased, outcome, access))
        return "needs_scopes" if outcome.needed else "failed" if outcome.failed else "answered"

    async def _nobody(self, leased: LeasedTurn) -> TurnCommand:
        return Unavailable(leased.lease, self._message(Reply(self._wording.of(leased.head.context).nobody)))

    async def _apply(self, command: CompanyCommand) -> None:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        await self._log.apply(operations.keys(command), lambda loaded: decide(command, loaded, now, self._events))

    def _journaled(self, leased: LeasedTurn) -> Outcome | None:
        """The outcome that an earlier holder wrote down; None when there is none that can be read."""
        if OUTCOME not in leased.journal:
            return None
        try:
            return read_outcome(leased.journal[OUTCOME])
        except PapaverError as error:
            log.error("turn %s: its journaled outcome cannot be read", leased.lease.turn_id, exc_info=error)
            return None

    def _failed(self, acts: Acts, *, timed_out: bool = False) -> Outcome:
        """Our sentence, and what was done all the same."""
        text, data = acts.told_after(acts.texts.timed_out if timed_out else acts.texts.failed)
        return Outcome((self._message(Reply(text, data)),), failed=True)

    def _done(self, acts: Acts) -> Message | None:
        """Tells what was done, for when nothing else is told; without results that are too long."""
        if not acts.actions:
            return None
        return self._message(Reply(acts.told(None), acts.data(self._limits.body_bytes)))

    def _acts(self, leased: LeasedTurn) -> Acts:
        head = leased.head
        return Acts(
            self._agent,
            self._company,
            self._wording.of(head.context),
            Steps(self._log, leased),
            Account(head.account_id, head.access, self._clock.now, partial(self._holds, head.client_id)),
            self._limits.proposal,
            lambda: self._said(head),
        )

    async def _holds(self, client: ClientId, account: AccountId, access: Access) -> bool:
        found = AccountAccess(access.ath or "", client, account, frozenset(access.scopes), access.expires_at)
        return await self._sessions.holds(found)

    async def _said(self, head: Head) -> list[Message]:
        """All messages since the oldest that is unanswered: a reply to what was answered stands before it."""
        count = head.last_seq - head.answered_seq
        said = messages_of(await self._log.read_back(head.id, head.last_seq + 1, count, at_least=count))
        return list(dropwhile(lambda one: one.role is not Role.USER, said)) if head.answered_seq else said

    async def _outcome(self, leased: LeasedTurn, acts: Acts) -> Outcome | None:
        """Run the handler while the lease is kept; what it raises becomes a worded failure. None: it is superseded.

        It runs as a task of its own: one that swallows its cancellation is left behind, and holds nothing up.
        """
        await acts.account.lost()
        turn = await self._prepare(leased, acts)
        calling = asyncio.create_task(self._ending(turn, acts))
        keeping = asyncio.create_task(self._keep(leased))
        looking = asyncio.create_task(self._superseded(leased))
        try:
            await asyncio.wait({calling, keeping, looking}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            turn.stop()
            for task in (calling, keeping, looking):
                task.cancel()
        if not calling.done():
            if looking.done():
                looking.result()
                log.info("turn %s: a person has joined, or the conversation was closed", turn.id)
                return None
            if not keeping.result():
                raise LeaseLost(detail="while its handler ran")
            log.error("turn %s: the handler took over %d s", turn.id, self._limits.turn_timeout)
            return self._failed(acts, timed_out=True)
        if calling.cancelled():
            log.error("turn %s: the handler cancelled itself", turn.id)
            return self._failed(acts)
        found = calling.result()
        if isinstance(found, BaseException):
            log.error("turn %s: the handler failed", turn.id, exc_info=found)
            return self._failed(acts)
        return found

    async def _keep(self, leased: LeasedTurn) -> bool:
        """Renew the lease until the handler's time is over: True then, False as soon as the lease is lost."""
        until = self._clock.monotonic() + self._limits.turn_timeout
        while (left := until - self._clock.monotonic()) > 0:
            await self._clock.sleep(min(left, self._limits.lease_renewed))
            try:
                if not await self._log.renew(leased.lease, self._clock.now() + self._limits.lease):
                    return False
            except PapaverError as error:
                log.error("turn %s: its lease cannot be renewed: %s", leased.lease.turn_id, error)
        return True

    async def _superseded(self, leased: LeasedTurn) -> None:
        """Returns once the turn has nothing to say any more."""
        head = leased.head
        with self._log.watch(head.id) as watch:
            while True:
                await watch.wait(self._limits.turn_timeout)
                try:
                    found = await self._log.read(head.id, head.last_seq, 0)
                except PapaverError as error:
                    log.warning("turn %s: whether it goes on is not known: %s", leased.lease.turn_id, error)
                else:
                    if found is None or superseded(found.head, leased.until_seq):
                        return
                await self._clock.sleep(LOOK_AFTER)

    async def _ending(self, turn: Turn, acts: Acts) -> Outcome | BaseException:
        """What the handler comes to. One that lacked the account says nothing but what it has done (8.11)."""
        said = await self._replies(turn, acts)
        needed = acts.account.needed
        if not needed:
            return said
        asks = turn.direct and acts.texts.sign_in
        return Outcome((self._message(Reply(acts.texts.sign_in)),) if asks else (), needed=needed)

    async def _replies(self, turn: Turn, acts: Acts) -> Outcome | BaseException:
        """What the handler says. Whatever the Company's own code raises ends this turn, never the runner or the app."""
        try:
            reply = turn.reply(await self._acted(turn, acts))
            messages: tuple[Message, ...] = ()
            if reply is not None:
                check_author(reply.author)
                messages = (as_company_message(self._message(reply, turn.reply_id)),)
            outcome = turn.outcome(messages)
            size = len(write_outcome(outcome))
            if size > self._limits.body_bytes:
                raise ValueError(f"the reply has {size} octets as JSON, the limit is {self._limits.body_bytes}")
            return outcome
        except (asyncio.CancelledError, KeyboardInterrupt):
            raise
        except BaseException as error:  # noqa: BLE001 - the handler is not our code
            return error

    async def _acted(self, turn: Turn, acts: Acts) -> str | Reply | None:
        """What the handler returns, once everything that it does has ended. An action's failure that it lets pass is
        told as every action is, and is none of the handler's."""
        asking = Principal(turn.client_id, turn.user_id, turn.agent_id, turn.account_id, turn.scopes, turn.version)
        try:
            await acts.begin(asking)
            return await self._call(turn)
        except (ActionFailed, ActionRejected):
            return None
        finally:
            await acts.settled()

    async def _call(self, turn: Turn) -> str | Reply | None:
        if self._handler is None:
            raise RuntimeError("no handler: decorate one with @company.conversation")
        answer = self._handler(turn)
        if isinstance(answer, AsyncIterator):
            async for piece in answer:
                await turn.write(piece)
            return None
        said = cast(object, await answer)
        if said is None or isinstance(said, str | Reply):
            return said
        raise TypeError(f"the handler returned {type(said).__name__}; expected str, Reply or None")

    def _message(self, reply: Reply, message_id: MessageId | None = None) -> Message:
        return Message(
            id=message_id or MessageId("msg_" + self._ids.token()),
            author=reply.author or AGENT,
            role=Role.COMPANY,
            text=reply.text,
            data=reply.data,
            extensions=reply.extensions,
        )

    async def _prepare(self, leased: LeasedTurn, acts: Acts) -> Turn:
        """The unanswered messages and the transcript: a turn's cost does not grow with the conversation."""
        head, until = leased.head, leased.until_seq
        asker = head.asked_by or Asker()
        unanswered = until - head.answered_seq
        most = self._limits.transcript_bytes
        tail = await self._log.read_back(
            head.id, until + 1, max(unanswered, 2 * self._limits.transcript), max_bytes=most, at_least=unanswered
        )
        messages = [message for message in messages_of(tail[len(tail) - unanswered :]) if message.role is Role.USER]
        transcript = Transcript(tail, self._limits.transcript)
        return Turn(
            id=leased.lease.turn_id,
            conversation_id=head.id,
            client_id=head.client_id,
            user_id=head.user_id,
            messages=messages,
            context=head.context,
            agent_id=asker.agent_id,
            version=asker.version,
            extensions=asker.extensions,
            _account=acts.account,
            attempt=head.failures,
            transcript=transcript,
            _steps=acts.journal,
            parent_id=head.parent,
            _history=lambda size: self._history(head.id, until + 1 - len(tail), transcript.older, size),
            _parent_history=lambda size: self._parent_history(head, size),
            _writing=Writing(head.id, MessageId("msg_" + self._ids.token()), self._deltas, self._limits.text_bytes),
            _acts=acts,
        )

    async def _parent_history(self, head: Head, size: int | None) -> AsyncIterator[Message]:
        """Nothing of a conversation that has come to use an account which is not this one's: 8.2 keeps them apart."""
        found = None if head.parent is None else await self._log.read(head.parent, 0, 0)
        if found is not None and found.head.account_id in (None, head.account_id):
            async for message in self._history(found.head.id, found.head.last_seq + 1, (), size):
                yield message

    async def _history(
        self, conversation: ConversationId, before: int, read: Sequence[Message], size: int | None
    ) -> AsyncIterator[Message]:
        """`read`: messages that were read already, oldest first; `before` is the place of the oldest event read."""
        for message in reversed(read):
            yield message
        seq = before
        while seq > 1:
            most = self._limits.transcript_bytes
            found = await self._log.read_back(conversation, seq, size or self._limits.page, max_bytes=most)
            if not found:
                return
            for message in reversed(messages_of(found)):
                yield message
            seq -= len(found)


def _command(leased: LeasedTurn, outcome: Outcome, access: Access | None) -> TurnCommand:
    lease, until, done = leased.lease, leased.until_seq, outcome.done
    if outcome.needed:
        return Park(lease, until, outcome.needed, access, next(iter(outcome.messages), None), done)
    if outcome.failed:
        return Fail(lease, until, outcome.messages[0], done)
    return Answer(lease, until, outcome.messages, outcome.handoff, outcome.user_requested, outcome.close, done)
