"""Handoffs and people at a Company: what its hooks are told and answer, and what its own code does (8.7, 8.9)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from papaver.company.app import Company
from papaver.company.hooks import Cancelled, Handoff, HandoffAnswer, HandoffMessage, Nobody
from papaver.company.people import People, Person
from papaver.company.settings import CompanyLimits
from papaver.company.turn import Turn
from papaver.oauth.errors import InvalidScope
from papaver.protocol.conversation.model import Author, AuthorType, MessageAdded
from papaver.protocol.conversation.people_decide import DirectRefused, NotJoined, PersonRefused, Taken
from papaver.protocol.errors import ConfigurationError, ConversationClosed, ConversationNotFound
from papaver.protocol.terms import ConversationId
from papaver.stores.memory import MemoryStore
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import company_bench
from papaver.testing.pair import echoing, pair
from tests.house.company_tokens import SCOPES, TokenTable
from tests.house.desk import Desk, events_of, handed_off, settled, within

pytestmark = pytest.mark.anyio

ALEX = Person("aut_alex", "Alex")
KIM = Person("aut_kim", "Kim")
NOBODY = "Nobody is available to take over right now. I am still here to help."


# ── what becomes of a handoff ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("8.9-01")
async def test_a_personal_agent_asks_for_a_person_with_an_empty_object() -> None:
    """The body is `{}`, and the answer's status is the conversation's."""
    async with pair(echoing(staffed=True)) as both:
        shop = await both.agent.discover("example.com")
        conversation = await shop.session(user="dana").ask("Hello")
        _ = [event async for event in conversation.events()]
        await conversation.hand_off()
        [asked] = [one for one in both.wire.exchanges if one.place.endswith("/handoff")]
        assert asked.request.body == b"{}"
        assert (conversation.status.value, conversation.responder.value) == ("queued", "agent")


@pytest.mark.requirement("8.9-02", "8.7-12", "ca-69")
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_c32_from_the_queue_to_the_end(tmp_path: Path, kind: str) -> None:
    """Queued, joined, answered, left, closed: these events and no others, and the Company Agent is asked nothing."""
    desk = Desk()
    store = MemoryStore() if kind == "memory" else SqliteStore(tmp_path / "poppy.db")
    async with company_bench(desk.company(store)) as bench:
        conversation = await handed_off(bench)
        people = bench.company.people
        answered = await bench.say(conversation, "My order is late.")
        assert (answered.json["status"], answered.json["responder"]) == ("queued", "agent")
        await desk.until("My order is late.")
        await people.human_joined(conversation, ALEX)
        await people.post(conversation, "I look into it.", author=ALEX)
        await people.human_left(conversation)
        await people.hand_off(conversation)
        await bench.send("POST", f"/{conversation}/close", {})
        await desk.until("My order is late.", "cancelled")
        assert await events_of(bench, conversation) == [
            "user agent: Hello",
            "company agent: You said: Hello",
            "idle/agent",
            "queued/agent",
            "user agent: My order is late.",
            "idle/human",
            "company human: I look into it.",
            "idle/agent",
            "queued/agent",
            "closed/agent",
        ]
        assert desk.turns == ["Hello"]


@pytest.mark.requirement("8.9-04", "ca-69", "ca-76")
@pytest.mark.parametrize(("reason", "said"), [("We open at nine.", "We open at nine."), (None, NOBODY)])
async def test_c33_a_hook_that_finds_nobody_says_why(reason: str | None, said: str) -> None:
    """State, message, state; the Company Agent says it."""
    async with company_bench(Desk(Nobody(reason)).company()) as bench:
        conversation = await handed_off(bench)
        told = await within(bench, conversation, "idle/agent")
        assert told[3:] == ["queued/agent", f"company agent: {said}", "idle/agent"]


@pytest.mark.requirement("8.9-03", "8.7-07", "ca-73")
async def test_a_hook_that_finds_somebody_has_them_join_in_one_event() -> None:
    """From queued to idle and human at once."""
    async with company_bench(Desk(ALEX).company()) as bench:
        conversation = await handed_off(bench)
        told = await within(bench, conversation, "idle/human")
        assert told[3:] == ["queued/agent", "idle/human"]


async def forgets(asked: Handoff) -> Any:
    """A hook that falls off its end."""
    return None


async def never(asked: Handoff) -> HandoffAnswer:
    """A hook that hangs."""
    await asyncio.Event().wait()
    return "queued"


@pytest.mark.requirement("8.9-04")
@pytest.mark.parametrize(
    "answer",
    [RuntimeError("no rota"), forgets, never, Author(AuthorType.AGENT, "bot"), Author(AuthorType.HUMAN)],
    ids=["raises", "nothing", "hangs", "agent", "no-id"],
)
async def test_a_hook_that_fails_has_found_nobody(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """The conversation never stays queued for nothing, and the log says what was wrong."""
    async with company_bench(company_with(Desk(answer), lease=3, lease_renewed=1)) as bench:
        conversation = await handed_off(bench)
        told = await within(bench, conversation, "idle/agent")
        assert told[-2] == f"company agent: {NOBODY}"
    assert "the hook for handoffs failed" in caplog.text


def company_with(desk: Desk, **limits: int) -> Company:
    """A Company with these limits."""
    return desk.company(limits=CompanyLimits(**limits))


@pytest.mark.requirement("8.9-05", "ca-77")
async def test_the_company_agent_hands_off_by_itself() -> None:
    """Its reply first, then queued."""
    desk = Desk()
    async with company_bench(desk.company()) as bench:
        conversation = (await bench.start("I want a person.")).json["conversation_id"]
        told = await within(bench, conversation, "queued/agent")
        assert told[1:] == ["company agent: You said: I want a person.", "queued/agent"]


@pytest.mark.requirement("8.9-06")
async def test_c83_a_handoff_that_is_under_way_or_done_changes_nothing() -> None:
    """202 with how it stands, queued and with a person; the hook is asked once."""
    desk = Desk()
    async with company_bench(desk.company()) as bench:
        conversation = await handed_off(bench)
        await within(bench, conversation, "queued/agent")
        again = await bench.send("POST", f"/{conversation}/handoff", {})
        assert (again.status, again.json["status"], again.json["responder"]) == (202, "queued", "agent")
        await bench.company.people.human_joined(conversation, ALEX)
        before = await events_of(bench, conversation)
        with_person = await bench.send("POST", f"/{conversation}/handoff", {})
        assert (with_person.status, with_person.json["responder"]) == (202, "human")
        await bench.company.people.hand_off(conversation)
        assert await events_of(bench, conversation) == before
        assert len(desk.calls) == 1


@pytest.mark.requirement("8.9-06")
async def test_c98_two_handoffs_at_once_are_one() -> None:
    """One `queued` event, and one call of the hook."""
    desk = Desk()
    async with company_bench(desk.company()) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        await bench.idle(conversation)
        answers = await asyncio.gather(
            *(bench.send("POST", f"/{conversation}/handoff", {}) for _ in range(5)),
            bench.company.people.hand_off(ConversationId(conversation)),
        )
        assert {one.json["status"] for one in answers if one is not None} == {"queued"}
        told = await within(bench, conversation, "queued/agent")
        assert told.count("queued/agent") == 1
        await settled(bench, conversation)
        await bench.company.people.human_joined(ConversationId(conversation), ALEX)
        assert len(desk.calls) == 1


@pytest.mark.requirement("8.9-07", "ca-70")
async def test_c82_messages_while_queued_are_taken_and_reach_the_desk() -> None:
    """In order; also what a person is told afterwards, and a context update. The status stays as it is."""
    desk = Desk()
    async with company_bench(desk.company()) as bench:
        conversation = await handed_off(bench)
        await within(bench, conversation, "queued/agent")
        for text in ("one", "two"):
            assert (await bench.say(conversation, text)).json["status"] == "queued"
        update = bench.message(None, context={"user_available": False})
        assert (await bench.send("POST", f"/{conversation}/messages", {"message": update})).status == 202
        await desk.until("one", "two", "")
        await bench.company.people.human_joined(conversation, ALEX)
        assert (await bench.say(conversation, "three")).json["responder"] == "human"
        await desk.until("one", "two", "", "three")
        assert desk.turns == ["Hello"]


@pytest.mark.requirement("ca-70")
async def test_what_was_unanswered_before_is_told_with_the_handoff() -> None:
    """The hook that finds a person sees what nobody has answered, and the desk is told it once somebody will come."""
    desk = Desk()
    async with company_bench(desk.company(), turns=False) as bench:
        conversation = (await bench.start("Where is my order?")).json["conversation_id"]
        await bench.send("POST", f"/{conversation}/handoff", {})
        await bench.say(conversation, "It is number 1042.")
        runner = bench.company.start_turns()
        await desk.until("Where is my order?", "It is number 1042.")
        asked = desk.calls[0]
        assert isinstance(asked, Handoff)
        assert [one.text for one in asked.waiting] == ["Where is my order?", "It is number 1042."]
        assert (asked.client_id, asked.parent_id, asked.account_id) == (bench.agent.client_id, None, None)
        bench.company.stop()
        await runner


@pytest.mark.requirement("8.9-08", "ca-71")
@pytest.mark.parametrize("joined", [False, True])
async def test_closing_cancels_what_is_pending_and_tells_the_desk(joined: bool) -> None:
    """By either side; a person who comes afterwards is refused."""
    desk = Desk()
    async with company_bench(desk.company()) as bench:
        first, second = await handed_off(bench), await handed_off(bench)
        people = bench.company.people
        if joined:
            await people.human_joined(first, ALEX)
            await people.human_joined(second, ALEX)
        assert (await bench.send("POST", f"/{first}/close", {})).json["status"] == "closed"
        await desk.until("cancelled")
        await people.close(second)
        await desk.until("cancelled", "cancelled")
        assert {one.conversation_id for one in desk.calls if isinstance(one, Cancelled)} == {first, second}
        with pytest.raises(ConversationClosed) as refused:
            await people.human_joined(first, KIM)
        assert refused.value.rule == "conversation.not-closed"


# ── hooks: at least once, ordered, after what they tell of ──────────────────────────────────────────────────────


async def test_a_hook_may_call_back_into_the_service() -> None:
    """L35: nothing is locked while it runs, so it joins the very conversation that it is told of, and answers."""
    desk = Desk()
    company = desk.company()
    company.hooks.on_message = None

    @company.hooks.message
    async def joins(said: HandoffMessage) -> None:
        await company.people.human_joined(said.conversation_id, ALEX)
        await company.people.post(said.conversation_id, f"About {said.messages[0].text}:", author=ALEX)

    async with company_bench(company) as bench:
        conversation = await handed_off(bench)
        await bench.say(conversation, "order 1042")
        await within(bench, conversation, "company human: About order 1042:")


async def test_what_a_hook_is_told_of_is_durable_by_then() -> None:
    """It reads the message that it is told of from the conversation."""
    desk, seen = Desk(), asyncio.Queue[list[str]]()
    company = desk.company()
    company.hooks.on_message = None
    async with company_bench(company) as bench:

        @company.hooks.message
        async def reads(said: HandoffMessage) -> None:
            await seen.put(await events_of(bench, said.conversation_id))

        conversation = await handed_off(bench)
        await bench.say(conversation, "Are you there?")
        assert "user agent: Are you there?" in await seen.get()


async def test_a_hook_that_raises_is_told_again_later_and_in_order(caplog: pytest.LogCaptureFixture) -> None:
    """After one second, then two; what comes behind it in its conversation waits, and no other conversation does."""
    desk = Desk(failures=2)
    async with company_bench(desk.company()) as bench:
        first = await handed_off(bench)
        await within(bench, first, "queued/agent")
        await bench.say(first, "one")
        await desk.called(2)
        await bench.say(first, "two")
        bench.clock.advance(1.1)
        await desk.called(3)
        assert desk.told == []
        second = await handed_off(bench, "Elsewhere")
        await bench.say(second, "meanwhile")
        await desk.until("meanwhile")
        bench.clock.advance(2.1)
        await desk.until("meanwhile", "one", "two")
    assert "it is told again in 1 s" in caplog.text
    assert "it is told again in 2 s" in caplog.text


async def test_a_hook_that_never_succeeds_is_given_up_with_a_line_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """What comes behind it is told then."""
    desk = Desk(failures=2)
    async with company_bench(company_with(desk, hook_attempts=2)) as bench:
        conversation = await handed_off(bench)
        await within(bench, conversation, "queued/agent")
        await bench.say(conversation, "one")
        await bench.say(conversation, "two")
        await desk.called(2)
        bench.clock.advance(1.1)
        await desk.until("two")
    assert "a hook failed 2 times on" in caplog.text


async def test_a_hook_that_hangs_is_stopped_and_told_again(caplog: pytest.LogCaptureFixture) -> None:
    """It has as long as a turn; it holds nothing up meanwhile."""
    desk, told = Desk(), asyncio.Queue[str]()
    company = company_with(desk, turn_timeout=1)
    company.hooks.on_message = None
    hung: list[HandoffMessage] = []

    @company.hooks.message
    async def hangs(said: HandoffMessage) -> None:
        if not hung:
            hung.append(said)
            await asyncio.Event().wait()
        await told.put(said.messages[0].text or "")

    async with company_bench(company) as bench:
        conversation = await handed_off(bench)
        await bench.say(conversation, "one")
        while "it is told again" not in caplog.text:
            await asyncio.sleep(0)
            await bench.read(conversation)
        bench.clock.advance(1.1)
        assert await told.get() == "one"


async def test_what_was_not_told_before_the_end_is_told_after_the_next_start(tmp_path: Path) -> None:
    """At least once: the process ends in the middle of a hook, and the next one tells it whole."""
    before, began = Desk(), asyncio.Event()
    company = before.company(SqliteStore(tmp_path / "poppy.db"))
    company.hooks.on_message = None

    @company.hooks.message
    async def ends(said: HandoffMessage) -> None:
        began.set()
        await asyncio.Event().wait()

    async with company_bench(company) as bench:
        agent = bench.agent
        conversation = await handed_off(bench)
        await bench.say(conversation, "one")
        await bench.say(conversation, "two")
        await began.wait()
    after = Desk()
    async with company_bench(after.company(SqliteStore(tmp_path / "poppy.db")), agent=agent):
        await after.until("one", "two")


@pytest.mark.requirement("ca-87")
async def test_the_desk_is_told_of_direct_conversations() -> None:
    """Opened and closed, each with both ids, and after they can be read."""
    desk = Desk()
    async with company_bench(desk.company()) as bench:
        parent = ConversationId((await bench.start()).json["conversation_id"])
        await bench.idle(parent)
        asked = await bench.company.people.request_user(parent, "To confirm.")
        accepts = {"parent_conversation_id": parent, "user_requested_event_id": asked}
        child = (await bench.send("POST", "", accepts)).json["conversation_id"]
        await desk.until("opened")
        await bench.company.people.close(ConversationId(child))
        await desk.until("opened", "closed")
        opened, closed = desk.calls
        assert (opened.conversation_id, opened.parent_id) == (child, parent)
        assert (closed.conversation_id, closed.parent_id) == (child, parent)


@pytest.mark.parametrize("kind", ["handoff", "message", "cancelled", "direct_opened", "direct_closed"])
def test_there_is_one_async_hook_of_each_kind(kind: str) -> None:
    """A second one, or one that cannot be awaited, is refused where it is decorated."""
    hooks = Desk().company().hooks
    with pytest.raises(ConfigurationError) as second:
        getattr(hooks, kind)(forgets)
    assert second.value.rule == "configuration.one-hook"
    with pytest.raises(ConfigurationError) as sync:
        getattr(echoing().hooks, kind)(print)
    assert sync.value.rule == "configuration.handler-is-async"


# ── the Company's own code ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("8.7-07", "ca-73", "ca-75")
async def test_joining_and_leaving_twice_changes_nothing() -> None:
    """One event each; another person is told who has it, and leaves nobody else's seat."""
    async with company_bench(echoing()) as bench:
        conversation = ConversationId((await bench.start()).json["conversation_id"])
        await bench.idle(conversation)
        people = bench.company.people
        for _ in range(2):
            await people.human_joined(conversation, ALEX)
        with pytest.raises(Taken) as taken:
            await people.human_joined(conversation, KIM)
        assert (taken.value.person, taken.value.rule) == (ALEX, "people.one-at-a-time")
        with pytest.raises(NotJoined) as not_joined:
            await people.human_left(conversation, KIM.id)
        assert (not_joined.value.person, not_joined.value.rule) == (ALEX, "people.seated")
        for _ in range(2):
            await people.human_left(conversation, ALEX.id)
        assert (await events_of(bench, conversation))[3:] == ["idle/human", "idle/agent"]


