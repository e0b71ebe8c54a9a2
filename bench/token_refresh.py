"""`token_refresh`: a refresh at the embedded issuer's token endpoint, against a trivial Starlette JSON POST.

The client assertion is verified, its `jti` used up, and the rotation durable before the answer. Each refresh is of a
family of its own, and goes on with the refresh token of the round before.
"""

from __future__ import annotations

import json

from bench.accounts import ISSUER, refresh_request, seed
from bench.agent import Agent
from bench.rounds import against_trivial
from bench.serving import Load, Server, drive, store_place

ROUND = 4000


def main() -> None:
    agent = Agent(ISSUER)
    with store_place() as place:
        store = place.folder / "poppy.db"
        _, tokens = seed(store, agent, 0, ROUND)
        documents = agent.write_documents(place.folder / "documents.json")
        arguments = ("--store", str(store), "--documents", str(documents), "--no-turns", "--issuer", "embedded")
        with Server(*arguments) as company, Server() as trivial:

            def case() -> Load:
                answers: list[bytes] = []
                load = drive(company, [refresh_request(agent, token) for token in tokens], answers=answers)
                assert set(load.statuses) == {200}, (load.statuses, answers[0])
                tokens[:] = [json.loads(answer)["refresh_token"] for answer in answers]
                return load

            against_trivial("token_refresh", trivial, case, goal=0.20, place=place)


if __name__ == "__main__":
    main()
