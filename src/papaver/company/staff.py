"""People at the Company who take conversations over: who waits, and a seat in one (8.9)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from papaver.company.holding import Holding
from papaver.company.people import People
from papaver.company.queueing import listed
from papaver.ports.company import ConversationLog, Slice
from papaver.protocol.conversation.model import Author, Event, Responder, Status
from papaver.protocol.conversation.state import Head
from papaver.protocol.errors import ConversationNotFound
from papaver.protocol.terms import AccountId, ClientId, ConversationId, EventId, MessageId, UserId

__all__ = ["Attended", "Queue", "Seat", "Staff", "attended"]

LOOK_EVERY: Final = 5.0
"""Seconds between two looks at the queue, and after which a seat looks whether the Company still runs."""


@dataclass(frozen=True, slots=True)
class Attended:
    """A conversation in which a person is waited for, or has joined.

    `since`   when it was queued; of one that somebody has, when it last changed
    `person`  who has it
    `direct`  the User takes part: it is a Direct Conversation, and `parent` the one before it
    """

    conversation_id: ConversationId
    client_id: ClientId
    user_id: UserId
    account_id: AccountId | None
    status: Status
    responder: Responder
    person: Author | None
    since: datetime
    direct: bool
    parent: ConversationId | None


@dataclass(frozen=True, slots=True)
class Queue:
    """What is shown of the queue. `more`: there are others, which are not shown."""

    rows: tuple[Attended, ...]
    more: bool


def attended(head: Head) -> Attended:
    """What people see of a head."""
    return Attended(
        head.id,
        head.client_id,
        head.user_id,
        head.account_id,
        head.status,
        head.responder,
        head.person if head.responder is Responder.HUMAN else None,
        head.queued_at or head.changed_at,
        head.parent is not None,
        head.parent,
    )


class Seat:
    """One person's place in one conversation, from `Staff.join`."""

    def __init__(self, staff: Staff, people: People, conversation: ConversationId, person: Author) -> None:
        self._staff, self._people = staff, people
        self.conversation_id, self.person = conversation, person

    async def say(
        self, text: str | None = None, *, data: Mapping[str, object] | None = None, key: str | None = None
    ) -> MessageId:
        """Say it as this person; it answers all that was said before. Raises NotJoined for who has it no more."""
        return await self._people.post(
            self.conversation_id, text, data=data, author=self.person, key=key, person_id=self.person.id
        )

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Everything that was said and happened after event number `after`, and what comes; ends with the close."""
        async for event in self._staff.events(self.conversation_id, after):
            yield event

    async def ask_for_user(self, reason: str) -> EventId:
        """Ask to talk with the User (8.10)."""
        return await self._people.request_user(self.conversation_id, reason)

    async def require(self, *scopes: str) -> None:
        """Ask for the User's account with these scopes (8.11)."""
        await self._people.require(self.conversation_id, *scopes)

    async def close(self) -> None:
        """Close the conversation (8.12)."""
        await self._people.close(self.conversation_id)

    async def leave(self) -> None:
        """Hand back to the Company Agent. Again, or after the close, it changes nothing."""
        await self._people.human_left(self.conversation_id, self.person.id)


class Staff:
    """`company.staff`, while the Company runs."""

    def __init__(self, log: ConversationLog, people: People, holding: Holding) -> None:
        self._log, self._people, self._holding = log, people, holding

    async def queue(self) -> tuple[Attended, ...]:
        """Who waits, the longest first, then what somebody has; at most 500 of each.

        When more wait, each Personal Agent has its turn, and each of its Users.
        """
        return (await self.queue_shown()).rows

    async def queue_shown(self) -> Queue:
        """The same, and whether there are more."""
        found = await listed(self._log)
        return Queue(tuple(map(attended, found.heads)), found.more)

    async def waiting(self) -> AsyncIterator[Attended]:
        """Each conversation that waits for a person, as it comes, the longest first; ends when the Company stops."""
        told: set[tuple[ConversationId, datetime]] = set()
        with self._log.watch_turns() as watch:
            while not self._holding.stopped:
                queued = [one for one in await self.queue() if one.status is Status.QUEUED]
                told &= {(one.conversation_id, one.since) for one in queued}
                for one in queued:
                    if (one.conversation_id, one.since) not in told:
                        told.add((one.conversation_id, one.since))
                        yield one
                await watch.wait(LOOK_EVERY)

    async def look(self, conversation: ConversationId, after: int = 0, limit: int = 100) -> Slice:
        """The head, and the events after number `after`. Raises ConversationNotFound."""
        found = await self._log.read(conversation, after, limit)
        if found is None:
            raise ConversationNotFound(detail="there is none")
        return found

    async def events(self, conversation: ConversationId, after: int = 0) -> AsyncIterator[Event]:
        """The events after number `after`, and each that comes, until it is closed or the Company stops."""
        seq = after
        with self._log.watch(conversation) as watch:
            while not self._holding.stopped:
                found = await self.look(conversation, seq)
                seq = max(seq, found.head.first_seq - 1)
                for event in found.events:
                    seq += 1
                    yield event
                if found.more:
                    continue
                if found.head.status is Status.CLOSED:
                    return
                await watch.wait(LOOK_EVERY)

    @asynccontextmanager
    async def join(self, conversation: ConversationId, person: Author) -> AsyncGenerator[Seat]:
        """Take it over; leaving the block hands back to the Company Agent. Raises Taken, which says who has it."""
        await self._people.human_joined(conversation, person)
        seat = Seat(self, self._people, conversation, person)
        try:
            yield seat
        finally:
            await seat.leave()

    async def unavailable(self, conversation: ConversationId, reason: str | None = None) -> None:
        """Nobody comes: the Company Agent goes on, and says why (8.9)."""
        await self._people.unavailable(conversation, reason)
