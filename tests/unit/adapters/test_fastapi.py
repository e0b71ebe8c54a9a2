"""A Company in a FastAPI app: Sessions as dependencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated, Any

import pytest
from fastapi import APIRouter, FastAPI
from starlette.testclient import TestClient

from papaver.adapters import starlette as adapter
from papaver.adapters.fastapi import Poppy
from papaver.company import Company, Scope
from papaver.protocol.dialect import Version
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.negotiation import Retirement
from papaver.protocol.session import VerifiedSession
from papaver.protocol.signed_in import OAuthCaller, SignedInSession
from papaver.testing.issuers import HeldIssuer
from papaver.testing.keys import NOW
from papaver.versions import DIALECTS
from papaver.web.challenges import read_challenges
from tests.unit.adapters.asgi_calls import AGENT, message, outside, shop, signed


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Poppy` runs its Company with documents of a test instead of the network."""
    whole = adapter.running

    def running(company: Company, *, network: Any = None, turns: bool = True, telemetry: Any = None) -> Any:
        return whole(company, turns=turns, **outside())

    monkeypatch.setattr(adapter, "running", running)


def with_cart(company: Company) -> FastAPI:
    """An app with one API, below a router, and a page that takes everything else."""
    app = FastAPI()
    poppy = Poppy(app, company)
    router = APIRouter(prefix="/v1")

    async def cart(session: VerifiedSession) -> Mapping[str, str]:
        return {"user": session.user_id, "version": session.version}

    cart.__annotations__["session"] = Annotated[VerifiedSession, poppy.session()]
    router.get("/cart")(cart)
    app.include_router(router)

    @app.get("/{path:path}")
    async def page(path: str) -> str:
        return path

    return app


def client_of(app: FastAPI) -> TestClient:
    return TestClient(app, base_url="https://api.example.com")


def test_a_session_is_a_dependency() -> None:
    """Signed out is enough; the app's own catch-all stays behind the Company."""
    company = shop()
    with client_of(with_cart(company)) as client:
        fields = signed(company, "GET", "https://api.example.com/v1/cart")
        assert client.get("/v1/cart", headers=fields).json() == {"user": "usr_dana", "version": "0.4"}
        assert client.get("/anything").json() == "anything"
        document = client.get("https://example.com/.well-known/poppy.json")
        assert document.json()["organization"]["domain"] == "example.com"
        fields = signed(company, "POST", "https://api.example.com/poppy/conversations")
        assert client.post("/poppy/conversations", headers=fields, content=message()).status_code == 201


@pytest.mark.requirement("5.3-18", "7-30", "5.3-01")
def test_refusals_leave_by_section_7() -> None:
    """Missing, failed, and of another version: JSON, and FastAPI's own form of errors is not used."""
    company = shop()
    with client_of(with_cart(company)) as client:
        missing = client.get("/v1/cart")
        assert (missing.status_code, missing.json()["error"]) == (400, "invalid_session")
        elsewhere = client.get("/v1/cart", headers=signed(company, "GET", "https://api.example.com/v1/other"))
        assert (elsewhere.status_code, elsewhere.json()["error"]) == (400, "invalid_session")
        old = signed(company, "GET", "https://api.example.com/v1/cart", version="0.3")
        assert client.get("/v1/cart", headers=old).json()["error"] == "version_unsupported"


def test_an_api_of_a_version_that_ends_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """3.4: `Deprecation` and `Sunset` on what it answers."""
    first = DIALECTS[Version(0, 4)]
    both = {first.version: first, Version(0, 5): replace(first, version=Version(0, 5))}
    monkeypatch.setattr("papaver.company.offer.DIALECTS", both)
    company = shop(protocols=("0.5", "0.4"), retirements={"0.4": Retirement(1_790_000_000.0, 1_791_000_000.0)})
    with client_of(with_cart(company)) as client:
        url = "https://api.example.com/v1/cart"
        old = client.get("/v1/cart", headers=signed(company, "GET", url))
        new = client.get("/v1/cart", headers=signed(company, "GET", url, version="0.5"))
        assert (old.headers["deprecation"], "sunset" in old.headers) == ("@1790000000", True)
        assert "deprecation" not in new.headers


def test_the_apps_own_description_is_untouched() -> None:
    """The Company adds no operation to it."""
    app = with_cart(shop())
    assert set(app.openapi()["paths"]) == {"/v1/cart", "/{path}"}


# ── accounts ─────────────────────────────────────────────────────────────────────────────────────────────────────

READ = Scope("orders:read", "See your orders")
WRITE = Scope("orders:write", "Change your orders")


