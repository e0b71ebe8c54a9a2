"""`post_signed_in`: what a signed-in message POST costs against a signed-out one at the same server.

`opaque` with a token of the embedded issuer, `external` with a JWT (RS256) of somebody else's: processor time of the
signed-in one for each signed-out one. `value` is the worst ratio to its own bound.
"""

from __future__ import annotations

import itertools
import statistics
import sys
from collections.abc import Callable

from bench.accounts import ISSUER, ExternalKey, seed
from bench.agent import USERS, Agent
from bench.harness import report
from bench.rounds import LEAST_ROUNDS, run
from bench.serving import Load, Place, Server, drive, store_place

ROUND = 3000
CONVERSATIONS = 1000
BOUNDS = {"opaque": 1.5, "external": 1.8}


def main() -> None:
    found: dict[str, float | None] = {}
    more: dict[str, object] = {}
    for name in BOUNDS:
        with store_place() as place:
            found[name], costs = _figure(name, place)
            more[f"{name}_us"] = costs
            more["store"] = place.kind
    worst = [value / BOUNDS[name] for name, value in found.items() if value is not None]
    report(
        "post_signed_in",
        value=round(max(worst), 3) if len(worst) == len(BOUNDS) else None,
        baseline=1.0,
        goal=1.0,
        unit="worst ratio to its bound; opaque and external: cost of signed in to signed out",
        **found,
        **more,
        bounds=BOUNDS,
    )
    if len(worst) < len(BOUNDS):
        sys.exit(1)


def _figure(name: str, place: Place) -> tuple[float | None, list[float]]:
    out, into, key = Agent(ISSUER), Agent(ISSUER), ExternalKey()
    into.keys, into.numbers = out.keys, itertools.count(10**9)
    store = place.folder / "poppy.db"
    tokens, _ = seed(store, out, USERS, 0)
    if name == "external":
        tokens = key.tokens(out, [f"acct_{user:04d}" for user in range(USERS)])
    documents = out.write_documents(place.folder / "documents.json", key.documents())
    issuer = "embedded" if name == "opaque" else "external"
    with Server("--store", str(store), "--documents", str(documents), "--no-turns", "--issuer", issuer) as company:
        theirs = out.conversations(company, CONVERSATIONS)
        into.tokens = tokens
        mine = into.conversations(company, CONVERSATIONS)
        rounds = run(name, _saying(out, company, theirs), _saying(into, company, mine), 7, 24)
    if len(rounds.counted) < LEAST_ROUNDS:
        return None, []
    ratio = statistics.median(one.rate / other.rate for one, other in rounds.counted)
    costs = [round(statistics.median(load.cpu_us for load in arm), 1) for arm in zip(*rounds.counted, strict=True)]
    return round(ratio, 3), costs


def _saying(agent: Agent, company: Server, known: list[str]) -> Callable[[], Load]:
    def case() -> Load:
        load = drive(company, [agent.say(known[n % len(known)]) for n in range(ROUND)])
        assert set(load.statuses) == {202}, load.statuses
        return load

    return case


if __name__ == "__main__":
    main()
