"""Counts that the replicas of a Company add up in Redis: who asked how often in one minute (5.6)."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final, cast

from papaver.stores.faults import StoreFailed
from papaver.stores.redis.relay import RedisRelay
from papaver.stores.redis.server import scope

__all__ = ["RedisCounts"]

KEPT: Final = 180
"""Seconds after which Redis forgets a window: it is read until the one after it is over."""
AT_ONCE: Final = 200
"""Names in one request: the event loop is not held up by more."""


class RedisCounts:
    """`SharedCounts` of one Company. One hash a window; names lie in it as keyed digests, and say nobody's address."""

    def __init__(self, relay: RedisRelay, secret: bytes) -> None:
        """`secret`: the Company's, the same on every replica."""
        self._server = relay.server
        self._key = f"{relay.prefix}:counts:{scope(secret)}"
        self._secret = secret

    async def exchange(self, window: int, counts: Mapping[str, int]) -> Mapping[str, tuple[int, int]]:
        names = list(counts)
        sums: dict[str, tuple[int, int]] = {}
        for start in range(0, len(names), AT_ONCE):
            some = names[start : start + AT_ONCE]
            sums.update(zip(some, await self._exchange(window, {name: counts[name] for name in some}), strict=True))
        return sums

    async def _exchange(self, window: int, counts: Mapping[str, int]) -> list[tuple[int, int]]:
        if not self._server.is_open:
            raise StoreFailed("Redis is not open")
        fields = [self._field(name) for name in counts]
        commands = self._server.pipeline()
        for field, count in zip(fields, counts.values(), strict=True):
            commands.hincrby(f"{self._key}:{window}", field, count)
        commands.expire(f"{self._key}:{window}", KEPT)
        commands.hmget(f"{self._key}:{window - 1}", fields)
        try:
            answers = cast("list[Any]", await commands.execute())
        except self._server.faults as fault:
            self._server.away(fault)
            raise StoreFailed(f"{type(fault).__name__} from Redis") from fault
        self._server.back()
        return [(now, int(before or 0)) for now, before in zip(answers[: len(fields)], answers[-1], strict=True)]

    def _field(self, name: str) -> bytes:
        return blake2b(name.encode("utf-8", "surrogatepass"), key=self._secret, digest_size=12).digest()
