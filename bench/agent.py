"""The Personal Agent of the server figures: signs requests before a round begins."""

from __future__ import annotations

import json
import time
from pathlib import Path

from bench.serving import Server, drive, http_request
from papaver.testing.keys import AgentKeys

__all__ = ["DOMAIN", "ENDPOINT", "TEXT", "Agent"]

DOMAIN = "shop.example"
ENDPOINT = f"https://{DOMAIN}/poppy/conversations"
TEXT = "Where is my order? It was promised for Tuesday."


class Agent:
    """One Personal Agent with one User. What it signs is good for a minute."""

    def __init__(self) -> None:
        self.keys = AgentKeys()
        self._count = 0

    def write_documents(self, path: Path) -> Path:
        path.write_text(json.dumps({url: body.decode() for url, body in self.keys.documents().items()}))
        return path

    def request(self, method: str, suffix: str, body: object = None, query: str = "") -> bytes:
        jwt = self.keys.header(method, ENDPOINT + suffix, f"https://{DOMAIN}", now=time.time())
        headers = [("poppy-session", jwt), ("poppy-version", "0.4"), ("content-type", "application/json")]
        target = f"/poppy/conversations{suffix}" + (f"?{query}" if query else "")
        return http_request(method, target, headers, b"" if body is None else json.dumps(body).encode())

    def message(self, text: str = TEXT) -> dict[str, object]:
        self._count += 1
        return {"message": {"id": f"msg_{self._count:012d}", "author": {"type": "agent"}, "text": text}}

    def start(self, query: str = "") -> bytes:
        return self.request("POST", "", self.message(), query)

    def say(self, conversation: str, query: str = "", text: str = TEXT) -> bytes:
        return self.request("POST", f"/{conversation}/messages", self.message(text), query)

    def read(self, conversation: str, query: str = "") -> bytes:
        return self.request("GET", f"/{conversation}/events", query=query)

    def started(self, server: Server, count: int) -> dict[str, str]:
        """So many conversations with one turn each: their ids, and cursors behind all that was said."""
        answers: list[bytes] = []
        drive(server, [self.start("wait=20") for _ in range(count)], answers=answers)
        return {page["conversation_id"]: page["cursor"] for page in map(json.loads, answers)}

    def conversations(self, server: Server, count: int) -> list[str]:
        """So many conversations, and nobody has to reply."""
        answers: list[bytes] = []
        drive(server, [self.start() for _ in range(count)], answers=answers)
        return [str(json.loads(answer)["conversation_id"]) for answer in answers]
