"""What a turn's handler came to, in the form in which the journal keeps it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, cast

from papaver.protocol.conversation.model import Author, AuthorType, Message, Role
from papaver.protocol.terms import MessageId
from papaver.values import strict_json

__all__ = ["Outcome", "read_outcome", "write_outcome"]

MAX_DEPTH: Final = strict_json.MAX_DEPTH + 4
"""A message's `data` may be as deep as JSON is read, and lies deeper here."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The messages to post; `failed` when they only say that there is no answer.

    `needed`          the scopes without which there is nothing to post (8.11)
    `handoff`         a person is asked for after them (8.9)
    `user_requested`  why the User is asked for (8.10); None when they are not
    `close`           the conversation is closed after them (8.12)
    `done`            tells what the turn has done, for when the rest is not said
    """

    messages: tuple[Message, ...] = ()
    failed: bool = False
    needed: tuple[str, ...] = ()
    handoff: bool = False
    user_requested: str | None = None
    close: bool = False
    done: Message | None = None


def write_outcome(outcome: Outcome) -> bytes:
    return strict_json.dumps(
        {
            "failed": outcome.failed,
            **({"needed": list(outcome.needed)} if outcome.needed else {}),
            **({"handoff": True} if outcome.handoff else {}),
            **({} if outcome.user_requested is None else {"user_requested": outcome.user_requested}),
            **({"close": True} if outcome.close else {}),
            **({} if outcome.done is None else {"done": _row(outcome.done)}),
            "messages": [_row(message) for message in outcome.messages],
        }
    )


def read_outcome(row: bytes) -> Outcome:
    """The reverse of `write_outcome`; raises JsonError for a row of another form."""
    record = strict_json.loads_object(row, max_bytes=len(row), max_depth=MAX_DEPTH)
    try:
        messages = cast("list[Mapping[str, object]]", record["messages"])
        needed = tuple(map(str, cast("list[object]", record.get("needed", []))))
        return Outcome(
            tuple(_message(one) for one in messages),
            bool(record["failed"]),
            needed,
            bool(record.get("handoff")),
            cast("str | None", record.get("user_requested")),
            bool(record.get("close")),
            _message(cast("Mapping[str, object]", record["done"])) if "done" in record else None,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise strict_json.JsonError("the outcome has another form", detail=repr(error)) from None


def _row(message: Message) -> dict[str, object]:
    author = message.author
    return {
        "id": message.id,
        "author": {"type": author.type.value, "id": author.id, "name": author.name, "image": author.image},
        "text": message.text,
        "data": message.data,
        **({} if message.extensions is None else {"extensions": message.extensions}),
    }


def _message(row: Mapping[str, object]) -> Message:
    author = cast("Mapping[str, str | None]", row["author"])
    return Message(
        id=MessageId(str(row["id"])),
        author=Author(AuthorType(author["type"]), author["id"], author["name"], author["image"]),
        role=Role.COMPANY,
        text=cast("str | None", row["text"]),
        data=cast("Mapping[str, object] | None", row["data"]),
        extensions=cast("Mapping[str, object] | None", row.get("extensions")),
    )
