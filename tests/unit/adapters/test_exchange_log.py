"""What `--trace` shows, and what it never does."""

from __future__ import annotations

import logging

import pytest

from papaver.adapters.exchange_log import note_request, note_response, tracing

HEADERS = [
    ("Host", "shop.example"),
    ("Poppy-Version", "0.4"),
    ("Poppy-Session", "eyJ.secret"),
    ("Authorization", "Bearer hush"),
    ("DPoP", "eyJ.proof"),
    ("Cookie", "a=b"),
    ("X-Anything-New", "hush"),
]


@pytest.fixture(name="shown")
def listen(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """The logger as `--trace` sets it."""
    caplog.set_level(logging.DEBUG, "papaver.exchange")
    return caplog


def test_only_fields_that_never_carry_a_secret_are_shown(shown: pytest.LogCaptureFixture) -> None:
    """Every other one is hidden, also one that nobody has heard of."""
    note_request("POST https://shop.example/poppy", HEADERS)
    (message,) = shown.messages
    assert message.startswith("> POST https://shop.example/poppy\nHost: shop.example\nPoppy-Version: 0.4\n")
    assert message.count(": **********") == 5
    assert not any(word in message for word in ("secret", "hush", "proof", "a=b"))


def test_an_answer_is_shown_with_its_status(shown: pytest.LogCaptureFixture) -> None:
    """Set-Cookie is hidden."""
    note_response("GET https://shop.example/x", 429, [("Retry-After", "3"), ("Set-Cookie", "c=d")])
    assert shown.messages == ["< 429  GET https://shop.example/x\nRetry-After: 3\nSet-Cookie: **********"]


def test_a_query_shows_its_names_alone(shown: pytest.LogCaptureFixture) -> None:
    """A code or a token may be in one (5.6)."""
    note_request("GET https://shop.example/x?code=hush&wait=3", [])
    assert shown.messages == ["> GET https://shop.example/x?code=…&wait=…"]


def test_without_trace_nothing_is_noted(caplog: pytest.LogCaptureFixture) -> None:
    """Not even made."""
    caplog.set_level(logging.INFO, "papaver.exchange")
    note_request("GET https://shop.example/", HEADERS)
    note_response("GET https://shop.example/", 200, HEADERS)
    assert not tracing()
    assert caplog.messages == []
