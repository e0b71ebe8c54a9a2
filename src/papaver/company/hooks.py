"""What a Company's own code is told of handoffs and Direct Conversations, and what it answers (8.9, 8.10)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from papaver.company.turn import check_answers_async
from papaver.protocol.conversation.model import Author, Message
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import AccountId, ClientId, ConversationId, UserId
from papaver.values.rules import rule

__all__ = [
    "QUEUED",
    "Cancelled",
    "DirectClosed",
    "DirectOpened",
    "Handoff",
    "HandoffAnswer",
    "HandoffMessage",
    "Hooks",
    "Nobody",
    "check_one_hook",
]

QUEUED: Final = "queued"
"""Somebody will come: `company.people.human_joined` says when, `unavailable` if nobody does."""


@dataclass(frozen=True, slots=True)
class Nobody:
    """Nobody comes, and why, in words for the User. None says what `Texts.nobody` says."""

    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Handoff:
    """A person is asked for. `waiting` are the messages that nobody has answered, oldest first."""

    conversation_id: ConversationId
    client_id: ClientId
    user_id: UserId
    account_id: AccountId | None
    parent_id: ConversationId | None
    waiting: Sequence[Message]


HandoffAnswer = Literal["queued"] | Author | Nobody
"""It is queued, that person joins at once, or nobody comes."""


@dataclass(frozen=True, slots=True)
class HandoffMessage:
    """Messages of the User's side for the person who handles the conversation, or will."""

    conversation_id: ConversationId
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class Cancelled:
    """A conversation was closed while a person was waited for, or had it."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True)
class DirectOpened:
    """The User has come: `conversation_id` is the Direct Conversation."""

    conversation_id: ConversationId
    parent_id: ConversationId


@dataclass(frozen=True, slots=True)
class DirectClosed:
    """The Direct Conversation is over."""

    conversation_id: ConversationId
    parent_id: ConversationId


HandoffHook = Callable[[Handoff], Awaitable[HandoffAnswer]]
H = TypeVar("H", bound=HandoffHook)
M = TypeVar("M", bound=Callable[[HandoffMessage], Awaitable[object]])
C = TypeVar("C", bound=Callable[[Cancelled], Awaitable[object]])
U = TypeVar("U", bound=Callable[[DirectOpened], Awaitable[object]])
D = TypeVar("D", bound=Callable[[DirectClosed], Awaitable[object]])


@rule("configuration.one-hook")
def check_one_hook(name: str, present: object) -> None:
    """As there is one handler there is one hook of each kind: two would not know which has the word."""
    if present is not None:
        raise ConfigurationError(f"there are two hooks for {name}; decorate one", rule="configuration.one-hook")


class Hooks:
    """`company.hooks`: each method decorates the one async function that is told.

    All but `handoff` are told at least once, in the order of their conversation, after what they tell of is durable:
    one that raises is told again, later. Each may call `company.people`.
    """

    def __init__(self) -> None:
        self.on_handoff: HandoffHook | None = None
        self.on_message: Callable[[HandoffMessage], Awaitable[object]] | None = None
        self.on_cancelled: Callable[[Cancelled], Awaitable[object]] | None = None
        self.on_direct_opened: Callable[[DirectOpened], Awaitable[object]] | None = None
        self.on_direct_closed: Callable[[DirectClosed], Awaitable[object]] | None = None

    def handoff(self, hook: H) -> H:
        """Finds a person: returns `"queued"`, the `Person` who joins at once, or `Nobody(reason)` (8.9).

        One that raises or takes too long found nobody. It may be asked again after a crash.
        """
        check_one_hook("handoff", self.on_handoff)
        check_answers_async(hook)
        self.on_handoff = hook
        return hook

    def message(self, hook: M) -> M:
        """Is given what the User's side says while a person is waited for or has it."""
        check_one_hook("message", self.on_message)
        check_answers_async(hook)
        self.on_message = hook
        return hook

    def cancelled(self, hook: C) -> C:
        """Is told that nobody needs to come any more."""
        check_one_hook("cancelled", self.on_cancelled)
        check_answers_async(hook)
        self.on_cancelled = hook
        return hook

    def direct_opened(self, hook: U) -> U:
        """Is told that the User has come (8.10)."""
        check_one_hook("direct_opened", self.on_direct_opened)
        check_answers_async(hook)
        self.on_direct_opened = hook
        return hook

    def direct_closed(self, hook: D) -> D:
        """Is told that the User has gone (8.10)."""
        check_one_hook("direct_closed", self.on_direct_closed)
        check_answers_async(hook)
        self.on_direct_closed = hook
        return hook
