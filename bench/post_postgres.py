"""`post_postgres`: a verified message POST, durable in PostgreSQL before the answer, against a trivial JSON POST.

One process each, as in `post_sqlite`; the database's own processes run wherever the system puts them. Beside it: the
same POST at conversations of 50,000 events, and among a million conversations, which is measured in SQLite as well.
"""

from __future__ import annotations

import asyncio
import statistics
from collections.abc import Callable
from contextlib import ExitStack

from bench.agent import Agent
from bench.filling import fill_postgres, fill_sqlite
from bench.harness import interleave, ratio
from bench.in_postgres import dsn, own_server, schema_place
from bench.post_growth import LONG, OF_EACH, SHORT, compare, lengthen
from bench.rounds import against_trivial
from bench.serving import Load, Server, drive, store_place
from papaver.stores.postgres import PostgresStore

KNOWN, MANY = 1000, 1_000_000
ROUND, MANY_ROUND, ROUNDS = 3000, 1500, 9


def main() -> None:
    agent = Agent()
    with ExitStack() as stack:
        place = stack.enter_context(store_place())
        kind = stack.enter_context(own_server(place.folder))
        small, grown, full = [stack.enter_context(schema_place()) for _ in range(3)]
        with_documents = ("--documents", str(agent.write_documents(place.folder / "documents.json")), "--no-turns")

        def in_postgres(schema: str) -> tuple[str, ...]:
            return "--postgres", schema, *with_documents

        def in_sqlite(name: str) -> tuple[str, ...]:
            return "--store", f"{place.folder}/{name}.db", *with_documents

        growth = growing(agent, grown, in_postgres(grown))
        many = {
            "sqlite": among_many(
                agent,
                in_sqlite("small"),
                in_sqlite("full"),
                lambda: fill_sqlite(place.folder / "full.db", MANY),
            ),
            "postgres": among_many(agent, in_postgres(small), in_postgres(full), lambda: fill_postgres(full, MANY)),
        }
        with Server(*in_postgres(small)) as company, Server() as trivial:
            known = agent.conversations(company, KNOWN)
            against_trivial(
                "post_postgres",
                trivial,
                posting(agent, company, known, ROUND),
                goal=0.12,
                place=place,
                postgres=kind,
                least_cpu=0.0,
                at_50_000_events=round(growth, 3),
                at_a_million={store: round(value, 3) for store, value in many.items()},
                bounds={"at_50_000_events": 1.2, "at_a_million": 1.3},
            )


def posting(agent: Agent, company: Server, known: list[str], count: int) -> Callable[[], Load]:
    """A round of so many messages, spread over these conversations."""

    def case() -> Load:
        load = drive(company, [agent.say(known[n % len(known)]) for n in range(count)])
        assert set(load.statuses) == {202}, load.statuses
        return load

    return case


def growing(agent: Agent, schema: str, arguments: tuple[str, ...]) -> float:
    """How many times as long a POST takes at 50,000 events as at 100."""
    with Server(*arguments) as company:
        known = agent.conversations(company, 2 * OF_EACH)
    long, short = known[:OF_EACH], known[OF_EACH:]
    wanted = dict.fromkeys(long, LONG) | dict.fromkeys(short, SHORT)
    asyncio.run(lengthen(PostgresStore(dsn(), schema=schema), wanted))
    with Server(*arguments) as company:
        return compare(company, long, short, agent.say)[0]


def among_many(agent: Agent, small: tuple[str, ...], full: tuple[str, ...], fill: Callable[[], None]) -> float:
    """How many times as long a POST takes among a million conversations as among a thousand."""
    with Server(*full) as company:
        spread = agent.conversations(company, KNOWN)
    fill()
    with Server(*small) as one, Server(*full) as other:
        near, far = (
            posting(agent, one, agent.conversations(one, KNOWN), MANY_ROUND),
            posting(agent, other, spread, MANY_ROUND),
        )
        taken = interleave({"full": lambda: 1 / far().rate, "small": lambda: 1 / near().rate}, ROUNDS)
    us = {name: round(statistics.median(seconds) * 1e6) for name, seconds in taken.items()}
    print(f"{full[0]}: {us['small']} us for a message among {KNOWN}, {us['full']} us among {MANY}", flush=True)
    return ratio(taken["full"], taken["small"])


if __name__ == "__main__":
    main()
