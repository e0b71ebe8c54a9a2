"""What is over in time: conversations that nothing has changed for long, events that are kept no longer (8.5, 8.12)."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

from papaver.company.settings import CompanyLimits
from papaver.ports.company import ConversationLog
from papaver.ports.system import Clock
from papaver.protocol.conversation import operations
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.operations import Expire, PeopleCommand, Prune, Settled
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ConversationId

__all__ = ["Retention"]

AT_ONCE: Final = 100
"""Conversations that are asked for at once."""
EVENTS_AT_ONCE: Final = 500


class Retention:
    """Swept by whichever process runs turns; several do no harm."""

    def __init__(self, store_log: ConversationLog, events: EventIds, clock: Clock, limits: CompanyLimits) -> None:
        self._log, self._events, self._clock, self._limits = store_log, events, clock, limits

    async def sweep(self) -> int:
        """Close and prune what is due; how many conversations changed."""
        closed = await self._close(self._clock.now() - self._limits.inactivity)
        if not self._limits.events_kept:
            return closed
        return closed + await self._prune(self._clock.now() - self._limits.events_kept)

    async def _close(self, idle_since: float) -> int:
        closed = 0
        while True:
            found = await self._log.conversations(idle_since=idle_since, limit=AT_ONCE)
            for conversation in found:
                await self._apply(Expire(conversation, datetime.fromtimestamp(idle_since, UTC)))
            closed += len(found)
            if len(found) < AT_ONCE:
                return closed

    async def _prune(self, before: float) -> int:
        """One that has nothing to give away, because a turn has still to answer it, is looked at again next time."""
        pruned, moved = 0, True
        while moved:
            found = await self._log.prunable(before=before, limit=AT_ONCE)
            moved = False
            for conversation in found:
                command = await self._oldest_kept(conversation, datetime.fromtimestamp(before, UTC))
                if command is not None and (await self._apply(command)).recorded:
                    pruned, moved = pruned + 1, True
            moved = moved and len(found) == AT_ONCE
        return pruned

    async def _oldest_kept(self, conversation: ConversationId, before: datetime) -> Prune | None:
        """The first event that stays: not older than that, or the last that may go at most."""
        after = 0
        while True:
            found = await self._log.read(conversation, after, EVENTS_AT_ONCE)
            if found is None or not found.events:
                return None
            last = _newest_that_stays(found.head)
            after = max(after, found.head.first_seq - 1)
            for event in found.events:
                after += 1
                if event.at >= before or after >= last:
                    return Prune(conversation, after, event.at)

    async def _apply(self, command: PeopleCommand) -> Settled:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        return await self._log.apply(
            operations.keys(command), lambda loaded: decide(command, loaded, now, self._events)
        )


def _newest_that_stays(head: Head) -> int:
    """See `people_decide`: the newest event, or the first that a turn has still to answer."""
    return min(head.last_seq, head.answered_seq + 1) if head.asked_seq > head.answered_seq else head.last_seq
