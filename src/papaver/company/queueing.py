"""Which conversations the staff's queue shows: all, or of too many a fair choice, so that none can hide the others."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final

from papaver.ports.company import ConversationLog
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ClientId, UserId

__all__ = ["LISTED", "Listed", "listed"]

LISTED: Final = 500
"""Conversations that are shown at once: of those that wait, and of those that somebody has."""
READ: Final = 5_000
"""Conversations from which those are chosen when there are more."""


@dataclass(frozen=True, slots=True)
class Listed:
    """What is shown: those that wait, then those that somebody has. `more`: there are others."""

    heads: tuple[Head, ...]
    more: bool


async def listed(log: ConversationLog) -> Listed:
    """The longest wait first. Of more than are shown: in turn each Personal Agent's, and in turn each of its Users'."""
    heads = await log.attention(LISTED + 1)
    if len(heads) <= LISTED:
        return Listed(heads, more=False)
    heads = await log.attention(READ)
    waiting = [head for head in heads if head.queued_at is not None]
    taken = [head for head in heads if head.queued_at is None]
    if len(waiting) > LISTED:
        shown = tuple(islice(_fair(waiting), LISTED))
    else:
        shown = tuple(waiting)
    more = len(heads) >= READ or max(len(waiting), len(taken)) > LISTED
    return Listed((*shown, *taken[:LISTED]), more)


def _fair(waiting: Iterable[Head]) -> Iterator[Head]:
    clients: dict[ClientId, dict[UserId, list[Head]]] = {}
    for head in waiting:
        clients.setdefault(head.client_id, {}).setdefault(head.user_id, []).append(head)
    return _in_turn(_in_turn(users.values()) for users in clients.values())


def _in_turn(groups: Iterable[Iterable[Head]]) -> Iterator[Head]:
    """One of each, then the next of each, until there is none left."""
    going = deque(map(iter, groups))
    while going:
        group = going.popleft()
        head = next(group, None)
        if head is not None:
            yield head
            going.append(group)
