"""Messages and the ways in which they get lost: whatever breaks, each is accepted once and answered once (8.3)."""

from __future__ import annotations

import asyncio
import json

import pytest

from papaver.company.settings import CompanyLimits
from papaver.personal_agent.settings import AgentLimits
from papaver.ports.system import FetchFailed
from papaver.protocol.errors import DiscoveryFailed, RateLimited, Refused
from papaver.testing.pair import Pair, echoing, pair
from papaver.testing.wire import Exchange, Onward
from papaver.web.messages import Response
from tests.house.pairing import POPPY_JSON, Scene, Script, lose_answer, lose_request, replies, signed, told

pytestmark = pytest.mark.anyio

START, MESSAGES = "/conversations", "/messages"
ONCE = AgentLimits(attempts=1)


def ids_sent(both: Pair) -> list[str]:
    """The ids of the messages in all POSTs, in order."""
    return [json.loads(one.request.body)["message"]["id"] for one in signed(both) if b'"message"' in one.request.body]


async def everything(both: Pair) -> list[list[str | None]]:
    """The texts of every conversation that the agent knows, read from the beginning, both sides'."""
    session = (await both.agent.discover("example.com")).session("dana")
    read: list[list[str | None]] = []
    for known in await both.agent.conversations():
        await replies(await session.resume(known.conversation_id))
        answer = await session.http.get(f"https://api.example.com/poppy/conversations/{known.conversation_id}/events")
        events = answer.json()["events"]
        read.append([event["message"]["text"] for event in events if event["type"] == "message"])
    return read


