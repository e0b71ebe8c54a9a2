"""What a running Company tells of itself: spans and metrics, by names and plain values, never a header or a message."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

__all__ = ["Attribute", "Span", "Telemetry"]

Attribute = str | int | float | bool


class Span(Protocol):
    """One piece of work, while it is entered."""

    def note(self, **attributes: Attribute) -> None:
        """Add what became known of it."""
        ...

    def fail(self, code: str) -> None:
        """Mark it failed: an error of ours, not one that a peer was rightly refused with."""
        ...


class Telemetry(Protocol):
    """Names are `papaver.…`; attribute names are given with `_` and told with `.` after `papaver`."""

    def span(self, name: str, **attributes: Attribute) -> AbstractContextManager[Span]: ...

    def count(self, name: str, value: int = 1, **attributes: Attribute) -> None:
        """Add to a counter."""
        ...

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        """Have `read` asked for the value of a gauge from now on, on any thread. Given again it takes the place."""
        ...

    def measure(self, name: str, seconds: float, **attributes: Attribute) -> None:
        """One duration for a histogram."""
        ...
