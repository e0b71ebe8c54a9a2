"""A Company in a Starlette app: before its routes, in its lifespan, among its exception handlers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse
from starlette.routing import Mount, NoMatchFound, Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket

from papaver.adapters import starlette as adapter
from papaver.adapters.starlette import Poppy
from papaver.company import Company
from papaver.protocol.errors import ConfigurationError, InsufficientScope
from papaver.stores.memory import MemoryStore
from papaver.testing.issuers import HeldIssuer
from papaver.testing.keys import NOW
from tests.unit.adapters.asgi_calls import AGENT, call, message, outside, served, shop, signed

pytestmark = pytest.mark.anyio

ENDPOINT = "https://api.example.com/poppy/conversations"
DOCUMENT = "/.well-known/poppy.json"


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Poppy` runs its Company with documents of a test instead of the network."""
    whole = adapter.running

    def running(company: Company, *, network: Any = None, turns: bool = True, telemetry: Any = None) -> Any:
        return whole(company, turns=turns, **outside())

    monkeypatch.setattr(adapter, "running", running)


@asynccontextmanager
async def alive(app: Starlette) -> AsyncGenerator[Starlette]:
    """The app while its lifespan runs."""
    async with app.router.lifespan_context(app):
        yield app


async def catch_all(request: Request) -> PlainTextResponse:
    return PlainTextResponse(f"the shop's own {request.url.path}")


async def test_a_companys_routes_go_before_a_catch_all() -> None:
    """The 404 of a Company without issuer too; other hosts and paths are the app's, other methods are not."""
    company = shop()
    app = Starlette(routes=[Route("/{path:path}", catch_all, methods=["GET", "POST"])])
    Poppy(app, company)
    async with alive(app):
        ours = {"host": "example.com"}
        assert (await call(app, path=DOCUMENT, headers=ours)).json["organization"]["domain"] == "example.com"
        assert (await call(app, path="/.well-known/oauth-protected-resource", headers=ours)).status == 404
        assert (await call(app, path=DOCUMENT, headers={"host": "www.example.com"})).body.startswith(b"the shop")
        assert (await call(app, path="/orders", headers=ours)).body == b"the shop's own /orders"
        fields = signed(company, "POST", ENDPOINT)
        assert (await call(app, "POST", "/poppy/conversations", headers=fields, chunks=[message()])).status == 201
        assert (await call(app, "GET", "/poppy/conversations", headers=ours)).status == 405


@pytest.mark.requirement("3-02")
async def test_c42_the_app_may_redirect_another_host_to_the_companys() -> None:
    """www to apex is the app's business: the Company answers on its own host only."""

    async def to_apex(request: Request) -> PlainTextResponse:
        return PlainTextResponse("", 301, {"location": f"https://example.com{request.url.path}"})

    app = Starlette(routes=[Route("/{path:path}", to_apex)])
    Poppy(app, shop())
    answer = await call(app, path=DOCUMENT, headers={"host": "www.example.com"})
    assert (answer.status, answer.fields["location"]) == (301, f"https://example.com{DOCUMENT}")
    assert (await call(app, path=DOCUMENT, headers={"host": "example.com"})).status == 200


async def test_the_apps_own_lifespan_runs_inside_and_keeps_its_state() -> None:
    """The Company runs already when the app starts, and still when it ends."""
    order: list[str] = []
    company = shop()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[dict[str, str]]:
        order.append(f"starts {company.store.is_open}")
        yield {"shop": "open"}
        order.append(f"ends {company.store.is_open}")

    async def state(request: Request) -> JSONResponse:
        return JSONResponse(request.state.shop)

    app = Starlette(routes=[Route("/state", state)], lifespan=lifespan)
    Poppy(app, company)
    with TestClient(app, base_url="https://api.example.com") as client:
        assert client.get("/state").json() == "open"
        assert client.get("/poppy/healthz").json() == {"healthy": True, "store": "ok", "turns": "ok"}
    assert order == ["starts True", "ends True"]
    assert not company.store.is_open


async def test_an_apps_route_learns_the_session_or_answers_as_section_7_says() -> None:
    """The public URL of the route is `htu`, by the base URL."""
    company, app = shop(), Starlette()
    poppy = Poppy(app, company)

    async def orders(request: Request) -> JSONResponse:
        session = await poppy.session(request)
        return JSONResponse({"user": session.user_id, "body": (await request.body()).decode()})

    app.router.routes.append(Route("/orders/{id}", orders, methods=["GET", "POST"]))
    url = "https://api.example.com/orders/7"
    async with alive(app):
        answer = await call(app, "POST", "/orders/7", headers=signed(company, "POST", url), chunks=[b"a", b"b"])
        assert answer.json == {"user": "usr_dana", "body": "ab"}
        refused = await call(app, "GET", "/orders/7", headers={"host": "api.example.com"})
        assert (refused.status, refused.json["error"]) == (400, "invalid_session")
        assert refused.fields["cache-control"] == "no-store"
        other = await call(app, "GET", "/orders/7", headers=signed(company, "GET", url, version="9.9"))
        assert (other.status, other.json["error"]) == (400, "version_unsupported")


