"""`turn_overhead`: from an accepted message to the handler's call, and from its return to the waiting reader's page.

One process, SQLite, nobody else at work. Both are told as multiples of one durable commit, which is measured in turn
with them: a message of the Company's own (`company.people.post`). A turn makes three commits: the lease lies in the
first span, the journal and the answer in the second.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from pathlib import Path

from anyio.lowlevel import checkpoint

from bench.agent import DOMAIN, ENDPOINT, Agent
from bench.harness import report
from bench.serving import Place, store_place
from papaver.adapters.running import running
from papaver.company import Company, CompanyLimits, Turn
from papaver.company.incoming import Incoming
from papaver.protocol.terms import ConversationId
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import Documents
from papaver.web.messages import Headers, Response

ROUNDS, HIGH = 400, 10**9
BOUND = 3.0


class Bench:
    """A Company that notes when its handler is called and when it returns."""

    def __init__(self, store: Path) -> None:
        limits = CompanyLimits(requests_per_client=HIGH, requests_per_user=HIGH, requests_per_address=HIGH)
        self.agent = Agent()
        self.company = Company(
            domain=DOMAIN,
            name="Bench",
            base_url=f"https://{DOMAIN}/poppy",
            store=SqliteStore(store),
            limits=limits,
        )
        self.called = self.returned = 0.0
        self.began, self.go = asyncio.Event(), asyncio.Event()

        @self.company.conversation
        async def answer(turn: Turn) -> str:
            self.called = time.perf_counter()
            self.began.set()
            await self.go.wait()
            self.returned = time.perf_counter()
            return f"You said: {turn.text}"

    async def send(self, method: str, suffix: str, body: object = None, query: str = "") -> dict[str, object]:
        content = b"" if body is None else json.dumps(body).encode()
        fields = [*self.agent.signed(method, ENDPOINT + suffix, 0), ("content-type", "application/json")]

        async def read(_: int) -> bytes:
            return content

        async def gone() -> None:
            await asyncio.Event().wait()

        path = f"/poppy/conversations{suffix}"
        answer = await self.company.handle(
            Incoming(method, path, query, DOMAIN, Headers(fields), "192.0.2.7", read, gone)
        )
        assert isinstance(answer, Response), answer
        assert answer.status < 300, answer
        return json.loads(answer.body)


async def measure(place: Place) -> dict[str, list[float]]:
    bench = Bench(place.folder / "poppy.db")
    published = Documents()
    published.publish(bench.agent.keys)
    taken: dict[str, list[float]] = {"commit": [], "accept": [], "finish": []}
    async with running(bench.company, fetcher=published):
        bench.go.set()
        page = await bench.send("POST", "", bench.agent.message(), "wait=20")
        conversation = str(page["conversation_id"])
        for _ in range(ROUNDS):
            start = time.perf_counter()
            await bench.company.people.post(ConversationId(conversation), "News.")
            taken["commit"].append(time.perf_counter() - start)
            page = await bench.send("GET", f"/{conversation}/events", query=f"cursor={page['cursor']}")
            bench.began.clear()
            bench.go.clear()
            await bench.send("POST", f"/{conversation}/messages", bench.agent.message())
            accepted = time.perf_counter()
            await bench.began.wait()
            taken["accept"].append(max(0.0, bench.called - accepted))
            page = await bench.send("GET", f"/{conversation}/events", query=f"cursor={page['cursor']}")
            reading = asyncio.create_task(
                bench.send("GET", f"/{conversation}/events", query=f"cursor={page['cursor']}&wait=20")
            )
            while not bench.company.held:
                await checkpoint()
            bench.go.set()
            page = await reading
            taken["finish"].append(time.perf_counter() - bench.returned)
    return taken


def main() -> None:
    with store_place() as place:
        taken = asyncio.run(measure(place))
    commit = statistics.median(taken["commit"])
    ratios = {name: statistics.median(taken[name]) / commit for name in ("accept", "finish")}
    print({name: f"{statistics.median(each) * 1e6:.0f} us" for name, each in taken.items()})
    report(
        "turn_overhead",
        value=round(max(ratios.values()), 2),
        baseline=round(commit * 1e6, 1),
        goal=BOUND,
        unit="worst of the two, in durable commits; baseline: one commit, in us",
        **{name: round(each, 2) for name, each in ratios.items()},
        us={name: round(statistics.median(each) * 1e6) for name, each in taken.items()},
        rounds=ROUNDS,
        store=place.kind,
        fsync_us=place.fsync_us,
    )


if __name__ == "__main__":
    main()
