"""One clause, one function, one id: the registry of check functions.

`rule` only records the function and leaves it as it is, so a check costs nothing but its call.
`papaver.testing.rules` switches a check off by its id, to show that a test notices.
"""

from __future__ import annotations

from collections.abc import Callable
from types import FunctionType
from typing import TypeVar, cast

__all__ = ["RULES", "rule"]

RULES: dict[str, FunctionType] = {}
"""Rule id → the one function that checks it."""

F = TypeVar("F", bound=Callable[..., None])


def rule(rule_id: str) -> Callable[[F], F]:
    """Register a check function under its rule id. A check returns None or raises."""

    def register(function: F) -> F:
        if rule_id in RULES:
            raise ValueError(f"two check functions claim the rule {rule_id!r}")
        RULES[rule_id] = cast(FunctionType, function)
        return function

    return register
