"""The commonest body by far, a message of nothing but text, read at a fraction of what the models cost.

What is read here reads alike there: the same members, once each, and nothing else. The marks are counted as in
`papaver.jose.claims`: without a backslash each of them delimits a name or a value, so nothing is there twice
(docs/decisions/0020-a-plain-message-has-a-short-way.md).
"""

from __future__ import annotations

from typing import Final, Literal

import msgspec

from papaver.protocol.conversation.content import check_content, check_id, check_text_size
from papaver.protocol.conversation.model import Author, AuthorType, Message
from papaver.protocol.terms import MessageId

__all__ = ["read_plain"]

MARKS: Final = 16
"""Five names and three values."""


class _Author(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    type: Literal["agent", "human"]


class _Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    id: str
    author: _Author
    text: str


class _Say(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    message: _Message


_DECODE: Final = msgspec.json.Decoder(_Say).decode
_TYPES: Final = {kind.value: kind for kind in AuthorType}


def read_plain(body: bytes) -> Message | None:
    """The message; None when the models have to look at it. Raises InvalidRequest or PayloadTooLarge as they would."""
    if body.count(b'"') != MARKS or b"\\" in body:
        return None
    try:
        said = _DECODE(body).message
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None
    check_id(said.id)
    message = Message(MessageId(said.id), Author(_TYPES[said.author.type]), text=said.text)
    check_content(message)
    check_text_size(message)
    return message
