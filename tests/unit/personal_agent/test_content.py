"""What is said: the rules of a message of the User's side; what is heard: data, made harmless for a terminal."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.personal_agent.content import compose, printable
from papaver.protocol.conversation.model import AuthorType, Role
from papaver.protocol.errors import InvalidRequest, PayloadTooLarge
from papaver.protocol.terms import MessageId
from papaver.testing.rules import switched_off

ID = MessageId("msg_1")


@pytest.mark.requirement("8.4-11", "8.4-15")
def test_facts_go_into_the_context_under_their_names() -> None:
    """Named facts win over the same field of `context`; other fields stay what they are."""
    said = compose(
        ID,
        "Hello",
        context={"units": "metric", "locale": "de"},
        locale="en-US",
        time_zone="America/Los_Angeles",
        user_available=False,
    )
    assert said.context == {
        "units": "metric",
        "locale": "en-US",
        "time_zone": "America/Los_Angeles",
        "user_available": False,
    }
    assert (said.author.type, said.role) == (AuthorType.AGENT, Role.USER)


def test_the_users_words_are_theirs() -> None:
    """Only what carries the User's own words says `human` (8.8)."""
    assert compose(ID, "Medium, please.", by_user=True).author.type is AuthorType.HUMAN
    assert compose(ID, "They want medium.").context is None


@pytest.mark.parametrize("locale", ["en", "en-US", "zh-Hant-TW", "de-CH-1996", None])
def test_locales_are_language_tags(locale: str | None) -> None:
    """None takes a locale back."""
    assert compose(ID, context={"locale": locale}).context == {"locale": locale}


@pytest.mark.requirement("8.4-11")
@pytest.mark.parametrize(
    ("context", "rule"),
    [
        pytest.param({"locale": "en_US"}, "context.locale", marks=pytest.mark.requirement("8.4-12")),
        pytest.param({"locale": "English please"}, "context.locale", marks=pytest.mark.requirement("8.4-12")),
        pytest.param({"locale": 5}, "context.locale", marks=pytest.mark.requirement("8.4-12")),
        pytest.param({"time_zone": "+02:00"}, "context.time-zone", marks=pytest.mark.requirement("8.4-13")),
        pytest.param({"time_zone": "Los Angeles"}, "context.time-zone", marks=pytest.mark.requirement("8.4-13")),
        pytest.param({"time_zone": ["Europe/Rome"]}, "context.time-zone", marks=pytest.mark.requirement("8.4-13")),
        pytest.param({"user_available": "yes"}, "context.user-available", marks=pytest.mark.requirement("8.4-14")),
    ],
)
def test_facts_have_their_format(context: dict[str, Any], rule: str) -> None:
    """A fact in another format is refused here, before a Company has to guess."""
    with pytest.raises(InvalidRequest) as caught:
        compose(ID, "Hello", context=context)
    assert caught.value.rule == rule
    with switched_off(rule):
        assert compose(ID, "Hello", context=context).context == context


def test_a_message_says_something_that_can_be_sent() -> None:
    """Empty, too long, or no JSON: nothing of it enters the outbox."""
    refused: tuple[tuple[dict[str, Any], type[InvalidRequest], str], ...] = (
        ({"text": ""}, InvalidRequest, "message.content"),
        ({}, InvalidRequest, "message.content"),
        ({"text": "x" * 65_537}, PayloadTooLarge, "message.text-size"),
        ({"data": {"at": object()}}, InvalidRequest, "message.json"),
        ({"text": "\ud800"}, InvalidRequest, "message.json"),
    )
    for arguments, kind, rule in refused:
        with pytest.raises(kind) as caught:
            compose(ID, **arguments)
        assert caught.value.rule == rule


def test_text_for_a_terminal_is_text() -> None:
    """Escape sequences, controls and direction marks are gone; words, tabs and lines stay."""
    assert printable("a\x1b[31mred\x1b[0m b\tc\nd") == "ared b\tc\nd"
    assert printable("\x1b]8;;https://evil.example\x07link\x1b]8;;\x1b\\") == "link"
    assert printable("\x1b]0;title and no end") == "0;title and no end"
    assert printable("safe\u202egnp.exe\r\x00\x9b31m") == "safegnp.exe31m"
    assert printable("Grüße, 你好 👍") == "Grüße, 你好 👍"
