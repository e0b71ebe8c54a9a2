"""`delivery`: from the commit of a Company message to its arrival at a reader who waits for it in a long poll.

Against the raw wake-up followed by one trivial Starlette response to a reader who waits as well: an event in the
process (a store in a file), NOTIFY, and Redis, the last two from one process to another. `value` is the worst ratio.
"""

from __future__ import annotations

import os
import statistics
from contextlib import ExitStack
from pathlib import Path

from bench._timed import Seat, timed
from bench.agent import Agent
from bench.harness import report
from bench.in_postgres import dsn, own_server, schema_place
from bench.serving import store_place

ROUNDS, MOST = 200, 3.0
REDIS = os.environ.get("PAPAVER_REDIS_URL") or "redis://127.0.0.1:6379"
ARMS = ("event", "notify", "redis")


def main() -> None:
    taken = {arm: measured(arm) for arm in ARMS}
    ratios = {arm: round(ours / raw, 2) for arm, (ours, raw) in taken.items()}
    worst = max(ratios, key=lambda arm: ratios[arm])
    report(
        "delivery",
        value=ratios[worst],
        baseline=taken[worst][1],
        goal=MOST,
        unit="ratio of the worst of three; times in ms",
        ratios=ratios,
        ms={arm: ours for arm, (ours, _) in taken.items()},
        raw_ms={arm: raw for arm, (_, raw) in taken.items()},
        rounds=ROUNDS,
    )


def measured(arm: str) -> tuple[float, float]:
    """Milliseconds: ours and the raw way, medians. They take turns."""
    agent = Agent()
    ours: list[float] = []
    raw: list[float] = []
    with ExitStack() as stack:
        place = stack.enter_context(store_place())
        documents = agent.write_documents(place.folder / "documents.json")
        writing, reading = processes(arm, stack, place.folder, documents)
        seat = Seat(agent, writing, reading)
        for number in range(ROUNDS + 5):
            noted, arrived = seat.reply()
            baseline = seat.raw()
            if number >= 5:
                ours.append(arrived - noted["finish.after-commit"])
                raw.append(baseline)
    found = round(statistics.median(ours) * 1000, 3), round(statistics.median(raw) * 1000, 3)
    print(f"{arm}: {found[0]} ms, raw {found[1]} ms", flush=True)
    return found


def processes(arm: str, stack: ExitStack, folder: Path, documents: Path) -> tuple[int, int]:
    """The ports of the one that writes and the one that is read from."""
    if arm == "event":
        port = stack.enter_context(timed(f"{folder}/poppy.db", "", documents, "turns"))
        return port, port
    stack.enter_context(own_server(folder))
    store = f"{dsn()}#{stack.enter_context(schema_place())}"
    redis = REDIS if arm == "redis" else ""
    writing = stack.enter_context(timed(store, redis, documents, "turns"))
    return writing, stack.enter_context(timed(store, redis, documents, "reads"))


if __name__ == "__main__":
    main()
