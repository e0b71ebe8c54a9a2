"""The scopes that a Company offers Personal Agents, each described and hinted at (4.7)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from papaver.protocol.company import Changes, ScopeHint
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule

__all__ = [
    "Scope",
    "check_scope_described",
    "check_scope_hints",
    "check_scope_names",
    "check_scopes",
    "check_scopes_distinct",
    "hints",
]

_TOKEN: Final = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+", re.ASCII).fullmatch


@dataclass(frozen=True, slots=True)
class Scope:
    """A scope that Personal Agents may ask for (4.7). `description` is for Users.

    `changes`, `personal_data`  hints about the most consequential action that needs it: both or neither
    """

    name: str
    description: str
    changes: Literal["none", "reversible", "irreversible"] | None = None
    personal_data: bool | None = None


def check_scopes(scopes: Sequence[Scope]) -> None:
    """Everything a Company has to get right about its scopes. Raises ConfigurationError."""
    check_scope_names(scopes)
    check_scopes_distinct(scopes)
    check_scope_described(scopes)
    check_scope_hints(scopes)


def hints(scopes: Sequence[Scope]) -> dict[str, ScopeHint]:
    """`auth.scope_hints` (3.1): of those scopes that have hints."""
    return {
        scope.name: ScopeHint(Changes(scope.changes), scope.personal_data)
        for scope in scopes
        if scope.changes is not None and scope.personal_data is not None
    }


@rule("offer.scope-names")
def check_scope_names(scopes: Sequence[Scope]) -> None:
    """RFC 6749 3.3: a scope is one word of visible ASCII, without quotation mark and backslash."""
    for scope in scopes:
        if _TOKEN(scope.name) is None:
            raise ConfigurationError(
                f"the scope {scope.name!r} is no scope; expected one word such as orders:read", rule="offer.scope-names"
            )


@rule("offer.scopes-distinct")
def check_scopes_distinct(scopes: Sequence[Scope]) -> None:
    """4.7: a scope has one description and one hint."""
    names = [scope.name for scope in scopes]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(
                f"the scope {name!r} is described more than once; describe it once", rule="offer.scopes-distinct"
            )


@rule("offer.scope-described")
def check_scope_described(scopes: Sequence[Scope]) -> None:
    """4.7: each scope is described, so that a Personal Agent can choose and a User can decide."""
    for scope in scopes:
        if not scope.description.strip():
            raise ConfigurationError(
                f"the scope {scope.name!r} has no description; say to Users what it allows",
                rule="offer.scope-described",
            )


@rule("offer.scope-hints-whole")
def check_scope_hints(scopes: Sequence[Scope]) -> None:
    """4.7: a hint says both what it changes, in one of three words, and whether personal data is concerned."""
    words = [None, *(change.value for change in Changes)]
    for scope in scopes:
        half = (scope.changes is None) != (scope.personal_data is None)
        if half or scope.changes not in words or scope.personal_data not in (None, True, False):
            raise ConfigurationError(
                f"the hints of the scope {scope.name!r} are changes={scope.changes!r} and "
                f"personal_data={scope.personal_data!r}; expected one of none, reversible and irreversible with True "
                "or False, or neither of the two",
                rule="offer.scope-hints-whole",
            )
