"""Pieces of a message that the Company Agent still writes, on their way to the readers of a stream (8.6)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from papaver.protocol.terms import ConversationId, MessageId

__all__ = ["Delta", "DeltaFeed", "Deltas"]


@dataclass(frozen=True, slots=True)
class Delta:
    """A piece of one message's text. `message_id` is the one that the complete message will have.

    `at` is how many characters of that text come before it: who joins late, or lost a piece, sees that it did.
    """

    message_id: MessageId
    text: str
    at: int


class DeltaFeed(Protocol):
    """What one reader has not taken yet, while it is entered.

    Bounded: of a reader that does not take, later pieces are dropped, and `take` says so by giving none of that message
    any more. The complete message comes with the log in any case.
    """

    def __enter__(self) -> DeltaFeed: ...

    def __exit__(self, *_: object) -> None: ...

    def take(self) -> tuple[Delta, ...]:
        """The pieces since the last call, in order; never waits."""
        ...


class Deltas(Protocol):
    """Pieces of text between the process where a turn runs and the readers. Hints: losing them loses nothing."""

    def publish(self, conversation: ConversationId, delta: Delta) -> None:
        """Pass it to every reader of this conversation; wakes the conversation's watches. Never blocks or raises."""
        ...

    def listen(self, conversation: ConversationId) -> DeltaFeed: ...
