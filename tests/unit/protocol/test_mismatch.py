"""A failed comparison tells both values to the log, cut and escaped, and only a sentence to the peer."""

from __future__ import annotations

from papaver.protocol.mismatch import mismatch


def test_both_values_are_in_the_detail_only() -> None:
    """The peer's value may hold anything: line feeds are escaped, and it is cut."""
    error = mismatch("a.rule", "a sentence", expected="x", got="y\n" * 500)
    assert (error.code, error.rule, error.description) == ("invalid_session", "a.rule", "a sentence")
    assert error.detail.startswith(r"expected 'x', got 'y\ny\n")
    assert "\n" not in error.detail
    assert len(error.detail) < 250
