"""Reading a conversation of a Company that does what the test says: order, duplicates, gaps, ends and restarts."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.adapters.httpx2.personal_agent import HttpSession
from papaver.personal_agent.conversation import Conversation
from papaver.protocol.conversation.model import MessageAdded, Responder, Role, StateChanged, Status
from papaver.protocol.errors import CursorExpired, InvalidRequest, Misbehaved, RateLimited, Refused
from papaver.testing.rules import switched_off
from papaver.values.errors import PapaverError
from tests.house.agent_ports import MemoryVault
from tests.house.agent_scripted import Scripted, scripted
from tests.house.agent_world import DOMAIN, ENDPOINT, answer, error, unreachable

pytestmark = pytest.mark.anyio


async def opened(agent: Any, user: str = "dana") -> HttpSession:
    """A Session of this User."""
    session: HttpSession = (await agent.discover(DOMAIN)).session(user=user)
    return session


async def ids(conversation: Conversation, **options: bool) -> list[str]:
    """The ids of the events until the end."""
    return [event.id async for event in conversation.events(**options)]


def reads(network: Scripted) -> list[str]:
    """The queries of the reads so far."""
    return [str(hop.url).partition("?")[2] for hop in network.hops if hop.method == "GET"]


def page(*events: dict[str, Any], cursor: str | None = None, **members: Any) -> Any:
    """A page, as a Company may answer it."""
    last = events[-1]["id"] if events else None
    body = {"conversation_id": "cnv_1", "events": list(events), "cursor": cursor or last, "has_more": False}
    return answer(200, {**body, "status": "idle", "responder": "agent", **members})


def event(number: int, kind: str = "message", **members: Any) -> dict[str, Any]:
    """An event."""
    if kind == "message":
        said = {"id": f"cm_{number}", "role": "company", "author": {"type": "agent"}, "text": str(number)}
        members = {"message": said, **members}
    return {"id": f"evt_{number}", "type": kind, "created_at": "2026-10-02T00:13:20Z", **members}


@pytest.mark.requirement("8.5-09", "8.7-08", "8.7-09")
async def test_what_later_versions_add_is_no_obstacle() -> None:
    """Unknown event types are skipped, an unknown status means working, an unknown responder a person."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.script = [
            page(event(1), event(2, "sparkle", colour="red"), status="pondering", responder="committee"),
            page(event(3)),
        ]
        reading = conversation.events()
        assert (await anext(reading)).id == "evt_1"
        assert (conversation.status, conversation.responder) == (Status.WORKING, Responder.HUMAN)
        assert [one.id async for one in reading] == ["evt_3"]
        assert reads(network) == ["wait=25", "cursor=evt_2&wait=25"]


@pytest.mark.requirement("8.5-22")
async def test_an_event_that_comes_again_is_skipped() -> None:
    """In the same page, in the next one, and after a reconnect."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.script = [
            page(event(1), event(2), event(1), status="working"),
            unreachable(),
            page(event(2), event(3), event(2)),
        ]
        assert await ids(conversation) == ["evt_1", "evt_2", "evt_3"]


@pytest.mark.requirement("8.5-20")
async def test_more_is_read_at_once() -> None:
    """A page that is not the last is followed without holding."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.script = [
            page(event(1), has_more=True, status="working"),
            page(event(2), has_more=True, status="working"),
            page(event(3)),
        ]
        assert await ids(conversation) == ["evt_1", "evt_2", "evt_3"]
        assert reads(network) == ["wait=25", "cursor=evt_1", "cursor=evt_2"]


