"""A conversation for people's eyes: heads and events as the views of the staff console."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from papaver.company.offer import Offer
from papaver.ports.pages import ShownScope
from papaver.ports.staff_pages import Panel, QueueRow, ShownEvent
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    AuthorType,
    Context,
    DirectClosed,
    DirectOpened,
    Event,
    Message,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
    UserRequested,
)
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ConversationId
from papaver.web.urls import UrlError, host_of

__all__ = ["Shown", "facts_of", "holder_of", "name_of", "panel_of"]

Side = Literal["agent", "user", "person", "company"]
FACTS: Final = 20
"""Facts of the User's situation that are shown."""
_KNOWN: Final = {"locale": "Language", "time_zone": "Time zone", "user_available": "User can answer now"}
_STATES: Final[Mapping[tuple[Status, Responder], str]] = {
    (Status.QUEUED, Responder.AGENT): "A person was asked for.",
    (Status.IDLE, Responder.HUMAN): "A person took over.",
    (Status.IDLE, Responder.AGENT): "The Company Agent is done, and listens.",
    (Status.WORKING, Responder.AGENT): "The Company Agent works on an answer.",
    (Status.CLOSED, Responder.AGENT): "The conversation was closed.",
    (Status.CLOSED, Responder.HUMAN): "The conversation was closed.",
}


def name_of(person: Author) -> str:
    """What a person is called among colleagues."""
    return person.name or person.id or "somebody"


def holder_of(head: Head) -> Author | None:
    """Who handles it, when a person does."""
    return head.person if head.responder is Responder.HUMAN else None


def panel_of(head: Head, person: Author) -> Panel:
    """What this person can do in it."""
    if head.status is Status.CLOSED:
        return "closed"
    holder = holder_of(head)
    if holder is not None:
        return "mine" if holder.id == person.id else "theirs"
    return "queued" if head.status is Status.QUEUED else "free"


def facts_of(context: Context) -> tuple[tuple[str, str], ...]:
    """Facts of the User's situation in words (8.4)."""
    return tuple([(_KNOWN.get(name, name), _word(value)) for name, value in list(context.items())[:FACTS]])


def _word(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True, slots=True)
class Shown:
    """`root` is the console's public path; `person` is who looks."""

    offer: Offer
    root: str
    person: Author

    def link(self, conversation: ConversationId) -> str:
        return f"{self.root}/conversations/{conversation}"

    def agent(self, head: Head) -> str:
        """The host of the Personal Agent's verified `client_id`."""
        try:
            return host_of(head.client_id)
        except UrlError:
            return head.client_id

    def row(self, head: Head, now: datetime) -> QueueRow:
        """One line of the queue."""
        holder = holder_of(head)
        return QueueRow(
            link=self.link(head.id),
            conversation=head.id,
            agent=self.agent(head),
            waited=_seconds(head.queued_at or head.changed_at, now),
            signed_in=head.account_id is not None,
            direct=head.parent is not None,
            holder=None if holder is None else name_of(holder),
            mine=holder is not None and holder.id == self.person.id,
            facts=tuple(_short(head.context)),
        )

    def standing(self, head: Head) -> str:
        """How it stands."""
        holder = holder_of(head)
        match panel_of(head, self.person):
            case "closed":
                return "This conversation is closed."
            case "mine":
                return "You have this conversation."
            case "theirs":
                return f"{'Somebody' if holder is None else name_of(holder)} has this conversation."
            case "queued":
                return "Waiting for a person."
            case _:
                works = head.status is Status.WORKING
                return "The Company Agent works on an answer." if works else "The Company Agent has this conversation."

    def waited(self, head: Head, now: datetime) -> int | None:
        return None if head.queued_at is None else _seconds(head.queued_at, now)

    def events(self, events: Iterable[Event]) -> tuple[ShownEvent, ...]:
        """Who said what, and what happened."""
        return tuple([self._event(event) for event in events])

    def scopes(self, names: Sequence[str]) -> tuple[ShownScope, ...]:
        """As the Company describes them (4.7)."""
        known = {scope.name: scope for scope in self.offer.scopes}
        return tuple(
            ShownScope(name, scope.description, scope.changes, scope.personal_data)
            if (scope := known.get(name)) is not None
            else ShownScope(name)
            for name in names
        )

    def _event(self, event: Event) -> ShownEvent:
        at = event.at.timestamp()
        match event:
            case MessageAdded(message=message):
                return self._message(message, at)
            case StateChanged():
                return ShownEvent(at, None, _STATES.get((event.status, event.responder), "Something changed."))
            case AuthorizationNeeded(scope=scope):
                scopes = self.scopes(scope.split())
                return ShownEvent(at, None, "The User was asked to sign in and allow:", scopes=scopes)
            case UserRequested(reason=reason):
                return ShownEvent(at, None, "We asked to talk with the User:", text=reason)
            case DirectOpened(conversation_id=other):
                return ShownEvent(at, None, "The User has come, in a Direct Conversation.", link=self.link(other))
            case DirectClosed(conversation_id=other):
                return ShownEvent(at, None, "The Direct Conversation is over.", link=self.link(other))

    def _message(self, message: Message, at: float) -> ShownEvent:
        side, who = self._speaker(message)
        content = {name: value for name, value in (("data", message.data), ("extensions", message.extensions)) if value}
        return ShownEvent(
            at,
            side,
            who,
            text=message.text,
            details=_indented(content) if content else None,
            facts=facts_of(message.context or {}),
        )

    def _speaker(self, message: Message) -> tuple[Side, str]:
        """Who wrote a message (8.8)."""
        author, human = message.author, message.author.type is AuthorType.HUMAN
        if message.role is Role.USER:
            return ("user", "The User, in their own words") if human else ("agent", "Personal Agent")
        if not human:
            return "company", author.name or "Company Agent"
        you = author.id is not None and author.id == self.person.id
        return "person", f"{name_of(author)} (you)" if you else name_of(author)


def _short(context: Context) -> Iterable[str]:
    locale, there = context.get("locale"), context.get("user_available")
    if isinstance(locale, str):
        yield locale
    if isinstance(there, bool):
        yield "User is there" if there else "User is away"


def _seconds(since: datetime, now: datetime) -> int:
    return max(0, int((now - since).total_seconds()))


def _indented(content: Mapping[str, object]) -> str:
    """For reading: one member in a line, letters as they are."""
    return json.dumps(content, indent=2, ensure_ascii=False)