@pytest.mark.parametrize("person", [Author(AuthorType.AGENT, "bot"), Author(AuthorType.HUMAN, None, "Alex")])
async def test_who_joins_is_a_person_with_an_id(person: Author) -> None:
    """Else nobody could tell whose seat it is."""
    async with company_bench(echoing(), turns=False) as bench:
        conversation = ConversationId((await bench.start()).json["conversation_id"])
        with pytest.raises(PersonRefused) as refused:
            await bench.company.people.human_joined(conversation, person)
        assert refused.value.rule == "people.person-has-id"


@pytest.mark.requirement("ca-74", "8.7-15")
async def test_a_post_with_a_key_is_said_once() -> None:
    """By its author, with its data; the id is the same each time. Without a key each post is one of its own."""
    async with company_bench(echoing()) as bench:
        conversation = ConversationId((await bench.start()).json["conversation_id"])
        await bench.idle(conversation)
        people = bench.company.people
        posts = [await people.post(conversation, "Sent.", data={"parcel": 7}, author=ALEX, key="k") for _ in range(3)]
        assert len(set(posts)) == 1
        await people.post(conversation, "More.")
        await people.post(conversation, "More.")
        messages = [one["message"] for one in (await bench.read(conversation)).json["events"] if "message" in one]
        assert [one.get("text") for one in messages][2:] == ["Sent.", "More.", "More."]
        assert messages[2]["author"] == {"type": "human", "id": "aut_alex", "name": "Alex"}
        assert (messages[2]["role"], messages[2]["data"]) == ("company", {"parcel": 7})
        assert messages[3]["author"] == {"type": "agent"}


