"""What the demo itself knows of the shop: its own SQL, straight on the database, and never through the shop's code."""

from __future__ import annotations

import random
import re
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from papaver.demo.outcome import DemoFailed

__all__ = ["Question", "ShopRows"]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and how the truth is looked up: `sql` with `values`; `shown` makes each column a word of a reply.

    `about` is what is asked about, which the reply has to name, too.
    """

    text: str
    about: str
    sql: str
    values: tuple[object, ...]
    shown: tuple[str, ...]


class ShopRows:
    """Rows drawn at random, and the truth about them at any moment."""

    def __init__(self, path: Path, seed: int) -> None:
        self._path, self._draw = path, random.Random(seed)

    def rows(self, sql: str, *values: object) -> list[tuple[Any, ...]]:
        """Read on a connection of our own."""
        with closing(sqlite3.connect(self._path, timeout=10)) as connection:
            return connection.execute(sql, values).fetchall()

    def change(self, sql: str, *values: object) -> int:
        """Write on a connection of our own; how many rows changed."""
        with closing(sqlite3.connect(self._path, timeout=10)) as connection, connection:
            return connection.execute(sql, values).rowcount

    def order_question(self, account: str) -> Question:
        """About an order of this account drawn at random."""
        (number,) = self._draw.choice(self.rows("SELECT number FROM orders WHERE account = ? ORDER BY number", account))
        sql = "SELECT status, due FROM orders WHERE number = ?"
        return Question(f"Where is order #{number}?", f"#{number}", sql, (number,), ("text", "text"))

    def exchange_question(self, order: Question) -> Question:
        """Please exchange that order for another size, drawn at random; true once the shop's database has it."""
        (number,) = order.values
        sizes = self.rows(
            "SELECT other.size FROM orders JOIN articles AS ordered USING (sku) JOIN articles AS other"
            " ON other.name = ordered.name AND other.sku <> ordered.sku WHERE number = ? ORDER BY other.size",
            number,
        )
        (size,) = self._draw.choice(sizes)
        sql = "SELECT size FROM exchanges WHERE number = ?"
        text = f"Please exchange order #{number} for size {size}."
        return Question(text, f"#{number}", sql, (number,), ("text",))

    def article_question(self) -> Question:
        """About the price and stock of an article drawn at random."""
        name, size = self._draw.choice(self.rows("SELECT name, size FROM articles ORDER BY sku"))
        sql = "SELECT price_cents, stock FROM articles WHERE name = ? AND size = ?"
        text = f"What does the {name} in {size} cost, and how many do you have?"
        return Question(text, name, sql, (name, size), ("cents", "count"))

    def policy_question(self) -> Question:
        """About a policy drawn at random."""
        (topic,) = self._draw.choice(self.rows("SELECT topic FROM policies ORDER BY topic"))
        sql = "SELECT days, text FROM policies WHERE topic = ?"
        return Question(f"What is your policy on {topic}?", "days", sql, (topic,), ("count", "text"))

    def gift_card(self) -> Question:
        """What the User writes on a gift card, drawn at random; true once the shop's database has it, word by word."""
        text = f"For {self._draw.choice(('Ada', 'Grace', 'Mary'))}, with {self._draw.randrange(2, 99)} good wishes!"
        return Question(text, text, "SELECT text FROM gift_cards WHERE text = ?", (text,), ("text",))

    def truth(self, question: Question) -> tuple[str, ...]:
        """What a true reply says at this moment, word by word."""
        rows = self.rows(question.sql, *question.values)
        if len(rows) != 1:
            raise DemoFailed("the shop's database has not exactly one such row", expected="1", found=str(len(rows)))
        (row,) = rows
        return tuple(_shown(kind, value) for kind, value in zip(question.shown, row, strict=True))

    def restock(self, question: Question) -> None:
        """Another price and another stock for the article of a question, neither as before."""
        ((cents, stock),) = self.rows(question.sql, *question.values)
        new_cents, new_stock = cents + self._draw.randrange(100, 5000, 25), stock + self._draw.randrange(41, 90)
        changed = self.change(
            "UPDATE articles SET price_cents = ?, stock = ? WHERE name = ? AND size = ?",
            new_cents,
            new_stock,
            *question.values,
        )
        if changed != 1:
            raise DemoFailed("the UPDATE changed no row", expected="1", found=str(changed))

    def check_true(self, question: Question, reply: str) -> tuple[str, ...]:
        """The reply names what was asked about and says the truth; returns it. Raises DemoFailed."""
        truth = self.truth(question)
        missing = [word for word in (question.about, *truth) if not _says(reply, word)]
        if missing:
            raise DemoFailed(f"the answer to {question.text!r} is not true", expected=", ".join(missing), found=reply)
        return truth


def says_none(reply: str, words: tuple[str, ...]) -> bool:
    """Whether a reply says none of these any more."""
    return not any(_says(reply, word) for word in words)


def _shown(kind: str, value: Any) -> str:
    return f"${value / 100:.2f}" if kind == "cents" else str(value)


def _says(reply: str, word: str) -> bool:
    """The word itself: 5 is not in 15."""
    return re.search(rf"(?<![\w$.-]){re.escape(word)}(?![\w-]|\.\d)", reply) is not None
