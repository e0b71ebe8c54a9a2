"""The staff console as an app serves it: who comes in, what each form does, and what is refused."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from papaver.adapters.asgi import ASGIApp, CompanyEndpoint
from papaver.adapters.fastapi import Poppy as FastAPIPoppy
from papaver.adapters.starlette import Poppy as StarlettePoppy
from papaver.company.app import Company
from papaver.company.people import Person
from papaver.company.staff_console import Visit
from papaver.company.staff_console.visits import ACTIONS, READS
from papaver.ports.company import CompanyStore
from papaver.protocol.conversation.model import Author, AuthorType
from papaver.protocol.conversation.people_decide import Taken
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ConversationId
from papaver.stores.memory import MemoryStore
from papaver.stores.sqlite import SqliteStore
from papaver.testing.clock import ManualClock, SeededIds
from papaver.testing.company import CompanyBench, Documents, company_bench
from papaver.testing.keys import NOW, AgentKeys
from papaver.testing.pair import echoing
from tests.house.company_tokens import SCOPES, TokenTable
from tests.house.in_app import ask
from tests.house.staff_views import HOSTILE_TEXT
from tests.house.staff_window import ALEX, CONSOLE, KIM, StaffWindow, by_cookie, words

pytestmark = pytest.mark.anyio


def staffed(store: CompanyStore | None = None, **options: Any) -> Company:
    """A Company whose people come with a cookie of the app's."""
    offered: dict[str, Any] = {"sign_in": TokenTable(), "scopes": SCOPES, **options}
    company = echoing(store=store or MemoryStore(), staffed=True, **offered)
    company.staff_console(authenticate=by_cookie)
    return company


@asynccontextmanager
async def queued(company: Company | None = None, text: str = "Hello") -> AsyncGenerator[tuple[CompanyBench, str]]:
    """A conversation that waits for a person."""
    async with company_bench(company or staffed()) as bench:
        conversation: str = (await bench.start(text)).json["conversation_id"]
        await bench.idle(conversation)
        assert (await bench.send("POST", f"/{conversation}/handoff", {})).status == 202
        yield bench, conversation


async def told(bench: CompanyBench, conversation: str) -> list[Any]:
    """What the Personal Agent reads: texts, and states as `status/responder`."""
    events = (await bench.read(conversation)).json["events"]
    return [
        one["message"].get("text") if one["type"] == "message" else f"{one['status']}/{one['responder']}"
        for one in events
        if one["type"] in ("message", "state")
    ]


# ── who comes in ────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.requirement("papaver-144")
async def test_without_authenticate_there_is_no_console() -> None:
    """L28: neither a route, nor a way to have one without saying who may come in."""
    async with company_bench(echoing(staffed=True)) as bench:
        assert not bench.company.owns("api.example.com", CONSOLE)
        assert await bench.fetch(CONSOLE) is None
    company: Any = echoing()
    with pytest.raises(TypeError):
        company.staff_console()


def lets_anybody_in(visit: Visit) -> Author:
    return ALEX


NOT_ASYNC: list[object] = [None, lets_anybody_in, "alex"]


@pytest.mark.requirement("papaver-144")
@pytest.mark.parametrize("authenticate", NOT_ASYNC, ids=["none", "sync", "str"])
def test_who_says_who_comes_is_async(authenticate: Any) -> None:
    """A function that forgets to wait would let everybody in, or nobody."""
    with pytest.raises(ConfigurationError) as refused:
        echoing().staff_console(authenticate=authenticate)
    assert refused.value.rule == "staff.authenticate"


@pytest.mark.parametrize(
    "path", ["staff", "/staff/", "/", "", "/a b", "/poppy", "/poppy/conversations/x", "/poppy/livez"]
)
def test_the_console_has_a_path_for_itself(path: str) -> None:
    """It takes nothing from the protocol's endpoints, and is below no path that another reader could read otherwise."""
    with pytest.raises(ConfigurationError) as refused:
        echoing().staff_console(authenticate=by_cookie, path=path)
    assert refused.value.rule == "staff.path"


READ = [f"/conversations/{{}}/{what}".rstrip("/") for what in sorted(READS | {"nowhere"})]
PLACES = ["", "/news", "/nowhere", *READ]


