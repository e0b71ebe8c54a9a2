"""The Company stands ahead of its app's own middleware, in Starlette and in FastAPI, whenever that was added."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping
from typing import Any

import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from papaver.adapters import fastapi, starlette
from papaver.adapters.asgi import ASGIApp, Receive, Scope, Send
from papaver.company import Company
from tests.unit.adapters.asgi_calls import call, message, outside, shop, signed

pytestmark = pytest.mark.anyio

ENDPOINT = "https://api.example.com/poppy/conversations"


class Reads:
    """Middleware that reads the whole body first, as many do, and notes for what."""

    def __init__(self, app: ASGIApp, seen: list[str]) -> None:
        self._app, self._seen = app, seen

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        self._seen.append(scope["path"])
        events = [await receive()]
        while events[-1].get("more_body", False):
            events.append(await receive())

        async def again() -> MutableMapping[str, Any]:
            return events.pop(0) if events else await receive()

        await self._app(scope, again, send)


async def own(request: Request) -> PlainTextResponse:
    return PlainTextResponse("the shop's own")


def in_starlette(company: Company, seen: list[str]) -> Starlette:
    app = Starlette(routes=[Route("/{path:path}", own)], middleware=[Middleware(Reads, seen)])
    starlette.Poppy(app, company)
    app.add_middleware(Reads, seen)
    return app


def in_fastapi(company: Company, seen: list[str]) -> FastAPI:
    app = FastAPI(middleware=[Middleware(Reads, seen)])
    fastapi.Poppy(app, company)
    app.router.routes.append(Route("/{path:path}", own))

    @app.middleware("http")
    async def reads(request: Request, further: Callable[[Request], Any]) -> Any:
        seen.append(request.url.path)
        await request.body()
        return await further(request)

    return app


@pytest.mark.requirement("ca-111")
@pytest.mark.parametrize("build", [in_starlette, in_fastapi], ids=["starlette", "fastapi"])
async def test_c6_no_middleware_of_the_app_comes_before_the_session_is_judged(
    build: Callable[[Company, list[str]], Starlette], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A body that never ends is not waited for when the Session fails; and one that is right arrives whole."""
    whole = starlette.running

    def running(company: Company, *, network: Any = None, turns: bool = True, telemetry: Any = None) -> Any:
        return whole(company, turns=turns, **outside())

    monkeypatch.setattr(starlette, "running", running)
    seen, asked, sent = list[str](), list[str](), list[Any]()
    company = shop()
    app = build(company, seen)

    async def endless() -> dict[str, Any]:
        asked.append("body")
        return {"type": "http.request", "body": b" ", "more_body": len(asked) < 100}

    async def send(event: Any) -> None:
        sent.append(event)

    async with app.router.lifespan_context(app):
        headers = [(b"host", b"api.example.com"), (b"poppy-version", b"0.4"), (b"poppy-session", b"a.b.c")]
        path = "/poppy/conversations"
        scope: Any = {"type": "http", "method": "POST", "path": path, "query_string": b"", "headers": headers}
        await app(scope, endless, send)
        assert (sent[0]["status"], asked) == (400, [])
        right = signed(company, "POST", ENDPOINT)
        assert (await call(app, "POST", path, headers=right, chunks=[message()])).status == 201
        document = await call(app, path="/.well-known/poppy.json", headers={"host": "example.com"})
        assert document.status == 200
        assert seen == []
        others = await call(app, path="/orders", headers={"host": "example.com"})
        assert (others.body, seen) == (b"the shop's own", ["/orders", "/orders"])
