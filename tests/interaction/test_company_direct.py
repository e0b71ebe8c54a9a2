"""Direct Conversations and what a turn may ask for besides its reply, through the Company's front door (8.9-8.12)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from papaver.company.people import Person
from papaver.company.turn import Reply, Turn
from papaver.protocol.conversation.model import AuthorType
from papaver.protocol.terms import ConversationId
from papaver.testing.company import Answer, CompanyBench, company_bench
from tests.house.company_tokens import SCOPES, TokenTable, bearer

pytestmark = pytest.mark.anyio


def told(page: Answer) -> list[str]:
    """The events in short."""
    return [_short(event) for event in page.json["events"]]


def _short(event: dict[str, Any]) -> str:
    match event["type"]:
        case "message":
            return f"{event['message']['role']}: {event['message'].get('text', '')}"
        case "state":
            return f"{event['status']}/{event['responder']}"
        case kind:
            return str(kind)


async def opened(bench: CompanyBench, parent: str, *, query: str = "", **members: object) -> Answer:
    return await bench.send("POST", "", {"parent_conversation_id": parent, **members}, query=query)


async def ask_for_user(turn: Turn) -> str:
    """Asks for the User, greets them first, and answers them with what was said before they came."""
    if turn.opening:
        earlier = [message.text async for message in turn.parent_history()]
        return f"Hello Dana. Before: {' | '.join(filter(None, reversed(earlier)))}"
    if turn.direct:
        return f"To {turn.author_type}: {turn.text}"
    turn.request_user("A specialist needs your yes.")
    return "One moment."


async def invited(bench: CompanyBench) -> tuple[str, str]:
    """A conversation in which the Company asked for the User, and the event."""
    conversation = (await bench.start("Exchange it")).json["conversation_id"]
    page = await bench.idle(conversation)
    (event,) = [event for event in page.json["events"] if event["type"] == "user_requested"]
    assert event["reason"] == "A specialist needs your yes."
    return conversation, event["id"]


@pytest.mark.requirement("8.10-13", "8.10-16", "8.10-17")
async def test_the_company_speaks_first_where_the_user_accepts_without_a_word() -> None:
    """The wait on the opening request holds for that message, and it knows what was said before (8.10, 8.3)."""
    async with company_bench(handler=ask_for_user) as bench:
        conversation, event = await invited(bench)
        answer = await opened(bench, conversation, query="wait=25", user_requested_event_id=event)
        assert answer.status == 201
        assert told(answer) == ["working/agent", "company: Hello Dana. Before: Exchange it | One moment.", "idle/agent"]
        assert answer.json["conversation_id"] != conversation
        assert told(await bench.read(conversation))[-1] == "direct_opened"


@pytest.mark.requirement("papaver-148")
@pytest.mark.parametrize(
    ("parent", "child", "knows"),
    [
        ("acc_a", "acc_a", True),
        (None, "acc_a", True),
        (None, None, True),
        ("acc_b", "acc_a", False),
        ("acc_b", None, False),
    ],
)
async def test_nothing_of_an_earlier_conversation_with_another_account_is_known(
    parent: str | None, child: str | None, knows: bool
) -> None:
    """Both were begun signed out; then each is used with an account, or with none (8.2, 8.10)."""
    table = TokenTable()

    async def answer(turn: Turn) -> str:
        if turn.direct:
            return " | ".join([message.text or "" async for message in turn.parent_history()]) or "nothing"
        return f"Order 7 of {turn.require('orders:read')}" if turn.signed_in else "Hello"

    async with company_bench(handler=answer, sign_in=table, scopes=SCOPES) as bench:
        used = {account: bearer(table.issue(f"of {account}", account, "orders:read")) for account in ("acc_a", "acc_b")}
        first = (await bench.start("What of my order?", query="wait=5")).json["conversation_id"]
        human = bench.message("I am here", author={"type": "human"})
        second = (await opened(bench, first, message=human, query="wait=5")).json["conversation_id"]
        for conversation, account in ((first, parent), (second, child)):
            who = {} if account is None else used[account]
            assert (await bench.read(conversation, **who)).status == 200
        who = {} if child is None else used[child]
        page = await bench.say(second, "What was said?", query="wait=5", **who)
        assert told(page)[-2] == ("company: Hello | What of my order?" if knows else "company: nothing")


@pytest.mark.requirement("8.10-02", "8.10-01", "ca-81")
async def test_c35_the_user_talks_and_the_parent_waits() -> None:
    """`human` words reach the turn as such; the parent is blocked by name, and freed by the close (8.10)."""
    async with company_bench(handler=ask_for_user) as bench:
        conversation, _ = await invited(bench)
        human = {"id": "msg_h", "author": {"type": "human"}, "text": "Hi, it is me."}
        answer = await opened(bench, conversation, query="wait=25", message=human)
        child = answer.json["conversation_id"]
        assert told(answer)[:2] == ["user: Hi, it is me.", f"company: To {AuthorType.HUMAN}: Hi, it is me."]
        blocked = await bench.say(conversation)
        assert (blocked.status, blocked.json["error"]) == (409, "direct_conversation_open")
        assert blocked.json["conversation_id"] == child
        assert (await bench.send("POST", f"/{conversation}/handoff", {})).status == 409
        assert (await bench.read(conversation)).status == 200
        assert (await bench.send("POST", f"/{child}/close", {})).json["status"] == "closed"
        assert told(await bench.read(conversation))[-1] == "direct_closed"
        assert (await bench.say(conversation)).status == 202


@pytest.mark.requirement("8.10-14")
async def test_what_is_accepted_is_an_invitation_of_that_very_parent() -> None:
    """A message's event, another conversation's invitation, nobody's id: `invalid_request` (8.10)."""
    async with company_bench(handler=ask_for_user) as bench:
        conversation, event = await invited(bench)
        other, elsewhere = await invited(bench)
        message = (await bench.read(conversation)).json["events"][0]["id"]
        for parent, named in ((conversation, message), (conversation, elsewhere), (other, event), (other, "evt_x")):
            answer = await opened(bench, parent, user_requested_event_id=named)
            assert (answer.status, answer.error) == (400, "invalid_request")
        assert "direct_opened" not in told(await bench.read(conversation))


