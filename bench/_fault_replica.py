"""Replicas of a figure: `python -m bench._fault_replica STORE REDIS DOCUMENTS SECONDS`, Companies on free ports.

STORE is a DSN of PostgreSQL or a file, REDIS may be empty. This process has imported everything and serves nothing: for
each line on standard input it forks a replica, which is to die at the crash point that the line names, if any. It says
`forked PID`, `ready PID PORT` when one serves, and `ended PID CODE`. Their handler takes so many seconds and names the
messages that it answers. At the end of its input it tells them all to end, and waits for that.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import select
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from starlette.applications import Starlette

from bench.agent import DOMAIN
from papaver.adapters.running import running
from papaver.adapters.starlette import CompanyRoute
from papaver.company import Company, CompanyLimits, Turn
from papaver.stores import crash
from papaver.stores.postgres import PostgresStore
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import Documents

__all__: list[str] = []

HIGH = 10**9
LIMITS = CompanyLimits(
    requests_per_client=HIGH, requests_per_user=HIGH, requests_per_address=HIGH, held_per_user=HIGH, turn_attempts=100
)
"""Too high to bite: a turn that is killed again and again is still answered by the handler."""


def say(*words: object) -> None:
    os.write(1, f"{' '.join(map(str, words))}\n".encode())


class Announcing(uvicorn.Server):
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            say("ready", os.getpid(), self.servers[0].sockets[0].getsockname()[1])


def serve(place: str, redis: str, documents: str, seconds: str) -> None:
    """One replica, until it is told to end."""
    postgres = place.startswith("postgresql:")
    company = Company(
        domain=DOMAIN,
        name="Shop",
        base_url=f"https://{DOMAIN}/poppy",
        store=PostgresStore(place, redis=redis or None) if postgres else SqliteStore(place),
        limits=LIMITS,
    )

    @company.conversation
    async def answer(turn: Turn) -> str:
        await asyncio.sleep(float(seconds))
        return " ".join(["re", *(message.id for message in turn.messages)])

    published = Documents()
    published.bodies = {url: body.encode() for url, body in json.loads(Path(documents).read_text()).items()}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with running(company, fetcher=published):
            yield

    app = Starlette(routes=[CompanyRoute(company)], lifespan=lifespan)
    Announcing(uvicorn.Config(app, port=0, log_level="warning", access_log=False, backlog=1024)).run()


def forked(crash_at: str, arguments: list[str]) -> int:
    """The process id of a new replica."""
    pid = os.fork()
    if pid:
        return pid
    code = 1
    try:
        os.environ["PAPAVER_CRASH_AT"] = crash_at
        importlib.reload(crash)  # it reads the environment once, and had done so here
        serve(*arguments)
        code = 0
    finally:
        os._exit(code)


def main(arguments: list[str]) -> None:
    living: set[int] = set()
    is_over = False
    while living or not is_over:
        asked, _, _ = select.select([] if is_over else [0], [], [], 0.01)
        if asked and not is_over:
            lines = os.read(0, 4096).decode()
            for line in lines.splitlines():
                living.add(pid := forked(line, arguments))
                say("forked", pid)
            is_over = not lines
            if is_over:
                for pid in living:
                    os.kill(pid, signal.SIGTERM)
        pid, status = os.waitpid(-1, os.WNOHANG) if living else (0, 0)
        if pid:
            living.discard(pid)
            say("ended", pid, os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main(sys.argv[1:])
