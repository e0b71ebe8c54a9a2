"""Strings and bytes that hide themselves in repr, formatting, logs and pickles."""

from __future__ import annotations

import hmac
from typing import Final, Generic, Never, Self, TypeVar, cast

__all__ = ["Secret", "SecretBytes"]

HIDDEN: Final = "**********"

T = TypeVar("T", str, bytes)


class _Hidden(Generic[T]):
    """What both secrets share: one hidden value that only `reveal` gives back."""

    __slots__ = ("_value",)
    _value: T

    def __init__(self, value: T) -> None:
        object.__setattr__(self, "_value", value)

    def reveal(self) -> T:
        """The value itself. Call it where the value is used, and nowhere else."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        """Equal to a secret of the same kind and value, compared in constant time; never equal to a bare value."""
        if type(other) is not type(self):
            return NotImplemented
        return hmac.compare_digest(_octets(self._value), _octets(cast("_Hidden[T]", other)._value))

    def __hash__(self) -> int:
        return hash((type(self), self._value))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({HIDDEN!r})"

    def __str__(self) -> str:
        return HIDDEN

    def __format__(self, spec: str) -> str:
        return HIDDEN

    def __setattr__(self, name: str, value: object) -> Never:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __delattr__(self, name: str) -> Never:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce_ex__(self, protocol: object) -> Never:
        raise TypeError(f"a {type(self).__name__} is never pickled")

    def __getstate__(self) -> Never:
        raise TypeError(f"a {type(self).__name__} is never pickled")


class Secret(_Hidden[str]):
    """A secret text: a token, a code, a passphrase. `reveal()` gives the `str` back."""

    __slots__ = ()


class SecretBytes(_Hidden[bytes]):
    """Secret octets: a private key, a MAC key. `reveal()` gives the `bytes` back."""

    __slots__ = ()


def _octets(value: str | bytes) -> bytes:
    return value.encode("utf-8", "surrogatepass") if isinstance(value, str) else value
