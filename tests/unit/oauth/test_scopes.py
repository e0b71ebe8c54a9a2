"""Scopes: their grammar, and what holds what."""

from __future__ import annotations

import pytest

from papaver.oauth.errors import InvalidScope
from papaver.oauth.scopes import covers, read_scope, union, write_scope


def test_names_keep_their_order_and_come_once() -> None:
    """As they were asked for."""
    assert read_scope("orders:write orders:read orders:write") == ("orders:write", "orders:read")
    assert write_scope(("b", "a")) == "b a"


@pytest.mark.requirement("4.7-16")
@pytest.mark.parametrize("text", ["", " ", "a  b", " a", "a ", 'a"b', "a\\b", "a\tb", "a\nb", "\u00e4", "a" * 4097])
def test_what_is_no_scope_is_refused_in_both_directions(text: str) -> None:
    """Missing, blank, doubled spaces, and characters outside of RFC 6749 3.3."""
    with pytest.raises(InvalidScope) as refusal:
        read_scope(text)
    assert (refusal.value.rule, refusal.value.code) == ("oauth.scope-form", "invalid_scope")
    with pytest.raises(InvalidScope):
        write_scope((text,))


@pytest.mark.requirement("4.7-16")
def test_no_scope_at_all_is_never_written() -> None:
    """A sign-in request asks for at least one."""
    with pytest.raises(InvalidScope) as refusal:
        write_scope(())
    assert refusal.value.description == "scope is missing; ask for at least one"


def test_a_name_holds_only_itself() -> None:
    """No scope implies another."""
    assert covers(("orders", "addresses"), ("orders",))
    assert covers(("orders",), ())
    assert not covers(("orders",), ("orders:read",))
    assert not covers((), ("orders",))


def test_the_union_keeps_each_where_it_came_first() -> None:
    """Over all lists."""
    assert union(("b", "a"), ("c", "b"), ()) == ("b", "a", "c")
