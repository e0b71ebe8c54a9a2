"""`turn_sqlite`: a verified message, accepted and replied to by an echo handler, against a trivial Starlette JSON POST.

Each POST waits for its reply, so that a round of N POSTs is N whole turns: accept, lease, journal, reply, each durable.
"""

from __future__ import annotations

import json

from bench.agent import Agent
from bench.rounds import against_trivial
from bench.serving import Load, Server, drive, store_place

ROUND = 1000


def main() -> None:
    agent = Agent()
    with store_place() as place:
        documents = agent.write_documents(place.folder / "documents.json")
        arguments = ("--store", f"{place.folder}/poppy.db", "--documents", str(documents))
        with Server(*arguments) as company, Server() as trivial:
            cursors = agent.started(company, ROUND)

            def case() -> Load:
                answers: list[bytes] = []
                requests = [agent.say(one, f"cursor={cursor}&wait=20") for one, cursor in cursors.items()]
                load = drive(company, requests, answers=answers)
                assert set(load.statuses) == {202}, load.statuses
                assert all(b'"You said: ' in answer for answer in answers), "a turn was not over"
                cursors.update({page["conversation_id"]: page["cursor"] for page in map(json.loads, answers)})
                return load

            against_trivial("turn_sqlite", trivial, case, goal=0.10, place=place)


if __name__ == "__main__":
    main()
