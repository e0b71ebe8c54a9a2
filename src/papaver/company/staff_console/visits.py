"""One request to the staff console: who sends it, from which browser, and the form that it carries."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from papaver.company.authserver.browser import Browsers
from papaver.company.authserver.gate import check_form_type
from papaver.company.incoming import Incoming
from papaver.oauth.forms import Form, read_form
from papaver.protocol.conversation.model import Author
from papaver.protocol.terms import ConversationId

__all__ = ["ACTIONS", "MOST_FORM", "READS", "Place", "Visitor", "read_place"]

MOST_FORM: Final = 65_536
"""Octets of a form; a text of 5,000 characters always fits."""
SEEN: Final = 30 * 86_400
"""Seconds that a browser keeps its cookie after a page."""
READS: Final = frozenset({"", "news", "live"})
"""What can be looked at of a conversation."""
ACTIONS: Final = frozenset({"take", "say", "user", "scopes", "back", "unavailable", "close"})
_PLACE: Final = re.compile(
    r"(?P<news>/news)?|/conversations/(?P<id>[A-Za-z0-9_-]{1,256})(?:/(?P<what>[a-z]+))?", re.ASCII
).fullmatch


@dataclass(frozen=True, slots=True)
class Place:
    """What a path below the console names: the queue, or a conversation. `what` is a part of it, or an action."""

    conversation: ConversationId | None
    what: str

    @property
    def methods(self) -> tuple[str, ...]:
        return ("POST",) if self.what in ACTIONS else ("GET", "HEAD")


def read_place(suffix: str) -> Place | None:
    """None for a path that names nothing."""
    match = _PLACE(suffix)
    if match is None:
        return None
    if match["id"] is None:
        return Place(None, "news" if match["news"] else "")
    what = match["what"] or ""
    return Place(ConversationId(match["id"]), what) if what in READS | ACTIONS else None


@dataclass(frozen=True, slots=True)
class Visitor:
    """A person at the console, in one browser. `known`: it had its cookie already."""

    person: Author
    browser: str
    known: bool
    incoming: Incoming
    browsers: Browsers

    @classmethod
    def of(cls, person: Author, incoming: Incoming, browsers: Browsers) -> Visitor:
        found = browsers.find(incoming.headers, "staff")
        return cls(person, found or browsers.fresh(), found is not None, incoming, browsers)

    @property
    def csrf(self) -> str:
        """The token of this person's forms in this browser."""
        return self.browsers.csrf(self._page, self.browser)

    @property
    def cookie(self) -> tuple[str, str]:
        """The header field that lets the browser be known again."""
        return self.browsers.set("staff", self.browser, SEEN)

    def query(self) -> Form:
        """Raises InvalidOAuthRequest for one that is not well formed."""
        return read_form(self.incoming.query)

    async def form(self) -> Form:
        """The form of a POST, which has to be our own. Raises InvalidOAuthRequest, PayloadTooLarge, ForeignForm."""
        headers = self.incoming.headers
        check_form_type(headers.first("content-type"))
        form = read_form(await self.incoming.body(MOST_FORM))
        self.browsers.check_form(headers, form.one("csrf"), self._page, self.browser)
        return form

    @property
    def _page(self) -> str:
        return f"staff {self.person.id}"