@pytest.mark.requirement("papaver-144")
@pytest.mark.parametrize("place", PLACES)
async def test_nobody_unknown_sees_a_page(place: str) -> None:
    """Every page and every fragment, found or not: 403, and not a word of the conversation."""
    async with queued(text="A secret") as (bench, conversation):
        page = await StaffWindow(bench.company, "mallory").open(place.format(conversation))
        assert page.status == 403
        assert "secret" not in words(page)


@pytest.mark.requirement("papaver-144")
@pytest.mark.parametrize("action", sorted(ACTIONS))
async def test_nobody_unknown_does_anything(action: str) -> None:
    """Every form, also one with a token that somebody else's page had."""
    async with queued() as (bench, conversation):
        alex, before = StaffWindow(bench.company), await told(bench, conversation)
        await alex.conversation(conversation)
        alex.who = "mallory"
        refused = await alex.act(conversation, action, [("text", "x"), ("reason", "x"), ("confirm", "yes")])
        assert refused.status == 403
        assert await told(bench, conversation) == before


async def test_who_is_not_known_yet_is_sent_to_sign_in() -> None:
    """A page leads there; a script's question and a form do not: they would follow to a page that says nothing."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company, "new")
        page = await window.open(f"/conversations/{conversation}")
        assert (page.status, page.headers.first("location")) == (303, "https://example.com/in")
        assert (await window.open("/news")).status == 403
        assert (await window.act(conversation, "take")).status == 403


async def test_a_console_is_there_from_the_start_or_not_at_all() -> None:
    """A Company that runs already gets none; one without pages to show does not start."""
    async with company_bench(echoing(staffed=True)) as bench:
        with pytest.raises(ConfigurationError) as late:
            bench.company.staff_console(authenticate=by_cookie)
        assert late.value.rule == "staff.before-run"
    company = staffed()
    await company.store.open()
    with pytest.raises(ConfigurationError) as pageless:
        await company.wire(ManualClock(NOW), SeededIds(), Documents())
    assert pageless.value.rule == "staff.pages"
    await company.store.close()


class Nobody:
    """What comes back in place of a person."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def __call__(self, visit: Visit) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("no database"),
        Author(AuthorType.AGENT, "x"),
        Author(AuthorType.HUMAN),
        Author(AuthorType.HUMAN, "x", image="http://x"),
    ],
    ids=["raises", "agent", "no-id", "image"],
)
async def test_nobody_comes_in_by_a_fault_of_the_app(answer: Any, caplog: pytest.LogCaptureFixture) -> None:
    """403, and the log says what was wrong."""
    company = echoing(staffed=True)
    company.staff_console(authenticate=Nobody(answer))
    async with company_bench(company) as bench:
        assert (await StaffWindow(bench.company).open()).status == 403
    assert "authenticate failed" in caplog.text


# ── whose forms ─────────────────────────────────────────────────────────────────────────────────────────────────

FILLED = [("text", "x"), ("reason", "x"), ("scope", "orders:read"), ("confirm", "yes")]


@pytest.mark.requirement("papaver-145")
@pytest.mark.parametrize("action", sorted(ACTIONS))
@pytest.mark.parametrize("forged", ["no token", "another's token", "another browser", "another origin", "cross-site"])
async def test_a_forged_form_does_nothing(action: str, forged: str) -> None:
    """CSRF: the token is bound to the person and the browser, and the form comes from our own page."""
    async with queued() as (bench, conversation):
        alex, kim = StaffWindow(bench.company), StaffWindow(bench.company, "kim")
        await alex.conversation(conversation)
        before = await told(bench, conversation)
        headers = [("origin", alex.origin), ("sec-fetch-site", "same-origin")]
        if forged == "no token":
            alex.page = await kim.open()
        elif forged == "another's token":
            kim.cookies = dict(alex.cookies)
            alex.page = await kim.conversation(conversation)
        elif forged == "another browser":
            alex.cookies.clear()
        token = [("csrf", alex.csrf)] if alex.csrf else []
        if forged == "another origin":
            headers = [("origin", "https://evil.example")]
        elif forged == "cross-site":
            headers = [("sec-fetch-site", "cross-site")]
        refused = await alex.post(f"/conversations/{conversation}/{action}", [*token, *FILLED], headers)
        assert refused.status == 403
        assert await told(bench, conversation) == before


