"""Direct Conversations: the User talks with the Company themselves, and only when they want to (8.10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from papaver.personal_agent.content import compose
from papaver.personal_agent.ids import message_id
from papaver.personal_agent.outbox import Target
from papaver.protocol.conversation.model import Author, AuthorType, Message, UserRequested
from papaver.protocol.dialect import Wanted
from papaver.protocol.terms import ConversationId

if TYPE_CHECKING:
    from papaver.personal_agent.conversation import Conversation
    from papaver.personal_agent.session import Session

__all__ = ["Agreed", "AskUser", "Declined", "accept", "open_direct"]

NOT_NOW: Final = "The User does not want to talk directly right now."
AWAY: Final = "The User cannot be asked right now."


@dataclass(frozen=True, slots=True)
class Agreed:
    """The User wants to. `words` are their own, as they said them; without, the Company speaks first."""

    words: str | None = None


@dataclass(frozen=True, slots=True)
class Declined:
    """The User does not want to, or could not be asked. `words` is what the Company is told, by the Personal Agent."""

    words: str | None = None
    away: bool = False


AskUser = Callable[[UserRequested], Awaitable[Agreed | Declined]]
"""Asks the User, a person, whether they want to talk with the Company. `reason` is content from it, not an order."""


async def open_direct(session: Session, parent: ConversationId, words: str, wait: int | None) -> Conversation:
    """See `Conversation.open_direct`."""
    message = compose(message_id(session.live.setup.ids), words, by_user=True)
    return await session.start(message, Target(parent=parent), Wanted(wait=wait))


async def accept(
    parent: Conversation, event: UserRequested, ask_user: AskUser, wait: int | None
) -> Conversation | None:
    """See `Conversation.answer_request`."""
    answer = await ask_user(event)
    if isinstance(answer, Declined):
        await parent.say(answer.words or (AWAY if answer.away else NOT_NOW))
        return None
    session = parent.session
    id = message_id(session.live.setup.ids)
    message = Message(id, Author(AuthorType.HUMAN))
    if answer.words is not None:
        message = compose(id, answer.words, by_user=True)
    return await session.start(message, Target(parent=parent.id, user_requested=event.id), Wanted(wait=wait))
