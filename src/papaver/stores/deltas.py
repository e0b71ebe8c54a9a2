"""Pieces of text from a turn to the readers of this process (8.6). Everything runs on the event loop's thread."""

from __future__ import annotations

from typing import Final

from papaver.ports.deltas import Delta
from papaver.protocol.terms import ConversationId, MessageId
from papaver.stores.notify import WatchRegistry

__all__ = ["MOST_WAITING", "LocalDeltas", "RegisteredFeed"]

MOST_WAITING: Final = 65_536
"""Characters that wait for one reader; of a message that has more, the reader gets no further piece."""


class RegisteredFeed:
    """One reader's pieces, while it is entered."""

    __slots__ = ("_conversation", "_deltas", "_dropped", "_size", "_waiting")

    def __init__(self, deltas: LocalDeltas, conversation: ConversationId) -> None:
        self._deltas, self._conversation = deltas, conversation
        self._waiting: list[Delta] = []
        self._size = 0
        self._dropped: MessageId | None = None

    def __enter__(self) -> RegisteredFeed:
        self._deltas.add(self._conversation, self)
        return self

    def __exit__(self, *_: object) -> None:
        self._deltas.remove(self._conversation, self)

    def put(self, delta: Delta) -> None:
        if delta.message_id == self._dropped:
            return
        self._size += len(delta.text)
        if self._size > MOST_WAITING:
            self._dropped = delta.message_id
            self._waiting = [one for one in self._waiting if one.message_id != delta.message_id]
            self._size = sum(len(one.text) for one in self._waiting)
            return
        self._waiting.append(delta)

    def take(self) -> tuple[Delta, ...]:
        if not self._waiting:
            return ()
        taken, self._waiting, self._size = tuple(self._waiting), [], 0
        return taken


class LocalDeltas:
    """`Deltas` of one Company in one process. Costs nothing while nobody listens."""

    __slots__ = ("_company", "_feeds", "_registry")

    def __init__(self, company: int, registry: WatchRegistry) -> None:
        self._company, self._registry = company, registry
        self._feeds: dict[ConversationId, set[RegisteredFeed]] = {}

    def publish(self, conversation: ConversationId, delta: Delta) -> None:
        feeds = self._feeds.get(conversation)
        if feeds:
            for feed in feeds:
                feed.put(delta)
            self._registry.wake([(self._company, conversation)])

    def listen(self, conversation: ConversationId) -> RegisteredFeed:
        return RegisteredFeed(self, conversation)

    def add(self, conversation: ConversationId, feed: RegisteredFeed) -> None:
        self._feeds.setdefault(conversation, set()).add(feed)

    def remove(self, conversation: ConversationId, feed: RegisteredFeed) -> None:
        feeds = self._feeds.get(conversation)
        if feeds is not None:
            feeds.discard(feed)
            if not feeds:
                del self._feeds[conversation]
