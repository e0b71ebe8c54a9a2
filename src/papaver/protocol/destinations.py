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
        form = "/".join(_form(part, self.segment) for part in self.path.split("/"))
        object.__setattr__(self, "_form", re.compile(re.escape(root) + form))
        object.__setattr__(self, "_query", query)

    def accepts(self, url: str, method: str) -> bool:
        """Whether this request is one of them. A URL that is not acceptable is none. Never raises."""
        form = _read(url)
        return form is not None and self.accepts_form(form, url, method)

    def accepts_form(self, form: str, url: str, method: str) -> bool:
        """As `accepts`, for an acceptable URL whose `htu` is `form`."""
        if self._form is None or (self.methods is not None and method not in self.methods):
            return False
        return self._form.fullmatch(form) is not None and self._query in (None, read_url(url).query)


@dataclass(frozen=True, slots=True)
class Destinations:
    """Every Session destination of one Company.

    `listed`     what its document names, and routes below that     `described`  what listed APIs describe
    `never`      URLs, as `htu` writes them, that no description makes a destination
    """

    listed: tuple[Destination, ...]
    described: tuple[Destination, ...] = ()
    never: frozenset[str] = frozenset()

    def accept(self, url: str, method: str) -> bool:
        """Whether any of them accepts the request. Never raises."""
        form = _read(url)
        if form is None:
            return False
        if any(one.accepts_form(form, url, method) for one in self.listed):
            return True
        return form not in self.never and any(one.accepts_form(form, url, method) for one in self.described)


def session_destinations(
    document: CompanyDocument, described: Iterable[Destination] = (), never: Iterable[str] = ()
) -> Destinations:
    """What may receive the Session header of a Session at this document's Company (5.2).

    `described` are the requests that its OpenAPI descriptions and extensions define. The URL of an OpenAPI description
    is no destination, nor are skills, excluded tasks, logos and OAuth's endpoints; `never` are those of them that the
    document does not name. A description that describes them makes them none either.
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
    others = [api.url for api in document.apis if api.type == "openapi"]
    others += [one for one in (document.excluded_tasks, document.organization.logo_uri) if one is not None]
    forms = (_read(url) for url in (*others, *never))
    return Destinations(tuple(listed), tuple(described), frozenset(form for form in forms if form is not None))


def _form(part: str, segment: str) -> str:
    """The regular expression of one path segment.

    Each part before the last ends at the first place where it can, and is never tried longer: whatever follows takes
    the rest, so that nothing is missed, and no URL takes longer than its length.
    """
    first, *rest = _PLACE.split(part)
    form = re.escape(first)
    for left, literal in zip(range(len(rest) - 1, -1, -1), rest, strict=True):
        piece = re.escape(literal)
        form += f"(?>{segment}?{piece})" if left else segment + piece
    return form


def _read(url: str) -> str | None:
    """The `htu` of a URL; None when it is not acceptable."""
    try:
        return htu(url)
    except UrlError:
        return None


@rule("destination.listed")
def check_destination(url: str, method: str, destinations: Destinations) -> None:
    """5.2: refuse to sign for, and to send the header to, what the Company's document does not name."""
    if not destinations.accept(url, method):
        raise NotADestination(rule="destination.listed", detail=f"{method} {url}")