async def test_a_route_asks_for_the_account_and_its_scopes_or_uses_no_session() -> None:
    """`signed_in` names the scopes that it needs; `unverified` does not look at the Session header (5.3)."""
    issuer = HeldIssuer()
    company = shop(sign_in=issuer)

    async def orders(request: Request) -> JSONResponse:
        session = await poppy.signed_in(request, "orders:read")
        return JSONResponse({"account": session.account_id})

    async def products(request: Request) -> JSONResponse:
        caller = await poppy.unverified(request)
        return JSONResponse({"account": caller.account_id})

    app = Starlette(routes=[Route("/orders", orders), Route("/products", products)])
    poppy = Poppy(app, company)
    token = issuer.issue("t", "dana", "orders:read")
    url = "https://api.example.com/orders"
    async with alive(app):
        refused = await call(app, path="/orders", headers=signed(company, "GET", url))
        assert (refused.status, refused.fields["www-authenticate"].split(",")[0]) == (401, 'Bearer scope="orders:read"')
        header = AGENT.header("GET", url, company.id, now=NOW, access_token=token)
        fields = {**signed(company, "GET", url), "poppy-session": header, "authorization": f"Bearer {token}"}
        assert (await call(app, path="/orders", headers=fields)).json == {"account": "dana"}
        broken = {"poppy-session": "garbage", "authorization": f"Bearer {token}"}
        assert (await call(app, path="/products", headers=broken)).json == {"account": "dana"}
        assert (await call(app, path="/products", headers={"authorization": "Bearer x"})).status == 401
        with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.signed-in"):
            await poppy.signed_in(Request({"type": "http", "headers": []}))


async def test_what_a_middleware_changes_is_what_a_route_verifies() -> None:
    """The Company read the head before the app's middleware did; a field that it adds or drops counts all the same."""
    issuer = HeldIssuer()
    company = shop(sign_in=issuer)
    token = issuer.issue("t", "dana", "orders:read")

    class Swaps:
        def __init__(self, app: Any) -> None:
            self.app = app

        async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
            if scope["type"] == "http":
                kept = [pair for pair in scope["headers"] if pair[0] != b"authorization"]
                scope["headers"] = [*kept, (b"authorization", f"Bearer {token}".encode())]
            await self.app(scope, receive, send)

    async def orders(request: Request) -> JSONResponse:
        caller = await poppy.unverified(request)
        return JSONResponse({"account": caller.account_id})

    app = Starlette(routes=[Route("/orders", orders)], middleware=[Middleware(Swaps)])
    poppy = Poppy(app, company)
    async with alive(app):
        assert (await call(app, path="/orders")).json == {"account": "dana"}
        assert (await call(app, path="/orders", headers={"authorization": "Bearer x"})).json == {"account": "dana"}


async def test_an_issuer_shares_neither_its_domains_nor_itself_with_another_company() -> None:
    """Two Companies of one app that did would be one to Personal Agents (3.2)."""
    app = Starlette()
    Poppy(app, shop(sign_in=HeldIssuer(), domains=["example.no"]))
    for settings in (
        {"domain": "example.no", "base_url": "https://api.example.no/other"},
        {"domain": "example.se", "base_url": "https://api.example.se/other", "sign_in": HeldIssuer()},
    ):
        with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.distinct-companies"):
            Poppy(app, shop(**settings))


async def test_an_apps_own_refusal_leaves_the_same_way() -> None:
    """A route may raise what section 7 knows; anything else stays the app's error."""
    company, app = shop(), Starlette()
    Poppy(app, company)

    async def needs_scope(request: Request) -> JSONResponse:
        raise InsufficientScope("orders:write")

    app.router.routes.append(Route("/orders", needs_scope))
    async with alive(app):
        answer = await call(app, "GET", "/orders", headers={"host": "api.example.com"})
        assert answer.status == 403
        challenge = answer.fields["www-authenticate"]
        assert challenge.startswith('Bearer error="insufficient_scope"')
        assert challenge.endswith('scope="orders:write"')


