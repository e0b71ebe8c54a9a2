"""`post_sqlite`: a verified message POST, durable before the answer, against a trivial Starlette JSON POST.

One process each, the same server and settings, 16 connections, messages spread over 1,000 conversations, no turns run.
"""

from __future__ import annotations

from bench.agent import Agent
from bench.rounds import against_trivial
from bench.serving import Load, Server, drive, store_place

ROUND = 4000


def main() -> None:
    agent = Agent()
    with store_place() as place:
        documents = agent.write_documents(place.folder / "documents.json")
        arguments = ("--store", f"{place.folder}/poppy.db", "--documents", str(documents), "--no-turns")
        with Server(*arguments) as company, Server() as trivial:
            known = agent.conversations(company, 1000)

            def case() -> Load:
                load = drive(company, [agent.say(known[n % len(known)]) for n in range(ROUND)])
                assert set(load.statuses) == {202}, load.statuses
                return load

            against_trivial("post_sqlite", trivial, case, goal=0.30, place=place)


if __name__ == "__main__":
    main()
