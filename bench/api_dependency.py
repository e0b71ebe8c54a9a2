"""`api_dependency`: a FastAPI route behind `signed_in(…)`, and behind `session()`, against the same route without it.

`value` is the worst ratio to its own bound; `signed_in` and `session` are the shares of the plain route's rate.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Callable

from bench.accounts import ISSUER, seed
from bench.agent import USERS, Agent
from bench.harness import report
from bench.rounds import LEAST_ROUNDS, Rounds, run
from bench.serving import Load, Server, drive, http_request, store_place

ROUND = 4000
BOUNDS = {"signed_in": 0.45, "session": 0.55}


def main() -> None:
    agent, visitor = Agent(ISSUER), Agent(ISSUER)
    visitor.keys = agent.keys
    with store_place() as place:
        store = place.folder / "poppy.db"
        agent.tokens, _ = seed(store, agent, USERS, 0)
        with Server("--store", str(store), "--fastapi", "--issuer", "embedded") as company:
            plain = _calling(company, lambda _: http_request("GET", "/plain", []))
            arms = {
                "signed_in": _calling(company, lambda user: agent.call("/signed-in", user)),
                "session": _calling(company, lambda user: visitor.call("/session", user)),
            }
            taken = {name: run(name, plain, case, 7, 24) for name, case in arms.items()}
    found = {name: _share(rounds) for name, rounds in taken.items()}
    shares = [value / BOUNDS[name] for name, value in found.items() if value is not None]
    complete = len(shares) == len(BOUNDS)
    report(
        "api_dependency",
        value=round(min(shares), 3) if complete else None,
        baseline=round(statistics.median(one.rate for rounds in taken.values() for one, _ in rounds.every)),
        goal=1.0,
        unit="worst ratio to its bound; baseline in requests per second; the others are shares of it",
        **found,
        cpu_us={
            name: [round(statistics.median(load.cpu_us for load in arm), 1) for arm in zip(*rounds.every, strict=True)]
            for name, rounds in taken.items()
        },
        bounds=BOUNDS,
    )
    if not complete:
        sys.exit(1)


def _share(rounds: Rounds) -> float | None:
    return rounds.ratio if len(rounds.counted) >= LEAST_ROUNDS else None


def _calling(company: Server, request: Callable[[int], bytes]) -> Callable[[], Load]:
    def case() -> Load:
        load = drive(company, [request(n % USERS) for n in range(ROUND)])
        assert set(load.statuses) == {200}, load.statuses
        return load

    return case


if __name__ == "__main__":
    main()
