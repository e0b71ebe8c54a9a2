"""The User talks with the Company themselves: asked first, brought in once, told apart (8.8, 8.10)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.company.turn import Turn
from papaver.personal_agent.conversation import Conversation
from papaver.personal_agent.direct import Agreed, Declined
from papaver.ports.system import FetchFailed
from papaver.protocol.conversation.model import (
    AuthorType,
    DirectClosed,
    DirectOpened,
    Event,
    MessageAdded,
    Role,
    UserRequested,
)
from papaver.protocol.errors import DirectConversationOpen
from papaver.testing.pair import Pair, pair
from tests.house.pairing import Script, answering, lose_answer, signed

pytestmark = pytest.mark.anyio

START = "/conversations"


async def agent(turn: Turn) -> str:
    """Asks for the User, and knows who speaks."""
    if turn.opening:
        return "Hello, it is us."
    if turn.direct:
        return f"To the {turn.author_type}: {turn.text}"
    if "exchange" in turn.text:
        turn.request_user("Please confirm the exchange.")
    return "One moment."


async def asked(both: Pair) -> tuple[Conversation, UserRequested]:
    """A conversation in which the Company has asked for the User."""
    session = (await both.agent.discover("example.com")).session("dana")
    conversation = await session.ask("Please exchange it")
    (event,) = [event async for event in conversation.events() if isinstance(event, UserRequested)]
    return conversation, event


def words(events: list[Event]) -> list[str | None]:
    return [event.message.text for event in events if isinstance(event, MessageAdded)]


def posts(both: Pair) -> list[dict[str, Any]]:
    return [json.loads(one.request.body) for one in signed(both) if one.request.method == "POST"]


async def yes(event: UserRequested) -> Agreed:
    return Agreed()


@pytest.mark.requirement("8.10-12", "8.10-17")
async def test_the_user_is_asked_and_the_company_speaks_first() -> None:
    """Nothing is sent before the User's yes; then both ids and no message."""
    async with pair(answering(agent)) as both:
        conversation, event = await asked(both)
        before = len(posts(both))
        asked_with: list[str] = []

        async def ask(one: UserRequested) -> Agreed:
            assert len(posts(both)) == before
            asked_with.append(one.reason)
            return Agreed()

        direct = await conversation.answer_request(event, ask)
        assert direct is not None
        assert asked_with == ["Please confirm the exchange."]
        assert posts(both)[-1] == {"parent_conversation_id": conversation.id, "user_requested_event_id": event.id}
        assert direct.parent == conversation.id
        assert words([event async for event in direct.events()]) == ["Hello, it is us."]


@pytest.mark.requirement("8.10-01", "8.8-03", "8.8-01")
async def test_the_users_words_go_out_as_they_are() -> None:
    """`human`, verbatim; what the Personal Agent says in the parent is `agent`."""
    async with pair(answering(agent)) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hello")
        [event async for event in conversation.events()]
        direct = await conversation.open_direct("  Hi — it's me!\n")
        sent = posts(both)[-1]
        assert sent["message"]["author"] == {"type": "human"}
        assert sent["message"]["text"] == "  Hi — it's me!\n"
        assert words([event async for event in direct.events()])[-1] == "To the human:   Hi — it's me!\n"
        await direct.say_as_user("Medium, please.")
        assert posts(both)[-1]["message"]["author"] == {"type": "human"}
        assert posts(both)[0]["message"]["author"] == {"type": "agent"}


@pytest.mark.requirement("8.10-22", "8.8-02")
@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (Declined(), "The User does not want to talk directly right now."),
        (Declined(away=True), "The User cannot be asked right now."),
        (Declined("They will call tomorrow."), "They will call tomorrow."),
    ],
    ids=["no", "away", "words"],
)
async def test_a_decline_is_told_in_the_parent(answer: Declined, said: str) -> None:
    """By the Personal Agent; nothing is opened."""
    async with pair(answering(agent)) as both:
        conversation, event = await asked(both)

        async def ask(_: UserRequested) -> Declined:
            return answer

        assert await conversation.answer_request(event, ask) is None
        last = posts(both)[-1]["message"]
        assert (last["text"], last["author"]["type"]) == (said, "agent")
        events = [event async for event in conversation.events()]
        assert not any(isinstance(event, DirectOpened) for event in events)


@pytest.mark.requirement("8.10-23", "8.10-19")
async def test_a_lost_acceptance_is_sent_again_and_the_words_are_said_once() -> None:
    """The answer is lost: the same acceptance again returns the same conversation, and the User's words are in it."""
    async with pair(answering(agent)) as both:
        conversation, event = await asked(both)
        Script(both).then(START, lose_answer)

        async def ask(_: UserRequested) -> Agreed:
            return Agreed("Yes, exchange it.")

        direct = await conversation.answer_request(event, ask)
        assert direct is not None
        said = [event async for event in direct.events()]
        mine = [one for one in said if isinstance(one, MessageAdded) and one.message.role is Role.USER]
        assert [one.message.text for one in mine] == ["Yes, exchange it."]
        assert mine[0].message.author.type is AuthorType.HUMAN


async def test_words_that_a_repeated_acceptance_did_not_add_are_posted() -> None:
    """It was accepted without words before, by a process that died: they are said in the one that is open."""
    async with pair(answering(agent)) as both:
        conversation, event = await asked(both)
        first = await conversation.answer_request(event, yes)

        async def ask(_: UserRequested) -> Agreed:
            return Agreed("Yes, exchange it.")

        second = await conversation.answer_request(event, ask)
        assert first is not None
        assert second is not None
        assert first.id == second.id
        assert "Yes, exchange it." in words([event async for event in second.events()])


async def test_an_acceptance_survives_the_end_of_the_process() -> None:
    """It was written down before it was sent, and goes out with the next request of the next process."""
    async with pair(answering(agent)) as both:
        conversation, event = await asked(both)
        Script(both).always(START, lose_answer)

        async def ask(_: UserRequested) -> Agreed:
            return Agreed("Yes, exchange it.")

        with pytest.raises(FetchFailed):
            await conversation.answer_request(event, ask)
        both.wire.interpose = None
        again = await both.restart()
        session = (await again.discover("example.com")).session("dana")
        (direct,) = await session.send_pending()
        assert direct.parent == conversation.id
        assert words([event async for event in direct.events()])[0] == "Yes, exchange it."


@pytest.mark.requirement("8.10-25", "8.10-26", "8.13-05")
async def test_the_parent_says_which_one_is_open() -> None:
    """The error names it; after the close the parent takes messages again, and its events tell of both."""
    async with pair(answering(agent)) as both:
        conversation, event = await asked(both)
        direct = await conversation.answer_request(event, yes)
        assert direct is not None
        with pytest.raises(DirectConversationOpen) as refused:
            await conversation.say("Hello?")
        assert refused.value.conversation_id == direct.id
        await direct.close()
        await conversation.say("Hello?")
        events = [event async for event in conversation.events()]
        kinds = [type(event) for event in events if isinstance(event, DirectOpened | DirectClosed)]
        assert kinds == [DirectOpened, DirectClosed]


@pytest.mark.requirement("8.4-19")
async def test_a_change_of_the_situation_is_told_alone() -> None:
    """A message of context: nothing needs an answer (8.4)."""
    async with pair(answering(agent)) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hello")
        await conversation.update_context(user_available=False, units="metric")
        assert posts(both)[-1]["message"]["context"] == {"user_available": False, "units": "metric"}
        assert "text" not in posts(both)[-1]["message"]
