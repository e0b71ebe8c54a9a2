"""What a Company Agent has to be able to do, beyond the specification: the rows that no other test shows."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from papaver.adapters.starlette import Poppy as StarlettePoppy
from papaver.company.app import Company
from papaver.company.settings import CompanyLimits
from papaver.company.turn import Reply, Turn
from papaver.protocol.company import Access, ConversationProtocol
from papaver.protocol.conversation.model import Author, AuthorType
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ClientId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import company_bench
from papaver.testing.pair import echoing
from papaver.versions import DIALECTS
from tests.house.in_app import ask, session_header

pytestmark = pytest.mark.anyio

OPTIONS: dict[str, Any] = {"domain": "example.com", "name": "Example", "base_url": "https://api.example.com/poppy"}


@pytest.mark.requirement("ca-01")
async def test_one_handler_answers_every_conversation_and_there_is_no_second() -> None:
    """It is registered once, and a second one is a mistake that is told."""
    shop = echoing()
    with pytest.raises(ConfigurationError) as caught:

        @shop.conversation
        async def another(turn: Turn) -> None:
            return None

    assert caught.value.rule == "configuration.one-handler"
    async with company_bench(shop) as bench:
        for text in ("Hello", "Goodbye"):
            started = await bench.start(text)
            page = await bench.idle(started.json["conversation_id"])
            assert page.json["events"][1]["message"]["text"] == f"You said: {text}"


@pytest.mark.requirement("ca-02")
async def test_c3_two_companies_of_one_process_verify_each_with_its_own_configuration() -> None:
    """Nothing is registered for the process: what one allows, blocks or limits is nothing to the other."""
    open_to_all, careful = echoing(), echoing("careful.example", accept="allowed")
    async with company_bench(open_to_all) as one, company_bench(careful, agent=one.agent) as other:
        assert (await one.start()).status == 201
        assert (await other.start()).error == "invalid_session"
        client_id = ClientId(one.agent.client_id)
        await other.company.clients.judge(client_id, "allowed")
        await one.company.clients.judge(client_id, "blocked")
        assert (await other.start()).status == 201
        assert (await one.start()).error == "invalid_session"


@pytest.mark.requirement("ca-04")
async def test_the_configuration_is_frozen_and_judged_when_it_is_built() -> None:
    """A wrong value is told with the setting's name; a right one is never changed afterwards."""
    shop = echoing(limits=CompanyLimits(page=7))
    for value, name in ((shop.offer, "domain"), (shop.limits, "page")):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, name, "changed")
    with pytest.raises(ConfigurationError, match="page"):
        CompanyLimits(page=0)
    with pytest.raises(ConfigurationError) as caught:
        echoing("Example.com")
    assert caught.value.rule == "offer.domain-is-a-name"


@pytest.mark.requirement("ca-05")
async def test_the_endpoint_is_in_the_document_with_its_access() -> None:
    """`session` is what an absent `access` means; `signed_in` is written out."""
    shop = echoing()
    (version,) = shop.offer.versions
    documents = DIALECTS[version].documents
    document = shop.offer.document(version)
    assert document.agent is not None
    (entry,) = document.agent.protocols
    assert entry == ConversationProtocol("poppy", shop.offer.endpoint, Access.SESSION)
    for access, written in ((Access.SESSION, {}), (Access.SIGNED_IN, {"access": "signed_in"})):
        agent = dataclasses.replace(document.agent, protocols=(dataclasses.replace(entry, access=access),))
        told: Any = documents.write(dataclasses.replace(document, agent=agent))
        assert told["agent"]["protocols"] == [{"type": "poppy", "endpoint": shop.offer.endpoint, **written}]


@pytest.mark.requirement("ca-09", "ca-14")
@pytest.mark.parametrize(
    "base_url",
    [
        "",
        "/poppy",
        "example.com/poppy",
        "http://example.com/poppy",
        "https://example.com/poppy?x=1",
        "https://example.com/poppy#x",
        "https://example.com/poppy/",
    ],
)
def test_a_public_base_url_is_https_without_query_and_fragment(base_url: str) -> None:
    """Also behind TLS termination: what the world sees is https."""
    with pytest.raises(ConfigurationError) as caught:
        echoing(base_url=base_url)
    assert caught.value.rule == "offer.base-url"
    assert repr(base_url) in caught.value.description


@pytest.mark.requirement("ca-19")
async def test_a_turn_and_an_api_see_who_asks() -> None:
    """An API sees the whole Session of its request; a turn those who own the conversation."""
    seen: list[Turn] = []
    shop = Company(**OPTIONS, store=MemoryStore())

    @shop.conversation
    async def answer(turn: Turn) -> str:
        seen.append(turn)
        return "Hello"

    async with company_bench(shop) as bench:
        answered = await bench.start("Hi", query="wait=5", sub="usr_dana", agent_id="agt_1")
        assert answered.json["events"][1]["message"]["text"] == "Hello"
        assert (seen[0].client_id, seen[0].user_id) == (bench.agent.client_id, "usr_dana")

        async def orders(request: StarletteRequest) -> PlainTextResponse:
            session = await poppy.session(request)
            declared = ",".join(f"{name}={version}" for name, version in session.extensions.items())
            owner = f"{session.client_id} {session.user_id} {session.agent_id} {session.account_id}"
            return PlainTextResponse(f"{owner} {sorted(session.scopes)} {session.version} {declared}")

        app = Starlette(routes=[Route("/orders", orders)])
        poppy = StarlettePoppy(app, shop)
        url = "https://api.example.com/orders"
        header = session_header(bench, "GET", url, sub="usr_dana", agent_id="agt_1")
        told = await ask(
            app, "GET", f"{url}?page=2", poppy_session=header, poppy_version="0.4", poppy_extensions='"links";v="1"'
        )
        assert told.text == f"{bench.agent.client_id} usr_dana agt_1 None [] 0.4 links=1"


