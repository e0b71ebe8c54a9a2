"""Work that is done at once or goes on later: what is there already needs no timer and no place."""

from __future__ import annotations

from collections.abc import Awaitable, Generator, Iterator
from typing import Any, Generic, TypeVar, cast

__all__ = ["Begun"]

T = TypeVar("T")


class Begun(Generic[T]):
    """The first step of `work` is taken here; what it raises is raised. Unless it `is_over`, await it for the rest.

    Nothing else may be awaited before that: what the work waits for is not the event loop's concern until then.
    """

    __slots__ = ("_first", "_steps", "_told", "_value", "is_over")

    def __init__(self, work: Awaitable[T]) -> None:
        self._steps = work.__await__()
        self._first: Any = None
        self._value: T | None = None
        self.is_over = self._told = False
        try:
            self._first = next(self._steps)
        except StopIteration as done:
            self.is_over, self._value = True, cast("T", done.value)

    @property
    def value(self) -> T:
        """What came of it, when it is over."""
        return cast("T", self._value)

    def drop(self) -> None:
        """End it where it stands."""
        self._steps.close()

    def __await__(self) -> Generator[Any, None, T]:
        return cast("Generator[Any, None, T]", self)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if self._told:
            return next(self._steps)
        self._told = True
        return self._first

    def throw(self, error: BaseException) -> Any:
        """As of a generator: a time limit or a cancellation ends the work itself."""
        return self._steps.throw(error)
