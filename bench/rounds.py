"""Rounds of two servers: the trivial one and a Company take turns, and idle rounds do not count."""

from __future__ import annotations

import json
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.agent import Agent
from bench.harness import report
from bench.serving import Load, Place, Server, drive, http_request

__all__ = ["LEAST_CPU", "LEAST_ROUNDS", "Rounds", "against_trivial", "run"]

LEAST_CPU = 0.9
"""A server that used less of its core waited for something else than itself: its round is void."""
LEAST_ROUNDS = 5
BASELINE = 25_000


@dataclass(slots=True)
class Rounds:
    """Pairs of loads, baseline first. `counted` are those in which both servers were busy."""

    counted: list[tuple[Load, Load]] = field(default_factory=list[tuple[Load, Load]])
    every: list[tuple[Load, Load]] = field(default_factory=list[tuple[Load, Load]])

    @property
    def ratio(self) -> float | None:
        """Median of the rates' ratio; None when too few rounds count."""
        if len(self.counted) < LEAST_ROUNDS:
            return None
        return round(statistics.median(other.rate / one.rate for one, other in self.counted), 3)

    @property
    def cpu_ratio(self) -> float:
        """The same of processor time for one request, over all rounds: what a busy machine disturbs least."""
        return round(statistics.median(one.cpu_us / other.cpu_us for one, other in self.every), 3)


def against_trivial(
    figure: str,
    trivial: Server,
    case: Callable[[], Load],
    *,
    goal: float,
    place: Place,
    rounds: int = 7,
    tries: int = 24,
    least_cpu: float = LEAST_CPU,
    **more: object,
) -> None:
    """Rate of `case` over the rate of trivial POSTs, in interleaved rounds; an A/A run of the harness first.

    `least_cpu`: of the case; less than of the baseline where it waits for another server by its nature. `more` is told
    in the same line. Without five rounds that count it has a null value, and the process ends with 1.
    """
    body = json.dumps(Agent().message()).encode()
    plain = [http_request("POST", "/trivial", [("content-type", "application/json")], body)] * BASELINE

    def base() -> Load:
        return drive(trivial, plain)

    same = run("A/A", base, base, LEAST_ROUNDS, tries // 2)
    case()
    taken = run(figure, base, case, rounds, tries, least_cpu)
    told = taken.counted or taken.every
    report(
        figure,
        value=taken.ratio,
        baseline=round(statistics.median(one.rate for one, _ in told)),
        goal=goal,
        unit="ratio of requests per second; baseline in requests per second",
        case=round(statistics.median(other.rate for _, other in told)),
        server_cpu=round(min(min(one.cpu, other.cpu) for one, other in told), 2),
        cpu_ratio=taken.cpu_ratio,
        cpu_us=[round(statistics.median(load.cpu_us for load in arm), 1) for arm in zip(*taken.every, strict=True)],
        a_a=same.ratio,
        rounds=len(taken.counted),
        void=len(taken.every) - len(taken.counted),
        store=place.kind,
        fsync_us=place.fsync_us,
        **more,
    )
    if taken.ratio is None:
        sys.exit(1)


def run(
    name: str,
    base: Callable[[], Load],
    case: Callable[[], Load],
    rounds: int,
    tries: int,
    least_cpu: float = LEAST_CPU,
) -> Rounds:
    """Rounds until so many count, or so many were tried."""
    found = Rounds()
    while len(found.counted) < rounds and len(found.every) < tries:
        if len(found.every) % 2:
            other = case()
            one = base()
        else:
            one = base()
            other = case()
        void = one.cpu < LEAST_CPU or other.cpu < least_cpu
        print(
            f"{name}: {one.rate:.0f}/s cpu {one.cpu:.2f} {one.cpu_us:.1f} us, "
            f"{other.rate:.0f}/s cpu {other.cpu:.2f} {other.cpu_us:.1f} us{' void' if void else ''}",
            flush=True,
        )
        found.every.append((one, other))
        if not void:
            found.counted.append((one, other))
    return found
