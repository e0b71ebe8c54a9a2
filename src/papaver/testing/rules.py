"""Switching one check off by its rule id, to show that some test notices.

Every check function is registered by `papaver.values.rules.rule`. Other modules may have imported the
function itself, so it is not replaced: its code object is swapped for one that accepts anything and
returns None, and swapped back at the end (docs/decisions/0009-checks-are-switched-off-by-swapping-code.md).
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import FunctionType

import papaver
from papaver.values.rules import RULES

__all__ = ["ROOMS_WITH_RULES", "CannotSwitchOff", "load_rules", "switched_off"]

ROOMS_WITH_RULES = ("values", "web", "jose", "oauth", "protocol", "versions", "company", "personal_agent", "adapters")
"""The rooms that may hold check functions."""


class CannotSwitchOff(ValueError):
    """This rule id names no check function, or one of a kind whose code cannot be swapped."""


def _accept_anything(*_args: object, **_kwargs: object) -> None:
    """What a check does while it is switched off."""


def load_rules() -> Mapping[str, FunctionType]:
    """Import every module that may register a check, and return rule id → check function.

    An adapter whose extra is not installed is passed over.
    """
    for room in ROOMS_WITH_RULES:
        package = importlib.import_module(f"{papaver.__name__}.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                if (error.name or "").partition(".")[0] == papaver.__name__:
                    raise
    return RULES


@contextmanager
def switched_off(*rule_ids: str) -> Generator[None, None, None]:
    """While the block runs, the checks with these ids pass everything.

    The check is off for the whole process, however it was imported, so run nothing else beside the block.
    Raises CannotSwitchOff for an unknown id, and for a function that is a closure, a coroutine or a generator.
    """
    functions = [_plain_function(rule_id) for rule_id in dict.fromkeys(rule_ids)]
    kept = [function.__code__ for function in functions]
    for function in functions:
        function.__code__ = _accept_anything.__code__
    try:
        yield
    finally:
        for function, code in zip(functions, kept, strict=True):
            function.__code__ = code


def _plain_function(rule_id: str) -> FunctionType:
    try:
        function = RULES[rule_id]
    except KeyError:
        known = "its module may not be imported yet" if RULES else "no module with checks is imported yet"
        raise CannotSwitchOff(f"no check function has the rule id {rule_id!r}; {known}") from None
    if not inspect.isfunction(function):
        raise CannotSwitchOff(f"{rule_id!r} is not a plain function: put @rule outermost, on the check itself")
    if function.__code__.co_freevars:
        raise CannotSwitchOff(f"{rule_id!r} is a closure over {function.__code__.co_freevars}: pass these as arguments")
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise CannotSwitchOff(f"{rule_id!r} is asynchronous or a generator: a check only judges values")
    return function
