"""Processes of `bench._timed_company`, and one reader of them whose clock is theirs."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.agent import Agent
from bench.serving import http_request, response_of

__all__ = ["Connection", "Seat", "timed"]

ROOT = Path(__file__).parents[1]
HELD_AFTER = 0.02
"""Seconds in which a request that was sent is held at the server."""


class Connection:
    """One kept connection to one process."""

    def __init__(self, port: int) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, request: bytes) -> None:
        self._socket.sendall(request)

    def answer(self) -> tuple[Any, float]:
        """Its JSON, and when it was there."""
        octets = b""
        while (found := response_of(octets)) is None:
            more = self._socket.recv(65_536)
            assert more, "the connection broke off"
            octets += more
        now = time.perf_counter()
        assert found[0] < 300, found
        return json.loads(found[1]), now

    def ask(self, request: bytes) -> Any:
        self.send(request)
        return self.answer()[0]


@contextmanager
def timed(store: str, redis: str, documents: Path, mode: str) -> Generator[int]:
    """The port of one."""
    command = [sys.executable, "-m", "bench._timed_company", store, redis, str(documents), mode]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        try:
            yield int(line.removeprefix("port "))
        finally:
            process.terminate()


class Seat:
    """Somebody who writes at one process and reads at another, or at the same."""

    def __init__(self, agent: Agent, writing: int, reading: int) -> None:
        self._agent = agent
        self._writer, self._reader = Connection(writing), Connection(reading)
        page = self._writer.ask(agent.request("POST", "", 0, agent.message(), "wait=20"))
        self._conversation, self._cursor = page["conversation_id"], page["cursor"]

    def reply(self) -> tuple[dict[str, float], float]:
        """What the writing process noted of one turn, and when the reader, who waited, had its reply."""
        suffix = f"/{self._conversation}"
        message = self._agent.message()
        page = self._writer.ask(
            self._agent.request("POST", f"{suffix}/messages", 0, message, f"cursor={self._cursor}&wait=0")
        )
        self._cursor = page.get("cursor") or self._cursor
        while True:
            query = f"cursor={self._cursor}&wait=20"
            page, now = self._read(suffix, query)
            self._cursor = page["cursor"]
            if any(event.get("message", {}).get("role") == "company" for event in page["events"]):
                return self._writer.ask(http_request("GET", "/notes", [])), now

    def _read(self, suffix: str, query: str) -> tuple[Any, float]:
        self._reader.send(self._agent.request("GET", f"{suffix}/events", 0, query=query))
        return self._reader.answer()

    def raw(self) -> float:
        """Seconds from before a raw wake-up to the arrival of the response that waited for it."""
        self._reader.send(http_request("GET", "/held", []))
        time.sleep(HELD_AFTER)
        self._writer.ask(http_request("GET", "/wake", []))
        _, now = self._reader.answer()
        return now - self._writer.ask(http_request("GET", "/notes", []))["raw"]
