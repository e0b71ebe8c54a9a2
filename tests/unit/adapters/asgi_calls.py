"""Calling an ASGI app as a server does, one event at a time, with a signed request when that is wanted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from papaver.adapters.asgi import ASGIApp
from papaver.adapters.running import running
from papaver.company import Company, Turn
from papaver.stores.memory import MemoryStore
from papaver.testing.clock import ManualClock, SeededIds
from papaver.testing.company import Documents
from papaver.testing.keys import NOW, AgentKeys

AGENT = AgentKeys()


@dataclass
class Called:
    """What came back."""

    messages: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])

    @property
    def status(self) -> int:
        return self.messages[0]["status"]

    @property
    def fields(self) -> dict[str, str]:
        return {name.decode(): value.decode() for name, value in self.messages[0]["headers"]}

    @property
    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.messages[1:])

    @property
    def json(self) -> Any:
        return json.loads(self.body)


async def call(
    app: ASGIApp,
    method: str = "GET",
    path: str = "/",
    *,
    query: str = "",
    headers: Mapping[str, str] | Sequence[tuple[str, str]] = (),
    chunks: Sequence[bytes] = (b"",),
    leaves: bool = False,
    peer: str | None = "192.0.2.7",
    raw: bool = True,
    **scope: Any,
) -> Called:
    """One request. `chunks` are the body; with `leaves` the caller is gone before its last one."""
    events: list[dict[str, Any]] = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]
    if not leaves:
        events[-1]["more_body"] = False
    pairs = headers.items() if isinstance(headers, Mapping) else headers
    answer, stays = Called(), asyncio.Event()

    async def receive() -> dict[str, Any]:
        if events:
            return events.pop(0)
        if not leaves:
            await stays.wait()
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answer.messages.append(message)

    whole: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "query_string": query.encode(),
        "headers": [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in pairs],
        "client": None if peer is None else (peer, 4711),
        **scope,
    }
    if raw:
        whole.setdefault("raw_path", path.encode())
    await app(whole, receive, send)
    return answer


def signed(company: Company, method: str, url: str, *, version: str = "0.4", **fields: str) -> dict[str, str]:
    """The fields of a request to the public `url`."""
    header = AGENT.header(method, url, company.id, now=NOW)
    return {
        "host": company.offer.endpoint_host,
        "poppy-session": header,
        "poppy-version": version,
        "content-type": "application/json",
        **{name.replace("_", "-"): value for name, value in fields.items()},
    }


def message(text: str = "Hello", id: str = "msg_1") -> bytes:
    """The body of a start or a message."""
    return json.dumps({"message": {"id": id, "author": {"type": "agent"}, "text": text}}).encode()


def shop(**options: Any) -> Company:
    """A Company that echoes."""
    settings: dict[str, Any] = {
        "domain": "example.com",
        "name": "Example",
        "base_url": "https://api.example.com/poppy",
        "store": MemoryStore(),
        **options,
    }
    company = Company(**settings)

    @company.conversation
    async def echo(turn: Turn) -> str:
        return f"You said: {turn.text}"

    return company


def outside() -> dict[str, Any]:
    """For `running`: a clock that stands still, and the documents of AGENT instead of the network."""
    documents = Documents()
    documents.publish(AGENT)
    return {"clock": ManualClock(NOW), "ids": SeededIds(), "fetcher": documents}


@asynccontextmanager
async def served(company: Company, **options: Any) -> AsyncGenerator[ASGIApp]:
    """The Company as an ASGI app while it runs."""
    async with running(company, **outside(), **options) as app:
        yield app
