"""Rounds of two servers: the trivial one and a Company take turns, and idle rounds do not count."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable

from bench.agent import Agent
from bench.harness import report
from bench.serving import Load, Place, Server, drive, http_request

__all__ = ["LEAST_CPU", "against_trivial"]

LEAST_CPU = 0.9
"""A server that used less of its core waited for something else than itself: its round is void."""
BASELINE = 25_000


def against_trivial(
    figure: str,
    trivial: Server,
    case: Callable[[], Load],
    *,
    goal: float,
    place: Place,
    rounds: int = 7,
    tries: int = 30,
) -> None:
    """Rate of `case` over the rate of trivial POSTs, in interleaved rounds; an A/A run of the harness first."""
    body = json.dumps(Agent().message()).encode()
    plain = [http_request("POST", "/trivial", [("content-type", "application/json")], body)] * BASELINE

    def base() -> Load:
        return drive(trivial, plain)

    same, _ = _rounds("A/A", base, base, 5, tries)
    print(f"A/A  {statistics.median(same):.3f}")
    case()
    ratios, loads = _rounds(figure, base, case, rounds, tries)
    report(
        figure,
        value=round(statistics.median(ratios), 3),
        baseline=round(statistics.median(one.rate for one, _ in loads)),
        goal=goal,
        unit="ratio of requests per second; baseline in requests per second",
        case=round(statistics.median(other.rate for _, other in loads)),
        server_cpu=round(min(min(one.cpu, other.cpu) for one, other in loads), 2),
        cpu_us=[round(statistics.median(load.cpu_us for load in arm), 1) for arm in zip(*loads, strict=True)],
        a_a=round(statistics.median(same), 3),
        rounds=len(ratios),
        store=place.kind,
        fsync_us=place.fsync_us,
    )


def _rounds(
    name: str, base: Callable[[], Load], case: Callable[[], Load], rounds: int, tries: int
) -> tuple[list[float], list[tuple[Load, Load]]]:
    ratios: list[float] = []
    loads: list[tuple[Load, Load]] = []
    for number in range(tries):
        if number % 2:
            other = case()
            one = base()
        else:
            one = base()
            other = case()
        void = min(one.cpu, other.cpu) < LEAST_CPU
        print(
            f"{name}: {one.rate:.0f}/s cpu {one.cpu:.2f} {one.cpu_us:.1f} us, "
            f"{other.rate:.0f}/s cpu {other.cpu:.2f} {other.cpu_us:.1f} us{' void' if void else ''}",
            flush=True,
        )
        if not void:
            ratios.append(other.rate / one.rate)
            loads.append((one, other))
        if len(ratios) == rounds:
            return ratios, loads
    raise SystemExit(f"{name}: only {len(ratios)} of {tries} rounds count: something else used the server's core")