@pytest.mark.requirement("ca-75")
async def test_what_a_person_leaves_unanswered_the_company_agent_answers() -> None:
    """And nothing that they answered."""
    desk = Desk()
    async with company_bench(desk.company()) as bench:
        conversation = await handed_off(bench)
        people = bench.company.people
        await people.human_joined(conversation, ALEX)
        await bench.say(conversation, "one")
        await people.post(conversation, "I see.", author=ALEX)
        await bench.say(conversation, "two")
        await people.human_left(conversation)
        await bench.idle(conversation)
        assert (await events_of(bench, conversation))[-3:] == [
            "working/agent",
            "company agent: You said: two",
            "idle/agent",
        ]
        assert desk.turns == ["Hello", "two"]


@pytest.mark.requirement("ca-76")
async def test_nobody_is_available_is_said_only_while_one_is_waited_for() -> None:
    """Afterwards it changes nothing."""
    async with company_bench(Desk().company()) as bench:
        conversation = await handed_off(bench)
        await within(bench, conversation, "queued/agent")
        for _ in range(2):
            await bench.company.people.unavailable(conversation, "We open at nine.")
        told = await events_of(bench, conversation)
        assert told[3:] == ["queued/agent", "company agent: We open at nine.", "idle/agent"]


@pytest.mark.requirement("ca-78", "ca-79")
async def test_the_company_asks_for_the_user_and_closes() -> None:
    """An event that changes no status; its id is the one to accept. Not where the User is already; a close is once."""
    async with company_bench(echoing()) as bench:
        conversation = ConversationId((await bench.start()).json["conversation_id"])
        await bench.idle(conversation)
        people = bench.company.people
        asked = await people.request_user(conversation, "To confirm.")
        page = (await bench.read(conversation)).json
        assert (page["events"][-1]["id"], page["events"][-1]["type"]) == (asked, "user_requested")
        assert (page["status"], page["responder"]) == ("idle", "agent")
        accepts = {"parent_conversation_id": conversation, "user_requested_event_id": asked}
        child = ConversationId((await bench.send("POST", "", accepts)).json["conversation_id"])
        with pytest.raises(DirectRefused) as refused:
            await people.request_user(child, "Again.")
        assert refused.value.rule == "people.asks-outside-direct"
        for _ in range(2):
            await people.close(conversation)
        assert (await events_of(bench, conversation))[-2:] == ["direct_closed", "closed/agent"]
        assert (await events_of(bench, child))[-1] == "closed/agent"
        with pytest.raises(ConversationClosed):
            await people.post(conversation, "Too late.")