@pytest.mark.requirement("papaver-145")
async def test_a_form_that_is_too_large_or_none_is_refused() -> None:
    """Bounded before it is read; another content type is no form of ours."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        assert (await window.act(conversation, "say", [("text", "x" * 70_000)])).status == 413
        await window.conversation(conversation)
        place = f"{CONSOLE}/conversations/{conversation}/take"
        plain = await window.send("POST", place, body=b"csrf=x", headers=[("content-type", "text/plain")])
        assert plain.status == 400
        form = ("content-type", "application/x-www-form-urlencoded")
        assert (await window.send("POST", place, body=b"csrf=%ff", headers=[form])).status == 400
        assert (await window.send("POST", place, body=b"csrf=a&csrf=b", headers=[form])).status == 400


# ── what is done ────────────────────────────────────────────────────────────────────────────────────────────────


async def test_the_queue_shows_who_waits_and_for_how_long() -> None:
    """Then what somebody has. Each is a link to the conversation."""
    async with queued() as (bench, conversation):
        bench.clock.advance(75)
        window = StaffWindow(bench.company)
        page = await window.open()
        assert "Waiting 1 agent.example" in words(page)
        assert "1 min 15 s" in words(page)
        assert f'href="{CONSOLE}/conversations/{conversation}"' in page.body.decode()
        await window.conversation(conversation)
        await window.act(conversation, "take")
        assert "With a person 1 agent.example" in words(await window.open("/news"))


async def test_nobodys_many_handoffs_hide_anothers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of more than are shown each Personal Agent has its turn, and each of its Users; the page says that it is cut."""
    monkeypatch.setattr("papaver.company.queueing.LISTED", 4)
    other = AgentKeys("https://other.example/agent.json")
    asking = [*[(other, "usr_1")] * 4, (other, "usr_2"), (None, "usr_3")]
    async with company_bench(staffed()) as bench:
        bench.documents.publish(other)
        window = StaffWindow(bench.company)
        ids: list[str] = []
        for agent, user in asking:
            assert ("there are more" in words(await window.open())) is (len(ids) > 4)
            whose: dict[str, Any] = {"agent": agent, "sub": user, "sid": f"sid_{user}"}
            ids.append((await bench.start("Hello", **whose)).json["conversation_id"])
            assert (await bench.send("POST", f"/{ids[-1]}/handoff", {}, **whose)).status == 202
            bench.clock.advance(1)
        page = await window.open()
        assert "4 shown, there are more." in words(page)
        shown = re.findall(r'conversations/(\w[\w-]*)"', page.body.decode())
        assert [ids.index(one) for one in shown] == [0, 5, 4, 1]
        found = await bench.company.staff.queue_shown()
        assert ([row.conversation_id for row in found.rows], found.more) == (shown, True)


async def test_what_somebody_has_is_shown_however_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that nobody loses their own seat; of as many as are shown none is left out."""
    monkeypatch.setattr("papaver.company.queueing.LISTED", 2)
    async with company_bench(staffed()) as bench:
        ids = [(await bench.start("Hello")).json["conversation_id"] for _ in range(4)]
        for one in ids:
            await bench.idle(one)
            await bench.send("POST", f"/{one}/handoff", {})
            bench.clock.advance(1)
        await bench.company.people.human_joined(ConversationId(ids[1]), Person("aut_kim", "Kim"))
        for waiting, more in ((3, True), (2, False)):
            found = await bench.company.staff.queue_shown()
            assert [row.person is None for row in found.rows] == [True, True, False]
            assert (found.rows[2].conversation_id, found.more) == (ids[1], more), waiting
            await bench.company.people.close(ConversationId(ids[0]))


@pytest.mark.requirement("papaver-146")
async def test_two_take_the_same_conversation_and_one_is_told_who_has_it() -> None:
    """409 for the second, with the name on the page; taking it again oneself changes nothing."""
    async with queued() as (bench, conversation):
        alex, kim = StaffWindow(bench.company), StaffWindow(bench.company, "kim")
        await alex.conversation(conversation)
        await kim.conversation(conversation)
        taken = await alex.act(conversation, "take")
        assert (taken.status, "You have this conversation now." in words(taken)) == (200, True)
        refused = await kim.act(conversation, "take")
        assert refused.status == 409
        assert "Alex handles this conversation already." in words(refused)
        before = await told(bench, conversation)
        assert before[-1] == "idle/human"
        await alex.post(f"/conversations/{conversation}/take", [("csrf", alex.csrf)])
        assert (alex.page.status, await told(bench, conversation)) == (200, before)


@pytest.mark.requirement("papaver-146")
@pytest.mark.parametrize("action", sorted(ACTIONS))
async def test_only_who_has_it_does_something_in_it(action: str) -> None:
    """A colleague's form is refused with 409 and the name of who has it."""
    async with queued(staffed()) as (bench, conversation):
        alex, kim = StaffWindow(bench.company), StaffWindow(bench.company, "kim")
        await kim.conversation(conversation)
        await alex.conversation(conversation)
        await alex.act(conversation, "take")
        before = await told(bench, conversation)
        refused = await kim.act(conversation, action, FILLED)
        assert refused.status == 409
        assert "Alex" in words(refused)
        assert await told(bench, conversation) == before


