"""What a Company's handler is given, and what it gives back."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Protocol, cast, overload

from papaver.company.account import Account, ScopesNeeded, check_scopes_held
from papaver.company.company_agent.actors import Actor
from papaver.company.company_agent.acts import Acts
from papaver.company.company_agent.turn_tools import TurnTools
from papaver.company.journal import Steps
from papaver.company.outcome import Outcome
from papaver.company.writing import Component, Writing, check_fallback, check_reason
from papaver.oauth.scopes import read_scope
from papaver.protocol.conversation.model import Author, AuthorType, Context, Event, Message, MessageAdded
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import AccountId, AgentId, ClientId, ConversationId, MessageId, TurnId, UserId
from papaver.values.rules import rule
from papaver.web.urls import UrlError, check_https

__all__ = [
    "Account",
    "Handler",
    "Reply",
    "Runs",
    "ScopesNeeded",
    "Transcript",
    "Turn",
    "check_answers_async",
    "check_author",
    "check_scopes_held",
    "handler_of",
    "messages_of",
]


@dataclass(frozen=True, slots=True)
class Reply:
    """A Company message (8.4): `text`, `data`, or both. `author` says which person or persona wrote it.

    `extensions` is shown to those readers alone who use the extension (8.4); `text` says what it says.
    """

    text: str | None = None
    data: Mapping[str, object] | None = None
    author: Author | None = None
    extensions: Mapping[str, object] | None = None


@rule("reply.author-image")
def check_author(author: Author | None) -> None:
    """8.4: the picture of an author is at an https URL. Raises ConfigurationError."""
    if author is None or author.image is None:
        return
    try:
        check_https(author.image)
    except UrlError as error:
        raise ConfigurationError(
            f"an author's image is {author.image!r}, expected an https URL",
            rule="reply.author-image",
            detail=error.description,
        ) from None


class Transcript(Sequence[Message]):
    """The newest messages of a conversation, at most `limit`, oldest first; decoded when they are first looked at."""

    def __init__(self, events: Sequence[Event], limit: int) -> None:
        self._events, self._limit = events, limit

    @cached_property
    def _all(self) -> list[Message]:
        return messages_of(self._events)

    @property
    def older(self) -> Sequence[Message]:
        """Messages that were read and found no place."""
        return self._all[: -self._limit]

    @overload
    def __getitem__(self, index: int) -> Message: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Message]: ...
    def __getitem__(self, index: int | slice) -> Message | Sequence[Message]:
        return self._all[-self._limit :][index]

    def __len__(self) -> int:
        return min(len(self._all), self._limit)

    def __repr__(self) -> str:
        return f"Transcript({self._all[-self._limit :]!r})"


def messages_of(events: Iterable[Event]) -> list[Message]:
    """The messages among some events."""
    return [event.message for event in events if isinstance(event, MessageAdded)]


History = Callable[[int | None], AsyncIterator[Message]]


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of the Company Agent: what has not been answered yet, and what was said before.

    `id`          the same however often a crash makes the turn start again: use it as idempotency key
    `messages`    the unanswered ones, oldest first
    `transcript`  the last 200 messages of both sides, or fewer long ones (a mebibyte), the unanswered ones included;
                  `history()` pages further back
    `context`     the User's situation, merged over the conversation (8.4)
    `attempt`     1 the first time
    `agent_id`, `version`, `extensions` (name to version) are those of the request that brought the newest message
    `parent_id`   the earlier conversation, when this is a Direct Conversation: the User reads it (8.10)
    """

    id: TurnId
    conversation_id: ConversationId
    client_id: ClientId
    user_id: UserId
    messages: Sequence[Message]
    transcript: Sequence[Message]
    context: Context
    attempt: int
    agent_id: AgentId | None
    version: str
    extensions: Mapping[str, str]
    parent_id: ConversationId | None
    _account: Account = field(repr=False)
    _steps: Steps = field(repr=False)
    _history: History = field(repr=False)
    _parent_history: History = field(repr=False)
    _writing: Writing = field(repr=False)
    _acts: Acts = field(repr=False)

    @property
    def text(self) -> str:
        """The unanswered messages' text, joined by blank lines."""
        return "\n\n".join(message.text for message in self.messages if message.text)

    @property
    def account_id(self) -> AccountId | None:
        """The User's account, when the newest request that was accepted carried a token; None when signed out."""
        return self._account.id

    @property
    def signed_in(self) -> bool:
        """Whether there is an account to act on."""
        return self._account.id is not None

    @property
    def scopes(self) -> frozenset[str]:
        """What the User allowed; empty when signed out."""
        access = self._account.access
        return frozenset() if access is None else frozenset(access.scopes)

    def require(self, *scopes: str) -> AccountId:
        """The account, for something that needs all these scopes; at least one.

        Without a token that covers them it raises ScopesNeeded, which ends the turn: the User's side is told what is
        needed, and once a request carries a token that covers it, the turn runs again from the start, for the same
        messages (8.11). Nothing that this run said is sent. So ask before anything is changed: `once` remembers nothing
        from one run to the next. Raises InvalidScope for what cannot be a scope.
        """
        return self._account.require(read_scope(" ".join(scopes)))

    @property
    def tools(self) -> TurnTools:
        """The tools of `Company(company_agent=CompanyAgent(tools))`, as the User's token covers them."""
        return TurnTools(self, self._acts)

    @property
    def actor(self) -> Actor:
        """Whom the turn acts as: the account, or whom the app chose; its roles end with `personal_agent`."""
        return self._acts.acting

    @property
    def memory_scopes(self) -> tuple[str, ...]:
        """Under which names something may be remembered for this actor; none unless the Company said so."""
        return self._acts.agent.memory.memory_scopes(self.actor)

    @property
    def direct(self) -> bool:
        """Whether the User takes part: what is said here must be fit for the Personal Agent as well (8.10)."""
        return self.parent_id is not None

    @property
    def opening(self) -> bool:
        """Whether nothing was said yet and the Company speaks first: the User has come because it asked (8.10)."""
        return self.direct and not self.messages

    @property
    def author_type(self) -> AuthorType:
        """Who wrote the newest unanswered message: the Personal Agent, or the User in their own words (8.8)."""
        return self.messages[-1].author.type if self.messages else AuthorType.HUMAN

    @property
    def time_zone(self) -> str | None:
        """The IANA zone that the Personal Agent gave, if any (8.4)."""
        value = self.context.get("time_zone")
        return value if isinstance(value, str) else None

    @property
    def user_available(self) -> bool | None:
        """Whether the User can answer questions now; None when that was not said (8.4)."""
        value = self.context.get("user_available")
        return value if isinstance(value, bool) else None

    @property
    def reply_id(self) -> MessageId:
        """The id that the reply will have; pieces of its text carry it before (8.6)."""
        return self._writing.message_id

    @property
    def written(self) -> str:
        """What `write` has said so far."""
        return self._writing.text

    async def write(self, piece: str) -> None:
        """Say a piece of the reply: readers of a stream see it at once, all others with the whole (8.6).

        What was written is the reply, unless the handler returns another one: that takes its place. Raises
        ConfigurationError for more than one message may have.
        """
        self._writing.write(piece)

    def component(self, name: str, props: Mapping[str, object], fallback_text: str, *, partial: bool = False) -> None:
        """Add one to `data.components` of the reply. Where the reply has no text, the fallbacks are its text.

        One that is `partial`, as a model still writes it, is not recorded. Raises ConfigurationError for no fallback.
        """
        if partial:
            return
        check_fallback(name, fallback_text)
        self._writing.components.append(Component(name, props, fallback_text))

    def hand_off(self) -> None:
        """Ask for a person once the reply is said (8.9)."""
        self._writing.handoff = True

    def request_user(self, reason: str) -> None:
        """Ask to talk with the User once the reply is said; `reason` is shown to them (8.10).

        In a Direct Conversation the User is there already: it changes nothing. Raises ConfigurationError without one.
        """
        check_reason(reason)
        if not self.direct:
            self._writing.user_requested = reason

    def close(self) -> None:
        """Close the conversation once the reply is said (8.12)."""
        self._writing.close = True

    def stop(self) -> None:
        """Nothing more is said by this run, whatever still writes."""
        self._writing.over = True
        self._acts.stop()

    def reply(self, returned: str | Reply | None) -> Reply | None:
        """What becomes of what the handler returned, and of what it wrote and added before; None says nothing."""
        writing = self._writing
        reply = returned if isinstance(returned, Reply) else Reply(returned or writing.text or None)
        said = reply.text if reply.text is not None else writing.text or None
        text = self._acts.told(said)
        data = reply.data
        if acted := self._acts.data():
            data = {**(data or {}), **acted}
        if writing.components:
            shown = [
                {"name": one.name, "props": one.props, "fallback_text": one.fallback_text} for one in writing.components
            ]
            data = {**(data or {}), "components": shown}
            if not said or not text or not text.startswith(said):
                text = "\n\n".join(filter(None, (text, *(one.fallback_text for one in writing.components))))
        empty = not (text or data or reply.extensions)
        return None if empty and not isinstance(returned, Reply) else replace(reply, text=text, data=data)

    def outcome(self, messages: tuple[Message, ...]) -> Outcome:
        """The messages, and what the handler asked for besides."""
        writing = self._writing
        return Outcome(messages, handoff=writing.handoff, user_requested=writing.user_requested, close=writing.close)

    @property
    def locale(self) -> str | None:
        """The language tag that the Personal Agent gave, if any (8.4)."""
        value = self.context.get("locale")
        return value if isinstance(value, str) else None

    async def once(self, name: str, call: Callable[[], Awaitable[object]]) -> Any:
        """Run `call` once for this turn, whatever crashes: its JSON result is journaled and returned from then on.

        A crash between the end of `call` and the journal runs it again: give the other system `turn.id` as its
        idempotency key. Results must be JSON values.
        """
        return await self._steps.once(name, call)

    def history(self, page: int | None = None) -> AsyncIterator[Message]:
        """Messages before the transcript, newest first, read page by page."""
        return self._history(page)

    def parent_history(self, page: int | None = None) -> AsyncIterator[Message]:
        """The messages of the earlier conversation, newest first, read page by page; none unless `direct` (8.10).

        None either where that conversation uses an account and this one does not, or uses another.
        """
        return self._parent_history(page)


