"""A conversation in words for people at the Company."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from papaver.company.offer import Offer
from papaver.company.people import Person
from papaver.company.scopes import Scope
from papaver.company.staff_console.shown import FACTS, Shown, facts_of, holder_of, name_of, panel_of
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    AuthorType,
    DirectClosed,
    DirectOpened,
    Message,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
    UserRequested,
)
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import AccountId, ClientId, ConversationId, EventId, MessageId, UserId

NOW = datetime(2026, 10, 8, 19, 5, tzinfo=UTC)
ALEX, KIM = Person("aut_alex", "Alex"), Person("aut_kim")
OFFER = Offer(
    domain="example.com",
    name="Example",
    base_url="https://example.com/poppy",
    issuer="https://example.com",
    scopes=[Scope("orders:read", "See your orders")],
)
SHOWN = Shown(OFFER, "/poppy/staff", ALEX)
HEAD = Head(
    ConversationId("cnv_1"), ClientId("https://agent.example/a.json"), UserId("u1"), NOW, NOW, status=Status.IDLE
)
EVENT = EventId("evt_1")


@pytest.mark.parametrize(
    ("changes", "panel", "standing"),
    [
        (
            {"status": Status.CLOSED, "responder": Responder.HUMAN, "person": ALEX},
            "closed",
            "This conversation is closed.",
        ),
        ({"responder": Responder.HUMAN, "person": ALEX}, "mine", "You have this conversation."),
        ({"responder": Responder.HUMAN, "person": KIM}, "theirs", "aut_kim has this conversation."),
        ({"status": Status.QUEUED, "person": KIM}, "queued", "Waiting for a person."),
        ({"status": Status.WORKING}, "free", "The Company Agent works on an answer."),
        ({}, "free", "The Company Agent has this conversation."),
    ],
)
def test_how_a_conversation_stands(changes: dict[str, Any], panel: str, standing: str) -> None:
    """Who has it decides, and a person who once had it does not have it any more."""
    head = replace(HEAD, **changes)
    assert (panel_of(head, ALEX), SHOWN.standing(head)) == (panel, standing)


def test_a_row_of_the_queue() -> None:
    """How long it waits; of one that somebody has, since it changed; a clock that runs backwards shows nothing odd."""
    waits = replace(HEAD, status=Status.QUEUED, queued_at=NOW - timedelta(seconds=75), account_id=AccountId("a"))
    row = SHOWN.row(waits, NOW)
    assert (row.waited, row.holder, row.signed_in, row.agent) == (75, None, True, "agent.example")
    assert row.link == "/poppy/staff/conversations/cnv_1"
    context = {"locale": "de", "user_available": False, "other": 1}
    mine = SHOWN.row(replace(HEAD, responder=Responder.HUMAN, person=ALEX, context=context), NOW - timedelta(hours=1))
    assert (mine.waited, mine.holder, mine.mine, mine.facts) == (0, "Alex", True, ("de", "User is away"))
    assert SHOWN.row(replace(HEAD, context={"user_available": True, "locale": 7}), NOW).facts == ("User is there",)
    assert SHOWN.waited(HEAD, NOW) is None
    assert SHOWN.waited(waits, NOW) == 75
    assert SHOWN.agent(replace(HEAD, client_id=ClientId("no url"))) == "no url"


@pytest.mark.parametrize(
    ("role", "author", "side", "who"),
    [
        (Role.USER, Author(AuthorType.AGENT), "agent", "Personal Agent"),
        (Role.USER, Author(AuthorType.HUMAN), "user", "The User, in their own words"),
        (Role.COMPANY, Author(AuthorType.AGENT), "company", "Company Agent"),
        (Role.COMPANY, Author(AuthorType.AGENT, "bot", "Poppy"), "company", "Poppy"),
        (Role.COMPANY, ALEX, "person", "Alex (you)"),
        (Role.COMPANY, KIM, "person", "aut_kim"),
        (Role.COMPANY, Author(AuthorType.HUMAN), "person", "somebody"),
    ],
)
def test_who_said_a_message(role: Role, author: Author, side: str, who: str) -> None:
    """8.8: a person or an AI, of which side."""
    message = Message(MessageId("m"), author, role, "Hello", {"a": [1]}, {"locale": "de"}, {"links": {}})
    [shown] = SHOWN.events([MessageAdded(EVENT, NOW, message)])
    assert (shown.side, shown.who, shown.text) == (side, who, "Hello")
    assert (
        shown.details == '{\n  "data": {\n    "a": [\n      1\n    ]\n  },\n  "extensions": {\n    "links": {}\n  }\n}'
    )
    assert (shown.facts, shown.at) == ((("Language", "de"),), NOW.timestamp())


def test_what_happened() -> None:
    """Each event in words, with what belongs to it."""
    other = ConversationId("cnv_2")
    shown = SHOWN.events(
        [
            StateChanged(EVENT, NOW, Status.QUEUED, Responder.AGENT),
            StateChanged(EVENT, NOW, Status.WORKING, Responder.HUMAN),
            AuthorizationNeeded(EVENT, NOW, "orders:read other"),
            UserRequested(EVENT, NOW, "To confirm."),
            DirectOpened(EVENT, NOW, other),
            DirectClosed(EVENT, NOW, other),
        ]
    )
    assert [one.side for one in shown] == [None] * 6
    assert [one.who for one in shown[:2]] == ["A person was asked for.", "Something changed."]
    assert [(one.name, one.description) for one in shown[2].scopes] == [
        ("orders:read", "See your orders"),
        ("other", None),
    ]
    assert shown[3].text == "To confirm."
    assert {one.link for one in shown[4:]} == {"/poppy/staff/conversations/cnv_2"}


def test_facts_are_in_words_and_not_too_many() -> None:
    """Known ones by their names; others as they were said; nested ones as JSON."""
    context = {"user_available": True, "pets": ["Rex"], "locale": "de", **{f"x{n}": n for n in range(50)}}
    facts = facts_of(context)
    assert facts[:3] == (("User can answer now", "yes"), ("pets", '["Rex"]'), ("Language", "de"))
    assert len(facts) == FACTS


def test_a_person_is_called_by_their_name_or_id() -> None:
    """And who only once had a conversation does not hold it."""
    assert [name_of(one) for one in (ALEX, KIM, Author(AuthorType.HUMAN))] == ["Alex", "aut_kim", "somebody"]
    assert holder_of(replace(HEAD, person=ALEX)) is None