CALLS: dict[str, Callable[[People, ConversationId], Awaitable[object]]] = {
    "human_joined": lambda people, id: people.human_joined(id, ALEX),
    "human_left": lambda people, id: people.human_left(id),
    "post": lambda people, id: people.post(id, "x"),
    "hand_off": lambda people, id: people.hand_off(id),
    "unavailable": lambda people, id: people.unavailable(id),
    "request_user": lambda people, id: people.request_user(id, "x"),
    "require": lambda people, id: people.require(id, "orders:read"),
    "close": lambda people, id: people.close(id),
}


@pytest.mark.requirement("ca-72")
@pytest.mark.parametrize("call", sorted(CALLS))
async def test_each_call_says_when_there_is_no_such_conversation(call: str) -> None:
    """They are an object that the app holds; it is there while the Company runs."""
    company = echoing(sign_in=TokenTable(), scopes=SCOPES)
    with pytest.raises(ConfigurationError) as not_running:
        _ = company.people
    assert not_running.value.rule == "configuration.running"
    async with company_bench(company) as bench:
        with pytest.raises(ConversationNotFound):
            await CALLS[call](bench.company.people, ConversationId("cnv_none"))


@pytest.mark.requirement("8.7-12")
async def test_a_turn_that_runs_when_a_person_joins_says_nothing() -> None:
    """L38: its reply is dropped, what it answered is the person's, and the status is the person's at once."""
    began, let = asyncio.Event(), asyncio.Event()

    async def slow(turn: Turn) -> str:
        began.set()
        await let.wait()
        return "Too late"

    async with company_bench(handler=slow) as bench:
        conversation = ConversationId((await bench.start("Help!")).json["conversation_id"])
        await began.wait()
        await bench.company.people.human_joined(conversation, ALEX)
        let.set()
        await bench.company.people.post(conversation, "I am here.", author=ALEX)
        await bench.company.people.human_left(conversation)
        told = await within(bench, conversation, "idle/agent")
        assert told == ["user agent: Help!", "idle/human", "company human: I am here.", "idle/agent"]


