"""The Users of `fault_run`: each talks in one conversation, tries again with the same id, and compares in the end."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bench.agent import Agent

__all__ = ["Found", "Lost", "Talker"]

ANSWERED_WITHIN = 60.0
"""Seconds after which a message without an answer counts as stuck."""


class Lost(Exception):
    """No answer, or one of 5xx or 429: whether the request was accepted is unknown."""


@dataclass(slots=True)
class Found:
    """What the end of a run showed, and each fault in words."""

    accepted: int = 0
    lost: int = 0
    doubled: int = 0
    stuck: int = 0
    disordered: int = 0
    faults: list[str] = field(default_factory=list[str])


class Talker:
    """One User and one conversation. `port` says where to send a request."""

    def __init__(self, agent: Agent, number: int, port: Callable[[], int], statuses: Counter[str]) -> None:
        self._agent, self._number, self._port, self._statuses = agent, number, port, statuses
        self._random = random.Random(number)
        self.conversation = ""
        self.cursor = ""
        self.said: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.answered: dict[str, float] = {}
        self.seen: list[float] = []
        self.overdue: list[str] = []

    async def talk(self, enough: asyncio.Event) -> None:
        """A message or two, their answer, a pause; until it is enough or something is stuck."""
        await asyncio.sleep(self._random.uniform(0, 2))
        while not enough.is_set() and not self.overdue:
            for _ in range(1 if self._random.random() < 0.8 else 2):
                await self.say()
            await self.hear()
            await asyncio.sleep(self._random.uniform(1, 4))

    async def say(self, port: int | None = None) -> None:
        """Until it is accepted. What was sent again has the same id."""
        body = self._agent.message(f"This is number {len(self.said) + 1}")
        suffix = f"/{self.conversation}/messages" if self.conversation else ""
        page = await self._insist("POST", suffix, body, port=port)
        self.conversation = page["conversation_id"]
        message: Any = body["message"]
        self.said.append(message["id"])

    async def hear(self) -> None:
        """Until all that was said is answered."""
        until = time.monotonic() + ANSWERED_WITHIN
        while waiting := [id for id in self.said if id not in self.answered]:
            if time.monotonic() > until:
                self.overdue += waiting
                return
            await self.read()

    async def read(self, port: int | None = None) -> None:
        """One page that is waited for, after what was read already."""
        query = "wait=10" + (f"&cursor={self.cursor}" if self.cursor else "")
        page = await self._insist("GET", f"/{self.conversation}/events", query=query, port=port)
        now = time.time()
        self.cursor = page["cursor"] or self.cursor
        self.events += page["events"]
        for event in page["events"]:
            for id in answers(event):
                self.answered.setdefault(id, now)
                self.seen.append(now)

    async def wake(self, port: int, other: int) -> float:
        """Seconds from when one replica decided on a message to its arrival at a reader who waits at another one.

        The commit lies between: this is a little more than the wake-up.
        """
        before = len(self.events)
        reading = asyncio.create_task(self.read(other))
        await asyncio.sleep(0.1)
        await self.say(port)
        await reading
        arrived = time.time()
        own = [event for event in self.events[before:] if event.get("message", {}).get("id") == self.said[-1]]
        await self.hear()
        return arrived - datetime.fromisoformat(own[0]["created_at"]).timestamp() if own else float("nan")

    async def check(self, found: Found) -> None:
        """Read all of it again, from the beginning, and compare it with what was said and what was seen."""
        read: list[dict[str, Any]] = []
        cursor, page = "", {}
        until = time.monotonic() + ANSWERED_WITHIN
        while not page or page["has_more"] or (page["status"] == "working" and time.monotonic() < until):
            query = "wait=5" + (f"&cursor={cursor}" if cursor else "")
            page = await self._insist("GET", f"/{self.conversation}/events", query=query)
            read += page["events"]
            cursor = page["cursor"] or cursor
        messages = [event["message"] for event in read if event["type"] == "message"]
        mine = [message["id"] for message in messages if message["role"] == "user"]
        replies = [id for event in read for id in answers(event)]
        found.accepted += len(self.said)
        self._count(found, "message", mine)
        self._count(found, "answer to", replies)
        if page["status"] != "idle" or self.overdue:
            found.stuck += 1
            found.faults.append(f"{self.conversation} is {page['status']}; overdue {self.overdue}")
        ids = [event["id"] for event in read]
        in_order = mine == self.said and replies == self.said and all(map(precedes(messages), self.said))
        if not in_order or len(set(ids)) != len(ids) or read[: len(self.events)] != self.events:
            found.disordered += 1
            found.faults.append(f"{self.conversation}: said {self.said}, there {mine}, answered {replies}")

    def _count(self, found: Found, what: str, there: list[str]) -> None:
        counts = Counter(there)
        for id in self.said:
            if counts[id] != 1:
                found.lost += counts[id] == 0
                found.doubled += counts[id] > 1
                found.faults.append(f"{self.conversation}: {what} {id} is there {counts[id]} times")
        if more := set(counts) - set(self.said):
            found.doubled += len(more)
            found.faults.append(f"{self.conversation}: {what} {sorted(more)} was never said")

    async def _insist(
        self, method: str, suffix: str, body: object = None, query: str = "", port: int | None = None
    ) -> Any:
        """The JSON of a 2xx, however many tries it takes. Raises RuntimeError for a refusal, or after two minutes."""
        async with asyncio.timeout(120):
            while True:
                try:
                    request = self._agent.request(method, suffix, self._number, body, query)
                    return await self._sent(request, port or self._port())
                except Lost as fault:
                    self._statuses[str(fault)] += 1
                    port = None
                    await asyncio.sleep(self._random.uniform(0.2, 0.6))

    async def _sent(self, request: bytes, port: int) -> Any:
        request = request.replace(b"\r\n", b"\r\nconnection: close\r\n", 1)
        try:
            async with asyncio.timeout(40):
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                try:
                    writer.write(request)
                    head, _, content = (await reader.read()).partition(b"\r\n\r\n")
                finally:
                    writer.close()
        except TimeoutError:
            raise Lost("no answer in 40 s") from None
        except OSError:
            raise Lost("connection lost") from None
        if not head:
            raise Lost("connection lost")
        status = int(head[9:12])
        if status >= 500 or status == 429:
            raise Lost(str(status))
        try:
            answer = json.loads(content)
        except ValueError:
            raise Lost("half an answer") from None
        if status >= 400:
            raise RuntimeError(f"{status}: {content[:300]!r}")
        self._statuses[str(status)] += 1
        return answer


def answers(event: dict[str, Any]) -> list[str]:
    """The ids of the messages that a reply names; none for any other event."""
    message: dict[str, Any] = event.get("message", {})
    if message.get("role") != "company":
        return []
    text = str(message.get("text") or "")
    return text.split()[1:] if text.startswith("re ") else [f"another text: {text}"]


def precedes(messages: list[dict[str, Any]]) -> Callable[[str], bool]:
    """Whether a message comes before its answer."""
    places: dict[str, int] = {message["id"]: place for place, message in enumerate(messages)}
    replies = {id: place for place, one in enumerate(messages) for id in answers({"message": one})}
    return lambda id: places.get(id, -1) < replies.get(id, -1)
