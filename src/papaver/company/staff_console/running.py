"""The staff console while its Company runs: who may come in, its routes, and what becomes of what goes wrong."""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from typing import Final

from papaver.company.authserver.answers import redirect
from papaver.company.authserver.browser import Browsers, ForeignForm
from papaver.company.authserver.desk import with_fields
from papaver.company.authserver.issue import derive
from papaver.company.holding import Holding
from papaver.company.incoming import Incoming
from papaver.company.offer import Offer
from papaver.company.people import People
from papaver.company.staff import Staff
from papaver.company.staff_console.actions import DONE, Actions, FormRefused, read_key, written
from papaver.company.staff_console.configuration import ConsoleConfiguration, SignInAt, Visit
from papaver.company.staff_console.reading import Reading
from papaver.company.staff_console.visits import Place, Visitor, read_place
from papaver.company.turn import check_author
from papaver.oauth.errors import ProtocolError
from papaver.oauth.forms import Form
from papaver.ports.company import ConversationLog
from papaver.ports.staff_pages import NoticeView, StaffPages
from papaver.ports.system import Clock, Ids
from papaver.protocol.conversation.model import Author
from papaver.protocol.conversation.people_decide import DirectRefused, NotJoined, Taken, check_person
from papaver.protocol.errors import (
    ConfigurationError,
    ConversationClosed,
    ConversationNotFound,
    InvalidRequest,
    PayloadTooLarge,
    RateLimited,
)
from papaver.protocol.terms import ConversationId
from papaver.values.errors import PapaverError
from papaver.values.rules import rule
from papaver.web.messages import Headers, Response

__all__ = ["ConsoleParts", "RunningConsole", "check_pages"]

log = logging.getLogger("papaver.company")
ASSETS: Final = "/assets/"
NO_STORE: Final = Headers([("cache-control", "no-store")])
TO_QUEUE: Final = frozenset({"back", "unavailable", "close"})
"""After these there is nothing more to do in the conversation."""
CONFLICTS: Final = (Taken, NotJoined, DirectRefused, ConversationClosed)
_STATUS: Final[tuple[tuple[type[PapaverError], int], ...]] = (
    (ForeignForm, 403),
    (Taken, 409),
    (NotJoined, 409),
    (DirectRefused, 409),
    (ConversationClosed, 409),
    (ConversationNotFound, 404),
    (PayloadTooLarge, 413),
    (RateLimited, 429),
    (FormRefused, 400),
    (InvalidRequest, 400),
    (ProtocolError, 400),
)


@dataclass(frozen=True, slots=True)
class ConsoleParts:
    """What a console uses of its running Company."""

    offer: Offer
    staff: Staff
    people: People
    log: ConversationLog
    holding: Holding
    clock: Clock
    ids: Ids
    secret: bytes
    pages: StaffPages | None


@rule("staff.pages")
def check_pages(pages: object) -> None:
    """A console has pages to show. Raises ConfigurationError."""
    if pages is None:
        raise ConfigurationError(
            "the staff console has no pages to show: run the Company by an adapter, or hand in "
            "`wire(…, staff_pages=HtmlStaffPages())`",
            rule="staff.pages",
        )