@pytest.mark.requirement("8.10-15")
async def test_c72_only_with_both_ids_the_message_may_be_left_out() -> None:
    """`invalid_request` with one alone (8.10)."""
    async with company_bench(handler=ask_for_user) as bench:
        conversation, event = await invited(bench)
        for body in ({"parent_conversation_id": conversation}, {"user_requested_event_id": event}, {}):
            answer = await bench.send("POST", "", body)
            assert (answer.status, answer.error) == (400, "invalid_request")


@pytest.mark.requirement("8.10-19")
async def test_c70_accepting_again_at_once_and_after_the_close() -> None:
    """Two at the same time and one after its close: one Direct Conversation (8.10)."""
    async with company_bench(handler=ask_for_user) as bench:
        conversation, event = await invited(bench)
        both = await asyncio.gather(*(opened(bench, conversation, user_requested_event_id=event) for _ in range(2)))
        (child,) = {answer.json["conversation_id"] for answer in both}
        await bench.send("POST", f"/{child}/close", {})
        size = len((await bench.read(child)).json["events"])
        again = await opened(bench, conversation, user_requested_event_id=event, message=bench.message("late"))
        assert (again.status, again.json) == (
            201,
            {"conversation_id": child, "status": "closed", "responder": "agent"},
        )
        assert len((await bench.read(child)).json["events"]) == size


async def hand_off(turn: Turn) -> str:
    turn.hand_off()
    return "I ask a colleague."


async def close(turn: Turn) -> str:
    turn.close()
    return "Bye."


@pytest.mark.requirement("8.9-05", "ca-77")
async def test_a_turn_hands_off() -> None:
    """The reply, `queued`; nobody is there, so it says so (8.9)."""
    async with company_bench(handler=hand_off) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        page = await bench.idle(conversation)
        assert told(page)[1:] == [
            "company: I ask a colleague.",
            "queued/agent",
            "company: Nobody is available to take over right now. I am still here to help.",
            "idle/agent",
        ]


@pytest.mark.requirement("8.12-04", "ca-78")
async def test_a_turn_closes() -> None:
    """The reply, then `closed`, and nothing more is taken (8.12)."""
    async with company_bench(handler=close) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        assert told(await bench.idle(conversation))[1:] == ["company: Bye.", "closed/agent"]
        assert (await bench.say(conversation)).error == "conversation_closed"


async def components(turn: Turn) -> Reply | None:
    turn.component("order", {"id": 1042}, "Order 1042: on its way.")
    turn.component("map", {}, "It is in Lyon.")
    return Reply(data={"eta": "tomorrow"}) if "data" in turn.text else None


