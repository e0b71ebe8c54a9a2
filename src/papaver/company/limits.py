"""How often: requests counted per client, User and address (5.6)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping
from ipaddress import IPv6Address, ip_address, ip_network

from papaver.protocol.errors import RateLimited
from papaver.values.rules import rule

__all__ = ["Key", "Rates", "check_rate", "is_of_one_party", "network_of"]

MINUTE = 60.0
NO_ADDRESS = "no address"
INSIDE = tuple(
    ip_network(name)
    for name in ("127.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "::/64", "fc00::/7")
)
"""Where a proxy of our own would be."""
Key = tuple[str, ...]


class Rates:
    """Sliding counters of one minute: this minute's count, and the last one's in proportion to what is left of it.

    Bounded: beyond `kept` keys the one asked about longest ago is dropped. Three ints per key. Replicas that share
    their counts `take` what is new now and then, and `learn` what all of them counted.
    """

    def __init__(self, kept: int, *, shared: bool = False) -> None:
        self._kept = kept
        self._fresh: dict[tuple[int, Key], int] | None = {} if shared else None
        self._rows: OrderedDict[Key, tuple[int, int, int]] = OrderedDict()

    def count(self, key: Key, limit: int, now: float) -> int:
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
            self._rows.move_to_end(key)
            return _seconds_until(limit, before, current, within)
        self._rows[key] = (minute, before, current + 1)
        self._rows.move_to_end(key)
        fresh = self._fresh
        if fresh is not None and len(fresh) <= self._kept:
            fresh[minute, key] = fresh.get((minute, key), 0) + 1
        return 0

    def take(self, now: float) -> Mapping[int, Mapping[Key, int]]:
        """By minute: what was counted since the last call, or is told again; of this minute and the last."""
        taken: dict[int, dict[Key, int]] = {}
        if self._fresh:
            fresh, self._fresh = self._fresh, {}
            for (minute, key), count in fresh.items():
                if minute >= int(now // MINUTE) - 1:
                    taken.setdefault(minute, {})[key] = count
        return taken

    def give_back(self, minute: int, counts: Mapping[Key, int]) -> None:
        """Nobody could be told: the next `take` brings them again."""
        if self._fresh is not None:
            for key, count in counts.items():
                self._fresh[minute, key] = self._fresh.get((minute, key), 0) + count

    def learn(self, minute: int, key: Key, total: int, before: int) -> None:
        """What all replicas counted in this minute, up to the last `take`, and in the one before it."""
        row = self._rows.get(key)
        if row is None or self._fresh is None:
            return
        total += self._fresh.get((minute, key), 0)
        if row[0] == minute:
            self._rows[key] = (minute, max(row[1], before), max(row[2], total))
        elif row[0] == minute + 1:
            self._rows[key] = (row[0], max(row[1], total), row[2])


def _seconds_until(limit: int, before: int, current: int, within: float) -> int:
    """When the weighed count falls under `limit` again: in this minute by the last one's share, else in the next."""
    if current < limit and before > 0:
        free_at = MINUTE * (1 - (limit - current) / before)
        return max(1, int(free_at - within) + 1)
    return max(1, int(MINUTE - within + MINUTE * (1 - limit / max(current, 1))) + 1)


@rule("limits.rate")
def check_rate(rates: Rates, key: Key, limit: int, now: float) -> None:
    """5.6: over the limit a request is refused with the seconds to wait."""
    wait = rates.count(key, limit, now)
    if wait:
        raise RateLimited(wait, rule="limits.rate", detail=f"{' '.join(key)} is over {limit} a minute")


def network_of(peer: str) -> str:
    """What an address counts as: itself, or the /64 that one subscriber has of IPv6. All that is none counts as one."""
    try:
        address = ip_address(peer.partition("%")[0])
    except ValueError:
        return NO_ADDRESS
    if not isinstance(address, IPv6Address):
        return peer
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(ip_network((address, 64), strict=False))


def is_of_one_party(network: str) -> bool:
    """Whether what `network_of` returned is no proxy of ours that hides who they are: then all would pay for one."""
    if network == NO_ADDRESS:
        return False
    address = ip_network(network).network_address
    return not any(address in inside for inside in INSIDE)
