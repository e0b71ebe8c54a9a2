"""The outfitter's Company Agent: plain code that answers from the database. No model."""

from __future__ import annotations

import re

from papaver.company import Turn
from papaver.demo.outfitter.database import TOPICS, NoSuchSize, Shop

__all__ = ["EXCHANGE", "ORDER", "READ", "SIZE", "WRITE", "answer", "answer_turn", "exchange", "order"]

READ, WRITE = "orders:read", "orders:write"
ORDER = re.compile(r"order\s*#?\s*(\d{3,6})", re.IGNORECASE)
SIZE = re.compile(r"\b(?:size|in)\s+(XL|S|M|L)\b", re.IGNORECASE)
EXCHANGE = re.compile(r"\bexchange\b", re.IGNORECASE)
PERSON = re.compile(r"\ba (?:person|colleague)\b", re.IGNORECASE)
GIFT = re.compile(r"\bgift\b", re.IGNORECASE)


def answer_turn(shop: Shop, turn: Turn) -> str:
    """The answer to a turn: what is about an order needs the User's account, and an exchange may change it (8.11).

    A person is asked for when one is wanted (8.9). A gift card is written by the User themselves (8.10).
    """
    question = turn.text
    if turn.direct:
        return _gift_card(shop, turn)
    if PERSON.search(question):
        turn.hand_off()
        return "I ask for a colleague."
    if GIFT.search(question):
        turn.request_user("What shall the gift card say?")
        return "The User writes the gift card themselves."
    found = ORDER.search(question)
    if found is None:
        return answer(shop, question)
    number, size = int(found.group(1)), SIZE.search(question)
    if EXCHANGE.search(question):
        if size is None:
            return "Which size would you like instead: S, M, L or XL?"
        return exchange(shop, turn.id, number, turn.require(READ, WRITE), size.group(1))
    return order(shop, number, turn.require(READ))


def _gift_card(shop: Shop, turn: Turn) -> str:
    """Only words of the User's own get onto a card (8.8)."""
    if turn.author_type != "human" or not turn.text:
        return "What shall the gift card say?"
    shop.write_gift_card(turn.id, turn.text)
    return f"The gift card will say: {turn.text}"


def answer(shop: Shop, question: str) -> str:
    """What anybody may know: one sentence or two, true of the database at this moment."""
    for topic in TOPICS:
        if topic.rstrip("s") in question.lower():
            return shop.policy(topic) or f"We have no policy on {topic}."
    for name in shop.names():
        if name.lower() in question.lower():
            return _article(shop, name, SIZE.search(question))
    return "I can tell you about our articles, their prices and stock, your orders by their numbers, and our policies."


def order(shop: Shop, number: int, account: str) -> str:
    """How an order of the account is."""
    found = shop.order(number, account)
    if found is None:
        return f"You have no order #{number}."
    due = "was due" if found.status == "delivered" else "is due"
    return f"Order #{found.number} ({found.sku}) is {found.status}; it {due} on {found.due}."


def exchange(shop: Shop, key: str, number: int, account: str, size: str) -> str:
    """Exchange an order, once for each `key`; what came of it begins with "Done" when it did."""
    try:
        article = shop.exchange(key, number, account, size)
    except NoSuchSize:
        return f"The article of order #{number} does not come in {size.upper()}."
    if article is None:
        return f"You have no order #{number}."
    return f"Done: order #{number} will be exchanged for {article.sku}, size {article.size}."


def _article(shop: Shop, name: str, size: re.Match[str] | None) -> str:
    if size is None:
        sizes = ", ".join(f"{one.size} ({one.stock} in stock, {one.price})" for one in shop.articles(name))
        return f"The {name} comes in {sizes}."
    article = shop.article(name, size.group(1))
    if article is None:
        return f"The {name} does not come in {size.group(1).upper()}."
    return f"The {article.name} in {article.size} costs {article.price}; we have {article.stock} in stock."
