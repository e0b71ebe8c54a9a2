"""The shop itself: its data, its answers, its app."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from papaver.demo.outfitter.accounts import TooManyTries, Users
from papaver.demo.outfitter.answers import answer, answer_turn
from papaver.demo.outfitter.app import Settings, build, outfitter
from papaver.demo.outfitter.database import ACCOUNTS, Article, Shop

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
        ("How long may I send returns?", "Unworn articles can be returned within"),
        ("What sizes does the Trail Boot come in?", "The Trail Boot comes in L ("),
        ("Is the trail boot light in m?", "The Trail Boot Light in M costs $"),
        ("Hello", "I can tell you about our articles"),
    ],
)
def test_a_question_gets_one_true_sentence(shop: Shop, question: str, part: str) -> None:
    """Policies, articles with and without a size, and what can be asked."""
    assert part in answer(shop, question)


@dataclass
class Asked:
    """As much of a Turn as the shop looks at, of this account; `needed` are the scopes that were asked for."""

    text: str
    account: str = ACCOUNTS[0]
    id: str = "turn_1"
    direct: bool = False
    needed: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    def require(self, *scopes: str) -> str:
        self.needed.append(scopes)
        return self.account


def told(shop: Shop, text: str, account: str = ACCOUNTS[0], key: str = "turn_1") -> tuple[str, list[tuple[str, ...]]]:
    """The answer of a turn, and the scopes that it needed."""
    turn: Any = Asked(text, account, key)
    return answer_turn(shop, turn), turn.needed


@pytest.mark.parametrize(("status", "due"), [("delivered", "it was due on"), ("packed", "it is due on")])
def test_an_order_needs_its_account(shop: Shop, tmp_path: Path, status: str, due: str) -> None:
    """What is over is told as over; another account's order is as unknown as none."""
    (order, *_) = shop.orders(ACCOUNTS[0])
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("UPDATE orders SET status = ? WHERE number = ?", (status, order.number))
    text, needed = told(shop, f"Where is order #{order.number}?")
    assert f"is {status}; {due} " in text
    assert needed == [("orders:read",)]
    assert told(shop, f"Where is order #{order.number}?", ACCOUNTS[1])[0] == f"You have no order #{order.number}."
    assert told(shop, "Where is order #999?")[0] == "You have no order #999."
    assert told(shop, "Do you have returns?")[1] == []


def test_an_exchange_is_made_once_for_each_turn(shop: Shop, tmp_path: Path) -> None:
    """It needs the wider access, a size that is made, and an order of the account."""
    (order, *_) = shop.orders(ACCOUNTS[0])
    for _ in range(2):  # a turn that runs again after a crash
        text, needed = told(shop, f"Please exchange order #{order.number} for size XL.")
        assert text.startswith(f"Done: order #{order.number} will be exchanged for ")
        assert needed == [("orders:read", "orders:write")]
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        assert connection.execute("SELECT number, size FROM exchanges").fetchall() == [(order.number, "XL")]
    assert "Which size" in told(shop, f"Please exchange order #{order.number}.")[0]
    assert told(shop, "Exchange order #999 in size M")[0] == "You have no order #999."
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection, connection:
        connection.execute("DELETE FROM articles WHERE size = 'S' AND sku NOT IN (SELECT sku FROM orders)")
        ordered = connection.execute(
            "SELECT number FROM orders JOIN articles USING (sku) WHERE account = ? AND name NOT IN"
            " (SELECT name FROM articles WHERE size = 'S')",
            (ACCOUNTS[0],),
        ).fetchone()
    assert "does not come in S" in told(shop, f"Exchange order #{ordered[0]} in size S")[0]


def test_a_user_is_known_by_their_password(tmp_path: Path, shop: Shop) -> None:
    """Hashed; whatever the letter case of the address; after ten tries in a minute nobody is let in."""
    now = [0.0]
    users = Users(tmp_path / "shop.db", lambda: now[0])
    users.add("Dana@Mail.example", ACCOUNTS[0], "correct horse")
    assert users.check(" dana@mail.EXAMPLE ", "correct horse") == ACCOUNTS[0]
    assert users.check("dana@mail.example", "wrong") is None
    assert users.check("nobody@mail.example", "nobody has this password") is None
    with closing(sqlite3.connect(tmp_path / "shop.db")) as connection:
        ((stored,),) = connection.execute("SELECT password_hash FROM users").fetchall()
    assert stored.startswith("$argon2id$")
    for _ in range(9):
        users.check("dana@mail.example", "wrong")
    with pytest.raises(TooManyTries):
        users.check("dana@mail.example", "correct horse")
    now[0] = 60.0
    assert users.check("dana@mail.example", "correct horse") == ACCOUNTS[0]


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
    settings = Settings(
        ("shop.example", "outlet.example"),
        "https://shop.example/poppy",
        "https://shop.example/account",
        tmp_path / "shop.db",
        tmp_path / "poppy.db",
    )
    app = outfitter(settings)
    assert (await _asked(app, "/about"))[1] == {"shop": "The Outfitter", "page": "about"}
    assert (await _asked(app, "/articles/Trail Boot"))[1][0]["name"] == "Trail Boot"
    assert (await _asked(app, "/articles/none"))[0] == 404
    assert (await _asked(app, "/.well-known/poppy.json"))[1]["organization"]["domain"] == "shop.example"
    assert (await _asked(app, "/.well-known/oauth-protected-resource"))[1] == {
        "resource": "https://shop.example",
        "authorization_servers": ["https://shop.example/account"],
    }
    described = (await _asked(app, "/openapi.json"))[1]
    assert sorted(described["paths"]) == ["/articles/{name}", "/orders", "/orders/{number}/exchanges"]
    assert described["paths"]["/orders"]["get"]["security"] == [{"poppy-shop.example": ["orders:read"]}]


def test_settings_come_from_the_environment(tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that any server can run it."""
    for name, value in {
        "DOMAINS": "outfitter.example,outlet.example",
        "ISSUER": "https://outfitter.example/account",
        "BASE_URL": "https://outfitter.example/poppy",
        "SHOP": str(tmp_path / "shop.db"),
        "STORE": str(tmp_path / "poppy.db"),
        "GATE": "",
    }.items():
        monkeypatch.setenv(f"OUTFITTER_{name}", value)
    assert build().title == "The Outfitter"