class Runs(Protocol):
    """An object that answers, as an adapter makes one of an agent of another library."""

    def run(self, turn: Turn, /) -> Awaitable[str | Reply | None] | AsyncIterator[str]: ...


Handler = Callable[[Turn], Awaitable[str | Reply | None]] | Callable[[Turn], AsyncIterator[str]]
"""`async def answer(turn)` returning the reply, or an async generator that yields pieces of its text."""


def handler_of(handler: Handler | Runs) -> Handler:
    """The function that answers: the object's `run`, where it is none itself."""
    run: Handler | None = None if callable(handler) else getattr(handler, "run", None)
    return cast("Handler", handler) if run is None else run


@rule("configuration.handler-is-async")
def check_answers_async(handler: object) -> None:
    """A handler that is not async would stop every other turn while it works. Raises ConfigurationError."""
    if not _is_async(handler):
        raise ConfigurationError(
            f"the handler is {_kind(handler)}, expected a function such as `async def answer(turn)`",
            rule="configuration.handler-is-async",
        )


def _is_async(handler: object) -> bool:
    """Whether a call gives something to await, or to iterate; through `partial`, `wraps` and `__call__`."""
    while isinstance(handler, partial):
        handler = handler.func
    if inspect.isclass(handler) or not callable(handler):
        return False
    if not inspect.isroutine(handler):
        handler = type(handler).__call__
    made = (handler, inspect.unwrap(handler))
    return any(inspect.iscoroutinefunction(one) or inspect.isasyncgenfunction(one) for one in made)


def _kind(handler: object) -> str:
    """What somebody gave, in words."""
    while isinstance(handler, partial):
        handler = handler.func
    name = getattr(handler, "__qualname__", "")
    if inspect.isclass(handler):
        return f"the class {name}"
    if inspect.isroutine(handler):
        return f"{name}, which is not async"
    return f"{handler!r:.80}, which is not async" if callable(handler) else f"{handler!r:.80}"
