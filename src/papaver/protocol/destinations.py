"""Which requests may carry the Session header: those that a Company's document names, and no others (5.2).

Sharing a host with a destination makes no destination. The routes of 8.2 are spelled out below their endpoint; what
an OpenAPI description or an extension adds is handed in as further destinations.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from papaver.protocol.company import POPPY, CompanyDocument
from papaver.protocol.errors import NotADestination
from papaver.values.rules import rule
from papaver.web.urls import UrlError, check_https, htu, join, read_url

__all__ = ["Destination", "Destinations", "check_destination", "session_destinations"]

CONVERSATION_ID: Final = "[A-Za-z0-9_-]{1,256}"
"""8.2: the characters and the length of a Conversation ID."""

ANY_SEGMENT: Final = "[^/]+"
"""One path segment; dot segments are folded away before the comparison."""

CONVERSATION_ROUTES: Final = (("messages", "POST"), ("events", "GET"), ("handoff", "POST"), ("close", "POST"))

_PLACE: Final = re.compile(r"\{[^{}/]*\}")


@dataclass(frozen=True, slots=True)
class Destination:
    """Requests to `base` + `path`.

    `base`     an https URL, compared as `htu` compares; a query in it has to be the request's query
    `path`     what follows, from its slash on: literal, with `{name}` for a part of a segment, as OpenAPI writes paths
    `methods`  None for any
    `segment`  what a `{name}` may stand for, as a regular expression
    """

    base: str
    path: str = ""
    methods: frozenset[str] | None = None
    segment: str = ANY_SEGMENT
    _form: re.Pattern[str] | None = field(init=False, repr=False, compare=False, default=None)
    _query: str | None = field(init=False, repr=False, compare=False, default=None)

    def __post_init__(self) -> None:
        try:
            check_https(self.base)
            query = read_url(self.base).query
            root = htu(self.base)
        except UrlError:
            return  # section 3: a URL with another scheme is never used
        if self.path and root.count("/") == 3:
            root = root.removesuffix("/")  # `https://host` and `/path` make one slash, as appending makes it
        pieces = _PLACE.split(self.path)
        form = self.segment.join(re.escape(piece) for piece in pieces)
        object.__setattr__(self, "_form", re.compile(re.escape(root) + form))
        object.__setattr__(self, "_query", query)

    def accepts(self, url: str, method: str) -> bool:
        """Whether this request is one of them. A URL that is not acceptable is none. Never raises."""
        if self._form is None or (self.methods is not None and method not in self.methods):
            return False
        try:
            return self._form.fullmatch(htu(url)) is not None and self._query in (None, read_url(url).query)
        except UrlError:
            return False


@dataclass(frozen=True, slots=True)
class Destinations:
    """Every Session destination of one Company's document."""

    listed: tuple[Destination, ...]

    def accept(self, url: str, method: str) -> bool:
        """Whether any of them accepts the request. Never raises."""
        return any(one.accepts(url, method) for one in self.listed)


def session_destinations(document: CompanyDocument, described: Iterable[Destination] = ()) -> Destinations:
    """What may receive the Session header of a Session at this document's Company (5.2).

    `described` are the requests that its OpenAPI descriptions and extensions define. The URL of an OpenAPI description
    is no destination, nor are skills, excluded tasks, logos and OAuth's endpoints.
    """
    listed: list[Destination] = []
    for entry in () if document.agent is None else document.agent.protocols:
        if entry.type == POPPY:
            listed.append(Destination(entry.endpoint, methods=frozenset({"POST"})))
            listed.extend(
                Destination(entry.endpoint, f"/{{id}}/{route}", frozenset({method}), CONVERSATION_ID)
                for route, method in CONVERSATION_ROUTES
            )
    listed.extend(Destination(api.url) for api in document.apis if api.type == "mcp")
    if document.web is not None and document.web.browser_session_endpoint is not None:
        authorize = join(document.web.browser_session_endpoint, "/authorize")
        listed.append(Destination(authorize, methods=frozenset({"POST"})))
    if document.feedback is not None:
        listed.append(Destination(document.feedback, methods=frozenset({"POST"})))
    return Destinations((*listed, *described))


@rule("destination.listed")
def check_destination(url: str, method: str, destinations: Destinations) -> None:
    """5.2: refuse to sign for, and to send the header to, what the Company's document does not name."""
    if not destinations.accept(url, method):
        raise NotADestination(rule="destination.listed", detail=f"{method} {url}")
