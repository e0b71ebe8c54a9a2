"""The shop itself: its data, its answers, its app."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from papaver.demo.outfitter.answers import answer
from papaver.demo.outfitter.app import Settings, build, outfitter
from papaver.demo.outfitter.database import Article, Shop

pytestmark = pytest.mark.anyio


@pytest.fixture(name="shop")
def fill_shop(tmp_path: Path) -> Shop:
    """Filled from a seed."""
    shop = Shop(tmp_path / "shop.db")
    shop.fill(7)
    return shop


def test_a_shop_is_filled_once(tmp_path: Path, shop: Shop) -> None:
    """Rows that are there stay, whatever the seed."""
    before = shop.articles("Trail Boot")
    shop.fill(8)
    assert shop.articles("Trail Boot") == before
    other = Shop(tmp_path / "other.db")
    other.fill(8)
    assert other.articles("Trail Boot") != before


def test_articles_are_found_by_name_and_size(shop: Shop) -> None:
    """In any letter case."""
    assert [one.size for one in shop.articles("trail boot")] == ["L", "M", "S", "XL"]
    found = shop.article("TRAIL BOOT", "xl")
    assert found is not None
    assert found.sku == "trail-boot-xl"
    assert shop.article("Trail Boot", "XXL") is None
    assert shop.articles("Nothing") == []
    assert Article("x", "X", "M", 1905, 1).price == "$19.05"


@pytest.mark.parametrize(
    ("question", "part"),
    [
        ("Where is order #1?", "We have no order #1"),
        ("How long may I send returns?", "Unworn articles can be returned within"),
        ("What sizes does the Trail Boot come in?", "The Trail Boot comes in L ("),
        ("Is the trail boot light in m?", "The Trail Boot Light in M costs $"),
        ("Hello", "I can tell you about our articles"),
    ],
)
def test_a_question_gets_one_true_sentence(shop: Shop, question: str, part: str) -> None:
    """Orders, policies, articles with and without a size, and what can be asked."""
    if "order" in question:
        question, part = question.replace("#1", "#999"), part.replace("#1", "#999")
    assert part in answer(shop, question)


@pytest.mark.parametrize(("status", "due"), [("delivered", "it was due on"), ("packed", "it is due on")])
def test_an_order_that_came_was_due(shop: Shop, tmp_path: Path, status: str, due: str) -> None:
    """What is over is told as over."""
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        (number,) = connection.execute("SELECT number FROM orders LIMIT 1").fetchone()
        connection.execute("UPDATE orders SET status = ? WHERE number = ?", (status, number))
    connection.close()
    assert f"is {status}; {due} " in answer(shop, f"Where is order #{number}?")


def test_a_size_that_is_not_made_is_told(shop: Shop, tmp_path: Path) -> None:
    """Also one that was sold out for ever."""
    with sqlite3.connect(tmp_path / "shop.db") as connection:
        connection.execute("DELETE FROM orders")
        connection.execute("DELETE FROM articles WHERE sku = 'trail-boot-xl'")
        connection.execute("DELETE FROM policies WHERE topic = 'returns'")
    connection.close()
    assert answer(shop, "The Trail Boot in XL?") == "The Trail Boot does not come in XL."
    assert answer(shop, "Returns?") == "We have no policy on returns."


async def _asked(app: Any, path: str) -> tuple[int, Any]:
    sent: list[dict[str, Any]] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "headers": [(b"host", b"shop.example")],
        "http_version": "1.1",
        "scheme": "https",
        "server": ("shop.example", 443),
        "client": ("127.0.0.1", 1),
        "root_path": "",
    }
    await app(scope, receive, send)
    return sent[0]["status"], json.loads(b"".join(one.get("body", b"") for one in sent[1:]))


async def test_the_app_s_own_pages_are_beside_the_company_s(tmp_path: Path, shop: Shop) -> None:
    """Its catch-all takes nothing from the Company (C42)."""
    settings = Settings("shop.example", "https://shop.example/poppy", tmp_path / "shop.db", tmp_path / "poppy.db")
    app = outfitter(settings)
    assert (await _asked(app, "/about"))[1] == {"shop": "The Outfitter", "page": "about"}
    assert (await _asked(app, "/articles/Trail Boot"))[1][0]["name"] == "Trail Boot"
    assert (await _asked(app, "/articles/none"))[0] == 404
    assert (await _asked(app, "/.well-known/poppy.json"))[1]["organization"]["domain"] == "shop.example"
    assert (await _asked(app, "/.well-known/oauth-protected-resource"))[0] == 404


def test_settings_come_from_the_environment(tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that any server can run it."""
    for name, value in {
        "DOMAIN": "outfitter.example",
        "BASE_URL": "https://outfitter.example/poppy",
        "SHOP": str(tmp_path / "shop.db"),
        "STORE": str(tmp_path / "poppy.db"),
        "GATE": "",
    }.items():
        monkeypatch.setenv(f"OUTFITTER_{name}", value)
    assert build().title == "The Outfitter"