@pytest.mark.requirement("8.7-07", "8.7-15", "ca-74")
async def test_what_a_person_says_is_theirs_and_said_once() -> None:
    """`author` is the person, `role` the Company's; a form that is sent twice is one message."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        await window.act(conversation, "take")
        fields = [("csrf", window.csrf), ("key", "k1"), ("text", " Hi,\r\nI am Alex. ")]
        for _ in range(2):
            assert (await window.post(f"/conversations/{conversation}/say", fields)).status == 200
        page = (await bench.read(conversation)).json
        said = [one["message"] for one in page["events"] if one["type"] == "message" and "Alex" in str(one)]
        assert [(one["text"], one["role"]) for one in said] == [("Hi,\nI am Alex.", "company")]
        assert said[0]["author"] == {"type": "human", "id": "aut_alex", "name": "Alex"}
        assert (page["status"], page["responder"]) == ("idle", "human")


async def test_what_was_typed_and_not_said_is_still_there() -> None:
    """The conversation was taken back meanwhile: the page says so, with the text in it for copying."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        await window.act(conversation, "take")
        await bench.company.people.human_left(ConversationId(conversation))
        refused = await window.act(conversation, "say", [("text", "A long answer")])
        assert refused.status == 409
        assert "join it first" in words(refused)
        assert "A long answer" in words(refused)
        empty = await window.act(conversation, "take")
        empty = await window.act(conversation, "say", [("text", "  ")])
        assert (empty.status, "Write a message first." in words(empty)) == (400, True)


@pytest.mark.requirement("8.10-10", "8.10-11")
async def test_a_person_asks_for_the_user_and_for_scopes() -> None:
    """Both are events, and neither changes who handles it. Scopes are those that the Company offers."""
    async with queued(staffed()) as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        await window.act(conversation, "take")
        assert (await window.act(conversation, "user", [("reason", "")])).status == 400
        asked = await window.act(conversation, "user", [("reason", "To confirm the exchange.")])
        assert "The Personal Agent was asked to bring the User." in words(asked)
        assert (await window.act(conversation, "scopes", [("scope", "root")])).status == 400
        assert (await window.act(conversation, "scopes")).status == 400
        both = [("scope", "orders:read"), ("scope", "orders:write")]
        assert "See orders" in words(await window.act(conversation, "scopes", both))
        page = (await bench.read(conversation)).json
        user, authorization = page["events"][-2:]
        assert (user["type"], user["reason"]) == ("user_requested", "To confirm the exchange.")
        assert (authorization["type"], authorization["scope"]) == ("authorization", "orders:read orders:write")
        assert (page["status"], page["responder"]) == ("idle", "human")


async def test_handing_back_lets_the_company_agent_answer_what_is_unanswered() -> None:
    """The queue is shown again; the message that came meanwhile is answered."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        await window.act(conversation, "take")
        await bench.say(conversation, "Are you there?")
        assert "The Company Agent has it again." in words(await window.act(conversation, "back"))
        await bench.idle(conversation)
        assert (await told(bench, conversation))[-3:] == ["working/agent", "You said: Are you there?", "idle/agent"]


async def test_nobody_available_is_said_by_the_company_agent() -> None:
    """With the reason that was typed, or the Company's usual sentence."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        for reason in ("We open at nine.", ""):
            await window.conversation(conversation)
            assert (await window.act(conversation, "unavailable", [("reason", reason)])).status == 200
            said = await told(bench, conversation)
            assert said[-1] == "idle/agent" or said[-2] == "idle/agent"
            assert (reason or "Nobody is available to take over right now. I am still here to help.") in said
            await bench.send("POST", f"/{conversation}/handoff", {})


