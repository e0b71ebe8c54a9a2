"""A Company as a process of its own: `python -m tests.house.served_company STORE DOCUMENTS LIMITS WISHES`.

It serves plain HTTP on a free loopback port and fetches its clients' documents from a file. It says on stdout what
happens, in lines, and waits for lines on stdin, so that a test needs neither a clock nor luck:

    says   loaded · migrated N · ready PORT · called ID ATTEMPT TEXT · left TEXT · arrived N · held N · holding ·
           committing · committed · waits before STEP · pragma NAME VALUE
    hears  start · go (opens the gate of everything that waits at it, or will) · hold (the next COMMIT of a receipt,
           before and after) · release (that COMMIT) · pragma NAME

STORE is a file, or a DSN of PostgreSQL, an address of Redis and a schema.
WISHES is JSON: with `dies_after` it kills itself as soon as its writer has inserted a row into that table; with
`waits_before` the writes of that step of a turn wait at the gate.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sqlite3
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal, cast

import uvicorn
from starlette.applications import Starlette

from papaver.adapters.running import running
from papaver.adapters.starlette import CompanyRoute
from papaver.company import Company, CompanyLimits, Reply, Turn
from papaver.stores.postgres import PostgresStore
from papaver.stores.sqlite import SqliteStore, writer
from papaver.testing.company import Documents

DOMAIN = "shop.example"
BASE_URL = f"https://{DOMAIN}/poppy"


def say(line: str) -> None:
    """One line, in one write: it stays in the pipe when this process dies at once."""
    os.write(1, f"{line}\n".encode())


class Handler:
    """The Company Agent: the first word of a message says what it does."""

    def __init__(self, gate: asyncio.Event) -> None:
        self.gate = gate

    async def answer(self, turn: Turn) -> Any:
        text = turn.text
        say(f"called {turn.id} {turn.attempt} {' '.join(text.split())}")
        match text.partition(" ")[0]:
            case "raise":
                raise RuntimeError("as the test wants it")
            case "exit":
                raise SystemExit(3)
            case "cancel":
                raise asyncio.CancelledError
            case "group":
                raise BaseExceptionGroup("as a task group raises it", [SystemExit(3)])
            case "hang":
                await asyncio.Event().wait()
            case "swallow":
                await self._swallow()
                say(f"left {text}")
                return "too late"
            case "gated":
                await self.gate.wait()
            case "garbage":
                return GARBAGE[text.partition(" ")[2]]
            case _:
                pass
        return f"You said: {text}"

    async def _swallow(self) -> None:
        while not self.gate.is_set():
            try:
                await self.gate.wait()
            except asyncio.CancelledError:
                continue


class Unprintable:
    def __str__(self) -> str:
        raise ValueError("no text")


def nested(depth: int) -> dict[str, object]:
    value: dict[str, object] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


GARBAGE: Mapping[str, object] = {
    "object": Unprintable(),
    "nothing": Reply(),
    "surrogate": "half a character \ud800",
    "set": Reply(data={"colours": {"red"}}),
    "nan": Reply(data={"size": float("nan")}),
    "list": Reply(data=cast(Any, ["red"])),
    "number": Reply(text=cast(Any, 5)),
    "author": Reply("Hello", author=cast(Any, "Marta")),
    "keys": Reply(data=cast(Any, {("a", "b"): 1})),
    "deep": Reply(data=nested(2_000)),
}


class Commits:
    """The writer's connection as the store sees it, with a COMMIT that can be held."""

    def __init__(self, connection: sqlite3.Connection, dies_after: str | None) -> None:
        self._connection, self._dies_after = connection, dies_after
        self._receipt = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def execute(self, statement: str, parameters: Any = ()) -> sqlite3.Cursor:
        self._receipt = self._receipt or _inserts(statement, "receipts")
        ending = statement == "COMMIT" and self._receipt and HOLD.is_set()
        if ending:
            say("committing")
            RELEASE.acquire()
        cursor = self._connection.execute(statement, parameters)
        if ending:
            say("committed")
            RELEASE.acquire()
            HOLD.clear()
        if statement == "COMMIT":
            self._receipt = False
        if self._dies_after is not None and _inserts(statement, self._dies_after):
            os.kill(os.getpid(), signal.SIGKILL)
        return cursor


def _inserts(statement: str, table: str) -> bool:
    return statement.startswith("INSERT ") and f" INTO {table} " in statement


