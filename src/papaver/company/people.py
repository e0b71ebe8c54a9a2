"""What a Company's own code may do in a conversation: people join and leave, say something, ask, close (8.7-8.12).

Each call is one durable change; it may be made from a hook, from a turn, from anywhere in the app.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from papaver.company.texts import Wording
from papaver.company.turn import check_author
from papaver.company.writing import check_reason
from papaver.oauth.errors import InvalidScope
from papaver.oauth.scopes import read_scope
from papaver.ports.company import ConversationLog
from papaver.ports.system import Clock, Ids
from papaver.protocol.conversation import operations
from papaver.protocol.conversation.decide import decide
from papaver.protocol.conversation.model import Author, AuthorType, Message, Role
from papaver.protocol.conversation.operations import (
    AskForScopes,
    AskForUser,
    Decline,
    End,
    Join,
    Leave,
    PeopleCommand,
    Post,
    Refer,
    Settled,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ClientId, ConversationId, EventId, MessageId, UserId
from papaver.values.rules import rule

__all__ = ["AGENT", "People", "Person", "check_offered"]

AGENT: Final = Author(AuthorType.AGENT)
_OURS: Final = (ClientId("company"), UserId(""))
"""Whose the receipts of keyed posts are: no `client_id` is this, for each is a URL."""


def Person(id: str, name: str | None = None, image: str | None = None) -> Author:
    """A person at the Company: `id` is stable, `name` and `image` (an https URL) are shown to the User (8.4)."""
    person = Author(AuthorType.HUMAN, id, name, image)
    check_author(person)
    return person


@rule("people.scopes-offered")
def check_offered(scopes: tuple[str, ...], offered: frozenset[str]) -> None:
    """4.7: nobody can allow what the Company does not offer. Raises InvalidScope."""
    unknown = " ".join(scope for scope in scopes if scope not in offered)
    if unknown:
        known = " ".join(sorted(offered)) or "none"
        raise InvalidScope(
            f"the Company does not offer {unknown[:200]}; it offers: {known[:500]}", rule="people.scopes-offered"
        )


@dataclass(frozen=True, slots=True)
class People:
    """`company.people`, while the Company runs.

    Every call raises ConversationNotFound for an unknown conversation. Those that a closed one cannot take raise
    ConversationClosed.
    """

    _log: ConversationLog
    _events: EventIds
    _clock: Clock
    _ids: Ids
    _wording: Wording
    _offered: frozenset[str]

    async def human_joined(self, conversation: ConversationId, person: Author) -> None:
        """`person` handles it from now on, whatever it was doing; a turn that runs is stopped and says nothing.

        Again by the same changes nothing. Raises Taken when another has it, PersonRefused for who has no id.
        """
        check_author(person)
        await self._apply(Join(conversation, person))

    async def human_left(self, conversation: ConversationId, person_id: str | None = None) -> None:
        """Back to the Company Agent, which answers what the person left unanswered.

        Changes nothing when no person has it. Raises NotJoined when it is another than `person_id`.
        """
        await self._apply(Leave(conversation, person_id))

    async def post(
        self,
        conversation: ConversationId,
        text: str | None = None,
        *,
        data: Mapping[str, object] | None = None,
        author: Author | None = None,
        extensions: Mapping[str, object] | None = None,
        key: str | None = None,
        person_id: str | None = None,
    ) -> MessageId:
        """Say something; the id of the message. With a `key` it is said once, however often it is posted.

        `author` is the Company Agent unless it is said. `person_id`: refused (NotJoined) unless that person has it.
        Raises InvalidRequest for a message without content.
        """
        check_author(author)
        message_id = MessageId("msg_" + self._ids.token())
        if key is not None:
            digest = hashlib.blake2b(f"{conversation}\n{key}".encode(), digest_size=24, person=b"papaver.post")
            message_id = MessageId(f"msg_{digest.hexdigest()}")
        message = Message(
            id=message_id,
            author=author or AGENT,
            role=Role.COMPANY,
            text=text,
            data=data,
            extensions=extensions,
        )
        receipt = None if key is None else (*_OURS, message_id)
        await self._apply(Post(conversation, message, person_id, receipt))
        return message_id

    async def hand_off(self, conversation: ConversationId) -> None:
        """Ask for a person, as the User's side may (8.9). Changes nothing while one is waited for or has joined."""
        await self._apply(Refer(conversation))

    async def unavailable(self, conversation: ConversationId, reason: str | None = None) -> None:
        """Nobody comes: back to the Company Agent, with the reason said (8.9). Changes nothing unless it is queued."""
        found = await self._log.read(conversation, 0, 0)
        text = reason or self._wording.of({} if found is None else found.head.context).nobody
        message = Message(MessageId("msg_" + self._ids.token()), AGENT, Role.COMPANY, text=text)
        await self._apply(Decline(conversation, message))

    async def request_user(self, conversation: ConversationId, reason: str) -> EventId:
        """Ask to talk with the User; the id of the event that their Personal Agent may accept (8.10).

        Raises DirectRefused in a Direct Conversation.
        """
        check_reason(reason)
        asked = (await self._apply(AskForUser(conversation, reason))).event_id
        if asked is None:
            raise ConfigurationError("an event has no id", rule="people.event-id")
        return asked

    async def require(self, conversation: ConversationId, *scopes: str) -> None:
        """Ask for the User's account with these scopes (8.11). Raises InvalidScope for what cannot be granted."""
        wanted = read_scope(" ".join(scopes))
        check_offered(wanted, self._offered)
        await self._apply(AskForScopes(conversation, wanted))

    async def close(self, conversation: ConversationId) -> None:
        """Close it, and its Direct Conversation (8.12). Again changes nothing."""
        await self._apply(End(conversation))

    async def _apply(self, command: PeopleCommand) -> Settled:
        now = datetime.fromtimestamp(self._clock.now(), UTC)
        return await self._log.apply(
            operations.keys(command), lambda loaded: decide(command, loaded, now, self._events)
        )
