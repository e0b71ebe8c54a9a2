"""The pages of sign-in as HTML: what they say, what they send, and that nothing hostile becomes markup."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest

from papaver.screens import HtmlPages
from papaver.screens.pages import iso_date
from papaver.screens.shown import line, name, plain_date
from tests.house.views import AGENT, HOSTILE, consent, pages

HTML = HtmlPages()


class Read(HTMLParser):
    """Elements with their attributes, and the words."""

    def __init__(self, document: bytes) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(document.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for found, attributes in self.elements if found == tag]


@pytest.mark.parametrize("page", sorted(pages()))
def test_no_page_has_script_or_anything_inline(page: str) -> None:
    """Whatever a view holds: no script, no style, no handler, no frame."""
    read = Read(pages()[page].body)
    assert {"script", "style", "iframe", "object", "base"}.isdisjoint(tag for tag, _ in read.elements)
    names = {name for _, attributes in read.elements for name in attributes}
    assert not [name for name in names if name == "style" or name.startswith("on")]


@pytest.mark.parametrize("page", sorted(pages()))
def test_every_page_keeps_itself_to_itself(page: str) -> None:
    """Not framed, not cached, no script; forms may lead on to the agent (ADR 28)."""
    headers = pages()[page].headers
    policy = headers.first("content-security-policy") or ""
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "script-src" not in policy
    assert "form-action 'self' https: http:" in policy
    assert (headers.first("x-frame-options"), headers.first("cache-control")) == ("DENY", "no-store")
    assert headers.first("referrer-policy") == "same-origin"
    assert headers.first("x-content-type-options") == "nosniff"


def test_the_consent_page_sends_what_is_ticked_and_the_decision() -> None:
    """Each scope a ticked box; the two buttons; the token of the form."""
    read = Read(HTML.consent(consent()).body)
    inputs = read.named("input")
    boxes = [(one["value"], "checked" in one) for one in inputs if one.get("name") == "scope"]
    assert boxes == [("orders:read", True), ("orders:write", True), ("orders:cancel", True), ("gifts", True)]
    assert [one["value"] for one in inputs if one.get("name") == "csrf"] == ["csrf-token"]
    assert {one.get("value") for one in read.named("button") if one.get("name") == "decision"} == {"approve", "decline"}
    for said in ("agent.example", "Dana's agent", "See your orders", "can’t be undone", "It may do this already."):
        assert said in read.words
    assert "own claim" in read.words


def test_in_device_sign_in_the_code_and_the_warning_stand_above_the_buttons() -> None:
    """RFC 10027: the User sees what has to be on the other device, and why to decline."""
    read = Read(HTML.consent(consent(user_code="WDJB-MJHT")).body)
    assert "WDJB-MJHT" in read.words
    assert "Approve only what you started yourself" in read.words
    assert "WDJB-MJHT" not in Read(HTML.consent(consent()).body).words


def test_a_hostile_name_is_shown_and_does_nothing() -> None:
    """No markup of its own, one bounded line, no change of direction; the verified host stands in full."""
    read = Read(HTML.consent(consent(HOSTILE)).body)
    assert "<script>alert(1)</script>" in read.words
    assert not read.named("b")
    assert "\u202e" not in read.words
    shown = re.search(r"“(.*?)”", read.words)
    assert shown is not None
    assert len(shown[1]) == 80
    assert ("h2", {"class": "host"}) in read.elements


def test_connected_agents_are_disconnected_by_a_form_each() -> None:
    """It names the client; the notice is told to screen readers; without an agent it says so."""
    read = Read(pages()["connected"].body)
    clients = [one["value"] for one in read.named("input") if one.get("name") == "client_id"]
    assert clients == [AGENT.client_id, HOSTILE.client_id]
    assert "15 January 2027" in read.words
    assert "No agent is connected." in Read(pages()["nobody"].body).words


def test_assets_are_two_and_nothing_else() -> None:
    """By their names alone."""
    style = HTML.asset("style.css")
    assert style is not None
    assert style.headers.first("content-type") == "text/css; charset=utf-8"
    assert HTML.asset("icon.svg") is not None
    assert HTML.asset("../pages.py") is None


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("a\nb\tc", "a b c"),
        ("a\u202eb\u200bc\ud800", "a b c"),
        ("\u3164\u2800", ""),
        ("e" + "\u0301" * 9, "e" + "\u0301" * 3),
        ("é 漢字 ✓", "é 漢字 ✓"),
    ],
)
def test_what_cannot_be_seen_is_a_space(text: str, seen: str) -> None:
    """And marks do not climb over other lines."""
    assert line(text) == seen


def test_a_long_text_is_cut_and_says_so() -> None:
    """A name sooner than a sentence."""
    assert name("x" * 100) == "x" * 79 + "…"
    assert len(line("x" * 3000)) == 2000


def test_a_day_is_written_as_people_do() -> None:
    """Beyond the calendar it is left out."""
    assert (plain_date(1_800_000_000), iso_date(1_800_000_000)) == ("15 January 2027", "2027-01-15")
    assert (plain_date(1e20), iso_date(1e20)) == ("", "")
