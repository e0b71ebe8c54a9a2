"""A Personal Agent and a Company in one process: the signed-out journey, from the domain to the closed conversation."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company.app import Company
from papaver.personal_agent.conversation import Conversation
from papaver.protocol.conversation.model import MessageAdded, Role, StateChanged, Status
from papaver.protocol.errors import Refused
from papaver.stores.memory import MemoryStore
from tests.house.agent_pair import paired
from tests.house.agent_scripted import agent_at
from tests.house.agent_world import CLIENT_ID, Keys

pytestmark = pytest.mark.anyio


async def replies(conversation: Conversation) -> list[str | None]:
    """What the Company says until it is idle."""
    return [
        event.message.text
        async for event in conversation.events()
        if isinstance(event, MessageAdded) and event.message.role is Role.COMPANY
    ]


async def test_the_signed_out_journey() -> None:
    """Discover, ask, read, say more, close: the architecture's sample."""
    async with paired() as (dana, _, network, _):
        company = await dana.discover("example.com")
        assert (company.name, company.identifier, company.issuer) == ("Example", "https://example.com", None)
        session = company.session(user="dana")
        assert session.sid is None
        conversation = await session.ask("Where is my order?", locale="en-US")
        assert conversation.status is Status.WORKING
        assert await replies(conversation) == ["You said: Where is my order?"]
        assert conversation.status is Status.IDLE
        await conversation.say_as_user("Thanks.")
        assert await replies(conversation) == ["You said: Thanks."]
        await conversation.close()
        assert conversation.status is Status.CLOSED
        with pytest.raises(Refused) as caught:
            await conversation.say("One more")
        assert caught.value.code == "conversation_closed"
        assert await replies(conversation) == []
        assert {status for _, _, status in network.log} == {200, 201, 202, 409}


@pytest.mark.requirement("8.5-21", "8.5-22", "8.5-20")
async def test_events_come_in_order_and_once() -> None:
    """Over several pages, and over several readings."""
    async with paired() as (dana, bench, network, _):
        session = (await dana.discover("example.com")).session(user="dana")
        conversation = await session.ask("0")
        seen = [event.id async for event in conversation.events()]
        for number in range(1, 61):
            await bench.say(conversation.id, str(number), sub=session.user_id)
        before = len(network.log)
        seen += [event.id async for event in conversation.events()]
        assert len(network.log) - before > 1
        everything = (await bench.read(conversation.id, sub=session.user_id)).json["events"]
        assert seen[: len(everything)] == [event["id"] for event in everything]
        assert len(set(seen)) == len(seen)


async def test_a_conversation_is_resumed_by_another_process() -> None:
    """The vault has User ID and cursor: reading goes on after the last handled event."""
    async with paired() as (dana, bench, network, vault):
        session = (await dana.discover("example.com")).session(user="dana")
        conversation = await session.ask("Hello")
        await replies(conversation)
        await conversation.say("Still there?")
        again = agent_at(network, vault, Keys(bench.agent.identity), clock=bench.clock)
        async with again:
            [known] = await again.conversations("example.com", "dana")
            assert known.conversation_id == conversation.id
            other = (await again.discover("example.com")).session(user="dana")
            resumed = await other.resume(known.conversation_id)
            assert await replies(resumed) == ["You said: Still there?"]
            assert (other.user_id, other.sid == session.sid) == (session.user_id, False)
            assert await again.conversations("other.example") == ()


async def test_a_waiting_post_brings_the_reply_along() -> None:
    """Its events are read like any others, and no read is needed for them (8.3)."""
    async with paired() as (dana, _, network, _):
        session = (await dana.discover("example.com")).session(user="dana")
        conversation = await session.ask("Hello", wait=10)
        assert await replies(conversation) == ["You said: Hello"]
        assert [method for method, _, _ in network.log] == ["POST"]
        await conversation.say("More", wait=10)
        assert await replies(conversation) == ["You said: More"]
        assert [method for method, _, _ in network.log] == ["POST", "POST"]


async def test_a_handoff_is_heard_in_the_events() -> None:
    """Nobody is there, and the Company says so (8.9)."""
    async with paired() as (dana, _, _, _):
        session = (await dana.discover("example.com")).session(user="dana")
        conversation = await session.ask("Hello")
        await replies(conversation)
        await conversation.hand_off()
        events = [event async for event in conversation.events()]
        states = [event.status for event in events if isinstance(event, StateChanged)]
        assert states == [Status.QUEUED, Status.IDLE]
        assert any(isinstance(event, MessageAdded) for event in events)


async def test_an_ended_session_goes_on_in_another() -> None:
    """The Company ends it; the next message is accepted in a new Session, in the same conversation (5.5)."""
    async with paired() as (dana, bench, _, _):
        session = (await dana.discover("example.com")).session(user="dana")
        conversation = await session.ask("Hello")
        await replies(conversation)
        first = session.sid
        assert first is not None
        await bench.company.sessions.end(CLIENT_ID, first)
        await conversation.say("And now?")
        assert await replies(conversation) == ["You said: And now?"]
        assert session.sid != first


async def test_c45_metadata_is_fetched_once_for_many_requests() -> None:
    """Each request is signed afresh with one delegated key, so a Company that caches fetches nothing twice."""
    async with paired() as (dana, bench, _, _):
        session = (await dana.discover("example.com")).session(user="dana")
        for number in range(5):
            conversation = await session.ask(str(number))
            await replies(conversation)
        assert len(bench.documents.asked) == len(set(bench.documents.asked)) == 2
        assert len(await dana.delegated_keys()) == 1


async def test_users_share_nothing() -> None:
    """User IDs, delegated keys and Sessions are each their own; the Company sees strangers."""
    async with paired() as (dana, _, _, _):
        company = await dana.discover("example.com")
        sessions = [company.session(user="dana"), company.session(user="sam"), company.session("dana", anonymous=True)]
        conversations = [await session.ask("Hello") for session in sessions]
        assert len({session.user_id for session in sessions}) == 3
        for conversation in conversations:
            await replies(conversation)
        assert len({session.sid for session in sessions}) == 3
        keys = await dana.delegated_keys()
        assert {key.user_id for key in keys} == {sessions[0].user_id, sessions[1].user_id}
        with pytest.raises(Refused) as caught:
            async for _ in (await sessions[1].resume(conversations[0].id)).events():
                pass
        assert caught.value.code == "conversation_not_found"


async def test_a_company_that_serves_a_handler_of_its_own() -> None:
    """What the User's side says arrives as it was said: text, data and context."""
    company = Company(domain="example.com", name="E", base_url="https://api.example.com/poppy", store=MemoryStore())
    heard: list[Any] = []

    @company.conversation
    async def answer(turn: Any) -> str:
        heard.append((turn.messages[-1].data, dict(turn.context), turn.messages[-1].author.type.value))
        return "Noted."

    async with paired(company=company) as (dana, _, _, _):
        session = (await dana.discover("example.com")).session(user="dana")
        conversation = await session.ask("Seats", data={"row": 14}, time_zone="Europe/Rome", user_available=True)
        assert await replies(conversation) == ["Noted."]
        assert heard == [({"row": 14}, {"time_zone": "Europe/Rome", "user_available": True}, "agent")]