class RunningConsole:
    """Answers the requests below the console's path."""

    def __init__(self, configuration: ConsoleConfiguration, parts: ConsoleParts) -> None:
        check_pages(parts.pages)
        assert parts.pages is not None
        self._configuration, self._pages, self._company = configuration, parts.pages, parts.offer.name
        self._browsers = Browsers(configuration, derive(parts.secret, "staff forms"), parts.ids)
        self._actions = Actions(parts.offer, parts.staff, parts.people)
        self._reading = Reading(parts.offer, configuration.path, parts.log, parts.holding, parts.clock, parts.ids)

    async def answer(self, incoming: Incoming) -> Response:
        """Answer a request that the console owns."""
        suffix = incoming.path.removeprefix(self._configuration.app_path)
        if suffix.startswith(ASSETS):
            return self._pages.asset(suffix.removeprefix(ASSETS)) or Response(404, NO_STORE)
        place = read_place(suffix)
        person = await self._person(incoming)
        quiet = place is not None and place.what == "news"
        if not isinstance(person, Author):
            if isinstance(person, SignInAt) and incoming.method == "GET" and not quiet:
                return redirect(person.url)
            return self._told("You may not come in here", "Sign in as somebody who may, then open the page again.", 403)
        if place is None:
            return self._told("There is no such page", "Go back to the queue.", 404)
        if incoming.method not in place.methods:
            allow = ("allow", ", ".join(place.methods))
            return with_fields(self._told("This page cannot do that", "Go back to the queue.", 405), allow)
        visitor = Visitor.of(person, incoming, self._browsers)
        try:
            if place.conversation is not None and incoming.method == "POST":
                return await self._act(visitor, place.conversation, place.what)
            return await self._show(visitor, place)
        except ConfigurationError:
            raise
        except PapaverError as error:
            response = self._problem(error)
            self._log(error, response, incoming)
            return response

    async def _person(self, incoming: Incoming) -> Author | SignInAt | None:
        """Who it is, as the app says. Nobody comes in by an error of the app's."""
        visit = Visit(incoming.method, incoming.path, incoming.query, incoming.headers, incoming.peer)
        try:
            person = await self._configuration.authenticate(visit)
            if isinstance(person, Author):
                check_person(person)
                check_author(person)
        except Exception as error:
            log.error("nobody comes into the staff console: authenticate failed", exc_info=error)
            return None
        return person

    async def _show(self, visitor: Visitor, place: Place) -> Response:
        query = visitor.query()
        if place.conversation is None:
            view = await self._reading.queue(visitor, DONE.get(query.one("done") or ""))
            return self._pages.queue_news(view) if place.what else self._page(self._pages.queue(view), visitor)
        if place.what:
            wait = place.what == "news"
            news = await self._reading.news(visitor, place.conversation, _number(query, "after") or 0, wait=wait)
            if news is None:
                return Response(204, NO_STORE)
            return self._pages.news(news) if wait else self._pages.live(news)
        shown = await self._reading.page(visitor, place.conversation, _number(query, "before"))
        done = DONE.get(query.one("done") or "")
        return self._page(self._pages.conversation(replace(shown, notice=done)), visitor)

    async def _act(self, visitor: Visitor, conversation: ConversationId, action: str) -> Response:
        form = await visitor.form()
        try:
            await self._actions.do(action, conversation, visitor.person, form)
        except (*CONFLICTS, FormRefused) as error:
            response = await self._again(visitor, conversation, action, form, error)
            self._log(error, response, visitor.incoming)
            return response
        line = {"event": "staff", "action": action, "conversation": conversation, "person": visitor.person.id}
        log.info("%s", json.dumps(line))
        if action in TO_QUEUE:
            return redirect(f"{self._configuration.path}?done={action}")
        link = f"{self._configuration.path}/conversations/{conversation}"
        said = read_key(form)
        return redirect(f"{link}?said={said or ''}#say" if action == "say" else f"{link}?done={action}")

    async def _again(
        self, visitor: Visitor, conversation: ConversationId, action: str, form: Form, error: PapaverError
    ) -> Response:
        """The page as it is now, with what went wrong, and what was typed."""
        shown = await self._reading.page(visitor, conversation)
        view = replace(
            shown,
            problem=_sentence(error),
            draft=written(form, "text"),
            reason=written(form, "reason") if action == "user" else "",
        )
        return self._page(self._pages.conversation(view, _status(error)), visitor)

    def _page(self, response: Response, visitor: Visitor) -> Response:
        return with_fields(response, visitor.cookie)

    def _problem(self, error: PapaverError) -> Response:
        status = _status(error)
        if isinstance(error, ConversationNotFound):
            return self._told(
                "There is no such conversation", "It may have been deleted. Go back to the queue.", status
            )
        if status == 500:
            return self._told("Something went wrong here", "Nothing was done. Please try again later.", status)
        return self._told("This was not done", _sentence(error), status)

    def _told(self, title: str, text: str, status: int) -> Response:
        return self._pages.message(NoticeView(self._company, self._configuration.path, title, text), status)

    def _log(self, error: PapaverError, response: Response, incoming: Incoming) -> None:
        """One line of JSON, as the Company's other refusals are logged."""
        line = {
            "event": "refused",
            "company": self._company,
            "status": response.status,
            "code": error.code,
            "rule": error.rule,
            "detail": error.detail[:500],
            "method": incoming.method,
            "path": incoming.path,
            "peer": incoming.peer,
        }
        ours = response.status == 500
        log.log(logging.ERROR if ours else logging.WARNING, "%s", json.dumps(line), exc_info=error if ours else None)


def _status(error: PapaverError) -> int:
    return next((status for kind, status in _STATUS if isinstance(error, kind)), 500)


def _sentence(error: PapaverError) -> str:
    return f"{error.description[:1].upper()}{error.description[1:]}."


def _number(query: Form, name: str) -> int | None:
    """A whole number of the query; None for anything else."""
    value = query.one(name) or ""
    return int(value) if value.isascii() and value.isdecimal() and len(value) < 16 else None
