"""The events of a conversation in order, each once, read in pages or as a stream (8.5, 8.6)."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Set
from typing import TYPE_CHECKING, Final

from papaver.protocol.conversation.model import Event, Status, TextDelta
from papaver.protocol.dialect import Page
from papaver.protocol.errors import Misbehaved
from papaver.protocol.terms import EventId
from papaver.values.rules import rule

if TYPE_CHECKING:
    from papaver.personal_agent.conversation import Conversation

__all__ = ["DELIVERED_MOST", "Events", "LiveEvents", "check_page_brings", "check_page_moves"]

DELIVERED_MOST: Final = 10_000
"""Event ids that a conversation remembers having given out while its process lives."""
EMPTY_MOST: Final = 5
"""Pages in a row that say there is more and hold no event at all."""
STALE_MOST: Final = 1_000
"""The same of pages that hold known events only, as they come after an expired cursor: ten to a page, and each is
read by then that is remembered."""
STALE_AT_ONCE: Final = DELIVERED_MOST // 100
"""How many of those are read without a pause: all that is remembered, a hundred to a page."""
AT_REST: Final = frozenset({Status.IDLE, Status.CLOSED})


class _Reading:
    """What both kinds of reading do: the next thing, after what was given out before is handled."""

    def __init__(self, conversation: Conversation, *, follow: bool) -> None:
        self._conversation = conversation
        self._ends = frozenset({Status.CLOSED}) if follow else AT_REST
        self._left: deque[Event | TextDelta] = deque()
        self._page: Page | None = None
        self._passed: set[EventId | None] = set()
        self._empty = self._stale = 0

    async def _next(self, *, pieces: bool) -> Event | TextDelta:
        conversation = self._conversation
        await conversation.handled()
        while True:
            while self._left:
                found = self._left.popleft()
                if isinstance(found, TextDelta):
                    if pieces:
                        return found
                elif conversation.is_new(found):
                    conversation.delivered(found)
                    return found
            page = await self._turn_page()
            self._left.extend(conversation.take_pieces())
            self._left.extend(page.events)

    async def _turn_page(self) -> Page:
        """The next page; StopAsyncIteration when there is nothing more to come."""
        conversation, last, resumes = self._conversation, self._page, False
        if last is not None:
            await conversation.handled(last)
            if not last.has_more and conversation.status in self._ends and not conversation.is_behind():
                resumes = conversation.status is Status.IDLE and await conversation.goes_on()
                if not resumes:
                    await conversation.stop_listening()
                    raise StopAsyncIteration
        more = last is not None and last.has_more
        if more and (self._empty or self._stale > STALE_AT_ONCE):
            await conversation.pause()
        page = self._page = await conversation.next_page(
            hold=resumes or (not more and conversation.status not in self._ends)
        )
        brings = any(map(conversation.is_new, page.events))
        if brings or not more:
            self._passed.clear()
            self._empty = self._stale = 0
        if last is not None and more:
            self._passed.add(last.cursor)
            check_page_moves(self._passed, page)
        if not brings:
            self._empty = 0 if page.events else self._empty + 1
            self._stale += 1
            check_page_brings(page, self._empty, self._stale)
        return page


class Events(_Reading, AsyncIterator[Event]):
    """The events of one conversation as they come. Made by `Conversation.events`."""

    async def __anext__(self) -> Event:
        found = await self._next(pieces=False)
        assert not isinstance(found, TextDelta)
        return found

    def __aiter__(self) -> Events:
        return self


class LiveEvents(_Reading, AsyncIterator[Event | TextDelta]):
    """The same, with the pieces of messages that are still being written. Made by `Conversation.live`."""

    async def __anext__(self) -> Event | TextDelta:
        return await self._next(pieces=True)

    def __aiter__(self) -> LiveEvents:
        return self


@rule("page.moves-on")
def check_page_moves(passed: Set[EventId | None], page: Page) -> None:
    """After `has_more` comes a later page, else reading would never end (8.5). Raises Misbehaved."""
    if page.has_more and page.cursor in passed:
        raise Misbehaved("has_more is true, and yet a cursor comes back", rule="page.moves-on")


@rule("page.brings-events")
def check_page_brings(page: Page, empty: int, stale: int) -> None:
    """A Company that says there is more has more: not page after page, each with a cursor of its own, of nothing new.

    `empty` and `stale` are how many in a row, this one included, held no event, or none that was new (8.5). Raises
    Misbehaved.
    """
    if page.has_more and (empty > EMPTY_MOST or stale > STALE_MOST):
        raise Misbehaved("has_more is true on page after page, and nothing new is on them", rule="page.brings-events")
