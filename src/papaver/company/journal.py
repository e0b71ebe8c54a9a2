"""`Turn.once`: steps of a turn whose results outlive a crash."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from papaver.company.bounded import OneAtATime
from papaver.ports.company import ConversationLog, LeasedTurn
from papaver.protocol.conversation.operations import LeaseLost
from papaver.values import strict_json

__all__ = ["Steps"]

STEP: Final = "step:"


class Steps:
    """The journaled steps of one leased turn."""

    def __init__(self, log: ConversationLog, leased: LeasedTurn) -> None:
        self._log, self._leased = log, leased
        self._done = {key: value for key, value in leased.journal.items() if key.startswith(STEP)}
        self._alone: OneAtATime[str] = OneAtATime()

    def done(self, prefix: str) -> dict[str, object]:
        """Results of the steps whose names begin with `prefix`, by name, in the order in which they ended."""
        start = STEP + prefix
        return {
            key.removeprefix(STEP): strict_json.loads(value, max_bytes=len(value))
            for key, value in self._done.items()
            if key.startswith(start)
        }

    async def once(self, name: str, call: Callable[[], Awaitable[object]]) -> object:
        """See `Turn.once`. Raises JsonError for a result that is no JSON value, LeaseLost when it came too late."""
        key = STEP + name
        async with self._alone.of(key):
            if key not in self._done:
                value = strict_json.dumps(await call())
                if not await self._log.journal(self._leased.lease, key, value):
                    raise LeaseLost(detail=f"before step {name!r} was journaled")
                self._done[key] = value
            value = self._done[key]
        return strict_json.loads(value, max_bytes=len(value))
