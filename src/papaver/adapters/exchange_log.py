"""What `--trace` shows: each exchange as one record of the logger `papaver.exchange`, with every secret hidden."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Final

from papaver.values.secret import HIDDEN

__all__ = ["note_request", "note_response", "tracing"]

logger = logging.getLogger("papaver.exchange")

SHOWN: Final = frozenset(
    {
        "accept", "accept-encoding", "accept-language", "age", "allow", "cache-control", "connection",
        "content-encoding", "content-length", "content-type", "date", "deprecation", "etag", "expires", "host",
        "last-event-id", "last-modified", "link", "poppy-extensions", "poppy-version", "retry-after", "server",
        "sunset", "user-agent", "vary", "www-authenticate",
    }
)  # fmt: skip
"""Fields that never carry a secret. What any other holds is hidden: a list of the secret ones could miss one."""


def tracing() -> bool:
    """Whether anybody wants to see exchanges."""
    return logger.isEnabledFor(logging.DEBUG)


def note_request(line: str, headers: Iterable[tuple[str, str]]) -> None:
    """A request that is about to be sent, or came. `line` is method and URL; its query is hidden."""
    if tracing():
        logger.debug("> %s%s", _without_query(line), _shown(headers))


def note_response(line: str, status: int, headers: Iterable[tuple[str, str]]) -> None:
    """What was answered."""
    if tracing():
        logger.debug("< %d  %s%s", status, _without_query(line), _shown(headers))


def _shown(headers: Iterable[tuple[str, str]]) -> str:
    return "".join(f"\n{name}: {value if name.lower() in SHOWN else HIDDEN}" for name, value in headers)


def _without_query(line: str) -> str:
    before, mark, query = line.partition("?")
    names = "&".join(part.partition("=")[0] + "=…" for part in query.split("&"))
    return f"{before}?{names}" if mark else line