# ── seats ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("ca-72", "papaver-150")
async def test_people_wait_in_a_queue_and_take_seats() -> None:
    """The longest wait first; leaving the block hands back; a second person is told who has it."""
    async with company_bench(echoing(staffed=True, sign_in=TokenTable(), scopes=SCOPES)) as bench:
        first = await handed_off(bench)
        bench.clock.advance(5)
        second = await handed_off(bench)
        await within(bench, second, "queued/agent")
        staff = bench.company.staff
        waiting = staff.waiting()
        assert [(await anext(waiting)).conversation_id for _ in range(2)] == [first, second]
        async with staff.join(first, ALEX) as seat:
            await seat.say("Hello, I am Alex.")
            [taken] = [one for one in await staff.queue() if one.person is not None]
            assert (taken.conversation_id, taken.person, taken.direct) == (first, ALEX, False)
            with pytest.raises(Taken):
                async with staff.join(first, KIM):
                    pass
            with pytest.raises(InvalidScope, match="does not offer orders:nope; it offers: orders:read orders:write"):
                await seat.require("orders:read", "orders:nope")
            await seat.require("orders:read")
            await seat.ask_for_user("To confirm.")
        assert (await events_of(bench, first))[-5:] == [
            "idle/human",
            "company human: Hello, I am Alex.",
            "authorization",
            "user_requested",
            "idle/agent",
        ]
        third = await handed_off(bench)
        assert (await anext(waiting)).conversation_id == third
        await staff.unavailable(third, "Not today.")
        assert "company agent: Not today." in await events_of(bench, third)


async def test_a_seat_hears_everything_until_the_close() -> None:
    """What was said before, what comes, and then it ends; after another took over it says nothing more."""
    async with company_bench(echoing(staffed=True)) as bench:
        conversation = await handed_off(bench)
        people = bench.company.people
        async with bench.company.staff.join(conversation, ALEX) as seat:
            heard = seat.events()
            texts: list[str] = []
            while "Anybody there?" not in texts:
                event = await anext(heard)
                if isinstance(event, MessageAdded):
                    texts.append(event.message.text or "")
                elif len(texts) == 2 and "said" not in texts[0]:
                    await bench.say(conversation, "Anybody there?")
                    texts.append("asked")
            assert texts[:2] == ["Hello", "You said: Hello"]
            await people.human_left(conversation)
            await people.human_joined(conversation, KIM)
            with pytest.raises(NotJoined):
                await seat.say("I am still here.")
            await people.human_left(conversation)
            await people.human_joined(conversation, ALEX)
            await seat.close()
            rest = [event async for event in heard]
            assert rest
        assert (await events_of(bench, conversation))[-1] == "closed/human"
