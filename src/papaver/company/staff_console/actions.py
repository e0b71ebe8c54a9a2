"""What a person does at the console: each form becomes one change, or is refused with words for that person."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from papaver.company.offer import Offer
from papaver.company.people import People
from papaver.company.staff import Staff
from papaver.oauth.forms import Form
from papaver.protocol.conversation.model import Author, Status
from papaver.protocol.conversation.people_decide import check_free, check_seated
from papaver.protocol.terms import ConversationId
from papaver.values.errors import PapaverError
from papaver.values.rules import rule

__all__ = ["DONE", "Actions", "FormRefused", "check_chosen", "check_confirmed", "check_written", "read_key", "written"]

_KEY: Final = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII).fullmatch
MOST_TEXT: Final = 5_000
"""Characters of a message; the page's own field takes no more."""
MOST_REASON: Final = 500
"""Characters of a reason."""
DONE: Final[Mapping[str, str]] = {
    "take": "You have this conversation now.",
    "user": "The Personal Agent was asked to bring the User.",
    "scopes": "The User was asked to sign in and allow it.",
    "back": "The Company Agent has it again.",
    "unavailable": "The Company Agent said that nobody is available, and goes on.",
    "close": "The conversation is closed.",
}
"""What a page says after an action; nothing after something was said, which can be seen."""


class FormRefused(PapaverError):
    """A form of ours that was filled in wrong."""

    code = "form_refused"
    description = "something is missing in this form"


@rule("staff.something-written")
def check_written(text: str, what: str, most: int) -> None:
    """Something is said, and no more than a reader can take. Raises FormRefused."""
    if not text:
        raise FormRefused(f"write {what} first", rule="staff.something-written")
    if len(text) > most:
        raise FormRefused(f"this is too long; {most} characters are the most", rule="staff.something-written")


@rule("staff.chosen-scopes")
def check_chosen(scopes: tuple[str, ...], offer: Offer) -> None:
    """What is asked for is what the Company offers. Raises FormRefused."""
    if not scopes or not set(scopes) <= {scope.name for scope in offer.scopes}:
        raise FormRefused("choose at least one of the scopes shown", rule="staff.chosen-scopes")


@rule("staff.confirmed")
def check_confirmed(confirmed: str | None) -> None:
    """A conversation that is closed stays so: nobody closes one by a slip. Raises FormRefused."""
    if confirmed != "yes":
        raise FormRefused("confirm that it shall be closed", rule="staff.confirmed")


class Actions:
    """The actions of one console, by name. Each raises what the person is told."""

    def __init__(self, offer: Offer, staff: Staff, people: People) -> None:
        self._offer, self._staff, self._people = offer, staff, people
        self._of: Mapping[str, Callable[[ConversationId, Author, Form], Awaitable[None]]] = {
            "take": self._take,
            "say": self._say,
            "user": self._ask_for_user,
            "scopes": self._ask_for_scopes,
            "back": self._hand_back,
            "unavailable": self._unavailable,
            "close": self._close,
        }

    async def do(self, action: str, conversation: ConversationId, person: Author, form: Form) -> None:
        await self._of[action](conversation, person, form)

    async def _take(self, conversation: ConversationId, person: Author, form: Form) -> None:
        await self._people.human_joined(conversation, person)

    async def _say(self, conversation: ConversationId, person: Author, form: Form) -> None:
        """A form that is sent twice says it once: each has a key of its own."""
        text = written(form, "text")
        check_written(text, "a message", MOST_TEXT)
        key = read_key(form)
        named = None if key is None else f"staff\n{person.id}\n{key}"
        await self._people.post(conversation, text, author=person, key=named, person_id=person.id)

    async def _ask_for_user(self, conversation: ConversationId, person: Author, form: Form) -> None:
        reason = written(form, "reason")
        check_written(reason, "a reason for the User", MOST_REASON)
        await self._check_seated(conversation, person)
        await self._people.request_user(conversation, reason)

    async def _ask_for_scopes(self, conversation: ConversationId, person: Author, form: Form) -> None:
        scopes = form.all("scope")
        check_chosen(scopes, self._offer)
        await self._check_seated(conversation, person)
        await self._people.require(conversation, *scopes)

    async def _hand_back(self, conversation: ConversationId, person: Author, form: Form) -> None:
        await self._people.human_left(conversation, person.id)

    async def _unavailable(self, conversation: ConversationId, person: Author, form: Form) -> None:
        reason = written(form, "reason")
        if reason:
            check_written(reason, "a reason", MOST_REASON)
        head = (await self._staff.look(conversation, limit=0)).head
        if head.status is not Status.QUEUED:
            check_free(head, person)
        await self._people.unavailable(conversation, reason or None)

    async def _close(self, conversation: ConversationId, person: Author, form: Form) -> None:
        check_confirmed(form.one("confirm"))
        check_free((await self._staff.look(conversation, limit=0)).head, person)
        await self._people.close(conversation)

    async def _check_seated(self, conversation: ConversationId, person: Author) -> None:
        check_seated((await self._staff.look(conversation, limit=0)).head, person.id)


def read_key(form: Form) -> str | None:
    """The key of a form that says something; None for one that our pages do not make."""
    key = form.one("key")
    return key if key is not None and _KEY(key) is not None else None


def written(form: Form, name: str) -> str:
    """A text field: line ends as everywhere else, no blanks around it."""
    return (form.one(name) or "").replace("\r\n", "\n").strip()
