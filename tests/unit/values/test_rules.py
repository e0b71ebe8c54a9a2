"""A rule id belongs to one check function."""

from __future__ import annotations

import pytest

from papaver.values.rules import RULES, rule


def test_a_rule_registers_its_function_and_leaves_it_as_it_is() -> None:
    """The decorator adds no call."""

    def check_nothing() -> None:
        """Check nothing."""

    try:
        assert rule("test.nothing")(check_nothing) is check_nothing
        assert RULES["test.nothing"] is check_nothing
    finally:
        RULES.pop("test.nothing", None)


def test_two_functions_cannot_claim_one_rule() -> None:
    """One clause, one function, one id."""

    def check_twice() -> None:
        """Check nothing."""

    try:
        rule("test.twice")(check_twice)
        with pytest.raises(ValueError, match=r"test\.twice"):
            rule("test.twice")(check_twice)
    finally:
        RULES.pop("test.twice", None)
