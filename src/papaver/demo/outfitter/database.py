"""The outfitter's own database: catalogue, orders and policies, in SQLite. It knows nothing of the protocol."""

from __future__ import annotations

import random
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

__all__ = ["ACCOUNTS", "SCHEMA", "Article", "NoSuchSize", "Order", "Shop"]

SCHEMA = """
CREATE TABLE IF NOT EXISTS articles (
    sku TEXT PRIMARY KEY, name TEXT NOT NULL, size TEXT NOT NULL, price_cents INTEGER NOT NULL, stock INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (
    number INTEGER PRIMARY KEY, sku TEXT NOT NULL REFERENCES articles, status TEXT NOT NULL, due TEXT NOT NULL,
    account TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS exchanges (
    id TEXT PRIMARY KEY, number INTEGER NOT NULL REFERENCES orders, size TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS gift_cards (id TEXT PRIMARY KEY, text TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS users (email TEXT PRIMARY KEY, account TEXT NOT NULL UNIQUE, password_hash TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS policies (topic TEXT PRIMARY KEY, days INTEGER NOT NULL, text TEXT NOT NULL);
"""
KINDS = ("Stormline Jacket", "Ridge Parka", "Trail Boot", "Summit Pack", "Fell Tent", "Tarn Stove", "Cairn Fleece")
FINISHES = ("", "Insulated", "Light", "Pro")
SIZES = ("S", "M", "L", "XL")
STATUSES = ("packed", "shipped", "delivered", "waiting for stock")
TOPICS = {
    "returns": "Unworn articles can be returned within {days} days.",
    "repairs": "We repair what we sold; a repair takes up to {days} days.",
    "delivery": "Standard delivery takes up to {days} days.",
    "warranty": "Every article has a warranty of {days} days.",
}


@dataclass(frozen=True, slots=True)
class Article:
    sku: str
    name: str
    size: str
    price_cents: int
    stock: int

    @property
    def price(self) -> str:
        return f"${self.price_cents // 100}.{self.price_cents % 100:02d}"


ACCOUNTS = ("acct_1", "acct_2")
"""Whose the orders are; each of them may have a user (`accounts.Users`)."""


@dataclass(frozen=True, slots=True)
class Order:
    number: int
    sku: str
    status: str
    due: str
    account: str


class NoSuchSize(LookupError):
    """The ordered article does not come in that size."""


class Shop:
    """Questions to the database, each a fresh read. One connection per call: any thread or process may ask."""

    def __init__(self, path: Path | str) -> None:
        self._path = str(path)

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, timeout=5)
        connection.execute("PRAGMA foreign_keys=ON")
        return connection

    def fill(self, seed: int) -> None:
        """Make the tables and fill them with rows drawn at random; does nothing to a shop that has rows."""
        draw = random.Random(seed)
        connection = self._connect()
        try:
            with connection:
                connection.executescript(SCHEMA)
                if connection.execute("SELECT 1 FROM articles").fetchone():
                    return
                names = [f"{kind} {finish}".strip() for kind in KINDS for finish in FINISHES]
                articles = [
                    (
                        f"{name.lower().replace(' ', '-')}-{size.lower()}",
                        name,
                        size,
                        draw.randrange(1900, 49900, 50),
                        draw.randrange(40),
                    )
                    for name in names
                    for size in SIZES
                ]
                connection.executemany("INSERT INTO articles VALUES (?, ?, ?, ?, ?)", articles)
                numbers = draw.sample(range(1000, 9999), 40)
                connection.executemany(
                    "INSERT INTO orders VALUES (?, ?, ?, ?, ?)",
                    [
                        (
                            number,
                            draw.choice(articles)[0],
                            draw.choice(STATUSES),
                            f"2027-{draw.randint(1, 12):02d}-{draw.randint(1, 28):02d}",
                            ACCOUNTS[place % len(ACCOUNTS)],
                        )
                        for place, number in enumerate(numbers)
                    ],
                )
                for topic, text in TOPICS.items():
                    days = draw.randrange(5, 400)
                    connection.execute("INSERT INTO policies VALUES (?, ?, ?)", (topic, days, text.format(days=days)))
        finally:
            connection.close()

    def articles(self, name: str) -> list[Article]:
        """Every size of the article of this name."""
        return [
            Article(*row) for row in self._all("SELECT * FROM articles WHERE lower(name) = lower(?) ORDER BY sku", name)
        ]

    def article(self, name: str, size: str) -> Article | None:
        rows = self._all("SELECT * FROM articles WHERE lower(name) = lower(?) AND lower(size) = lower(?)", name, size)
        return Article(*rows[0]) if rows else None

    def names(self) -> list[str]:
        return [str(row[0]) for row in self._all("SELECT DISTINCT name FROM articles ORDER BY length(name) DESC, name")]

    def order(self, number: int, account: str) -> Order | None:
        """An order of this account; another account's is as unknown as one that does not exist."""
        rows = self._all("SELECT * FROM orders WHERE number = ? AND account = ?", number, account)
        return Order(*rows[0]) if rows else None

    def orders(self, account: str) -> list[Order]:
        return [Order(*row) for row in self._all("SELECT * FROM orders WHERE account = ? ORDER BY number", account)]

    def exchange(self, key: str, number: int, account: str, size: str) -> Article | None:
        """Exchange an order for another size, once for each `key`; None when the account has no such order.

        Raises NoSuchSize.
        """
        order = self.order(number, account)
        if order is None:
            return None
        rows = self._all(
            "SELECT other.* FROM articles AS ordered JOIN articles AS other ON other.name = ordered.name"
            " WHERE ordered.sku = ? AND lower(other.size) = lower(?)",
            order.sku,
            size,
        )
        if not rows:
            raise NoSuchSize(f"{order.sku} does not come in {size}")
        article = Article(*rows[0])
        with closing(self._connect()) as connection, connection:
            connection.execute("INSERT OR IGNORE INTO exchanges VALUES (?, ?, ?)", (key, number, article.size))
        return article

    def write_gift_card(self, key: str, text: str) -> None:
        """Once for each `key`."""
        with closing(self._connect()) as connection, connection:
            connection.execute("INSERT OR IGNORE INTO gift_cards VALUES (?, ?)", (key, text))

    def policy(self, topic: str) -> str | None:
        rows = self._all("SELECT text FROM policies WHERE topic = ?", topic)
        return str(rows[0][0]) if rows else None

    def _all(self, sql: str, *values: object) -> list[Any]:
        connection = self._connect()
        try:
            return connection.execute(sql, values).fetchall()
        finally:
            connection.close()
