"""What a Company's handler is given, and what it gives back."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from papaver.protocol.conversation.model import Author, Context, Message
from papaver.protocol.terms import ClientId, ConversationId, TurnId, UserId

__all__ = ["Handler", "Reply", "Turn"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A Company message (8.4): `text`, `data`, or both. `author` says which person or persona wrote it."""

    text: str | None = None
    data: Mapping[str, object] | None = None
    author: Author | None = None


Step = Callable[[str, Callable[[], Awaitable[object]]], Awaitable[object]]
History = Callable[[int | None], AsyncIterator[Message]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the Company Agent: what has not been answered yet, and what was said before.

    `id`          the same however often a crash makes the turn start again: use it as idempotency key
    `messages`    the unanswered ones, oldest first
    `transcript`  the last 200 messages of both sides, the unanswered ones included; `history()` pages further back
    `context`     the User's situation, merged over the conversation (8.4)
    `attempt`     1 the first time
    """

    id: TurnId
    conversation_id: ConversationId
    client_id: ClientId
    user_id: UserId
    messages: Sequence[Message]
    transcript: Sequence[Message]
    context: Context
    attempt: int
    _step: Step = field(repr=False)
    _history: History = field(repr=False)

    @property
    def text(self) -> str:
        """The unanswered messages' text, joined by blank lines."""
        return "\n\n".join(message.text for message in self.messages if message.text)

    @property
    def locale(self) -> str | None:
        """The language tag that the Personal Agent gave, if any (8.4)."""
        value = self.context.get("locale")
        return value if isinstance(value, str) else None

    async def once(self, name: str, call: Callable[[], Awaitable[object]]) -> object:
        """Run `call` once for this turn, whatever crashes: its JSON result is journaled and returned from then on.

        A crash between the end of `call` and the journal runs it again: give the other system `turn.id` as its
        idempotency key. Results must be JSON values.
        """
        return await self._step(name, call)

    def history(self, page: int | None = None) -> AsyncIterator[Message]:
        """Messages before the transcript, newest first, read page by page."""
        return self._history(page)


Handler = Callable[[Turn], Awaitable[str | Reply | None]] | Callable[[Turn], AsyncIterator[str]]
"""`async def answer(turn)` returning the reply, or an async generator that yields pieces of its text."""