@pytest.mark.requirement("papaver-21")
async def test_more_that_never_comes_is_misbehaviour() -> None:
    """The same cursor again and again would be read for ever."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.script = [page(event(1), has_more=True), page(cursor="evt_1", has_more=True)]
        with pytest.raises(Misbehaved) as caught:
            await ids(conversation)
        assert caught.value.rule == "page.moves-on"
        network.company.script = [page(event(2), has_more=True), page(cursor="evt_2", has_more=True), page(event(3))]
        with switched_off("page.moves-on"):
            assert await ids(conversation) == ["evt_2", "evt_3"]


@pytest.mark.requirement("8.5-24")
async def test_an_expired_cursor_means_from_the_beginning() -> None:
    """What was handled before is skipped there."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.script = [page(event(1), event(2))]
        await ids(conversation)
        network.company.script = [error("cursor_expired", 410), page(event(2), event(3))]
        assert await ids(conversation) == ["evt_3"]
        assert reads(network)[1:] == ["cursor=evt_2", ""]
        network.company.script = [error("cursor_expired", 410), error("cursor_expired", 410)]
        with pytest.raises(CursorExpired):
            await ids(conversation)


@pytest.mark.requirement("8.5-13")
async def test_cursors_are_handed_back_as_they_came() -> None:
    """They are not compared, sorted or made up, whatever they look like."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        first, second = {**event(1), "id": "z-9"}, {**event(2), "id": "A_1"}
        network.company.script = [page(first, second, status="working"), page(cursor="A_1", status="working")]
        network.company.script += [page(cursor="0", status="idle"), page(cursor=None)]
        assert await ids(conversation) == ["z-9", "A_1"]
        assert await ids(conversation) == []
        assert reads(network) == ["wait=25", "cursor=A_1&wait=25", "cursor=A_1&wait=25", "cursor=0"]


async def test_a_company_that_never_holds_is_not_flooded() -> None:
    """An empty page that came at once is followed by a pause; a company that says when to come again is obeyed."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        empty = page(cursor=None, status="working")
        network.company.script = [empty, empty, answer(429, None, Retry_After="4"), page(event(1))]
        assert await ids(conversation) == ["evt_1"]
        assert network.clock.slept == [1, 1, 4]
        network.company.script = [answer(429, None, Retry_After="4"), answer(429, None, Retry_After="5")]
        with pytest.raises(RateLimited) as caught:
            await ids(conversation)
        assert caught.value.retry_after == 5


async def test_following_ends_with_the_conversation() -> None:
    """Idle is no end then; closed is."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.script = [page(event(1)), page(event(2)), page(event(3, "state", status="closed"))]
        network.company.script[2] = page(
            event(3, "state", status="closed", responder="agent"), status="closed", responder="human"
        )
        assert await ids(conversation, follow=True) == ["evt_1", "evt_2", "evt_3"]
        assert (conversation.status, conversation.responder) == (Status.CLOSED, Responder.HUMAN)


async def test_waiting_for_a_person_goes_on() -> None:
    """`queued` is no end."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("A person, please")
        await conversation.hand_off()
        queued = event(1, "state", status="queued", responder="agent")
        network.company.script = [page(queued, status="queued"), page(event(2), responder="human")]
        events = [one async for one in conversation.events()]
        assert [type(one) for one in events] == [StateChanged, MessageAdded]
        assert conversation.responder is Responder.HUMAN


@pytest.mark.requirement("8.5-21")
async def test_the_cursor_is_saved_after_the_event_was_handled() -> None:
    """A process that dies while it handles an event gets it again; what it handled before, it does not."""
    vault = MemoryVault()
    async with scripted(vault=vault) as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.events["cnv_1"].clear()
        for number in (1, 2, 3):
            network.company.add("cnv_1", "message", message=event(number)["message"])
        network.company.status = "idle"
        reading = conversation.events()
        assert [(await anext(reading)).id, (await anext(reading)).id] == ["evt_1", "evt_2"]
        assert conversation.cursor == "evt_1"
        company = network.company
    async with scripted(company, vault) as (agent, network):
        [known] = await agent.conversations()
        assert known.cursor == "evt_1"
        resumed = await (await opened(agent)).resume(known.conversation_id)
        assert await ids(resumed) == ["evt_2", "evt_3"]
        assert (await agent.conversations())[0].cursor == "evt_3"


async def test_leaving_a_loop_repeats_nothing_in_the_same_process() -> None:
    """Who breaks off after an event and comes back has handled it."""
    async with scripted() as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.say("cnv_1", "Hi")
        async for one in conversation.events():
            if isinstance(one, MessageAdded) and one.message.role is Role.COMPANY:
                break
        assert await ids(conversation) == ["evt_3"]


