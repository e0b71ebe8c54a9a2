"""The pages of the staff console as HTML: what they say, what they send, and that nothing hostile becomes markup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from papaver.screens.shown import block, moment, waited
from papaver.screens.staff import HtmlStaffPages, iso_moment
from tests.house.staff_views import HOSTILE_TEXT, ROOT, conversation, staff_pages
from tests.unit.screens.test_pages import Read

HTML = HtmlStaffPages()
PAGES = sorted(staff_pages())


@pytest.mark.parametrize("page", PAGES)
def test_no_page_has_anything_inline(page: str) -> None:
    """One script, from our own file; no style, no handler, no element that brings another place in."""
    read = Read(staff_pages()[page].body)
    assert {"style", "object", "base", "img", "embed"}.isdisjoint(tag for tag, _ in read.elements)
    names = {name for _, attributes in read.elements for name in attributes}
    assert not [name for name in names if name == "style" or name.startswith("on")]
    assert [one["src"].partition("?")[0] for one in read.named("script") if one["src"]] == [f"{ROOT}/assets/staff.js"]


@pytest.mark.parametrize("page", PAGES)
def test_every_page_keeps_itself_to_itself(page: str) -> None:
    """Not cached, framed by our own page at most, and only where there is no form."""
    headers, read = staff_pages()[page].headers, Read(staff_pages()[page].body)
    policy = headers.first("content-security-policy") or ""
    framed = "frame-ancestors 'self'" in policy
    assert framed or "frame-ancestors 'none'" in policy
    assert not (framed and read.named("form"))
    assert headers.first("x-frame-options") == ("SAMEORIGIN" if framed else "DENY")
    assert "form-action 'self'" in policy
    assert headers.first("cache-control") == "no-store"


def test_each_panel_offers_what_can_be_done() -> None:
    """Take over what waits; all in one's own; nothing in another's, in a closed one, and in what came earlier."""
    links = {
        name: {(one["action"] or "").rpartition("/")[2] for one in Read(page.body).named("form")}
        for name, page in staff_pages().items()
    }
    assert links["waits"] == {"take", "unavailable", "close"}
    assert links["mine"] == {"say", "back", "user", "scopes", "close"}
    assert links["direct"] == {"say", "back", "scopes", "close"}
    assert links["taken"] == links["closed"] == links["older"] == links["live"] == set()


def test_every_form_carries_the_token_and_a_close_its_confirmation() -> None:
    """As many tokens as forms."""
    read = Read(staff_pages()["mine"].body)
    hidden = [one for one in read.named("input") if one.get("type") == "hidden"]
    assert len([one for one in hidden if one["name"] == "csrf"]) == len(read.named("form"))
    assert ("confirm", "yes") in [(one["name"], one["value"]) for one in hidden]


def test_what_was_typed_is_in_the_page_again() -> None:
    """In its field, or, where there is none any more, as text to copy."""
    read = Read(staff_pages()["refused"].body)
    assert "Line one\nLine two" in read.words
    assert "Because." in read.words
    lost = Read(HTML.conversation(replace(conversation(), panel="theirs", draft="Half\n\u202ea line"), 409).body)
    assert "Not sent: Half\na line" in lost.words


def test_hostile_words_are_shown_and_do_nothing() -> None:
    """In messages, details, facts, names and states: no markup, no direction, no control characters, no long name."""
    page = staff_pages()["hostile"].body.decode()
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert not {"\u202e", "\u0000"} & set(page)
    assert "y" * 100 in page
    assert "y" * 100 not in Read(staff_pages()["queue"].body).words


def test_a_text_keeps_its_lines_and_indentation_and_nothing_unseen() -> None:
    """Blank lines never two in a row, no more than so many marks on a letter, cut where it is too long."""
    assert block("a\r\n  b\n\n\n\nc\u2028d\n\n") == "a\n  b\n\nc\nd"
    assert block("\n\n" + HOSTILE_TEXT).splitlines()[1] == "e\u0301\u0301\u0301"
    assert block("x" * 50, 10) == "x" * 9 + "…"
    assert block("a\n" * 50, 10) == "a\na\na\na\na…"


def test_times_are_written_as_people_do() -> None:
    """Beyond the calendar they are left out."""
    assert (moment(1_800_000_000), iso_moment(1_800_000_000)) == ("15 January, 08:00 UTC", "2027-01-15T08:00:00+00:00")
    assert (moment(1e20), iso_moment(1e20)) == ("", "")
    assert [waited(seconds) for seconds in (5, 65, 7_325)] == ["5 s", "1 min 5 s", "2 h 2 min"]


def test_assets_are_four_and_nothing_else() -> None:
    """By their names alone."""
    found = {name: HTML.asset(name) for name in ("style.css", "staff.css", "staff.js", "icon.svg", "../staff.py", "")}
    assert [name for name, asset in found.items() if asset is None] == ["../staff.py", ""]
    script = found["staff.js"]
    assert script is not None
    assert script.headers.first("content-type") == "text/javascript; charset=utf-8"
