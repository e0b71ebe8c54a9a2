"""Sessions alike in every store: which row `open` leaves, and how often it is noted that one was seen (5.3 step 4)."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from papaver.protocol.conversation.change import SessionRow

__all__ = ["SEEN_EVERY", "opened"]

SEEN_EVERY: Final = 60.0
"""`seen_at` is written at most once a minute (limits.md)."""


def opened(stored: SessionRow, fresh: SessionRow, forget_before: float) -> SessionRow:
    """The row that `SessionStore.open` leaves: `stored` itself when there is nothing to write."""
    if stored.ended_at is not None:
        return stored
    if stored.seen_at < forget_before:
        return fresh
    same = (stored.user_id, stored.agent_id) == (fresh.user_id, fresh.agent_id)
    if same and fresh.seen_at - stored.seen_at >= SEEN_EVERY:
        return replace(stored, seen_at=fresh.seen_at)
    return stored
