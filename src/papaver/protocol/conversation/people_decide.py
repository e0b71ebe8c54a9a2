"""What the Company does outside of turns: people who join and leave, what it posts, closing, pruning (8.7-8.12)."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from papaver.protocol.conversation.change import Change, Loaded
from papaver.protocol.conversation.content import as_company_message
from papaver.protocol.conversation.direct import check_not_closed, close
from papaver.protocol.conversation.draft import Draft
from papaver.protocol.conversation.model import Author, AuthorType, Responder, Status
from papaver.protocol.conversation.operations import (
    AskForScopes,
    AskForUser,
    Decline,
    End,
    Expire,
    Join,
    Leave,
    PeopleCommand,
    Post,
    Prune,
    Refer,
    Settled,
)
from papaver.protocol.conversation.pages import EventIds
from papaver.protocol.conversation.state import Head, Receipt
from papaver.protocol.conversation.turn_decide import nobody_comes
from papaver.protocol.errors import ConversationNotFound
from papaver.values.errors import PapaverError
from papaver.values.rules import rule

__all__ = [
    "DirectRefused",
    "NotJoined",
    "PersonRefused",
    "Taken",
    "check_asked_outside_direct",
    "check_free",
    "check_person",
    "check_seated",
    "decide_people",
]


class PersonRefused(PapaverError):
    """Who joins has to be a person with an id, by which their seat is known."""

    code = "person_refused"
    description = "who joins is an author of type human with an id, such as Author.human('aut_alex', 'Alex')"


class Taken(PapaverError):
    """Somebody else handles the conversation already; `person` is who."""

    code = "taken"

    def __init__(self, person: Author, *, rule: str = "") -> None:
        self.person = person
        super().__init__(f"{person.name or person.id} handles this conversation already", rule=rule)


class NotJoined(PapaverError):
    """What only the person may do who handles the conversation; `person` is who does, None when nobody."""

    code = "not_joined"

    def __init__(self, person: Author | None, *, rule: str = "") -> None:
        self.person = person
        has = "nobody does" if person is None else f"{person.name or person.id} does"
        super().__init__(f"you do not handle this conversation ({has}); join it first", rule=rule)


class DirectRefused(PapaverError):
    """The User is there already."""

    code = "already_direct"
    description = "this is a Direct Conversation: the User reads it already, so just say it"


@rule("people.person-has-id")
def check_person(person: Author) -> None:
    """A person who joins is one, and can be told from others (8.7). Raises PersonRefused."""
    if person.type is not AuthorType.HUMAN or not person.id:
        raise PersonRefused(rule="people.person-has-id")


@rule("people.one-at-a-time")
def check_free(head: Head, person: Author) -> None:
    """Two who take the same conversation: one has it, the other is told who. Raises Taken."""
    taken = head.person if head.responder is Responder.HUMAN else None
    if taken is not None and taken.id != person.id:
        raise Taken(taken, rule="people.one-at-a-time")


@rule("people.seated")
def check_seated(head: Head, person_id: str | None) -> None:
    """What a person does in a conversation is done by who handles it. Raises NotJoined."""
    seated = head.person if head.responder is Responder.HUMAN else None
    if person_id is not None and (seated is None or seated.id != person_id):
        raise NotJoined(seated, rule="people.seated")


@rule("people.asks-outside-direct")
def check_asked_outside_direct(head: Head) -> None:
    """The User is asked for where they are not (8.10; readings 40). Raises DirectRefused."""
    if head.parent is not None:
        raise DirectRefused(rule="people.asks-outside-direct")


def decide_people(command: PeopleCommand, loaded: Loaded, now: datetime, events: EventIds) -> Change[Settled]:
    """See `decide`. Raises ConversationNotFound, ConversationClosed for what a closed one cannot take, or the above."""
    head = loaded.head
    if head is None:
        raise ConversationNotFound(detail="there is none")
    draft = Draft(head, now, events)
    match command:
        case Expire():
            expired = head.changed_at <= command.idle_since
            return _settled(draft, head, close(draft, loaded, now, events) if expired else ())
        case End():
            return _settled(draft, head, close(draft, loaded, now, events))
        case Prune():
            return _prune(command, head)
        case Leave():
            _leave(command, draft, head)
        case Decline():
            if head.status is Status.QUEUED:
                nobody_comes(draft, command.message)
        case Post():
            return _post(command, draft, head, loaded.receipt)
        case AskForUser():
            check_not_closed(head)
            check_asked_outside_direct(head)
            asked = draft.ask_for_user(command.reason)
            change = _settled(draft, head)
            return replace(change, result=replace(change.result, event_id=asked))
        case _:
            check_not_closed(head)
            _others(command, draft, head)
    return _settled(draft, head)


def _others(command: Join | Refer | AskForScopes, draft: Draft, head: Head) -> None:
    match command:
        case Join(person=person):
            check_person(person)
            check_free(head, person)
            if draft.person is None:
                draft.join(person)
        case Refer():
            if draft.status is not Status.QUEUED and draft.responder is Responder.AGENT:
                draft.await_person()
        case _:
            draft.ask_for_scopes(command.scopes)


def _leave(command: Leave, draft: Draft, head: Head) -> None:
    """Leaving twice, or a closed one, changes nothing; in another's place nobody leaves."""
    if head.status is Status.CLOSED or head.responder is not Responder.HUMAN:
        return
    check_seated(head, command.person_id)
    draft.leave()


def _post(command: Post, draft: Draft, head: Head, receipt: Receipt | None) -> Change[Settled]:
    """What the person says answers all that was said before it."""
    if receipt is not None:
        return _settled(draft, head)
    check_not_closed(head)
    check_seated(head, command.person_id)
    draft.speak(as_company_message(command.message))
    if draft.person is not None and command.message.author.type is AuthorType.HUMAN:
        draft.answered_until(head.last_seq)
    change = _settled(draft, head)
    if command.key is None:
        return change
    return replace(change, receipt=Receipt("", head.id, 0, draft.status, draft.responder))


def _prune(command: Prune, head: Head) -> Change[Settled]:
    """Only forward, never what a turn has still to answer, and never the newest event: a reader needs a cursor."""
    unanswered = head.asked_seq > head.answered_seq
    first = min(command.first_seq, head.last_seq, head.answered_seq + 1 if unanswered else head.last_seq)
    settled = Settled(head.id, head.status, head.responder, head.last_seq, recorded=first > head.first_seq)
    if first <= head.first_seq:
        return Change(settled)
    return Change(settled, (replace(head, first_seq=first, kept_from=command.kept_from),), prune=True)


def _settled(draft: Draft, head: Head, beside: tuple[Draft, ...] = ()) -> Change[Settled]:
    settled = Settled(head.id, draft.status, draft.responder, draft.last_seq, recorded=draft.last_seq > head.last_seq)
    return draft.change(settled, beside=beside)