async def test_c3_two_companies_in_one_app_and_store_share_nothing() -> None:
    """Each verifies with its own configuration, and writes the refusals of what it was asked about."""
    store = MemoryStore()
    one = shop(store=store, domain="one.example", base_url="https://one.example/poppy")
    two = shop(store=store, domain="two.example", base_url="https://two.example/second")
    app = Starlette()
    first, second = Poppy(app, one), Poppy(app, two)

    async def of_one(request: Request) -> JSONResponse:
        return JSONResponse((await first.session(request)).sid)

    async def of_two(request: Request) -> JSONResponse:
        return JSONResponse((await second.session(request)).sid)

    app.router.routes += [Route("/one", of_one), Route("/two", of_two)]
    async with alive(app):
        for company, path in ((one, "/poppy"), (two, "/second")):
            url = f"{company.offer.base_url}/conversations"
            fields = signed(company, "POST", url)
            started = await call(app, "POST", f"{path}/conversations", headers=fields, chunks=[message()])
            assert started.status == 201
            other = two if company is one else one
            crossed = signed(other, "POST", url)
            refused = await call(app, "POST", f"{path}/conversations", headers=crossed, chunks=[message()])
            assert refused.json["error"] == "invalid_session"
            document = await call(app, path=DOCUMENT, headers={"host": company.offer.domain})
            assert document.json["organization"]["domain"] == company.offer.domain
        fields = signed(two, "GET", "https://two.example/two")
        assert (await call(app, "GET", "/two", headers=fields)).json == "sid_Yx2b7Qd"
        fields = signed(two, "GET", "https://one.example/one")
        assert (await call(app, "GET", "/one", headers=fields)).json["error"] == "invalid_session"
    assert not store.is_open


@pytest.mark.parametrize(
    "settings",
    [
        {"domain": "other.example"},
        {"base_url": "https://other.example/other"},
    ],
    ids=["one path", "one domain"],
)
def test_c3_two_companies_that_would_answer_for_each_other_are_refused(settings: dict[str, Any]) -> None:
    """The same path, or the same domain, in one app."""
    app = Starlette()
    Poppy(app, shop())
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.distinct-companies"):
        Poppy(app, shop(**settings))


async def test_an_app_whose_lifespan_does_not_run_is_told() -> None:
    """Documents are served all the same; health says what is wrong."""
    app = Starlette()
    company = shop()
    Poppy(app, company)
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.running") as caught:
        await call(app, "POST", "/poppy/conversations", headers=signed(company, "POST", ENDPOINT))
    assert "lifespan" in caught.value.description
    assert (await call(app, path="/poppy/healthz")).status == 503
    assert (await call(app, path=DOCUMENT, headers={"host": "example.com"})).status == 200


async def test_a_company_without_a_handler_does_not_start() -> None:
    """C2: told at the start, with the remedy, not at the first message."""
    company = Company(domain="example.com", name="E", base_url="https://example.com", store=MemoryStore())
    app = Starlette()
    Poppy(app, company)
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.one-handler"):
        async with alive(app):
            pass
    assert not company.store.is_open


async def test_b65_health_is_asked_through_the_public_url() -> None:
    """It goes the way of the requests that it speaks for: a host list of the app stands in front of neither."""
    wrong = [Middleware(TrustedHostMiddleware, allowed_hosts=["localhost"])]
    app = Starlette(middleware=wrong)
    Poppy(app, shop())
    async with alive(app):
        answers = [
            (await call(app, path=DOCUMENT, headers={"host": "example.com"})).status,
            (await call(app, path="/poppy/healthz", headers={"host": "api.example.com"})).status,
            (await call(app, path="/poppy/healthz", headers={"host": "10.0.0.7"})).status,
            (await call(app, path="/own", headers={"host": "example.com"})).status,
        ]
        assert answers == [200, 200, 503, 400]


async def test_a_company_may_live_in_a_mounted_app() -> None:
    """Its base URL says where, mount included."""
    company = shop(base_url="https://api.example.com/v1/poppy")
    async with served(company) as endpoint:
        app = Starlette(routes=[Mount("/v1/poppy", endpoint)])
        url = "https://api.example.com/v1/poppy/conversations"
        answer = await call(
            app, "POST", "/v1/poppy/conversations", headers=signed(company, "POST", url), chunks=[message()]
        )
        assert answer.status == 201


async def test_websockets_and_names_are_left_to_the_app() -> None:
    """The Company has neither."""
    app = Starlette()
    Poppy(app, shop())

    async def echo(socket: WebSocket) -> None:
        await socket.accept()
        await socket.send_text("hello")
        await socket.close()

    app.router.routes.append(WebSocketRoute("/poppy/conversations", echo))
    with TestClient(app) as client, client.websocket_connect("/poppy/conversations") as socket:
        assert socket.receive_text() == "hello"
    with pytest.raises(NoMatchFound):
        app.url_path_for("poppy")


async def test_a_document_asked_for_on_a_host_that_is_nobody_s_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """The app may answer it; of two Companies neither tells of the other's."""
    app = Starlette(routes=[Route("/{path:path}", catch_all)])
    for domain in ("a.example", "b.example"):
        company = Company(
            domain=domain, name=domain, base_url=f"https://{domain}/{domain}", store=MemoryStore(), website=True
        )
        Poppy(app, company)
    for host in ("a.example", "b.example"):
        assert (await call(app, "GET", DOCUMENT, headers={"host": host})).status == 200
    assert caplog.messages == []
    assert (await call(app, "GET", DOCUMENT, headers={"host": "10.0.0.7"})).status == 200
    assert len(caplog.messages) == 2
    assert all("10.0.0.7" in line for line in caplog.messages)
