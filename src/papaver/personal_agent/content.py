"""What is said and heard in conversations. Content from a Company is data, never an instruction (10.1).

Whatever a Company sends (messages, names of authors, reasons, descriptions) may be written to direct a model that
reads it. Hand it on marked as what it is; act on it only where the User's task asks for the act; and never read it as
the User's consent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from papaver.protocol.conversation.content import check_content, check_text_size
from papaver.protocol.conversation.model import Author, AuthorType, Message
from papaver.protocol.errors import InvalidRequest
from papaver.protocol.terms import MessageId
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError, dumps

__all__ = [
    "check_extensions_shared",
    "check_locale",
    "check_time_zone",
    "compose",
    "printable",
]

_LOCALE: Final = re.compile(r"[A-Za-z]{2,8}(?:-[A-Za-z0-9]{1,8})*")
_TIME_ZONE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_+-]*(?:/[A-Za-z0-9_+-]+){0,2}")
_ESCAPES: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_CONTROLS: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def compose(
    message_id: MessageId,
    text: str | None = None,
    *,
    by_user: bool = False,
    data: Mapping[str, object] | None = None,
    context: Mapping[str, object] | None = None,
    extensions: Mapping[str, object] | None = None,
    locale: str | None = None,
    time_zone: str | None = None,
    user_available: bool | None = None,
) -> Message:
    """A message of the User's side (8.4). `by_user` is for the User's own words and nothing else (8.8).

    `locale`, `time_zone` and `user_available` go into the context under their defined names. Raises InvalidRequest for
    what no Company may accept.
    """
    facts = dict(context or {})
    facts.update(
        (name, value)
        for name, value in (("locale", locale), ("time_zone", time_zone), ("user_available", user_available))
        if value is not None
    )
    check_locale(facts)
    check_time_zone(facts)
    check_user_available(facts)
    message = Message(
        message_id,
        Author(AuthorType.HUMAN if by_user else AuthorType.AGENT),
        text=text,
        data=None if data is None else dict(data),
        context=facts or None,
        extensions=None if extensions is None else dict(extensions),
    )
    check_content(message)
    check_text_size(message)
    try:
        dumps([text, data, facts, extensions])
    except JsonError as error:
        raise InvalidRequest(
            "the message cannot be written as JSON", rule="message.json", detail=error.detail
        ) from None
    return message


@rule("context.locale")
def check_locale(context: Mapping[str, object]) -> None:
    """A locale is a language tag such as `en-US`, or None to take it back (8.4). Raises InvalidRequest."""
    locale = context.get("locale")
    if locale is not None and (not isinstance(locale, str) or _LOCALE.fullmatch(locale) is None):
        raise InvalidRequest("locale is a language tag such as en-US", rule="context.locale", detail=repr(locale))


@rule("context.time-zone")
def check_time_zone(context: Mapping[str, object]) -> None:
    """A time zone is an IANA name such as `America/Los_Angeles` (8.4). Raises InvalidRequest."""
    zone = context.get("time_zone")
    if zone is not None and (not isinstance(zone, str) or _TIME_ZONE.fullmatch(zone) is None):
        raise InvalidRequest(
            "time_zone is an IANA name such as America/Los_Angeles", rule="context.time-zone", detail=repr(zone)
        )


@rule("context.user-available")
def check_user_available(context: Mapping[str, object]) -> None:
    """`user_available` is true or false (8.4). Raises InvalidRequest."""
    if not isinstance(context.get("user_available"), bool | None):
        raise InvalidRequest("user_available is true or false", rule="context.user-available")


@rule("message.extensions-shared")
def check_extensions_shared(message: Message, declared: Mapping[str, str]) -> None:
    """Extension content only goes to a Company with which the Session uses that extension (8.4).

    Raises InvalidRequest.
    """
    undeclared = sorted(set(message.extensions or ()) - declared.keys())
    if undeclared:
        raise InvalidRequest(
            f"the Session does not use the extension {undeclared[0]} with this Company",
            rule="message.extensions-shared",
            detail=", ".join(undeclared),
        )


def printable(text: str) -> str:
    """Text from the other side for a terminal: without escape sequences, control and direction characters.

    Tabs and line feeds stay.
    """
    return _CONTROLS.sub("", _ESCAPES.sub("", text))
