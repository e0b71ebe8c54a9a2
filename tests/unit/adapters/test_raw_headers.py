"""Header fields reach the Company as they were received: repeated ones are neither joined nor folded into one."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from papaver.adapters import fastapi, starlette
from papaver.adapters.asgi import ASGIApp, CompanyEndpoint, Receive, Scope, Send, incoming_of, send_response
from papaver.company import Company
from papaver.protocol.errors import PoppyError
from papaver.protocol.session import VerifiedSession
from papaver.values import strict_json
from papaver.web.messages import Response
from tests.unit.adapters.asgi_calls import call, message, outside, served, shop, signed

pytestmark = pytest.mark.anyio

URL = "https://api.example.com/cart"
ENDPOINT = "https://api.example.com/poppy/conversations"


def said(session: VerifiedSession) -> dict[str, Any]:
    """What an API of these tests answers."""
    return {"user": session.user_id, "extensions": dict(session.extensions)}


@asynccontextmanager
async def on_asgi(company: Company) -> AsyncGenerator[ASGIApp]:
    """Any app, with the Company in front of it."""

    async def cart(scope: Scope, receive: Receive, send: Send) -> None:
        incoming = incoming_of(scope, receive)
        try:
            session = await company.verify_api(incoming)
        except PoppyError as error:
            await send_response(company.api_error(error, incoming), send)
        else:
            await send_response(Response(200, body=strict_json.dumps(said(session))), send)

    async with served(company):
        yield CompanyEndpoint(company, cart)


@asynccontextmanager
async def on_starlette(company: Company) -> AsyncGenerator[ASGIApp]:
    app = Starlette()
    poppy = starlette.Poppy(app, company)

    async def cart(request: Request) -> JSONResponse:
        return JSONResponse(said(await poppy.session(request)))

    app.router.routes.append(Route("/cart", cart))
    async with app.router.lifespan_context(app):
        yield app


@asynccontextmanager
async def on_fastapi(company: Company) -> AsyncGenerator[ASGIApp]:
    app = FastAPI()
    poppy = fastapi.Poppy(app, company)

    async def cart(session: VerifiedSession) -> dict[str, Any]:
        return said(session)

    cart.__annotations__["session"] = Annotated[VerifiedSession, poppy.session()]
    app.get("/cart")(cart)
    async with app.router.lifespan_context(app):
        yield app


@pytest.fixture(params=[on_asgi, on_starlette, on_fastapi], ids=["asgi", "starlette", "fastapi"])
async def shop_app(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Any]:
    """A Company below each adapter: itself, and the app."""
    whole = starlette.running

    def running(company: Company, *, network: Any = None, turns: bool = True, telemetry: Any = None) -> Any:
        return whole(company, turns=turns, **outside())

    monkeypatch.setattr(starlette, "running", running)
    company = shop()
    async with request.param(company) as app:
        yield company, app


REPEATED = {
    "one Session twice": ("poppy-session", "{}", "invalid_session"),
    "a Session and nonsense": ("poppy-session", "{}x", "invalid_session"),
    "a Session and nothing": ("poppy-session", "", "invalid_session"),
    "one version twice": ("poppy-version", "{}", "version_unsupported"),
    "two versions": ("poppy-version", "0.5", "version_unsupported"),
}


@pytest.mark.requirement("ca-16")
@pytest.mark.parametrize(("name", "other", "code"), REPEATED.values(), ids=REPEATED)
async def test_c4_c89_b10_a_repeated_field_is_refused_below_every_adapter(
    shop_app: tuple[Company, ASGIApp], name: str, other: str, code: str
) -> None:
    """At the conversation endpoint and at the app's own API; whichever of the two comes first."""
    company, app = shop_app
    for method, path, url in (("POST", "/poppy/conversations", ENDPOINT), ("GET", "/cart", URL)):
        fields = signed(company, method, url)
        whole = [*fields.items(), (name, other.format(fields[name]))]
        for sent in (whole, whole[::-1]):
            answer = await call(app, method, path, headers=sent, chunks=[message()])
            assert (answer.status, answer.json["error"]) == (400, code)
        assert (await call(app, method, path, headers=fields, chunks=[message()])).status in (200, 201)


async def test_c4_extensions_in_two_fields_are_all_declared(shop_app: tuple[Company, ASGIApp]) -> None:
    """That field is a list, and a list may be spread over several fields (RFC 9651 4.2, readings 46)."""
    company, app = shop_app
    first, second = '"https://one.example/x";v="1"', '"https://two.example/y";v="2"'
    sent = [*signed(company, "GET", URL).items(), ("poppy-extensions", first), ("poppy-extensions", second)]
    answer = await call(app, "GET", "/cart", headers=sent)
    assert answer.json["extensions"] == {"https://one.example/x": "1", "https://two.example/y": "2"}
