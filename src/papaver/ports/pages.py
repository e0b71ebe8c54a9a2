"""The web pages of a Company that offers sign-in: what each shows, as values. `papaver.screens` renders them.

A page's forms are plain `application/x-www-form-urlencoded` POSTs to `action`, and carry `csrf` under that name.
Names and texts from a client's metadata are its own claims: shown, never interpreted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from papaver.web.messages import Response

__all__ = [
    "ConnectedAgent",
    "ConnectedView",
    "ConsentView",
    "DeviceView",
    "MessageView",
    "Pages",
    "ShownAgent",
    "ShownScope",
]


@dataclass(frozen=True, slots=True)
class ShownAgent:
    """A Personal Agent for people's eyes. `host` is of its verified `client_id`; `name` is what it calls itself."""

    name: str
    host: str
    client_id: str


@dataclass(frozen=True, slots=True)
class ShownScope:
    """A scope with the Company's description and hints (4.7); None where the Company says nothing."""

    name: str
    description: str | None = None
    changes: Literal["none", "reversible", "irreversible"] | None = None
    personal_data: bool | None = None


@dataclass(frozen=True, slots=True)
class ConsentView:
    """Shall this agent get these scopes? Fields sent: `csrf`, `scope` once per ticked box, `decision` approve|decline.

    `account`    what the User calls the account that is signed in, such as an e-mail address
    `held`       names of scopes that this agent holds already
    `user_code`  in Device Sign-In: what the User should see on the other device (RFC 8628 5.4)
    `problem`    what was wrong with the form that was sent, if something was
    """

    company: str
    agent: ShownAgent
    scopes: tuple[ShownScope, ...]
    account: str
    action: str
    csrf: str
    held: frozenset[str] = frozenset()
    user_code: str | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class DeviceView:
    """Which code does the other device show? Fields sent: `csrf`, `user_code`. `user_code` is what is filled in."""

    company: str
    action: str
    csrf: str
    user_code: str = ""
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class ConnectedAgent:
    """One Personal Agent with its grants at this account. Fields sent to disconnect: `csrf`, `client_id`.

    `since`  of the oldest grant, Unix seconds
    """

    agent: ShownAgent
    scopes: tuple[ShownScope, ...]
    since: float


@dataclass(frozen=True, slots=True)
class ConnectedView:
    """Which agents may act for this account. `notice` says what was just done."""

    company: str
    account: str
    agents: tuple[ConnectedAgent, ...]
    action: str
    csrf: str
    notice: str | None = None


@dataclass(frozen=True, slots=True)
class MessageView:
    """A page that only tells something: done, declined, expired, not possible. `kind` is for its looks."""

    company: str
    title: str
    text: str
    kind: Literal["done", "problem"] = "problem"


class Pages(Protocol):
    """Renders views to whole responses, with the headers that keep them from being framed, cached or scripted."""

    def consent(self, view: ConsentView, status: int = 200) -> Response: ...

    def device(self, view: DeviceView, status: int = 200) -> Response: ...

    def connected(self, view: ConnectedView, status: int = 200) -> Response: ...

    def message(self, view: MessageView, status: int = 200) -> Response: ...

    def asset(self, path: str) -> Response | None:
        """A style sheet or icon by the last segment of its path; None when there is none."""
        ...
