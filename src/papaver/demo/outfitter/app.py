"""The outfitter: a small shop on FastAPI with its own database, that learned Poppy. Run by `papaver demo`.

Settings come from the environment, so that any ASGI server can run `papaver.demo.outfitter.app:build`:
`OUTFITTER_DOMAINS` (separated by commas), `OUTFITTER_BASE_URL`, `OUTFITTER_ISSUER`, `OUTFITTER_SHOP` and
`OUTFITTER_STORE` (database files), `OUTFITTER_GATE`, `OUTFITTER_AGENT`, `OUTFITTER_STAFF` (a password).
"""

# No postponed annotations here: FastAPI could not resolve the ones of `outfitter`'s routes, which name local values.

import os
import secrets
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

from fastapi import FastAPI, HTTPException

from papaver.adapters.fastapi import Poppy
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.company import Company, EmbeddedIssuer, OpenApi, Scope, SignedInSession
from papaver.company.company_agent import CompanyAgent
from papaver.demo.outfitter.accounts import Users
from papaver.demo.outfitter.agents import agent_of, tools_of
from papaver.demo.outfitter.answers import READ, WRITE
from papaver.demo.outfitter.colleagues import Colleagues, add_colleagues
from papaver.demo.outfitter.database import NoSuchSize, Shop
from papaver.demo.outfitter.sign_in_page import SIGN_IN_PAGE, add_sign_in_page
from papaver.stores.sqlite import SqliteStore

__all__ = ["Settings", "build", "outfitter"]

SCOPES = (
    Scope(READ, "See your orders", "none", personal_data=True),
    Scope(WRITE, "Exchange your orders", "reversible", personal_data=True),
    Scope("addresses", "See and change your addresses", "reversible", personal_data=True),
)


@dataclass(frozen=True, slots=True)
class Settings:
    """`domains`  the shop's own, the first one first: one Company on all of them, under one issuer (3.2)
    `gate`     for the demo: while that file names a place, the handler stops there, and says so in `<gate>.reached`
    `staff`    the password of its colleagues, who answer at the staff console; without, there is none
    `agent`    what answers: "function", "generator" (it streams), or "pydantic-ai" (it has the shop's tools)
    """

    domains: tuple[str, ...]
    base_url: str
    issuer: str
    shop: Path
    store: Path
    gate: Path | None = None
    agent: str = "function"
    staff: str | None = None


@dataclass
class Exchange:
    """What is asked for in exchange."""

    size: str


def outfitter(settings: Settings, network: NetworkSettings | None = None) -> FastAPI:
    """The shop as an app: its own pages, and the Company in front of them."""
    shop, users = Shop(settings.shop), Users(settings.shop)
    issuer = EmbeddedIssuer(settings.issuer, sign_in_page=f"https://{settings.domains[0]}{SIGN_IN_PAGE}")
    company = Company(
        domain=settings.domains[0],
        domains=settings.domains[1:],
        name="The Outfitter",
        base_url=settings.base_url,
        store=SqliteStore(settings.store),
        sign_in=issuer,
        scopes=SCOPES,
        company_agent=CompanyAgent(tools_of(shop)),
        staffed=settings.staff is not None,
        apis=[OpenApi(f"https://{settings.domains[0]}/openapi.json", "Your orders, and exchanging them")],
    )
    app = FastAPI(title="The Outfitter", version="1", servers=[{"url": f"https://{settings.domains[0]}"}])
    poppy = Poppy(app, company, network=network)
    add_sign_in_page(app, issuer, users)

    if settings.staff is not None:
        colleagues = Colleagues(settings.staff, f"{settings.base_url}/staff")
        add_colleagues(app, colleagues)
        company.staff_console(authenticate=colleagues.who)
    company.conversation(agent_of(settings.agent, shop, partial(_pass, settings.gate)))

    @app.get("/orders", operation_id="listOrders")
    def orders(session: Annotated[SignedInSession, poppy.signed_in(READ)]) -> list[dict[str, object]]:
        """The orders of the account."""
        return [
            {"number": order.number, "sku": order.sku, "status": order.status, "due": order.due}
            for order in shop.orders(session.account_id)
        ]

    @app.post("/orders/{number}/exchanges", operation_id="exchangeOrder")
    def exchange(
        number: int, wanted: Exchange, session: Annotated[SignedInSession, poppy.signed_in(READ, WRITE)]
    ) -> dict[str, object]:
        """Exchange an order for another size."""
        try:
            article = shop.exchange(secrets.token_urlsafe(), number, session.account_id, wanted.size)
        except NoSuchSize as error:
            raise HTTPException(409, str(error)) from None
        if article is None:
            raise HTTPException(404, f"there is no order {number}")
        return {"number": number, "sku": article.sku, "size": article.size}

    @app.get("/articles/{name}", operation_id="findArticles")
    def articles(name: str) -> list[dict[str, object]]:
        """The sizes of an article."""
        found = shop.articles(name)
        if not found:
            raise HTTPException(404, f"no article is called {name}")
        return [asdict(article) for article in found]

    @app.get("/{path:path}", include_in_schema=False)
    def page(path: str) -> dict[str, str]:
        return {"shop": "The Outfitter", "page": path or "home"}

    return app


def _pass(gate: Path | None, place: str) -> None:
    if gate is not None and _stands(gate, place):
        gate.with_suffix(".reached").write_text(str(os.getpid()), encoding="ascii")
        while _stands(gate, place):
            time.sleep(0.05)


def _stands(gate: Path, place: str) -> bool:
    try:
        return gate.read_text(encoding="ascii") == place
    except FileNotFoundError:
        return False


def build() -> FastAPI:
    """The app of the environment's settings (an ASGI factory)."""
    gate = os.environ.get("OUTFITTER_GATE")
    return outfitter(
        Settings(
            domains=tuple(os.environ["OUTFITTER_DOMAINS"].split(",")),
            base_url=os.environ["OUTFITTER_BASE_URL"],
            issuer=os.environ["OUTFITTER_ISSUER"],
            shop=Path(os.environ["OUTFITTER_SHOP"]),
            store=Path(os.environ["OUTFITTER_STORE"]),
            gate=Path(gate) if gate else None,
            agent=os.environ.get("OUTFITTER_AGENT", "function"),
            staff=os.environ.get("OUTFITTER_STAFF"),
        ),
        NetworkSettings.from_environment(),
    )