@pytest.mark.requirement("ca-55", "ca-56")
@pytest.mark.parametrize("text", ["plain", "data"])
async def test_c30_components_come_with_words(text: str) -> None:
    """`data.components`, beside other data, and their fallbacks where nothing else was said."""
    async with company_bench(handler=components) as bench:
        conversation = (await bench.start(text)).json["conversation_id"]
        message = (await bench.idle(conversation)).json["events"][1]["message"]
        assert message["text"] == "Order 1042: on its way.\n\nIt is in Lyon."
        assert message["data"]["components"][0] == {
            "name": "order",
            "props": {"id": 1042},
            "fallback_text": "Order 1042: on its way.",
        }
        assert message["data"].get("eta") == ("tomorrow" if text == "data" else None)


async def needy(turn: Turn) -> str:
    if not turn.direct:
        turn.request_user("Sign in with us.")
        return "One moment."
    turn.require("orders:read")
    return "never"


@pytest.mark.requirement("ca-38")
async def test_c37_in_a_direct_conversation_the_account_is_asked_for_in_a_message_too() -> None:
    """The User reads messages, not events (8.10, 8.11)."""
    async with company_bench(handler=needy) as bench:
        conversation = (await bench.start("Exchange it")).json["conversation_id"]
        event = (await bench.idle(conversation)).json["events"][2]["id"]
        answer = await opened(bench, conversation, query="wait=25", user_requested_event_id=event)
        page = await bench.idle(answer.json["conversation_id"])
        assert told(page)[1:] == [
            "company: To go on, please sign in to your account with us and allow what is asked for.",
            "authorization",
            "idle/agent",
        ]


@pytest.mark.requirement("8.5-23", "8.13-08", "ca-60")
async def test_c17_a_cursor_of_events_that_are_gone_is_told_so() -> None:
    """410, then the log is read from its new beginning (8.5)."""
    async with company_bench(events_kept=3600) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        first = (await bench.idle(conversation)).json["events"][0]["id"]
        bench.clock.advance(3700)
        await bench.say(conversation)
        await bench.idle(conversation)
        await bench.sleepers(1)
        bench.clock.advance(61)
        while told(await bench.read(conversation))[0] != "user: And?":
            await bench.tick()
        gone = await bench.read(conversation, f"cursor={first}")
        assert (gone.status, gone.error) == (410, "cursor_expired")


@pytest.mark.requirement("8.7-12", "8.7-07")
async def test_a_person_who_joins_while_a_turn_runs_stops_it() -> None:
    """The handler is cancelled, and what it streamed so far comes to nothing (8.7)."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn) -> str:
        await turn.write("Let me")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    async with company_bench(handler=slow, staffed=True) as bench:
        conversation = ConversationId((await bench.start()).json["conversation_id"])
        await begun.wait()
        await bench.company.people.human_joined(conversation, Person("aut_alex", "Alex"))
        await ended.wait()
        await bench.company.people.post(conversation, "I am Alex.", author=Person("aut_alex", "Alex"))
        page = await bench.idle(conversation)
        assert told(page)[1:] == ["idle/human", "company: I am Alex."]
        assert page.json["events"][-1]["message"]["author"] == {"type": "human", "id": "aut_alex", "name": "Alex"}


@pytest.mark.requirement("8.10-03")
async def test_nothing_in_a_direct_conversation_is_kept_from_the_personal_agent() -> None:
    """There is no way to say something in it that the Personal Agent's read leaves out (8.10)."""
    offered: dict[str, Any] = {"sign_in": TokenTable(), "scopes": SCOPES}
    async with company_bench(handler=ask_for_user, staffed=True, **offered) as bench:
        conversation, event = await invited(bench)
        child = (await opened(bench, conversation, user_requested_event_id=event)).json["conversation_id"]
        await bench.idle(child)
        alex, name = Person("aut_alex", "Alex"), ConversationId(child)
        async with bench.company.staff.join(name, alex) as seat:
            await seat.say("Only between us?")
            await seat.require("orders:read")
        await bench.company.people.post(name, "From the app.", data={"note": 1})
        recorded = await bench.company.staff.look(name)
        read = await bench.read(child)
        assert [one["id"] for one in read.json["events"]] == [one.id for one in recorded.events]
        assert "company: Only between us?" in told(read)
