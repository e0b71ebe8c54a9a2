"""The web pages of the staff console: what each shows, as values. `papaver.screens` renders them.

Forms are plain `application/x-www-form-urlencoded` POSTs to `{link}/{action}` and carry `csrf`. What a User, an agent
or a colleague wrote is shown, never interpreted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from papaver.ports.pages import ShownScope
from papaver.web.messages import Response

__all__ = [
    "ConversationView",
    "NoticeView",
    "Panel",
    "QueueRow",
    "QueueView",
    "ShownEvent",
    "StaffPages",
]

Panel = Literal["queued", "mine", "theirs", "free", "closed"]
"""What can be done: it waits, this person has it, a colleague has it, the Company Agent has it, it is over."""


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One conversation in the queue.

    `agent`   host of the Personal Agent     `holder`  who has it; None while it waits
    `waited`  whole seconds since it was queued; of one that somebody has, since something happened in it
    `facts`   what the User's side said of the User's situation, in short words
    """

    link: str
    conversation: str
    agent: str
    waited: int
    signed_in: bool
    direct: bool
    holder: str | None = None
    mine: bool = False
    facts: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class QueueView:
    """Who waits, the longest first, and what somebody has. `root` is the public path of the console.

    `more`  there are others, which are not shown
    """

    company: str
    root: str
    person: str
    waiting: tuple[QueueRow, ...]
    taken: tuple[QueueRow, ...]
    notice: str | None = None
    more: bool = False


@dataclass(frozen=True, slots=True)
class ShownEvent:
    """One event in words.

    `side`     who speaks: the Personal Agent, the User in their own words, a person here, the Company Agent; None for
               what happened
    `at`       Unix seconds              `details`  structured content, as indented JSON
    `facts`    of the User's situation   `link`     another conversation that it is about
    `scopes`   what was asked for
    """

    at: float
    side: Literal["agent", "user", "person", "company"] | None
    who: str
    text: str | None = None
    details: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    scopes: tuple[ShownScope, ...] = ()
    link: str | None = None


@dataclass(frozen=True, slots=True)
class ConversationView:
    """One conversation, whole or what is new in it. Fields sent, by action, all with `csrf`:

    take, back: none · say: `text`, `key` · user, unavailable: `reason` · scopes: `scope` for each · close: `confirm`

    `link`      public path of this conversation in the console
    `standing`  how it stands, in one sentence
    `waited`    whole seconds that it has waited; None while nobody is waited for
    `events`    in order; `seq` is the number of the newest, or of the conversation's newest when there is none
    `earlier`   link to what came before them
    `scopes`    that can be asked for     `asks_user`  whether the User can be asked for
    `parent`    link to the conversation before this Direct Conversation, with its last `parent_events`
    `direct`    link to the Direct Conversation that is open
    `older`     it shows what came earlier, and nothing can be done from it
    `draft`, `reason`  what was typed and could not be said
    `key`       makes that a form sent twice is said once
    """

    company: str
    root: str
    person: str
    link: str
    conversation: str
    agent: str
    client_id: str
    account: str | None
    csrf: str
    key: str
    panel: Panel
    standing: str
    events: tuple[ShownEvent, ...]
    seq: int
    waited: int | None = None
    earlier: str | None = None
    facts: tuple[tuple[str, str], ...] = ()
    scopes: tuple[ShownScope, ...] = ()
    asks_user: bool = False
    parent: str | None = None
    parent_events: tuple[ShownEvent, ...] = ()
    direct: str | None = None
    notice: str | None = None
    problem: str | None = None
    older: bool = False
    draft: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class NoticeView:
    """A page of the console that only tells something."""

    company: str
    root: str
    title: str
    text: str
    kind: Literal["done", "problem"] = "problem"


class StaffPages(Protocol):
    """Renders views to whole responses, with the headers that keep them from being framed, cached or told about.

    They work without script. With it, the one script of ours fetches `queue_news` and `news` and puts them in place.
    """

    def queue(self, view: QueueView) -> Response: ...

    def queue_news(self, view: QueueView) -> Response:
        """The lists alone, for the script."""
        ...

    def conversation(self, view: ConversationView, status: int = 200) -> Response: ...

    def news(self, view: ConversationView) -> Response:
        """What is new, for the script: events, how it stands, what can be done."""
        ...

    def live(self, view: ConversationView) -> Response:
        """What is new, as a page that reloads itself inside the conversation's page, where there is no script."""
        ...

    def message(self, view: NoticeView, status: int) -> Response: ...

    def asset(self, path: str) -> Response | None:
        """A style sheet, script or icon by the last segment of its path; None when there is none."""
        ...