async def test_closing_is_confirmed_and_final() -> None:
    """Without the confirmation nothing happens; afterwards there is nothing to do on the page, and 409 for a form."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        assert (await window.act(conversation, "close")).status == 400
        token = window.csrf
        assert "The conversation is closed." in words(await window.act(conversation, "close", [("confirm", "yes")]))
        assert (await told(bench, conversation))[-1] == "closed/agent"
        page = await window.conversation(conversation)
        assert "This conversation is closed." in words(page)
        assert not window.csrf
        late = await window.post(f"/conversations/{conversation}/take", [("csrf", token)])
        assert (late.status, "The conversation is closed." in words(late)) == (409, True)


@pytest.mark.requirement("papaver-146")
async def test_a_seat_survives_the_window_and_the_process() -> None:
    """It is in the conversation: another window, or the Company started again, shows it as this person's still."""
    store = MemoryStore()
    await store.open()
    async with queued(staffed(store)) as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        await window.act(conversation, "take")
        assert "You keep it when you close this window." in words(window.page)
    async with company_bench(staffed(store)) as bench:
        page = await StaffWindow(bench.company).conversation(conversation)
        assert "You have this conversation." in words(page)
    await store.close()


# ── what is shown ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_who_said_what_is_told_apart() -> None:
    """The Personal Agent, the User in their own words, the Company Agent, a person; facts beside them."""
    async with queued(text="I ask for Dana") as (bench, conversation):
        window = StaffWindow(bench.company)
        message = bench.message("Medium, please.", author={"type": "human"}, context={"locale": "de-DE"})
        await bench.send("POST", f"/{conversation}/messages", {"message": message})
        await window.conversation(conversation)
        await window.act(conversation, "take")
        page = words(await window.act(conversation, "say", [("text", "Hello, Dana.")]))
        assert "Personal Agent" in page.partition("I ask for Dana")[0]
        assert "The User, in their own words" in page.partition("Medium, please.")[0]
        assert "Company Agent" in page.partition("You said: I ask for Dana")[0]
        assert "Alex (you)" in page.partition("Hello, Dana.")[0]
        assert "Language de-DE" in page


async def test_hostile_words_stay_words() -> None:
    """No markup, no direction of their own, no control characters, in messages, details and facts."""
    async with queued() as (bench, conversation):
        nasty = HOSTILE_TEXT.replace("\u0000", "\u0007")
        message = bench.message(nasty, data={nasty: nasty}, context={"x": nasty})
        await bench.send("POST", f"/{conversation}/messages", {"message": message})
        page = (await StaffWindow(bench.company).conversation(conversation)).body.decode()
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        assert "<script>" not in page
        assert not {"\u202e", "\u0007"} & set(page)


async def test_what_is_verified_is_not_told_in_the_agents_words() -> None:
    """A fact named as one of ours stands in a list of its own, under words that say whose it is."""
    async with company_bench(staffed()) as bench:
        message = bench.message("Hello", context={"Account": "dana@example.com (signed in)", "Conversation": "x"})
        conversation = (await bench.send("POST", "", {"message": message})).json["conversation_id"]
        page = (await StaffWindow(bench.company, "alex").conversation(conversation)).body.decode()
        aside = page[page.index("<aside") :]
        verified, said = aside.split("What the Personal Agent says</h2>")
        assert (verified.count("<dt>Account</dt>"), verified.count("dana@example.com")) == (1, 0)
        assert "Signed out" in verified
        assert conversation in verified
        assert "<dt><bdi>Account</bdi></dt><dd><bdi>dana@example.com (signed in)</bdi></dd>" in said
        assert "<dt><bdi>Conversation</bdi></dt><dd><bdi>x</bdi></dd>" in said


async def test_a_long_conversation_is_shown_page_by_page() -> None:
    """The newest hundred events; earlier ones by a link, from where nothing can be done."""
    async with company_bench(staffed(), turns=False) as bench:
        conversation = (await bench.start("First of all")).json["conversation_id"]
        for number in range(120):
            await bench.company.people.post(ConversationId(conversation), f"Post {number}.")
        window = StaffWindow(bench.company)
        page = await window.conversation(conversation)
        assert ("Post 119." in words(page), "Post 20." in words(page), "Post 19." in words(page)) == (True, True, False)
        earlier = await window.open(f"/conversations/{conversation}", "before=22")
        assert ("First of all" in words(earlier), "Post 20." in words(earlier)) == (True, False)
        assert "Take over" not in words(earlier)
        assert "Back to the newest" in words(earlier)


