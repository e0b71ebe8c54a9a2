"""Pieces of text from a turn to the readers of every replica, through Redis (8.6)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from papaver.ports.deltas import Delta
from papaver.protocol.terms import ConversationId, MessageId
from papaver.stores.deltas import LocalDeltas, RegisteredFeed
from papaver.stores.notify import WatchRegistry
from papaver.stores.redis.relay import Piece, RedisRelay, Subscription
from papaver.stores.redis.server import scope

__all__ = ["RelayedDeltas"]


class RelayedDeltas(LocalDeltas):
    """`Deltas` of one Company. Its own process's readers get each piece at once, whether Redis is there or not."""

    __slots__ = ("_relay", "_scope", "_subscriptions")

    def __init__(self, company: int, registry: WatchRegistry, relay: RedisRelay, secret: bytes) -> None:
        """`secret`: the Company's, the same on every replica."""
        super().__init__(company, registry)
        self._relay, self._scope = relay, scope(secret)
        self._subscriptions: dict[ConversationId, Subscription] = {}

    def publish(self, conversation: ConversationId, delta: Delta) -> None:
        super().publish(conversation, delta)
        self._relay.publish(self._topic(conversation), (delta.message_id, delta.at, delta.text))

    def add(self, conversation: ConversationId, feed: RegisteredFeed) -> None:
        super().add(conversation, feed)
        if conversation not in self._subscriptions:
            receive = partial(self._receive, conversation)
            self._subscriptions[conversation] = self._relay.subscribe(self._topic(conversation), receive)

    def remove(self, conversation: ConversationId, feed: RegisteredFeed) -> None:
        super().remove(conversation, feed)
        if conversation not in self._feeds:
            subscription = self._subscriptions.pop(conversation, None)
            if subscription is not None:
                subscription.end()

    def _topic(self, conversation: ConversationId) -> str:
        return f"text:{self._scope}:{conversation}"

    def _receive(self, conversation: ConversationId, pieces: Sequence[Piece]) -> None:
        for piece in pieces:
            match piece:
                case [str(message_id), int(at), str(text)]:
                    super().publish(conversation, Delta(MessageId(message_id), text, at))
                case _:
                    pass  # a later version's
