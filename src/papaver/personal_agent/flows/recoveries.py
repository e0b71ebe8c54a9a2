"""Section 7's table as data: which answers are worth another try, what has to change first, each at most once.

A recovery is a flow → whether the request may be sent again. Whatever is not in the table is the caller's to see.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from papaver.personal_agent.flows.account_recoveries import ACCOUNT_RECOVERIES
from papaver.personal_agent.flows.attempts import Attempt, Recovery
from papaver.personal_agent.flows.discover import discover
from papaver.personal_agent.flows.effects import Flow, wait
from papaver.personal_agent.live import LiveSession
from papaver.protocol.dialect import Received
from papaver.protocol.errors import (
    InvalidSession,
    RateLimited,
    SessionEnded,
    TemporarilyUnavailable,
    VersionUnsupported,
)
from papaver.web.fields import FieldError, read_http_date, read_retry_after
from papaver.web.messages import Request, Response
from papaver.web.urls import host_of, htu

__all__ = ["RECOVERIES", "paced", "recovery_of", "retry_after"]


logger = logging.getLogger("papaver.personal_agent")


NO_RETRY_AFTER: Final = 1
"""Seconds to wait when a Company forgets to say how long (5.6)."""


def open_another(live: LiveSession, attempt: Attempt) -> Flow[bool]:
    """`session_ended`: a new Session with a new `sid` (5.5)."""
    yield from ()
    live.leave(attempt.opened)
    return True


def discover_again(live: LiveSession, attempt: Attempt) -> Flow[bool]:
    """`version_unsupported`: past every cache; another version means a new Session, the same means stop (3.4)."""
    if live.current is not attempt.opened:  # another request was here first
        return True
    outcome = yield from discover(live.setup, attempt.opened.found.domain, uncached=True)
    if outcome.found.version == attempt.opened.found.version:
        return False
    live.leave(attempt.opened, outcome.found)
    return True


def correct_clock(live: LiveSession, attempt: Attempt) -> Flow[bool]:
    """`invalid_session` beside a `Date` that is far from ours: the clock was wrong, not the Session."""
    yield from ()
    limits, now = live.setup.limits, live.setup.clock.now()
    try:
        offset = read_http_date(attempt.response.headers.first("Date") or "", now) - now
    except FieldError:
        return False
    if abs(offset) > limits.clock_difference_most or abs(offset - attempt.offset) <= limits.clock_difference_least:
        return False
    live.offset = offset
    return True


def wait_as_told(live: LiveSession, attempt: Attempt) -> Flow[bool]:
    """429, and 503 for a check that could not be made: not again before `Retry-After` is over (5.6)."""
    seconds = retry_after(live, attempt.response)
    live.not_before[_place(attempt.request)] = live.setup.clock.monotonic() + seconds
    if seconds > live.setup.limits.retry_after_most:
        return False
    _tell(attempt.request, seconds)
    yield from wait(seconds)
    return True


RECOVERIES: Final[Mapping[tuple[int, str], Recovery]] = MappingProxyType(
    {
        (400, SessionEnded.code): open_another,
        (400, VersionUnsupported.code): discover_again,
        (400, InvalidSession.code): correct_clock,
        (429, RateLimited.code): wait_as_told,
        (503, TemporarilyUnavailable.code): wait_as_told,
        **ACCOUNT_RECOVERIES,
    }
)


def recovery_of(response: Response, received: Received | None) -> Recovery | None:
    """The recovery for an answer, whose error was `received`. A success has none, whatever challenge it has (8.11)."""
    return None if received is None else RECOVERIES.get((response.status, received.code))


def retry_after(live: LiveSession, response: Response) -> int:
    """The seconds of `Retry-After`, at least one."""
    try:
        return max(
            NO_RETRY_AFTER, read_retry_after(response.headers.first("Retry-After") or "", live.setup.clock.now())
        )
    except FieldError:
        return NO_RETRY_AFTER


def paced(live: LiveSession, request: Request) -> Flow[None]:
    """Wait until a request may be sent that was refused before (5.6). Raises RateLimited when that is too long."""
    left = live.not_before.get(_place(request), 0.0) - live.setup.clock.monotonic()
    if left > live.setup.limits.retry_after_most:
        raise RateLimited(
            -int(-left // 1), "the Company asked to wait longer than is waited here", rule="request.paced"
        )
    if left > 0:
        _tell(request, left)
        yield from wait(left)


def _tell(request: Request, seconds: float) -> None:
    """Whoever waits in front of this is told why."""
    logger.warning("%s asks to wait; sending again in %g s", host_of(request.url), -int(-seconds // 1))


def _place(request: Request) -> str:
    """What is the same request again: its method and URL, whatever the query says."""
    return f"{request.method} {htu(request.url)}"
