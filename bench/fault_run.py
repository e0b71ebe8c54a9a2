"""`fault_run`: three replicas over PostgreSQL and Redis are killed again and again while 200 Users talk to them.

Each kill comes while at least ten turns are leased; each crash point of the store is one of them, twice. Redis is gone
for a minute in the middle, PostgreSQL is restarted once. In the end all conversations are read and compared: each
accepted message and each reply is there once, in order, and nothing is stuck. `value` counts what is not so.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench._balancer import Balancer, balancer
from bench._fault_agents import Found, Talker
from bench._fault_services import OwnPostgres, OwnRedis, services
from bench.agent import Agent
from bench.harness import report
from papaver.stores.crash import CRASH_POINTS

USERS, REPLICAS, HANDLER_SECONDS = 200, 3, 0.3
LEAST_LEASED, LEAST_ACCEPTED, LEAST_KILLS = 10, 2000, 20
IN_A_ROW, PAUSE = 3, 8.0
REDIS_AT, REDIS_AWAY = 20.0, 60.0
RECOVERED, WITHIN = 10.0, 300.0
ROOT = Path(__file__).parents[1]
HELD = "SELECT id FROM papaver.conversations WHERE holder IS NOT NULL"
OF_ONE = "SELECT id FROM papaver.conversations WHERE holder LIKE $1"


@dataclass(slots=True)
class Kill:
    """One process that was killed: at which crash point, or "" for at any moment; what was leased then."""

    point: str
    at: float
    leased: int
    interrupted: list[str]


class Forks:
    """The process that forks the replicas, and what it says of each."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._said: list[list[str]] = []
        self._news = asyncio.Condition()
        self._forking = asyncio.Lock()
        self._listening = asyncio.create_task(self._listen())

    async def _listen(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            async with self._news:
                self._said.append(line.decode().split())
                self._news.notify_all()

    async def fork(self, crash_at: str = "") -> int:
        assert self._process.stdin is not None
        async with self._forking:
            before = len(self._said)
            self._process.stdin.write(f"{crash_at}\n".encode())
            return int((await self._hears(before, "forked"))[1])

    async def port(self, pid: int) -> int | None:
        """Where it serves; None when it has ended before."""
        verb, _, number = await self._hears(0, "ready", "ended", pid=pid)
        return int(number) if verb == "ready" else None

    async def code(self, pid: int) -> int:
        """Once it has ended."""
        return int((await self._hears(0, "ended", pid=pid))[2])

    async def _hears(self, before: int, *verbs: str, pid: int | None = None) -> list[str]:
        async with asyncio.timeout(60), self._news:
            while True:
                for words in self._said[before:]:
                    if words[0] in verbs and pid in (None, int(words[1])):
                        return words
                await self._news.wait()

    async def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        await self._process.wait()
        await self._listening


@dataclass(slots=True)
class Replicas:
    """The replicas, each in its place, and what was done to them."""

    postgres: OwnPostgres
    redis: OwnRedis
    front: Balancer
    forks: Forks
    log: Path
    pids: dict[int, int] = field(default_factory=dict[int, int])
    kills: list[Kill] = field(default_factory=list[Kill])

    async def start(self, place: int, crash_at: str = "") -> None:
        """One in that place; it takes requests, or has died at its crash point already."""
        pid = self.pids[place] = await self.forks.fork(crash_at)
        port = await self.forks.port(pid)
        if port is not None:
            self.front.ports[place] = port
        elif not crash_at:
            raise RuntimeError(f"a replica did not start; see {self.log}")

    async def kill(self, place: int) -> None:
        """As soon as enough turns are leased."""
        await until(self._busy)
        os.kill(self.pids[place], signal.SIGKILL)
        await self._died(place, "")

    async def _busy(self) -> bool:
        return len(await self.ask(HELD)) >= LEAST_LEASED

    async def dies_at(self, place: int, point: str) -> None:
        """Start one that kills itself there, and wait for that."""
        await until(self._busy)
        await self.start(place, point)
        await self._died(place, point)

    async def _died(self, place: int, point: str) -> None:
        code = await self.forks.code(self.pids[place])
        at = time.time()
        assert code == -signal.SIGKILL, f"a replica ended with {code}; see {self.log}"
        self.front.ports.pop(place, None)
        interrupted = await self.ask(OF_ONE, f"postgres-{self.pids[place]}-%")
        self.kills.append(Kill(point, at, len(await self.ask(HELD)), interrupted))

    async def ask(self, statement: str, *values: object) -> list[str]:
        connection: Any = await importlib.import_module("asyncpg").connect(self.postgres.dsn)
        try:
            return [row[0] for row in await connection.fetch(statement, *values)]
        finally:
            await connection.close()


async def until(true: Callable[[], Awaitable[bool]]) -> None:
    """Ask again and again."""
    while True:
        if await true():
            return
        await asyncio.sleep(0.02)


@asynccontextmanager
async def company(folder: Path, agent: Agent) -> AsyncGenerator[Replicas]:
    async with services(folder) as (postgres, redis), balancer() as front:
        documents = agent.write_documents(folder / "documents.json")
        words = (postgres.dsn, redis.url, str(documents), str(HANDLER_SECONDS))
        with (folder / "replicas.log").open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "bench._fault_replica", *words),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=log,
                cwd=ROOT,
            )
        replicas = Replicas(postgres, redis, front, Forks(process), folder / "replicas.log")
        try:
            for place in range(REPLICAS):
                await replicas.start(place)
            yield replicas
        finally:
            await replicas.forks.end()
            print(summary(replicas.log), flush=True)


