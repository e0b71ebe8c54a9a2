"""The outfitter: a small shop on FastAPI with its own database, that learned Poppy. Run by `papaver demo`.

Settings come from the environment, so that any ASGI server can run `papaver.demo.outfitter.app:build`:
`OUTFITTER_DOMAIN`, `OUTFITTER_BASE_URL`, `OUTFITTER_SHOP` and `OUTFITTER_STORE` (database files), `OUTFITTER_GATE`.
"""

from __future__ import annotations

import asyncio
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from fastapi import FastAPI, HTTPException

from papaver.adapters.fastapi import Poppy
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.company import Company, Turn
from papaver.demo.outfitter.answers import answer
from papaver.demo.outfitter.database import Shop
from papaver.stores.sqlite import SqliteStore

__all__ = ["Settings", "build", "outfitter"]


@dataclass(frozen=True, slots=True)
class Settings:
    """`gate` is for the demo's kill: while that file exists, the handler says so in `<gate>.reached` and waits."""

    domain: str
    base_url: str
    shop: Path
    store: Path
    gate: Path | None = None


def outfitter(settings: Settings, network: NetworkSettings | None = None) -> FastAPI:
    """The shop as an app: its own pages, and the Company in front of them."""
    shop = Shop(settings.shop)
    company = Company(
        domain=settings.domain,
        name="The Outfitter",
        base_url=settings.base_url,
        store=SqliteStore(settings.store),
    )
    app = FastAPI(title="The Outfitter")
    Poppy(app, company, network=network)

    @company.conversation
    async def company_agent(turn: Turn) -> str:
        return await asyncio.to_thread(_answer, turn.text)

    def _answer(text: str) -> str:
        if settings.gate is not None:
            _pass(settings.gate)
        return answer(shop, text)

    @app.get("/articles/{name}")
    def articles(name: str) -> list[dict[str, object]]:
        found = shop.articles(name)
        if not found:
            raise HTTPException(404, f"no article is called {name}")
        return [asdict(article) for article in found]

    @app.get("/{path:path}")
    def page(path: str) -> dict[str, str]:
        return {"shop": "The Outfitter", "page": path or "home"}

    return app


def _pass(gate: Path) -> None:
    if gate.exists():
        gate.with_suffix(".reached").write_text(str(os.getpid()), encoding="ascii")
        while gate.exists():
            time.sleep(0.05)


def build() -> FastAPI:
    """The app of the environment's settings (an ASGI factory)."""
    gate = os.environ.get("OUTFITTER_GATE")
    return outfitter(
        Settings(
            domain=os.environ["OUTFITTER_DOMAIN"],
            base_url=os.environ["OUTFITTER_BASE_URL"],
            shop=Path(os.environ["OUTFITTER_SHOP"]),
            store=Path(os.environ["OUTFITTER_STORE"]),
            gate=Path(gate) if gate else None,
        ),
        NetworkSettings.from_environment(),
    )
