"""What a Company Agent has to be able to do, beyond the specification: the rows that no other test shows."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request as StarletteRequest
from starlette.responses import PlainTextResponse
from starlette.routing import Mount, Route

from papaver.adapters.asgi import ASGIApp, CompanyEndpoint
from papaver.adapters.fastapi import Poppy as FastAPIPoppy
from papaver.adapters.forward_auth import ForwardAuth
from papaver.adapters.starlette import Poppy as StarlettePoppy
from papaver.company.app import Company
from papaver.company.settings import CompanyLimits
from papaver.company.turn import Reply, Turn
from papaver.protocol.company import Access, ConversationProtocol
from papaver.protocol.conversation.model import Author, AuthorType
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import ClientId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import CompanyBench, company_bench
from papaver.testing.pair import echoing
from papaver.versions import DIALECTS

pytestmark = pytest.mark.anyio

POPPY_JSON = "/.well-known/poppy.json"
OPTIONS: dict[str, Any] = {"domain": "example.com", "name": "Example", "base_url": "https://api.example.com/poppy"}


async def ask(app: ASGIApp, method: str, url: str, *, peer: str = "192.0.2.7", **headers: str) -> httpx2.Response:
    """One request to an app in this process; `_` in a header's name is a hyphen."""
    transport = httpx2.ASGITransport(app, client=(peer, 4711))
    async with httpx2.AsyncClient(transport=transport) as client:
        return await client.request(
            method, url, headers={name.replace("_", "-"): value for name, value in headers.items()}
        )


def session_header(bench: CompanyBench, method: str, url: str, **claims: Any) -> str:
    return bench.agent.header(method, url, bench.company.id, now=bench.clock.now(), **claims)


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


@pytest.mark.requirement("ca-03")
@pytest.mark.parametrize("mounted", [in_fastapi, in_starlette, as_asgi])
async def test_one_call_mounts_a_company(mounted: Callable[[Company], ASGIApp]) -> None:
    """Its document is on its domain, and its endpoint verifies."""
    async with company_bench(echoing()) as bench:
        app = mounted(bench.company)
        document = await ask(app, "GET", f"https://example.com{POPPY_JSON}")
        assert document.json()["agent"]["protocols"][0]["endpoint"] == "https://api.example.com/poppy/conversations"
        refused = await ask(app, "POST", "https://api.example.com/poppy/conversations", poppy_version="0.4")
        assert (refused.status_code, refused.json()["error"]) == (400, "invalid_session")


@pytest.mark.requirement("ca-113")
@pytest.mark.parametrize("mounted", [in_fastapi, in_starlette])
async def test_c1_other_paths_are_the_apps_and_ours_say_404_and_405(mounted: Callable[[Company], ASGIApp]) -> None:
    """Inside the endpoint we answer, with `Allow` where the method is wrong; everything else is untouched."""

    async def cart(request: StarletteRequest) -> PlainTextResponse:
        return PlainTextResponse("the app's own")

    async with company_bench(echoing()) as bench:
        app: Any = mounted(bench.company)
        app.router.routes.append(Route("/{rest:path}", cart, methods=["GET", "POST"]))
        base = "https://api.example.com/poppy/conversations"
        wrong = await ask(app, "GET", base)
        assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
        unknown = await ask(app, "GET", f"{base}/cnv_1/nothing")
        assert (unknown.status_code, unknown.json()) == (404, {"error": "not_found"})
        for url in ("https://api.example.com/poppy", "https://api.example.com/", f"https://other.example{POPPY_JSON}"):
            assert (await ask(app, "GET", url)).text == "the app's own"


@pytest.mark.requirement("ca-111")
async def test_c6_a_session_is_judged_before_the_body_and_ahead_of_the_app() -> None:
    """Neither the body nor the app behind us is touched by a request whose Session fails."""
    touched: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        touched.append("app")

    async def receive() -> Any:
        touched.append("body")
        return {"type": "http.request", "body": b"{", "more_body": True}

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async with company_bench(echoing()) as bench:
        path = "/poppy/conversations"
        headers = [(b"host", b"api.example.com"), (b"poppy-version", b"0.4"), (b"poppy-session", b"a.b.c")]
        scope: Any = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await CompanyEndpoint(bench.company, app)(scope, receive, send)
    assert sent[0]["status"] == 400
    assert touched == []


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


@pytest.mark.requirement("ca-11", "ca-12")
async def test_verification_sees_the_method_the_public_url_and_the_headers() -> None:
    """Each of the three decides; the address at which the request arrived does not."""
    async with company_bench(echoing(local_path="/conv", base_url="https://api.example.com/svc/conv")) as bench:
        assert (await bench.start(host="10.0.0.3:8000")).status == 201
        for wrong in ({"htm": "GET"}, {"htu": "http://10.0.0.3:8000/conv/conversations"}, {"htu": bench.company.id}):
            refused = await bench.start(**wrong)
            assert refused.error == "invalid_session"
            assert next(iter(wrong)) in refused.json["error_description"]
        assert (await bench.start(headers={"poppy-session": None})).error == "invalid_session"


@pytest.mark.requirement("ca-13")
async def test_b18_host_and_forwarding_headers_decide_nothing() -> None:
    """A forged one makes no other `htu` right, and the true one stays right beside it."""
    forged = {"x-forwarded-host": "evil.example", "x-forwarded-proto": "http", "forwarded": "host=evil.example"}
    async with company_bench(echoing()) as bench:
        assert (await bench.start(headers=forged, host="evil.example")).status == 201
        refused = await bench.start(headers=forged, host="evil.example", htu="https://evil.example/poppy/conversations")
        assert refused.error == "invalid_session"


@pytest.mark.requirement("ca-13")
@pytest.mark.parametrize(("peer", "status"), [("10.0.0.9", 204), ("192.0.2.7", 400), ("not an address", 400)])
async def test_b22_a_proxy_that_is_named_may_ask_about_another_request(peer: str, status: int) -> None:
    """What it says of method and URL counts; from anybody else the same words are refused."""
    async with company_bench(echoing()) as bench:
        header = session_header(bench, "PUT", "https://api.example.com/orders/7")
        answer = await ask(
            ForwardAuth(bench.company, trusted_proxies=["10.0.0.0/24"]),
            "GET",
            "https://proxy.internal/auth",
            peer=peer,
            poppy_session=header,
            poppy_version="0.4",
            x_forwarded_method="PUT",
            x_forwarded_uri="/orders/7?size=m",
        )
    assert answer.status_code == status
    if status == 204:
        assert answer.headers["poppy-client-id"] == bench.agent.client_id
    else:
        assert answer.json()["error"] == "invalid_session"


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