HOLD = threading.Event()
RELEASE = threading.Semaphore(0)


def watch_writer(dies_after: str | None, waits_before: str | None, gate: asyncio.Event) -> None:
    """Put `Commits` under every writer of this process, a gate before it, and say how many migrations it ran."""
    connect, migrate, run = writer.connect_writer, writer.migrate, writer.Writer.run

    def connect_watched(path: Path) -> sqlite3.Connection:
        return cast(sqlite3.Connection, Commits(connect(path), dies_after))

    def migrate_watched(connection: sqlite3.Connection, family: Literal["store", "vault"]) -> int:
        count = migrate(connection, family)
        say(f"migrated {count}")
        return count

    async def run_gated(self: writer.Writer, operation: Callable[[writer.Transaction], Any], step: Any = None) -> Any:
        if step is not None and step == waits_before:
            say(f"waits before {step}")
            await gate.wait()
        return await run(self, operation, step)

    writer.connect_writer, writer.migrate = connect_watched, migrate_watched
    writer.Writer.run = run_gated


Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Requests:
    """ASGI middleware that says when a request has wholly arrived, and when one is held: then its end is awaited."""

    def __init__(self, app: Callable[..., Awaitable[None]]) -> None:
        self._app = app
        self._arrived = self._held = 0

    async def __call__(self, scope: Message, receive: Receive, send: Any) -> None:
        await self._app(scope, self._watched(receive) if scope["type"] == "http" else receive, send)

    def _watched(self, receive: Receive) -> Receive:
        ended = False

        async def watched() -> Message:
            nonlocal ended
            if ended:
                self._held += 1
                say(f"held {self._held}")
            message = await receive()
            if message["type"] == "http.request" and not message.get("more_body", False):
                ended = True
                self._arrived += 1
                say(f"arrived {self._arrived}")
            return message

        return watched


class Server(uvicorn.Server):
    """uvicorn, which says when it serves."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        say(f"ready {self.servers[0].sockets[0].getsockname()[1]}")


async def hear(handler: Handler, store: SqliteStore | PostgresStore, asked: asyncio.Queue[str]) -> None:
    """Do what stdin says."""
    while True:
        match (await asked.get()).split():
            case ["go"]:
                handler.gate.set()
            case ["hold"]:
                HOLD.set()
                say("holding")
            case ["release"]:
                RELEASE.release()
            case ["pragma", name] if isinstance(store, SqliteStore):
                say(f"pragma {name} {await store.writer_pragma(name)}")
            case other:
                say(f"what is {other}?")


def read_stdin(loop: asyncio.AbstractEventLoop, asked: asyncio.Queue[str]) -> None:
    for line in sys.stdin:
        try:
            loop.call_soon_threadsafe(asked.put_nowait, line)
        except RuntimeError:
            return  # the loop is over, and this process soon


def store_of(place: str) -> SqliteStore | PostgresStore:
    """That in a file, or in PostgreSQL: DSN, address of Redis and schema, with spaces between."""
    if "://" not in place:
        return SqliteStore(place)
    dsn, redis, schema = place.split()
    return PostgresStore(dsn, redis=redis, schema=schema)


def main(store_path: str, documents: str, limits: str, wishes: str) -> None:
    """Serve until told to end."""
    gate = asyncio.Event()
    wanted: dict[str, str] = json.loads(wishes)
    watch_writer(wanted.get("dies_after"), wanted.get("waits_before"), gate)
    handler = Handler(gate)
    store = store_of(store_path)
    company = Company(
        domain=DOMAIN, name="Shop", base_url=BASE_URL, store=store, limits=CompanyLimits(**json.loads(limits))
    )
    company.conversation(handler.answer)
    published = Documents()
    published.bodies = {url: body.encode() for url, body in json.loads(Path(documents).read_text()).items()}

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        asked: asyncio.Queue[str] = asyncio.Queue()
        threading.Thread(target=read_stdin, args=(asyncio.get_running_loop(), asked), daemon=True).start()
        async with running(company, fetcher=published):
            hearing = asyncio.create_task(hear(handler, store, asked))
            yield
            hearing.cancel()

    app = Requests(Starlette(routes=[CompanyRoute(company)], lifespan=lifespan))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False)
    say("loaded")
    assert sys.stdin.readline() == "start\n"
    Server(config).run()


if __name__ == "__main__":
    main(*sys.argv[1:])
