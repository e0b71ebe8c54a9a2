"""Scopes (RFC 6749 3.3, 4.7): a space-separated text and a tuple of names, in the order asked for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Final

from papaver.oauth.errors import InvalidScope
from papaver.values.rules import rule

__all__ = ["check_scope_form", "covers", "read_scope", "union", "write_scope"]

MAX_LENGTH: Final = 4096
"""A longer `scope` is refused."""

_SCOPE: Final = re.compile(r"[!#-\[\]-~]+(?: [!#-\[\]-~]+)*+", re.ASCII).fullmatch


def read_scope(text: str) -> tuple[str, ...]:
    """The names in their order, each once. Raises `InvalidScope`, also for an empty text (4.7)."""
    check_scope_form(text)
    return tuple(dict.fromkeys(text.split(" ")))


def write_scope(scopes: Iterable[str]) -> str:
    """The text of these scopes. Raises `InvalidScope` for a name that a scope cannot have, and for no name at all."""
    text = " ".join(scopes)
    check_scope_form(text)
    return text


def covers(held: Collection[str], needed: Iterable[str]) -> bool:
    """Whether every needed scope is held. A name means only itself: no scope holds another one."""
    return all(scope in held for scope in needed)


def union(*lists: Iterable[str]) -> tuple[str, ...]:
    """All scopes of these lists, each once, where it came first."""
    return tuple(dict.fromkeys(scope for scopes in lists for scope in scopes))


@rule("oauth.scope-form")
def check_scope_form(text: str) -> None:
    """4.7, RFC 6749 3.3: `scope` is there, and is names of visible ASCII with one space between two of them."""
    if not text:
        raise InvalidScope("scope is missing; ask for at least one", rule="oauth.scope-form")
    if len(text) > MAX_LENGTH or _SCOPE(text) is None:
        raise InvalidScope(
            "scope is not names with one space between them (RFC 6749 3.3)",
            rule="oauth.scope-form",
            detail=f"{len(text)} characters: {text[:100]!r}",
        )
