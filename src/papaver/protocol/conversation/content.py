"""What a message says: the rules of its content, what needs an answer, fingerprints, the context (8.3, 8.4)."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from papaver.protocol.conversation.model import Author, AuthorType, Context, Message, Role
from papaver.protocol.errors import InvalidRequest, PayloadTooLarge
from papaver.protocol.terms import ConversationId, EventId
from papaver.values import strict_json
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError

__all__ = [
    "MAX_CONTEXT_BYTES",
    "MAX_CONTEXT_FIELDS",
    "MAX_TEXT_BYTES",
    "as_company_message",
    "check_content",
    "check_context_size",
    "check_id",
    "check_text_size",
    "fingerprint",
    "is_id",
    "merged_context",
    "needs_answer",
]

MAX_TEXT_BYTES: Final = 65_536
"""The longest `text`, in octets of UTF-8."""
MAX_CONTEXT_BYTES: Final = 16_384
"""The largest merged context of a conversation, in octets of canonical JSON."""
MAX_CONTEXT_FIELDS: Final = 100
"""The most fields that it has."""

_QUOTE: Final[Callable[[str], str]] = json.encoder.encode_basestring
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,256}")
# The shapes of RFC 5646 and of IANA zone names, loosely: a fact that is surely no locale or zone is not applied.
_LOCALE: Final = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*")
_TIME_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*(?:/[A-Za-z0-9._+-]+)*")


def is_id(text: object) -> bool:
    """Whether this can be a Conversation ID, message ID or event ID (8.2)."""
    return isinstance(text, str) and _ID.fullmatch(text) is not None


@rule("conversation.id-alphabet")
def check_id(text: object) -> None:
    """An ID of section 8 has 1 to 256 characters of the base64url alphabet (8.2). Raises InvalidRequest."""
    if not is_id(text):
        raise InvalidRequest("an id has 1 to 256 letters, digits, '-' or '_'", rule="conversation.id-alphabet")


@rule("message.content")
def check_content(message: Message) -> None:
    """A message says something: one of its four members is there and not empty (8.4; readings 34)."""
    if not (message.text or message.data or message.context or message.extensions):
        raise InvalidRequest("a message needs text, data, context or extensions", rule="message.content")


@rule("message.text-size")
def check_text_size(message: Message) -> None:
    """`text` has at most MAX_TEXT_BYTES. Raises PayloadTooLarge."""
    text = message.text
    if text is not None and len(text) > MAX_TEXT_BYTES // 4 and len(text.encode()) > MAX_TEXT_BYTES:
        raise PayloadTooLarge(f"a message text has at most {MAX_TEXT_BYTES} octets", rule="message.text-size")


def needs_answer(message: Message) -> bool:
    """Whether it says more than `context` (8.4; readings 21). Extension content of any kind counts."""
    return bool(message.text or message.data or message.extensions)


def fingerprint(
    message: Message, target: ConversationId | None, *, parent: str | None = None, accepts: EventId | None = None
) -> str:
    """What tells a retry from another message of the same id: SHA-256, hex (8.3; readings 8).

    It covers the members that section 8.4 knows and the User's side may send, and where the message goes: `target`, or
    None for a start with its `parent` conversation and the `user_requested` event that it `accepts`.
    """
    data, context, extensions = message.data, message.context, message.extensions
    if data is None and context is None and extensions is None:
        texts = (message.id, message.author.type, message.text, None, None, None, target, parent, accepts)
        return hashlib.sha256(_canonical_texts(texts)).hexdigest()
    known = (message.id, message.author.type, message.text, data, context, extensions, target, parent, accepts)
    return hashlib.sha256(strict_json.canonical(known)).hexdigest()


def _canonical_texts(texts: Sequence[str | None]) -> bytes:
    """`strict_json.canonical`, for an array of strings and None: without the price of an encoder that knows more."""
    try:
        return f"[{','.join(['null' if text is None else _QUOTE(text) for text in texts])}]".encode()
    except UnicodeEncodeError:
        return strict_json.canonical(texts)  # which says what is wrong


def merged_context(before: Context, said: Context | None) -> Context:
    """The context after a message, field by field: None clears, a badly formed known field is left (readings 35)."""
    if not said:
        return before
    merged = dict(before)
    for name, value in said.items():
        if value is None:
            merged.pop(name, None)
        elif _applies(name, value):
            merged[name] = value
    return merged


@rule("message.context-size")
def check_context_size(merged: Context, limit: int = MAX_CONTEXT_BYTES) -> None:
    """The context of a conversation cannot grow with every message: its head is read and written whole each time.

    Raises PayloadTooLarge for more than `limit` octets or MAX_CONTEXT_FIELDS fields.
    """
    if len(merged) > MAX_CONTEXT_FIELDS or len(strict_json.canonical(merged)) > limit:
        raise PayloadTooLarge(
            f"the context of a conversation has at most {MAX_CONTEXT_FIELDS} fields and {limit} octets in all",
            rule="message.context-size",
        )


def as_company_message(message: Message) -> Message:
    """The message as the Company's side may say it: role `company`, no context, only known members (8.4).

    Raises InvalidRequest when it says nothing, and JsonError when a member is not of its type or is no JSON that every
    reader takes: what cannot be read again must not enter the log. `data` and `extensions` come back as plain JSON.
    """
    said = replace(
        message,
        role=Role.COMPANY,
        text=_text(message.text),
        data=_object(message.data),
        context=None,
        extensions=_object(message.extensions),
        extra={},
        author=_author(message.author),
    )
    check_id(said.id)
    check_content(said)
    return said


def _author(author: Author) -> Author:
    try:
        kind = AuthorType(author.type)
    except ValueError:
        raise JsonError("an author is an agent or a human", detail=repr(author.type)) from None
    return Author(kind, _text(author.id), _text(author.name), _text(author.image))


def _text(value: object) -> str | None:
    """`value`, when it is None or text that UTF-8 can say."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise JsonError("a member of a message is not text", detail=type(value).__name__)
    strict_json.dumps(value)
    return value


def _object(value: object) -> Mapping[str, object] | None:
    """`value` as a reader will see it: plain JSON, within the depth that is read from others."""
    if value is None:
        return None
    written = strict_json.dumps(value)
    return strict_json.loads_object(written, max_bytes=len(written))


def _applies(name: str, value: object) -> bool:
    match name:
        case "locale":
            return isinstance(value, str) and _LOCALE.fullmatch(value) is not None
        case "time_zone":
            return isinstance(value, str) and _TIME_ZONE.fullmatch(value) is not None
        case "user_available":
            return isinstance(value, bool)
        case _:
            return True