async def test_the_vault_remembers_a_bounded_number_of_events() -> None:
    """The newest ones, beside the cursor."""
    vault = MemoryVault()
    async with scripted(vault=vault) as (agent, network):
        conversation = await (await opened(agent)).ask("Hello")
        network.company.events["cnv_1"] = [event(number) for number in range(250)]
        network.company.status = "idle"
        assert len(await ids(conversation)) == 250
        [row] = [value for (kind, _), value in vault.stored.items() if kind == "conversation"]
        assert row.count(b"evt_") == 101
        assert row.count(b'"evt_249"') == 2


async def test_a_conversation_of_another_device_can_be_resumed() -> None:
    """It is read from its beginning, and known from then on."""
    async with scripted() as (agent, network):
        network.company.events["cnv_7"] = []
        network.company.say("cnv_7", "Welcome back")
        session = await opened(agent)
        conversation = await session.resume("cnv_7")
        assert network.hops == []
        assert await ids(conversation) == ["evt_1", "evt_2"]
        assert [known.conversation_id for known in await agent.conversations()] == ["cnv_7"]
        with pytest.raises(InvalidRequest) as caught:
            await session.resume("not/an/id")
        assert caught.value.rule == "conversation.id-alphabet"


# ── the outbox ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_message_without_an_answer_is_sent_before_the_next_one() -> None:
    """The same id both times: the Company had it already."""
    async with scripted() as (agent, network):
        session = await opened(agent)
        conversation = await session.ask("One")
        network.company.script = [unreachable()] * 6
        with pytest.raises(PapaverError) as caught:
            await conversation.say("Two")
        assert caught.value.code == "fetch_failed"
        [pending] = await agent.pending()
        assert (pending.text, pending.conversation_id, pending.domain) == ("Two", "cnv_1", DOMAIN)
        await conversation.say("Three")
        said = [one["message"]["text"] for one in network.company.events["cnv_1"]]
        assert said == ["One", "Two", "Three"]
        assert await agent.pending() == ()


async def test_a_start_without_an_answer_is_one_conversation() -> None:
    """The Company took it and the answer was lost: after a restart the same conversation comes back."""
    vault = MemoryVault()
    async with scripted(vault=vault) as (agent, network):
        session = await opened(agent)
        network.company.script = [answer(502)] * 6
        with pytest.raises(Refused):
            await session.ask("Only once")
        company = network.company
        [request, *_] = company.requests
        company.script = []
        company.take(request, network.clock.now())
    async with scripted(company, vault) as (agent, _):
        [conversation] = await (await opened(agent)).send_pending()
        assert conversation.id == "cnv_1"
        assert list(company.events) == ["cnv_1"]
        assert len(company.events["cnv_1"]) == 1


async def test_messages_that_cannot_be_sent_do_not_stop_a_new_one(caplog: pytest.LogCaptureFixture) -> None:
    """The failure is logged, without the message, and tried again with the next one."""
    vault = MemoryVault()
    async with scripted(vault=vault) as (agent, network):
        session = await opened(agent)
        network.company.script = [answer(500), answer(500), None, None]
        with pytest.raises(Refused):
            await session.ask("Poison")
        conversation = await session.ask("Food")
        assert conversation.id == "cnv_1"
        assert "could not be sent" in caplog.text
        assert "Poison" not in caplog.text
        assert [pending.text for pending in await agent.pending()] == ["Poison"]
        await conversation.say("More")
        assert await agent.pending() == ()


async def test_saying_again_is_recognised_by_the_endpoint() -> None:
    """What a conversation shows of itself, and where it is sent."""
    async with scripted() as (agent, network):
        session = await opened(agent)
        conversation = await session.ask("Hello")
        message = await conversation.say(data={"n": 1}, by_user=True)
        assert str(network.hops[-1].url) == f"{ENDPOINT}/cnv_1/messages"
        assert message.author.type.value == "human"
        assert repr(conversation) == "Conversation('cnv_1', working, agent)"
        assert conversation.session is session
        assert repr(session) == f"HttpSession('{DOMAIN}')"