async def test_nobody_waits_for_a_message_that_does_not_arrive_without_being_told(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each further try says what came of the last one, and when it is made; of the URL only the host is told."""
    async with pair() as both:
        busy = told(429, {"error": "rate_limited"}, retry_after="7")
        Script(both).then(START, lose_request, told(503), busy)
        session = (await both.agent.discover("example.com")).session("dana")
        await session.ask("Hi")
        assert [(one.name, one.levelname, one.getMessage()) for one in caplog.records] == [
            ("papaver.personal_agent", "WARNING", said)
            for said in (
                "no answer from api.example.com; sending the same again in 1 s (try 2 of 6)",
                "api.example.com answers 503; sending the same again in 2 s (try 3 of 6)",
                "api.example.com asks to wait; sending again in 7 s",
            )
        ]


@pytest.mark.requirement("8.3-05", "8.3-06")
@pytest.mark.parametrize(
    "fault", [lose_request, lose_answer, told(502, b"<html>")], ids=["request", "answer", "gateway"]
)
async def test_c9_a_message_that_is_sent_again_is_accepted_once(fault: Scene) -> None:
    """A start and a later message: the same id and content again, and one message, one conversation, one reply."""
    async with pair() as both:
        Script(both).then(START, fault).then(MESSAGES, fault)
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi", data={"n": 1}, locale="en-US")
        assert await replies(conversation) == ["You said: Hi"]
        await conversation.say("More")
        assert await replies(conversation) == ["You said: More"]
        first, again, second, third = [one.request.body for one in signed(both) if one.request.method == "POST"]
        assert (first, second) == (again, third)
        assert await everything(both) == [["Hi", "You said: Hi", "More", "You said: More"]]


@pytest.mark.parametrize("fault", [lose_request, lose_answer], ids=["request", "answer"])
async def test_a_message_that_got_no_answer_is_sent_by_the_next_process(fault: Scene) -> None:
    """Trying ends, the process ends; the next one finds it in the outbox and sends it, once."""
    async with pair(limits=ONCE) as both:
        Script(both).then(START, fault)
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(FetchFailed):
            await session.ask("Hi")
        [waiting] = await both.agent.pending()
        assert (waiting.text, waiting.user, waiting.conversation_id) == ("Hi", "dana", None)
        await both.restart()
        session = (await both.agent.discover("example.com")).session("dana")
        [conversation] = await session.send_pending()
        assert await replies(conversation) == ["You said: Hi"]
        assert await both.agent.pending() == ()
        assert ids_sent(both) == [waiting.message_id] * 2
        assert await everything(both) == [["Hi", "You said: Hi"]]


@pytest.mark.parametrize("arrived", [False, True], ids=["on-the-way", "accepted"])
@pytest.mark.parametrize("target", [START, MESSAGES])
async def test_a_crash_while_a_message_is_on_its_way_loses_and_doubles_nothing(arrived: bool, target: str) -> None:
    """The process dies in the middle of the POST, before or after the Company took it."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("First")
        await replies(conversation)
        reached = asyncio.Event()

        async def hold(exchange: Exchange, onward: Onward) -> Response:
            if arrived:
                await onward()
            reached.set()
            await asyncio.Event().wait()
            raise AssertionError

        Script(both).then(target, hold)
        dying = asyncio.create_task(conversation.say("Second") if target == MESSAGES else session.ask("Second"))
        await reached.wait()
        dying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await dying
        await both.restart()
        session = (await both.agent.discover("example.com")).session("dana")
        await session.send_pending()
        said = ["First", "You said: First", "Second", "You said: Second"]
        expected = [said] if target == MESSAGES else [said[:2], said[2:]]
        assert await everything(both) == expected


async def test_what_is_left_goes_out_before_the_next_message_and_in_order() -> None:
    """Two that got no answer, then one that does: the Company hears them in the order in which they were written."""
    async with pair(limits=ONCE) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("0")
        await replies(conversation)
        script = Script(both)
        for text in ("1", "2"):
            script.then(MESSAGES, lose_request)
            with pytest.raises(FetchFailed):
                await conversation.say(text)
            both.clock.advance(1)
            if text == "1":
                script.then(MESSAGES, lose_request)
        await conversation.say("3")
        await replies(conversation)
        [texts] = await everything(both)
        assert [text for text in texts if text in ("1", "2", "3")] == ["1", "2", "3"]


@pytest.mark.parametrize("moment", ["told", "paced"])
async def test_what_came_too_soon_is_dropped_for_its_author_and_kept_without_one(moment: str) -> None:
    """Who asks is told to ask later; what an earlier process left has nobody who would."""
    async with pair(limits=ONCE) as both:
        script = Script(both).then(START, lose_request, told(429, retry_after="900"))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(FetchFailed):
            await session.ask("Left behind")
        with pytest.raises(RateLimited):
            await session.send_pending()
        assert [one.text for one in await both.agent.pending()] == ["Left behind"]
        if moment == "told":
            await both.restart()
            session = (await both.agent.discover("example.com")).session("dana")
            script.then(START, told(429, retry_after="900"))
        with pytest.raises(RateLimited):
            await session.ask("Asked now")
        assert [one.text for one in await both.agent.pending()] == ["Left behind"]
        both.clock.advance(901)
        await session.send_pending()
        assert await everything(both) == [["Left behind", "You said: Left behind"]]


async def test_a_limit_that_a_lost_message_runs_into_leaves_it_undecided() -> None:
    """It may have been accepted when the limit was learned of: it stays, and is sent again under its id."""
    async with pair(limits=AgentLimits(attempts=3)) as both:
        session = (await both.agent.discover("example.com")).session("dana")

        async def limit_meanwhile(exchange: Exchange, onward: Onward) -> Response:
            session.live.not_before["POST https://api.example.com/poppy/conversations"] = both.clock.monotonic() + 900
            return await lose_answer(exchange, onward)

        Script(both).then(START, limit_meanwhile)
        with pytest.raises(FetchFailed):
            await session.ask("Hi")
        assert [one.text for one in await both.agent.pending()] == ["Hi"]
        both.clock.advance(900)
        [conversation] = await session.send_pending()
        assert await replies(conversation) == ["You said: Hi"]
        assert await everything(both) == [["Hi", "You said: Hi"]]


async def test_c66_a_retry_after_the_close_gets_the_first_answer() -> None:
    """Accepted, its answer lost, then the conversation closed: the retry is no new message and no error."""
    async with pair(limits=ONCE) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        Script(both).then(MESSAGES, lose_answer)
        with pytest.raises(FetchFailed):
            await conversation.say("Last words")
        await conversation.close()
        [same] = await session.send_pending()
        assert same.id == conversation.id
        assert await both.agent.pending() == ()


async def test_what_belongs_to_a_closed_conversation_is_dropped() -> None:
    """It never arrived, and now never will; the outbox is not stuck with it."""
    async with pair(limits=ONCE) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        Script(both).then(MESSAGES, lose_request)
        with pytest.raises(FetchFailed):
            await conversation.say("Too late")
        await conversation.close()
        assert await session.send_pending() == ()
        assert await both.agent.pending() == ()
        with pytest.raises(Refused) as caught:
            await conversation.say("And this")
        assert caught.value.code == "conversation_closed"


async def test_the_outbox_is_each_users_own() -> None:
    """What Dana left is not sent in Sam's name, nor to another Company."""
    async with pair(echoing(), echoing("other.example"), limits=ONCE) as both:
        Script(both).then(START, lose_request)
        with pytest.raises(FetchFailed):
            await (await both.agent.discover("example.com")).session("dana").ask("Mine")
        for domain, user in (("example.com", "sam"), ("other.example", "dana")):
            session = (await both.agent.discover(domain)).session(user)
            assert await session.send_pending() == ()
            await session.ask("Hi")
        assert [one.text for one in await both.agent.pending()] == ["Mine"]


async def test_what_is_older_than_a_day_is_not_sent_any_more() -> None:
    """A question of last week is nobody's any more."""
    async with pair(limits=ONCE) as both:
        Script(both).then(START, lose_request)
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(FetchFailed):
            await session.ask("Last week")
        both.clock.advance(86_401)
        assert await session.send_pending() == ()
        assert await both.agent.pending() == ()
        assert len(ids_sent(both)) == 1


async def test_many_messages_at_once_are_each_accepted_once() -> None:
    """Twenty tasks in one Session on a wire that loses every third answer."""
    count = 0

    async def lossy(exchange: Exchange, onward: Onward) -> Response:
        nonlocal count
        if exchange.by != "agent":
            return await onward()
        count += 1
        return await (lose_answer(exchange, onward) if count % 3 == 0 else onward())

    async with pair(echoing(limits=CompanyLimits(requests_per_user=10_000))) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        both.wire.interpose = lossy
        await asyncio.gather(*(session.ask(str(number)) for number in range(20)))
        both.wire.interpose = None
        assert await both.agent.pending() == ()
        found = await everything(both)
        assert sorted(found, key=lambda texts: int(texts[0] or 0)) == [
            [str(number), f"You said: {number}"] for number in range(20)
        ]


async def test_a_discovery_that_fails_leaves_the_outbox_alone() -> None:
    """Nothing can be sent, and nothing is dropped."""
    async with pair(limits=ONCE) as both:
        script = Script(both).then(START, lose_request)
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(FetchFailed):
            await session.ask("Hi")
        script.then(POPPY_JSON, told(500)).then(START, told(400, {"error": "version_unsupported"}))
        with pytest.raises(DiscoveryFailed):
            await session.send_pending()
        [waiting] = await both.agent.pending()
        await session.send_pending()
        assert ids_sent(both)[-1] == waiting.message_id
