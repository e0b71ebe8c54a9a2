"""How often: requests counted per client, User and address (5.6), and polls held at once."""

from __future__ import annotations

from collections import OrderedDict

from papaver.protocol.errors import RateLimited
from papaver.values.rules import rule

__all__ = ["Held", "HeldOne", "Rates", "check_rate"]

MINUTE = 60.0


class Rates:
    """Sliding counters of one minute: this minute's count, and the last one's in proportion to what is left of it.

    Bounded: beyond `kept` keys the one unused longest is dropped. Two floats and two ints per key.
    """

    def __init__(self, kept: int) -> None:
        self._kept = kept
        self._rows: OrderedDict[str, tuple[int, int, int]] = OrderedDict()

    def count(self, key: str, limit: int, now: float) -> int:
        """Count one request; 0 when it is within `limit` a minute, else the whole seconds to wait."""
        minute, within = int(now // MINUTE), now % MINUTE
        row = self._rows.get(key)
        if row is None or row[0] < minute - 1:
            before, current = 0, 0
            if len(self._rows) >= self._kept:
                self._rows.popitem(last=False)
        elif row[0] == minute:
            before, current = row[1], row[2]
        else:
            before, current = row[2], 0
        weighed = before * (1 - within / MINUTE) + current
        if weighed >= limit:
            self._rows[key] = (minute, before, current)
            return _seconds_until(limit, before, current, within)
        self._rows[key] = (minute, before, current + 1)
        self._rows.move_to_end(key)
        return 0


def _seconds_until(limit: int, before: int, current: int, within: float) -> int:
    """When the weighed count falls under `limit` again: in this minute by the last one's share, else in the next."""
    if current < limit and before > 0:
        free_at = MINUTE * (1 - (limit - current) / before)
        return max(1, int(free_at - within) + 1)
    return max(1, int(MINUTE - within + MINUTE * (1 - limit / max(current, 1))) + 1)


@rule("limits.rate")
def check_rate(rates: Rates, key: str, limit: int, now: float) -> None:
    """5.6: over the limit a request is refused with the seconds to wait."""
    wait = rates.count(key, limit, now)
    if wait:
        raise RateLimited(wait, rule="limits.rate", detail=f"{key} is over {limit} a minute")


class Held:
    """Polls held at once, per User. Use as `with held.one(key, limit):`."""

    def __init__(self) -> None:
        self._open: dict[str, int] = {}

    def one(self, key: str, limit: int) -> HeldOne:
        return HeldOne(self._open, key, limit)


class HeldOne:
    """One place among a User's held requests, taken while the block runs; raises RateLimited when there is none."""

    __slots__ = ("_key", "_limit", "_open")

    def __init__(self, open_: dict[str, int], key: str, limit: int) -> None:
        self._open, self._key, self._limit = open_, key, limit

    def __enter__(self) -> None:
        count = self._open.get(self._key, 0)
        if count >= self._limit:
            raise RateLimited(1, rule="limits.held", detail=f"{self._key} holds {count} polls")
        self._open[self._key] = count + 1

    def __exit__(self, *_: object) -> None:
        left = self._open.get(self._key, 1) - 1
        if left > 0:
            self._open[self._key] = left
        else:
            self._open.pop(self._key, None)