def summary(log: Path) -> str:
    """The lines that the replicas logged, each with its number."""
    lines = Counter(line[:160] for line in log.read_text(errors="replace").splitlines() if line[:1].strip())
    return "\n".join(f"{count:6} {line}" for line, count in lines.most_common(12))


async def faults(replicas: Replicas) -> None:
    """Each place in turn: killed, started so that it dies at one crash point after another, started again.

    PostgreSQL is restarted in the middle.
    """
    points = CRASH_POINTS * 2
    rounds = [points[start : start + IN_A_ROW] for start in range(0, len(points), IN_A_ROW)]
    for number, row in enumerate(rounds):
        place = number % REPLICAS
        await replicas.kill(place)
        for point in row:
            await replicas.dies_at(place, point)
        await replicas.start(place)
        leased = [kill.leased for kill in replicas.kills[-1 - len(row) :]]
        print(f"round {number + 1}: killed, {', '.join(row)}; leased {leased}", flush=True)
        if number == len(rounds) // 2:
            await replicas.postgres.restart()
            print("PostgreSQL restarted", flush=True)
        await asyncio.sleep(PAUSE)


async def without_redis(redis: OwnRedis) -> None:
    await asyncio.sleep(REDIS_AT)
    await redis.stop(signal.SIGKILL)
    print("Redis is gone", flush=True)
    await asyncio.sleep(REDIS_AWAY)
    await redis.start()
    print("Redis is back", flush=True)


async def probe(talker: Talker, front: Balancer, enough: asyncio.Event, taken: list[float]) -> None:
    """Wake-ups from one replica to another, all the time."""
    while not enough.is_set():
        ports = list(front.ports.values())
        if len(ports) > 1:
            taken.append(await talker.wake(ports[0], ports[-1]))
        await asyncio.sleep(0.3)


async def run(folder: Path) -> dict[str, Any]:
    began = time.monotonic()
    agent, statuses, wakes, enough = Agent(), Counter[str](), list[float](), asyncio.Event()
    async with company(folder, agent) as replicas:
        front = replicas.front
        talkers = [Talker(agent, number, lambda: front.port, statuses) for number in range(USERS)]
        observer = Talker(agent, USERS, lambda: front.port, statuses)

        async def said_enough() -> bool:
            return sum(len(talker.said) for talker in talkers) >= LEAST_ACCEPTED

        async with asyncio.TaskGroup() as group:
            await observer.say()
            await observer.hear()
            talking = [group.create_task(talker.talk(enough)) for talker in talkers]
            group.create_task(probe(observer, front, enough, wakes))
            await asyncio.sleep(3)
            away = group.create_task(without_redis(replicas.redis))
            await faults(replicas)
            await away
            await until(said_enough)
            enough.set()
            await asyncio.gather(*talking)
        found = Found()
        print(f"checking, {sum(len(talker.said) for talker in talkers)} accepted", flush=True)
        for start in range(0, USERS, 20):
            await asyncio.gather(*(talker.check(found) for talker in talkers[start : start + 20]))
        await observer.check(found)
        stuck = await replicas.ask(
            "SELECT id FROM papaver.conversations WHERE holder IS NOT NULL OR due_since IS NOT NULL"
        )
    found.stuck += len(stuck)
    for fault in found.faults[:20]:
        print(fault, flush=True)
    print(dict(statuses), flush=True)
    return told(found, replicas.kills, talkers, wakes, time.monotonic() - began)


def told(found: Found, kills: list[Kill], talkers: list[Talker], wakes: list[float], seconds: float) -> dict[str, Any]:
    seen = {talker.conversation: talker.seen for talker in talkers}
    recoveries = [
        min((at for at in seen[id] if at > kill.at), default=float("inf")) - kill.at
        for kill in kills
        for id in kill.interrupted
        if id in seen
    ]
    points = Counter(kill.point for kill in kills if kill.point)
    return {
        "accepted": found.accepted,
        "lost": found.lost,
        "doubled": found.doubled,
        "stuck": found.stuck,
        "disordered": found.disordered,
        "kills": sum(kill.leased >= LEAST_LEASED for kill in kills),
        "kills_in_all": len(kills),
        "crash_points": min(points[point] for point in CRASH_POINTS),
        "wake_p50_ms": round(statistics.median(wakes) * 1000, 1),
        "wake_p95_ms": round(statistics.quantiles(wakes, n=20)[-1] * 1000, 1),
        "wakes": len(wakes),
        "recovery_p95_s": round(statistics.quantiles(recoveries, n=20)[-1], 2),
        "recovery_p50_s": round(statistics.median(recoveries), 2),
        "interrupted": len(recoveries),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="papaver-bench-", ignore_cleanup_errors=True) as folder:
        figures = asyncio.run(run(Path(folder)))
    wrong = sum(figures[name] for name in ("lost", "doubled", "stuck", "disordered"))
    report(
        "fault_run",
        value=wrong,
        baseline=figures["accepted"],
        goal=0,
        unit="messages and replies lost, doubled, stuck or out of order; baseline is what was accepted",
        **figures,
    )
    enough = figures["accepted"] >= LEAST_ACCEPTED and figures["kills"] >= LEAST_KILLS and figures["crash_points"] >= 2
    if wrong or not enough or figures["recovery_p95_s"] > RECOVERED or figures["seconds"] > WITHIN:
        sys.exit(1)


if __name__ == "__main__":
    main()