def with_orders(company: Company) -> FastAPI:
    """An app with a route behind scopes, and two that use no Session."""
    app = FastAPI()
    poppy = Poppy(app, company)

    async def orders(session: SignedInSession) -> Mapping[str, str]:
        return {"account": session.account_id, "user": session.user_id}

    async def products(caller: OAuthCaller) -> Mapping[str, str | None]:
        return {"account": caller.account_id}

    async def prices(caller: OAuthCaller) -> Mapping[str, str | None]:
        return {"account": caller.account_id}

    orders.__annotations__["session"] = Annotated[SignedInSession, poppy.signed_in("orders:read", "orders:write")]
    products.__annotations__["caller"] = Annotated[OAuthCaller, poppy.unverified()]
    prices.__annotations__["caller"] = Annotated[OAuthCaller, poppy.unverified("orders:read")]
    app.get("/orders")(orders)
    app.get("/products")(products)
    app.get("/prices")(prices)
    return app


def carrying(company: Company, token: str, url: str = "https://api.example.com/orders") -> dict[str, str]:
    """The fields of a signed-in request."""
    header = AGENT.header("GET", url, company.id, now=NOW, access_token=token)
    return {"poppy-session": header, "poppy-version": "0.4", "authorization": f"Bearer {token}"}


@pytest.mark.requirement("4.7-14", "5.4-10", "7-24")
def test_a_route_names_its_scopes_and_is_guarded_by_them() -> None:
    """No token: 401 with the scopes and no code. Too few: 403. Enough: the account and the User (4.7)."""
    issuer = HeldIssuer()
    company = shop(sign_in=issuer, scopes=[READ, WRITE])
    few, enough = issuer.issue("few", "dana", "orders:read"), issuer.issue("all", "dana", "orders:read", "orders:write")
    with client_of(with_orders(company)) as client:
        out = client.get("/orders", headers=signed(company, "GET", "https://api.example.com/orders"))
        assert (out.status_code, out.content) == (401, b"")
        bearer, _ = read_challenges(out.headers.get_list("www-authenticate"))
        assert bearer.params == {"scope": "orders:read orders:write"}
        refused = client.get("/orders", headers=carrying(company, few))
        assert (refused.status_code, refused.json()["error"]) == (403, "insufficient_scope")
        answer = client.get("/orders", headers=carrying(company, enough))
        assert (answer.status_code, answer.json()) == (200, {"account": "dana", "user": "usr_dana"})


@pytest.mark.requirement("ca-20")
def test_b54_a_refused_token_keeps_its_challenges_and_fields() -> None:
    """As they were written: nothing of the app's own error handling takes their place."""
    company = shop(sign_in=HeldIssuer(), scopes=[READ], dpop_nonces=True)
    with client_of(with_orders(company)) as client:
        answer = client.get("/orders", headers=carrying(company, "never-issued"))
        assert (answer.status_code, answer.headers["cache-control"]) == (401, "no-store")
        schemes = [challenge.scheme for challenge in read_challenges(answer.headers.get_list("www-authenticate"))]
        assert (schemes, answer.json()["error"]) == (["Bearer", "DPoP"], "invalid_token")


@pytest.mark.requirement("4.7-04", "ca-116")
def test_scopes_appear_in_the_apps_openapi_description() -> None:
    """As an OAuth 2.0 scheme with each scope's description, and at each route what it needs."""
    document = with_orders(shop(sign_in=HeldIssuer(), scopes=[READ, WRITE])).openapi()
    name = "poppy-example.com"
    (flow,) = document["components"]["securitySchemes"][name]["flows"].values()
    assert flow["scopes"] == {"orders:read": "See your orders", "orders:write": "Change your orders"}
    assert flow["tokenUrl"] == "https://auth.example.com/token"
    assert document["paths"]["/orders"]["get"]["security"] == [{name: ["orders:read", "orders:write"]}]
    assert document["paths"]["/prices"]["get"]["security"] == [{name: ["orders:read"]}]
    assert "security" not in document["paths"]["/products"]["get"]


@pytest.mark.requirement("5.3-15", "5.3-17")
def test_a_route_may_use_no_session() -> None:
    """A broken header is not looked at; a token is."""
    issuer = HeldIssuer()
    token = issuer.issue("t", "dana", "orders:read")
    with client_of(with_orders(shop(sign_in=issuer, scopes=[READ]))) as client:
        assert client.get("/products", headers={"poppy-session": "garbage"}).json() == {"account": None}
        assert client.get("/prices").status_code == 401
        assert client.get("/prices", headers={"authorization": f"Bearer {token}"}).json() == {"account": "dana"}
        assert client.get("/products", headers={"authorization": "Bearer x"}).status_code == 401


@pytest.mark.requirement("papaver-73")
def test_a_guard_that_could_not_be_passed_is_an_error_when_the_app_is_built() -> None:
    """No scope to name, and no issuer to ask."""
    for company, scopes in ((shop(sign_in=HeldIssuer()), ()), (shop(), ("orders:read",))):
        poppy = Poppy(FastAPI(), company)
        with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.signed-in"):
            poppy.signed_in(*scopes)
    with pytest.raises(ConfigurationError, check=lambda error: error.rule == "configuration.signed-in"):
        Poppy(FastAPI(), shop()).unverified("orders:read")
