"""Redis between the replicas of a Company: wake-ups, pieces of text, shared counts. Hints: it may go at any time."""

from papaver.stores.redis.counters import RedisCounts
from papaver.stores.redis.deltas import RelayedDeltas
from papaver.stores.redis.relay import RedisRelay, Subscription

__all__ = ["RedisCounts", "RedisRelay", "RelayedDeltas", "Subscription"]
