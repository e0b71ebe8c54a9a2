"""Scopes as a Company describes them: what cannot be published is refused when it is built."""

from __future__ import annotations

from typing import Any

import pytest

from papaver.company.scopes import Scope, check_scopes, hints
from papaver.protocol.company import Changes, ScopeHint
from papaver.protocol.errors import ConfigurationError

READ = Scope("orders:read", "See your orders", "none", True)


def refused(*scopes: Any) -> str:
    with pytest.raises(ConfigurationError) as caught:
        check_scopes(scopes)
    return caught.value.rule


@pytest.mark.requirement("papaver-71")
@pytest.mark.parametrize("name", ["", "a b", 'a"b', "a\\b", "ä", "a\n"])
def test_a_name_that_no_request_can_say_is_refused(name: str) -> None:
    """RFC 6749 3.3."""
    assert refused(Scope(name, "Everything")) == "offer.scope-names"


@pytest.mark.requirement("papaver-71", "4.7-04")
def test_a_scope_is_described_once() -> None:
    """Neither twice nor not at all."""
    assert refused(READ, Scope("orders:read", "Your orders")) == "offer.scopes-distinct"
    assert refused(Scope("orders:read", " ")) == "offer.scope-described"


@pytest.mark.requirement("4.7-09", "4.7-07", "4.7-08")
@pytest.mark.parametrize(
    ("changes", "personal_data"),
    [("none", None), (None, False), ("sometimes", True), ("none", "yes"), ("", True)],
)
def test_half_a_hint_and_another_word_are_refused(changes: Any, personal_data: Any) -> None:
    """Both members, one of three words, and a boolean."""
    assert refused(Scope("orders:read", "See your orders", changes, personal_data)) == "offer.scope-hints-whole"


@pytest.mark.requirement("4.7-05")
def test_hints_are_of_those_scopes_that_have_them() -> None:
    """A Company may hint at some."""
    check_scopes([READ, Scope("profile", "See who you are")])
    assert hints([READ, Scope("profile", "See who you are")]) == {"orders:read": ScopeHint(Changes.NONE, True)}