@pytest.mark.requirement("ca-51", "ca-53", "ca-104")
async def test_context_and_messages_that_wait_together_reach_one_turn() -> None:
    """Context alone starts no turn; what came while a turn ran is the next one, with the context merged."""
    turns: list[tuple[list[str | None], dict[str, object]]] = []
    begun, go = asyncio.Event(), asyncio.Event()
    shop = Company(**OPTIONS, store=MemoryStore())

    @shop.conversation
    async def answer(turn: Turn) -> str:
        turns.append(([message.text for message in turn.messages], dict(turn.context)))
        begun.set()
        await go.wait()
        return "Yes."

    async with company_bench(shop) as bench:
        first = bench.message(None, context={"locale": "de", "size": "m"})
        started = await bench.send("POST", "", {"message": first})
        here = started.json["conversation_id"]
        assert (started.json["status"], turns) == ("idle", [])
        await bench.say(here, "One")
        await begun.wait()
        await bench.say(here, "Two")
        more = bench.message("Three", context={"locale": None, "size": "l"})
        await bench.send("POST", f"/{here}/messages", {"message": more})
        go.set()
        page = await bench.idle(here)
    assert turns[0] == ([None, "One"], {"locale": "de", "size": "m"})
    assert turns[1] == (["Two", "Three"], {"size": "l"})
    said = [event["message"] for event in page.json["events"] if event["type"] == "message"]
    assert [message["role"] for message in said] == ["user"] * 4 + ["company"] * 2
    assert said[0]["context"] == {"locale": "de", "size": "m"}


@pytest.mark.requirement("ca-54")
async def test_a_reply_is_a_message_event_by_an_agent_that_may_have_a_name() -> None:
    """A plain text is by an agent without a name."""
    nina = Author(AuthorType.AGENT, id="nina", name="Nina", image="https://example.com/nina.png")
    shop = Company(**OPTIONS, store=MemoryStore())

    @shop.conversation
    async def answer(turn: Turn) -> str | Reply:
        return "I am nobody." if turn.text == "Who?" else Reply("I am Nina.", author=nina, data={"mood": "fine"})

    async with company_bench(shop) as bench:
        here = (await bench.start("Who?")).json["conversation_id"]
        await bench.idle(here)
        await bench.say(here, "And now?")
        events = (await bench.idle(here)).json["events"]
    said = [event["message"] for event in events if event["type"] == "message"]
    replies = [message for message in said if message["role"] == "company"]
    assert [reply["author"] for reply in replies] == [
        {"type": "agent"},
        {"type": "agent", "id": "nina", "name": "Nina", "image": "https://example.com/nina.png"},
    ]
    assert replies[1]["data"] == {"mood": "fine"}


@pytest.mark.requirement("ca-10", "ca-61", "ca-65")
async def test_pages_retries_and_waiting_posts_over_the_wire() -> None:
    """`has_more` says whether to go on; a retry gets the first answer; a bad cursor leaves nothing behind."""
    async with company_bench(echoing(limits=CompanyLimits(page=2))) as bench:
        message = bench.message("Hello")
        first = await bench.send("POST", "", {"message": message}, query="wait=5")
        here = first.json["conversation_id"]
        assert first.status == 201
        await bench.idle(here)
        again = await bench.send("POST", "", {"message": message})
        assert (again.status, again.json["conversation_id"]) == (201, here)
        pages = [await bench.read(here)]
        while pages[-1].json["has_more"]:
            pages.append(await bench.read(here, f"cursor={pages[-1].json['cursor']}"))
        sizes = [len(page.json["events"]) for page in pages]
        assert sizes == [2, 1]
        refused = await bench.say(here, "Lost", query="wait=5&cursor=evt_unknown")
        assert (refused.status, refused.error) == (400, "invalid_cursor")
        assert len((await bench.read(here, f"cursor={pages[-1].json['cursor']}")).json["events"]) == 0


@pytest.mark.requirement("ca-112")
async def test_c2_a_company_that_could_not_verify_or_answer_is_an_error_when_it_is_built() -> None:
    """Not a 501 at the first request."""
    with pytest.raises(TypeError, match="store"):
        Company(**OPTIONS)
    with pytest.raises(ConfigurationError) as caught:
        async with company_bench(Company(**OPTIONS, store=MemoryStore())):
            raise AssertionError("it runs without a handler")
    assert caught.value.rule == "configuration.one-handler"
    with pytest.raises(ConfigurationError) as caught:
        _ = echoing().sessions
    assert caught.value.rule == "configuration.running"


@pytest.mark.requirement("8.2-16")
async def test_each_side_chooses_its_own_ids() -> None:
    """A conversation_id in the body of a start is passed over, and the message keeps the id that it came with."""
    async with company_bench(echoing()) as bench:
        message = {**bench.message("Hello"), "id": "chosen_here"}
        started = await bench.send("POST", "", {"message": message, "conversation_id": "cnv_mine"}, query="wait=5")
        assert started.json["conversation_id"] != "cnv_mine"
        mine, reply = (event["message"] for event in started.json["events"] if event["type"] == "message")
        assert mine["id"] == "chosen_here"
        assert reply["id"] != "chosen_here"
