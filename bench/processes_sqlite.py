"""`processes_sqlite`: four server processes on one file, 16 clients on 64 conversations: is each of them served alike?

`value` is the slowest process's rate over the mean of the four. Beside it: the time of a POST at the 99th percentile,
how soon a poll at one process wakes at a commit in another, and how soon a turn is taken over after SIGKILL.
"""

from __future__ import annotations

import json
import statistics
import threading
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench.agent import Agent
from bench.harness import report
from bench.serving import CORES, Load, Place, Server, drive, store_place

PROCESSES, CLIENTS, SPREAD, EACH, ROUNDS = 4, 16, 64, 500, 5
FAIR, WAKE_MS, TAKEOVER_S = 0.7, 150.0, 2.0


def main() -> None:
    with store_place() as place:
        agent, documents = Agent(), place.folder / "documents.json"
        agent.write_documents(documents)
        with ExitStack() as stack:
            servers = [stack.enter_context(serve(place, documents, n)) for n in range(PROCESSES)]
            one = fairness(servers, agent, list(agent.started(servers[0], 1)))
            many = fairness(servers, agent, list(agent.started(servers[0], SPREAD)))
            wakes = [wake_up(servers[n % PROCESSES], servers[(n + 1) % PROCESSES], agent) for n in range(20)]
        takeovers = [takeover(place, documents, agent) for _ in range(ROUNDS)]
    fair, p99_ms, rate = many
    report(
        "processes_sqlite",
        value=round(fair, 3),
        baseline=round(rate),
        goal=FAIR,
        unit="slowest process over the mean; baseline: requests per second of one process, mean",
        one_conversation=round(one[0], 3),
        p99_ms=round(p99_ms, 1),
        p99_one_conversation_ms=round(one[1], 1),
        wake_ms=round(statistics.median(wakes) * 1e3, 1),
        wake_p95_ms=round(statistics.quantiles(wakes, n=20)[-1] * 1e3, 1),
        wake_goal=WAKE_MS,
        takeover_s=round(statistics.median(takeovers), 2),
        takeover_worst_s=round(max(takeovers), 2),
        takeover_goal=TAKEOVER_S,
        rounds=ROUNDS,
        store=place.kind,
        fsync_us=place.fsync_us,
    )


def serve(place: Place, documents: Path, number: int, *more: str) -> Server:
    arguments = ("--store", f"{place.folder}/poppy.db", "--documents", str(documents))
    return Server(*arguments, *more, core=CORES[number % len(CORES)])


def together(calls: list[Callable[[], None]]) -> None:
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def fairness(servers: list[Server], agent: Agent, known: list[str]) -> tuple[float, float, float]:
    """Slowest over mean, median of the rounds; 99th percentile of a POST in ms; mean rate of one process."""
    ratios: list[float] = []
    latencies: list[float] = []
    rates: list[float] = []
    for _ in range(ROUNDS):
        work = [[agent.say(known[(n * PROCESSES + i) % len(known)]) for n in range(EACH)] for i in range(PROCESSES)]
        loads: dict[int, Load] = {}

        def one(number: int, requests: list[bytes], loads: dict[int, Load] = loads) -> None:
            loads[number] = drive(servers[number], requests, CLIENTS // PROCESSES, core=None)

        together([lambda i=i, some=some: one(i, some) for i, some in enumerate(work)])
        assert all(set(load.statuses) == {202} for load in loads.values()), [load.statuses for load in loads.values()]
        mean = statistics.mean(load.rate for load in loads.values())
        ratios.append(min(load.rate for load in loads.values()) / mean)
        rates.append(mean)
        latencies += [latency for load in loads.values() for latency in load.latencies]
        print(f"{len(known)} conversations: " + ", ".join(f"{load.rate:.0f}/s" for load in loads.values()), flush=True)
    return statistics.median(ratios), statistics.quantiles(latencies, n=100)[98] * 1e3, statistics.median(rates)


def wake_up(reader: Server, writer: Server, agent: Agent) -> float:
    """Seconds from the answer to a POST at one process to that of a poll at another."""
    ((conversation, cursor),) = agent.started(reader, 1).items()
    woken: list[float] = []

    def poll() -> None:
        load = drive(reader, [agent.read(conversation, f"cursor={cursor}&wait=20")], 1, core=None)
        assert load.statuses == {200: 1}, load.statuses
        woken.append(time.perf_counter())

    def post() -> None:
        time.sleep(0.3)  # the poll is held by then
        load = drive(writer, [agent.say(conversation)], 1, core=None)
        assert load.statuses == {202: 1}, load.statuses
        woken.append(time.perf_counter())

    together([poll, post])
    return abs(woken[1] - woken[0])


def takeover(place: Place, documents: Path, agent: Agent) -> float:
    """Seconds from the death of a process in the middle of a turn to the reply that another one gives.

    Two run turns, and whichever begins this one dies; a third, which runs none, is asked for the reply.
    """
    victim = place.folder / "victim"
    with ExitStack() as stack:
        for number in range(2):
            stack.enter_context(serve(place, documents, number, "--victim", str(victim)))
        asked = stack.enter_context(serve(place, documents, 1, "--no-turns"))
        ((conversation, cursor),) = agent.started(asked, 1).items()
        victim.touch()
        drive(asked, [agent.say(conversation, text="die")], 1, core=None)
        while victim.exists():
            time.sleep(0.001)
        died = time.perf_counter()
        while time.perf_counter() < died + 60:
            answers: list[bytes] = []
            drive(asked, [agent.read(conversation, f"cursor={cursor}&wait=5")], 1, answers, core=None)
            page = json.loads(answers[0])
            cursor = page["cursor"]
            if any("You said: die" in json.dumps(event) for event in page["events"]):
                return time.perf_counter() - died
    raise AssertionError("nobody took the turn over")


if __name__ == "__main__":
    main()
