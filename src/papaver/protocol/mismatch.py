"""A failed comparison of a Session check: one sentence for the peer's developer, both values for our own log."""

from __future__ import annotations

from papaver.protocol.errors import InvalidSession

__all__ = ["mismatch"]

_LONGEST = 200


def mismatch(rule: str, description: str, *, expected: object, got: object) -> InvalidSession:
    """The refusal of one rule. `description` may be sent; the values, escaped and cut, go into the private detail."""
    return InvalidSession(
        description, rule=rule, detail=f"expected {repr(expected)[:_LONGEST]}, got {repr(got)[:_LONGEST]}"
    )
