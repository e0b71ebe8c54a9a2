"""How every figure is measured: the arms take turns, medians count, and the last line is one JSON object.

A figure is a module `bench/<figure>.py` with a `main()`. `python -m bench <figure>` runs one, `python -m bench` all.
"""

from __future__ import annotations

import gc
import json
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["compare", "interleave", "per_call", "ratio", "report", "spread"]

Measure = Callable[[], float]


def per_call(function: Callable[[], object], calls: int) -> Measure:
    """A measure of the seconds that one call of `function` takes, over `calls` calls in a row."""

    def measure() -> float:
        repeat = [None] * calls
        start = time.perf_counter()
        for _ in repeat:
            function()
        return (time.perf_counter() - start) / calls

    return measure


def interleave(arms: Mapping[str, Measure], rounds: int, *, warm_up: int = 2) -> dict[str, list[float]]:
    """Every arm once per round, in turn and from both ends alternately, so that drift falls on all alike."""
    for _ in range(warm_up):
        for measure in arms.values():
            measure()
    taken: dict[str, list[float]] = {name: [] for name in arms}
    gc.collect()
    gc.freeze()
    try:
        for turn in range(rounds):
            names = list(arms)[:: 1 if turn % 2 == 0 else -1]
            for name in names:
                taken[name].append(arms[name]())
    finally:
        gc.unfreeze()
    return taken


def ratio(baseline: list[float], case: list[float]) -> float:
    """The median over the rounds of baseline to case: below 1 when the case takes longer."""
    return statistics.median(b / c for b, c in zip(baseline, case, strict=True))


def spread(baseline: list[float], case: list[float]) -> tuple[float, float]:
    """The quartiles of the same ratio."""
    quartiles = statistics.quantiles((b / c for b, c in zip(baseline, case, strict=True)), n=4)
    return quartiles[0], quartiles[2]


def report(figure: str, *, value: float | None, baseline: float, goal: float, **more: Any) -> None:
    """The figure's last line: `value` is held against `goal`, `baseline` is what the baseline arm measured."""
    print(json.dumps({"figure": figure, "value": value, "baseline": baseline, "goal": goal, **more}))


def compare(
    figure: str,
    *,
    baseline: Callable[[], object],
    case: Callable[[], object],
    goal: float,
    floor: float,
    calls: int = 100,
    rounds: int = 301,
) -> None:
    """A figure of two functions: how much of the baseline's speed the case reaches; then an A/A run of the harness."""
    one, other, same = per_call(baseline, calls), per_call(case, calls), per_call(baseline, calls)
    taken = interleave({"a": one, "same": same}, rounds)
    a_a = ratio(taken["a"], taken["same"])
    print(f"A/A  {a_a:.3f}")
    taken = interleave({"baseline": one, "case": other}, rounds)
    value, (low, high) = ratio(taken["baseline"], taken["case"]), spread(taken["baseline"], taken["case"])
    us = {name: statistics.median(seconds) * 1e6 for name, seconds in taken.items()}
    print(f"baseline {us['baseline']:.1f} us, case {us['case']:.1f} us, ratio {value:.3f} ({low:.3f} to {high:.3f})")
    report(
        figure,
        value=round(value, 3),
        baseline=round(us["baseline"], 2),
        goal=goal,
        unit="ratio of baseline to case time; baseline in us",
        floor=floor,
        case=round(us["case"], 2),
        quartiles=[round(low, 3), round(high, 3)],
        a_a=round(a_a, 3),
        rounds=rounds,
    )
