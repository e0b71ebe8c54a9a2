"""A request as an adapter hands it in: its head as values, its body still to be read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from papaver.web.messages import Headers

__all__ = ["Incoming"]


@dataclass(frozen=True, slots=True)
class Incoming:
    """One received request.

    `path`   as the app sees it, percent-encoded as received
    `query`  without the question mark; it hides itself, because a credential may be in it
    `host`   what the peer says it asked for; routes, and decides nothing else
    `peer`   the peer's address, for limits on unverified requests
    `body`   reads the whole body, at most this many bytes; raises PayloadTooLarge
    `gone`   returns when the peer has left
    """

    method: str
    path: str
    query: str = field(repr=False)
    host: str
    headers: Headers
    peer: str
    body: Callable[[int], Awaitable[bytes]]
    gone: Callable[[], Awaitable[None]]
