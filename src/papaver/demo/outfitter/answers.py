"""The outfitter's Company Agent: plain code that answers from the database. No model."""

from __future__ import annotations

import re

from papaver.demo.outfitter.database import TOPICS, Shop

__all__ = ["answer"]

ORDER = re.compile(r"order\s*#?\s*(\d{3,6})", re.IGNORECASE)
SIZE = re.compile(r"\b(?:size|in)\s+(XL|S|M|L)\b", re.IGNORECASE)


def answer(shop: Shop, question: str) -> str:
    """One sentence or two, true of the database at this moment."""
    found = ORDER.search(question)
    if found:
        return _order(shop, int(found.group(1)))
    for topic in TOPICS:
        if topic.rstrip("s") in question.lower():
            return shop.policy(topic) or f"We have no policy on {topic}."
    for name in shop.names():
        if name.lower() in question.lower():
            return _article(shop, name, SIZE.search(question))
    return "I can tell you about our articles, their prices and stock, an order by its number, and our policies."


def _order(shop: Shop, number: int) -> str:
    order = shop.order(number)
    if order is None:
        return f"We have no order #{number}."
    due = "was due" if order.status == "delivered" else "is due"
    return f"Order #{order.number} ({order.sku}) is {order.status}; it {due} on {order.due}."


def _article(shop: Shop, name: str, size: re.Match[str] | None) -> str:
    if size is None:
        sizes = ", ".join(f"{one.size} ({one.stock} in stock, {one.price})" for one in shop.articles(name))
        return f"The {name} comes in {sizes}."
    article = shop.article(name, size.group(1))
    if article is None:
        return f"The {name} does not come in {size.group(1).upper()}."
    return f"The {article.name} in {article.size} costs {article.price}; we have {article.stock} in stock."
