"""What a Company's telemetry is told: requests, turns, hooks (`docs/operations.md` lists the names)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from typing import Final, TypeVar

from papaver.ports.system import Clock
from papaver.ports.telemetry import Attribute, Span, Telemetry
from papaver.web.messages import Response, Stream

__all__ = ["Observed", "Silent"]

R = TypeVar("R", bound=Response | Stream)
_ROUTES: Final = frozenset({"messages", "events", "handoff", "close"})
FAULT: Final = 500


class Silent:
    """Telemetry for a Company that tells nobody."""

    def span(self, name: str, **attributes: Attribute) -> nullcontext[Silent]:
        return nullcontext(self)

    def note(self, **attributes: Attribute) -> None:
        return

    def fail(self, code: str) -> None:
        return

    def count(self, name: str, value: int = 1, **attributes: Attribute) -> None:
        return

    def gauge(self, name: str, read: Callable[[], float]) -> None:
        return

    def measure(self, name: str, seconds: float, **attributes: Attribute) -> None:
        return


class Observed:
    """Requests, as they are answered. Without telemetry it costs one comparison."""

    def __init__(self, telemetry: Telemetry | None, clock: Clock) -> None:
        self._telemetry, self._clock = telemetry, clock

    async def request(self, method: str, suffix: str, answer: Callable[[], Awaitable[R]]) -> R:
        """What `answer()` gives; its route, status and seconds are told. Of a stream: until it begins."""
        telemetry = self._telemetry
        if telemetry is None:
            return await answer()
        route = _route(suffix)
        began = self._clock.monotonic()
        with telemetry.span(f"papaver {method} {route}", method=method, route=route) as span:
            response = await answer()
            _note(span, response)
        status = response.status
        telemetry.count("papaver.requests", method=method, route=route, status=status)
        telemetry.measure(
            "papaver.request.duration", self._clock.monotonic() - began, method=method, route=route, status=status
        )
        return response


def _note(span: Span, response: Response | Stream) -> None:
    span.note(status=response.status)
    if response.status >= FAULT:
        span.fail(str(response.status))


def _route(suffix: str) -> str:
    """The route without the id in it; what is none of ours is not told, for there is no end to it."""
    last = suffix.rpartition("/")[2]
    if not suffix:
        return "/"
    return f"/{{id}}/{last}" if last in _ROUTES and suffix.count("/") == 2 else "other"
