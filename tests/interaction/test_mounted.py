"""A Company in an app: which requests are its own, what decides their URL, and who is asked first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

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
from papaver.testing.company import company_bench
from papaver.testing.pair import echoing
from tests.house.in_app import ask, session_header

pytestmark = pytest.mark.anyio

POPPY_JSON = "/.well-known/poppy.json"


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


@pytest.mark.requirement("ca-11", "ca-12")
async def test_c4_verification_sees_the_method_the_public_url_and_the_headers() -> None:
    """Each of the three decides; the address at which the request arrived does not."""
    async with company_bench(echoing(local_path="/conv", base_url="https://api.example.com/svc/conv")) as bench:
        assert (await bench.start(host="10.0.0.3:8000")).status == 201
        for wrong in ({"htm": "GET"}, {"htu": "http://10.0.0.3:8000/conv/conversations"}, {"htu": bench.company.id}):
            refused = await bench.start(**wrong)
            assert refused.error == "invalid_session"
            assert next(iter(wrong)) in refused.json["error_description"]
        assert (await bench.start(headers={"poppy-session": None})).error == "invalid_session"


async def test_b21_a_prefix_that_a_proxy_strips_is_part_of_the_public_url() -> None:
    """The app sees /x; the document, and every `htu`, say /svc2/x."""
    async with company_bench(echoing(base_url="https://api.example.com/svc2/x", local_path="/x")) as bench:
        document = await bench.fetch(POPPY_JSON)
        assert document is not None
        public = "https://api.example.com/svc2/x/conversations"
        assert document.json["agent"]["protocols"][0]["endpoint"] == public
        app = in_starlette(bench.company)
        for htu, status in ((public, 201), ("https://api.example.com/x/conversations", 400)):
            header = session_header(bench, "POST", public, htu=htu)
            body = {"message": bench.message()}
            answer = await ask(
                app, "POST", "http://10.0.0.3/x/conversations", body, poppy_session=header, poppy_version="0.4"
            )
            assert answer.status_code == status


async def test_b65_readiness_is_asked_through_the_public_door() -> None:
    """It goes the way of the requests that it speaks for, by the same Host; not ready once it has ended."""
    async with company_bench(echoing()) as bench:
        app = in_starlette(bench.company)
        for method in ("GET", "HEAD"):
            ready = await ask(app, method, "https://api.example.com/poppy/healthz")
            assert ready.status_code == 200
            assert ready.headers["cache-control"] == "no-store"
    away = await ask(app, "GET", "https://api.example.com/poppy/healthz")
    assert (away.status_code, away.json()["healthy"]) == (503, False)


async def test_c5_a_refusal_at_an_api_keeps_its_headers_and_description() -> None:
    """What the protocol says reaches the caller whole, and nothing of what only we know."""

    async def orders(request: StarletteRequest) -> PlainTextResponse:
        return PlainTextResponse(str(await poppy.session(request)))

    async with company_bench(echoing(limits=CompanyLimits(requests_per_user=1))) as bench:
        app = Starlette(routes=[Route("/orders", orders)])
        poppy = StarlettePoppy(app, bench.company)
        url = "https://api.example.com/orders"
        refused = await ask(
            app, "GET", url, poppy_session=session_header(bench, "GET", url, htm="PUT"), poppy_version="0.4"
        )
        assert (refused.status_code, refused.headers["cache-control"]) == (400, "no-store")
        assert refused.json()["error"] == "invalid_session"
        assert "htm" in refused.json()["error_description"]
        answers = [
            await ask(app, "GET", url, poppy_session=session_header(bench, "GET", url), poppy_version="0.4")
            for _ in range(2)
        ]
        assert [answer.status_code for answer in answers] == [200, 429]
        assert int(answers[1].headers["retry-after"]) >= 1


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
