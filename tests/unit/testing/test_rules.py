"""A check is switched off however it was imported, only inside the block, and only if its code can be swapped."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType
from typing import cast

import pytest

from papaver.testing.rules import CannotSwitchOff, load_rules, switched_off
from papaver.values.errors import PapaverError
from papaver.values.rules import RULES, rule


@pytest.fixture(autouse=True)
def _rules_as_before() -> Iterator[None]:
    """Rules that a test registers are gone after it."""
    before = dict(RULES)
    yield
    RULES.clear()
    RULES.update(before)


def _refuse(value: int, *, limit: int = 3, why: str) -> None:
    if value > limit:
        raise PapaverError(why, rule="test.limit")


def test_a_switched_off_check_accepts_everything_and_is_back_afterwards() -> None:
    """Positional, keyword and keyword-only arguments all pass while it is off, through any reference to it."""
    check = rule("test.limit")(_refuse)
    elsewhere = [check]
    with switched_off("test.limit"):
        elsewhere[0](9, limit=1, why="too much")
        elsewhere[0](value=9, why="too much")
    with pytest.raises(PapaverError) as caught:
        elsewhere[0](9, why="too much")
    assert caught.value.rule == "test.limit"


def test_only_the_named_check_is_off() -> None:
    """Another check keeps refusing inside the block."""

    def refuse_all() -> None:
        raise PapaverError("never", rule="test.all")

    check = rule("test.all")(refuse_all)
    rule("test.limit")(_refuse)
    with switched_off("test.limit"), pytest.raises(PapaverError) as caught:
        check()
    assert caught.value.rule == "test.all"


def test_the_check_is_back_after_an_error_in_the_block() -> None:
    """An exception inside the block does not leave the check off."""
    check = rule("test.limit")(_refuse)
    with pytest.raises(KeyError), switched_off("test.limit"):
        raise KeyError
    with pytest.raises(PapaverError):
        check(9, why="too much")


def test_blocks_nest() -> None:
    """An inner block for the same rule ends without switching the check on for the outer one."""
    check = rule("test.limit")(_refuse)
    with switched_off("test.limit", "test.limit"):
        with switched_off("test.limit"):
            check(9, why="too much")
        check(9, why="too much")
    with pytest.raises(PapaverError):
        check(9, why="too much")


def test_a_check_called_often_before_is_off_too() -> None:
    """The interpreter's specialised calls do not keep the old code alive."""
    check = rule("test.limit")(_refuse)

    def call() -> None:
        check(2, why="fine")

    for _ in range(1000):
        call()
    with switched_off("test.limit"):
        check(9, why="too much")


def test_an_unknown_rule_is_named() -> None:
    """A misspelt rule id is an error that repeats it."""
    with pytest.raises(CannotSwitchOff, match=r"'test\.missing'"):
        switched_off("test.missing").__enter__()


def test_a_closure_is_refused() -> None:
    """Code with free variables cannot be swapped, and the error names them."""
    limit = 3

    def refuse() -> None:
        raise PapaverError(str(limit))

    rule("test.closure")(refuse)
    with pytest.raises(CannotSwitchOff, match=r"closure over.*limit"):
        switched_off("test.closure").__enter__()


def test_a_coroutine_is_refused() -> None:
    """A check judges values and awaits nothing."""

    async def refuse() -> None:
        """Nothing to do."""

    RULES["test.async"] = cast(FunctionType, refuse)
    with pytest.raises(CannotSwitchOff, match="asynchronous"):
        switched_off("test.async").__enter__()


def test_something_that_is_no_function_is_refused() -> None:
    """A decorator outside @rule hides the code, so it has to go inside."""
    RULES["test.class"] = cast(FunctionType, PapaverError)
    with pytest.raises(CannotSwitchOff, match="plain function"):
        switched_off("test.class").__enter__()


def test_every_rule_of_the_house_can_be_switched_off() -> None:
    """Loading finds the checks of every room, and each is of the kind that can be switched off."""
    rules = load_rules()
    with switched_off(*rules):
        assert set(rules) <= set(RULES)
