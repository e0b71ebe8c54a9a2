"""Our real server as processes: starting and killing them, what they say, and a client that may have to try again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sqlite3
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from papaver.stores.crash import Step
from papaver.testing.keys import AgentKeys
from papaver.web.sse import MEDIA_TYPE
from tests.house.sockets import Reader, connected

__all__ = ["Answer", "Caller", "House", "Server", "Unanswered", "house", "replies", "texts"]

ROOT = Path(__file__).parents[2]
DOMAIN = "shop.example"
ENDPOINT = f"https://{DOMAIN}/poppy/conversations"
WITHIN = 60.0
"""Seconds after which a test gives up waiting. Nothing is ever asserted about time."""


class Unanswered(Exception):
    """The connection ended before an answer came: whether the request was accepted is unknown."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A response."""

    status: int
    json: Any


class Server:
    """One process of `tests.house.served_company`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.port = 0
        self.said: list[str] = []
        self._seen: dict[str, int] = {}
        self._news = asyncio.Condition()
        self._reading = asyncio.create_task(self._read())

    async def _read(self) -> None:
        assert self.process.stdout is not None
        async for line in self.process.stdout:
            async with self._news:
                self.said.append(line.decode().rstrip("\n"))
                self._news.notify_all()
        async with self._news:
            self.said.append("END")
            self._news.notify_all()

    async def hears(self, start: str) -> str:
        """The next line that begins so, from the last one that this was asked for on; what follows `start` in it."""
        async with asyncio.timeout(WITHIN), self._news:
            while True:
                for number in range(self._seen.get(start, 0), len(self.said)):
                    if self.said[number].startswith(start):
                        self._seen[start] = number + 1
                        return self.said[number].removeprefix(start).strip()
                assert self.said[-1:] != ["END"], f"ended without {start!r}: {self.said}"
                await self._news.wait()

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{line}\n".encode())

    async def begin(self) -> None:
        """Let it open its store and serve."""
        self.tell("start")
        self.port = int(await self.hears("ready"))

    def signal(self, number: signal.Signals) -> None:
        # Not by `Process.send_signal`: it polls first, and may so take the exit code away from who waits for it.
        os.kill(self.process.pid, number)

    async def ended(self) -> int:
        """Its exit code, once it has ended and all that it said was read."""
        async with asyncio.timeout(WITHIN):
            code = await self.process.wait()
            await self._reading
        return code

    async def stop(self) -> None:
        """End it as an operator does."""
        self.signal(signal.SIGTERM)
        await self.ended()

    async def kill(self) -> None:
        """End it as a power cut does, whatever became of it before."""
        if self.process.returncode is None:
            with suppress(ProcessLookupError):
                self.signal(signal.SIGKILL)
        await self.ended()

    def turns(self) -> list[tuple[str, int, str]]:
        """The handler's calls: turn id, attempt, text."""
        words = [line.split(" ", 3) for line in self.said if line.startswith("called ")]
        return [(id, int(attempt), text) for _, id, attempt, text in words]


@dataclass
class Caller:
    """One User of a Personal Agent, with a Session."""

    keys: AgentKeys
    user: str = "usr_dana"
    count: int = 0

    def message(self, text: str = "Hello") -> dict[str, Any]:
        self.count += 1
        return {"id": f"msg_{self.user}_{self.count}", "author": {"type": "agent"}, "text": text}

    async def send(self, server: Server, method: str, suffix: str, body: object = None, query: str = "") -> Answer:
        """One request on a connection of its own. Raises Unanswered."""
        fields = [
            f"poppy-session: {self._header(method, suffix)}",
            "poppy-version: 0.4",
            "content-type: application/json",
        ]
        target = f"/poppy/conversations{suffix}" + (f"?{query}" if query else "")
        return await request(server, method, target, fields, b"" if body is None else json.dumps(body).encode())

    def _header(self, method: str, suffix: str) -> str:
        return self.keys.header(
            method, ENDPOINT + suffix, f"https://{DOMAIN}", now=time.time(), sub=self.user, sid=f"sid_{self.user}"
        )

    def stream(self, server: Server, conversation: str, cursor: str) -> AbstractAsyncContextManager[Reader]:
        """A read that asks for a stream; its head is there."""
        suffix = f"/{conversation}/events"
        fields = {
            "host": DOMAIN,
            "accept": MEDIA_TYPE,
            "poppy-version": "0.4",
            "poppy-session": self._header("GET", suffix),
        }
        return connected(server.port, f"/poppy/conversations{suffix}?cursor={cursor}", fields)

    async def start(self, server: Server, message: Mapping[str, Any], query: str = "") -> Answer:
        return await self.send(server, "POST", "", {"message": message}, query)

    async def say(self, server: Server, conversation: str, message: Mapping[str, Any], query: str = "") -> Answer:
        return await self.send(server, "POST", f"/{conversation}/messages", {"message": message}, query)

    async def read(self, server: Server, conversation: str, query: str = "") -> Answer:
        return await self.send(server, "GET", f"/{conversation}/events", query=query)

    async def idle(self, server: Server, conversation: str) -> list[dict[str, Any]]:
        """All events, once the Company has nothing more to do; each page is waited for, none is asked for twice."""
        events: list[dict[str, Any]] = []
        cursor = ""
        async with asyncio.timeout(WITHIN):
            while True:
                page = await self.read(server, conversation, f"wait=25{cursor}")
                assert page.status == 200, page
                events += page.json["events"]
                if page.json["cursor"] is not None:
                    cursor = f"&cursor={page.json['cursor']}"
                if page.json["status"] != "working" and not page.json["has_more"]:
                    assert page.json["status"] == "idle", page
                    return events


