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
from papaver.company import Company
from papaver.protocol.dialect import Version
from papaver.protocol.negotiation import Retirement
from papaver.protocol.session import VerifiedSession
from papaver.versions import DIALECTS
from tests.unit.adapters.asgi_calls import message, outside, shop, signed


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """`Poppy` runs its Company with documents of a test instead of the network."""
    whole = adapter.running

    def running(company: Company, *, network: Any = None, turns: bool = True) -> Any:
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