@pytest.mark.requirement("8.10-02")
async def test_a_direct_conversation_is_shown_with_what_came_before_it() -> None:
    """Linked both ways; the conversation before it can be read."""
    async with queued(text="About order 1042") as (bench, parent):
        window = StaffWindow(bench.company)
        await window.conversation(parent)
        await window.act(parent, "take")
        asked = await bench.company.people.request_user(ConversationId(parent), "To confirm.")
        accepts = {"parent_conversation_id": parent, "user_requested_event_id": asked}
        child = (await bench.send("POST", "", accepts)).json["conversation_id"]
        page = await window.conversation(child)
        assert "The User reads this themselves" in words(page)
        assert "About order 1042" in words(page)
        assert f'href="{CONSOLE}/conversations/{parent}"' in page.body.decode()
        await window.act(child, "take")
        assert "Ask for the User" not in words(window.page)
        above = await window.conversation(parent)
        assert f'href="{CONSOLE}/conversations/{child}"' in above.body.decode()
        assert "Ask for the User" not in words(above)


# ── what is new ─────────────────────────────────────────────────────────────────────────────────────────────────


async def test_news_come_as_soon_as_they_are_there() -> None:
    """A question for news is held until something is said; then it brings that, and what can be done now."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        seq = (await bench.read(conversation)).json["events"].__len__()
        held = asyncio.create_task(window.open(f"/conversations/{conversation}/news", f"after={seq}"))
        await bench.held(1)
        await bench.company.people.human_joined(ConversationId(conversation), KIM)
        page = await held
        assert page.status == 200
        assert "A person took over." in words(page)
        assert 'data-panel="theirs"' in page.body.decode()
        assert f'data-seq="{seq + 1}"' in page.body.decode()


async def test_news_come_from_other_processes_too(tmp_path: Path) -> None:
    """Two Companies over one file: what is done at the one is shown at the other."""
    stores = [SqliteStore(tmp_path / "poppy.db") for _ in range(2)]
    async with queued(staffed(stores[0])) as (here, conversation), company_bench(staffed(stores[1])) as there:
        window = StaffWindow(there.company)
        await window.conversation(conversation)
        seq = len((await here.read(conversation)).json["events"])
        held = asyncio.create_task(window.open(f"/conversations/{conversation}/news", f"after={seq}"))
        await there.held(1)
        await here.company.people.human_joined(ConversationId(conversation), KIM)
        assert "A person took over." in words(await held)
        assert "Kim has this conversation." in words(await window.conversation(conversation))


@pytest.mark.requirement("papaver-146")
async def test_of_many_who_take_it_at_once_one_has_it(tmp_path: Path) -> None:
    """At two processes: one seat, and everybody else is told whose it is."""
    stores = [SqliteStore(tmp_path / "poppy.db") for _ in range(2)]
    async with queued(staffed(stores[0])) as (here, conversation), company_bench(staffed(stores[1])) as there:
        people = [here.company.people, there.company.people]
        colleagues = [Person(f"aut_{number}", f"Colleague {number}") for number in range(10)]
        taking = [people[n % 2].human_joined(ConversationId(conversation), who) for n, who in enumerate(colleagues)]
        ends = await asyncio.gather(*taking, return_exceptions=True)
        [winner] = [who for who, end in zip(colleagues, ends, strict=True) if end is None]
        assert all(end.person == winner for end in ends if isinstance(end, Taken))
        assert len([end for end in ends if isinstance(end, Taken)]) == 9
        assert (await told(here, conversation)).count("idle/human") == 1


async def test_a_question_for_news_ends_with_its_window_and_with_the_company() -> None:
    """204 and no place held any more."""
    async with queued() as (bench, conversation):
        window, gone = StaffWindow(bench.company), asyncio.Event()
        place = f"{CONSOLE}/conversations/{conversation}/news"
        left = asyncio.create_task(window.send("GET", place, "after=9", gone=gone))
        await bench.held(1)
        gone.set()
        assert (await left).status == 204
        held = asyncio.create_task(window.send("GET", place, "after=9"))
        await bench.held(1)
        bench.company.stop()
        assert (await held).status == 204
        assert bench.company.held == 0


async def test_without_script_a_frame_shows_what_is_new() -> None:
    """It reloads itself, has no form, and our own pages alone may frame it."""
    async with queued() as (bench, conversation):
        page = await StaffWindow(bench.company).open(f"/conversations/{conversation}/live", "after=2")
        policy = page.headers.first("content-security-policy") or ""
        assert "frame-ancestors 'self'" in policy
        assert page.headers.first("refresh") == "4"
        assert "<form" not in page.body.decode()
        assert "A person was asked for." in words(page)


@pytest.mark.parametrize("place", ["/conversations/none", "/conversations/none/news", "/conversations/none/live", "/x"])
async def test_what_is_not_there_is_told(place: str) -> None:
    """404 as a page."""
    async with company_bench(staffed()) as bench:
        assert (await StaffWindow(bench.company).open(place, "after=x")).status == 404


async def test_each_path_has_its_methods() -> None:
    """405 says which; HEAD is answered as GET is."""
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        refused = await window.open(f"/conversations/{conversation}/take")
        assert (refused.status, refused.headers.first("allow")) == (405, "POST")
        assert (await window.open("", method="DELETE")).headers.first("allow") == "GET, HEAD"
        assert (await window.open("", method="HEAD")).status == 200
        assert (await window.open("/assets/staff.js")).headers.first("content-type") == "text/javascript; charset=utf-8"
        assert (await window.open("/assets/nothing")).status == 404


async def test_no_page_is_framed_cached_or_scripted_by_others() -> None:
    """One script, ours, from a file; forms go home."""
    async with queued() as (bench, conversation):
        for place in ("", f"/conversations/{conversation}"):
            page = await StaffWindow(bench.company).open(place)
            policy = page.headers.first("content-security-policy") or ""
            for part in ("default-src 'none'", "script-src 'self'", "form-action 'self'", "frame-ancestors 'none'"):
                assert part in policy
            assert (page.headers.first("x-frame-options"), page.headers.first("cache-control")) == ("DENY", "no-store")
            cookie = page.headers.first("set-cookie") or ""
            for part in ("Secure", "HttpOnly", "SameSite=Lax", f"Path={CONSOLE}"):
                assert part in cookie


async def test_what_is_done_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Who did what where, and no word of it."""
    caplog.set_level(logging.INFO, "papaver.company")
    async with queued() as (bench, conversation):
        window = StaffWindow(bench.company)
        await window.conversation(conversation)
        await window.act(conversation, "take")
        await window.act(conversation, "say", [("text", "A secret")])
    assert f'"action": "say", "conversation": "{conversation}", "person": "aut_alex"' in caplog.text
    assert "A secret" not in caplog.text