async def request(server: Server, method: str, target: str, fields: list[str], body: bytes = b"") -> Answer:
    """One HTTP/1.1 request. Raises Unanswered."""
    head = [f"{method} {target} HTTP/1.1", f"host: {DOMAIN}", f"content-length: {len(body)}", "connection: close"]
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", server.port)
        try:
            writer.write("\r\n".join([*head, *fields, "", ""]).encode() + body)
            received, _, content = (await reader.read()).partition(b"\r\n\r\n")
        finally:
            writer.close()
    except OSError as error:
        raise Unanswered(str(error)) from error
    if not content:
        raise Unanswered("the connection ended")
    return Answer(int(received[9:12]), json.loads(content))


@dataclass
class House:
    """The processes of one test, and the database that they share: a file, or what `place` says."""

    folder: Path
    place: str = ""
    keys: AgentKeys = field(default_factory=AgentKeys)
    servers: list[Server] = field(default_factory=list[Server])

    @property
    def store(self) -> Path:
        return self.folder / "shop.db"

    def caller(self, user: str = "usr_dana") -> Caller:
        return Caller(self.keys, user)

    async def spawn(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        dies_after: str | None = None,
        waits_before: Step | None = None,
        **limits: int,
    ) -> Server:
        """A process that will have loaded everything and then waits for `begin`."""
        documents = self.folder / "documents.json"
        if not documents.exists():
            documents.write_text(json.dumps({url: body.decode() for url, body in self.keys.documents().items()}))
        settings = {"requests_per_user": 1_000_000, "held_per_user": 1_000, **limits}
        wishes = {"dies_after": dies_after, "waits_before": waits_before}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.house.served_company", self.place or str(self.store), str(documents)),
            *(json.dumps(settings), json.dumps(wishes)),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", **(environment or {})},
        )
        server = Server(process)
        self.servers.append(server)
        return server

    async def serve(
        self,
        *,
        environment: Mapping[str, str] | None = None,
        dies_after: str | None = None,
        waits_before: Step | None = None,
        **limits: int,
    ) -> Server:
        """A process that serves."""
        server = await self.spawn(environment=environment, dies_after=dies_after, waits_before=waits_before, **limits)
        await server.begin()
        return server

    def rows(self, query: str) -> list[tuple[Any, ...]]:
        """What is in the file, as another process sees it."""
        connection = sqlite3.connect(self.store)
        try:
            return connection.execute(query).fetchall()
        finally:
            connection.close()


@asynccontextmanager
async def house(folder: Path, place: str = "") -> AsyncGenerator[House]:
    """A store in a folder, or at that place; whatever was started on it is dead at the end."""
    town = House(folder, place)
    try:
        yield town
    finally:
        await asyncio.gather(*(server.kill() for server in town.servers))


def texts(events: list[dict[str, Any]], role: str) -> list[str]:
    """The texts of one side's messages, in order."""
    messages = [event["message"] for event in events if event["type"] == "message"]
    return [message["text"] for message in messages if message["role"] == role]


def replies(events: list[dict[str, Any]]) -> list[str]:
    return texts(events, "company")
