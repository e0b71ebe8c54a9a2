"""Where the staff console is and who may use it: there is none without a function that says who somebody is."""

from __future__ import annotations

import inspect
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from papaver.company.offer import CONVERSATIONS, Offer
from papaver.protocol.conversation.model import Author
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule
from papaver.web.messages import Headers
from papaver.web.urls import origin_of, read_url

__all__ = [
    "Authenticate",
    "ConsoleConfiguration",
    "SignInAt",
    "Visit",
    "check_authenticates",
    "check_before_run",
    "check_console_path",
]

_PATH: Final = re.compile(r"(?:/[A-Za-z0-9_-]+)+", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Visit:
    """A request to the console, as far as it says who sends it. Header fields are not joined; the body is not here.

    `path`, `query`  as received; the query hides itself, as header fields do
    `peer`           the peer's address
    """

    method: str
    path: str
    query: str = field(repr=False)
    headers: Headers
    peer: str

    def cookie(self, name: str) -> str | None:
        """The value of a cookie; None when there is none, or when there are two that differ."""
        pairs = (pair.strip().partition("=") for sent in self.headers.all("cookie") for pair in sent.split(";"))
        values = {value for key, _, value in pairs if key == name}
        return values.pop() if len(values) == 1 else None


@dataclass(frozen=True, slots=True)
class SignInAt:
    """Who is not known yet is sent to this URL of the app's own, to sign in there and come back."""

    url: str


Authenticate = Callable[[Visit], Awaitable[Author | SignInAt | None]]
"""Who it is: a `Person`; where they sign in; None for somebody who may not come in."""


@dataclass(frozen=True, slots=True)
class ConsoleConfiguration:
    """A console: `path` is where it is, as the app sees it. Raises ConfigurationError."""

    authenticate: Authenticate
    app_path: str
    path: str
    origin: str

    @classmethod
    def of(cls, offer: Offer, authenticate: Authenticate, path: str | None) -> ConsoleConfiguration:
        """`path` is `/staff` below `base_url` when it is None."""
        where = f"{offer.path}/staff" if path is None else path
        check_authenticates(authenticate)
        check_console_path(where, offer)
        return cls(authenticate, where, read_url(offer.app_url + where).path, origin_of(offer.base_url))

    def owns(self, path: str) -> bool:
        """Whether a path, as the app sees it, is the console's."""
        return path == self.app_path or path.startswith(f"{self.app_path}/")


@rule("staff.authenticate")
def check_authenticates(authenticate: object) -> None:
    """Without somebody who says who comes, anybody could read and answer conversations. Raises ConfigurationError."""
    if not _is_async(authenticate):
        raise ConfigurationError(
            f"authenticate is {authenticate!r:.80}, expected a function such as `async def who(visit)` that returns a "
            "Person, SignInAt(url), or None",
            rule="staff.authenticate",
        )


def _is_async(authenticate: object) -> bool:
    if not callable(authenticate):
        return False
    called = authenticate if inspect.isroutine(authenticate) else type(authenticate).__call__
    return inspect.iscoroutinefunction(inspect.unwrap(called))


@rule("staff.before-run")
def check_before_run(wired: object) -> None:
    """A console is a part of the Company that runs, from its start on. Raises ConfigurationError."""
    if wired is not None:
        raise ConfigurationError(
            "the Company runs already; call company.staff_console(…) before it does", rule="staff.before-run"
        )


@rule("staff.path")
def check_console_path(path: str, offer: Offer) -> None:
    """The console has a path for itself: it takes nothing from the protocol's own endpoints."""
    ours = tuple(f"{offer.path}{one}" for one in (CONVERSATIONS, "/healthz", "/livez"))
    if _PATH(path) is None or any(f"{path}/".startswith(f"{one}/") or f"{one}/".startswith(f"{path}/") for one in ours):
        raise ConfigurationError(
            f"the console's path is {path!r}, expected one such as /staff, apart from {', '.join(ours)}",
            rule="staff.path",
        )