# ── in an app ───────────────────────────────────────────────────────────────────────────────────────────────────


def in_fastapi(shop: Company) -> ASGIApp:
    app = FastAPI()
    FastAPIPoppy(app, shop)
    return app


def in_starlette(shop: Company) -> ASGIApp:
    app = Starlette()
    StarlettePoppy(app, shop)
    return app


def as_asgi(shop: Company) -> ASGIApp:
    return Starlette(routes=[Mount("/", CompanyEndpoint(shop))])


@pytest.mark.parametrize("mounted", [in_fastapi, in_starlette, as_asgi])
async def test_each_adapter_serves_it(mounted: Callable[[Company], ASGIApp]) -> None:
    """The app's own paths stay the app's."""
    async with company_bench(staffed()) as bench:
        app = mounted(bench.company)
        assert (await ask(app, "GET", f"https://api.example.com{CONSOLE}", cookie="who=alex")).status_code == 200
        assert (await ask(app, "GET", f"https://api.example.com{CONSOLE}")).status_code == 403
        assert (await ask(app, "GET", "https://api.example.com/poppy/staffroom")).status_code == 404


async def test_behind_a_proxy_links_are_as_the_world_sees_them() -> None:
    """A prefix that the proxy strips is in every link and in the cookie's path; another path is a setting."""
    company = echoing(base_url="https://api.example.com/svc/poppy", local_path="/poppy", staffed=True)
    company.staff_console(authenticate=by_cookie, path="/people")
    async with company_bench(company) as bench:
        page = await StaffWindow(bench.company).send("GET", "/people")
        assert 'href="/svc/people/assets/style.css' in page.body.decode()
        assert "Path=/svc/people" in (page.headers.first("set-cookie") or "")
