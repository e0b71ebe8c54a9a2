"""The Personal Agent of the server figures: signs requests before a round begins."""

from __future__ import annotations

import json
import random
import time
from pathlib import Path

from bench.serving import Server, drive, http_request
from papaver.testing.keys import AgentKeys

__all__ = ["DOMAIN", "ENDPOINT", "TEXT", "Agent"]

DOMAIN = "shop.example"
ENDPOINT = f"https://{DOMAIN}/poppy/conversations"
USERS = 100
TEXT = "Where is my order? It was promised for Tuesday."


class Agent:
    """One Personal Agent with a hundred Users, each in a Session of their own. What it signs is good for a minute."""

    def __init__(self) -> None:
        self.keys = AgentKeys()
        self._count = 0
        self._owners: dict[str, int] = {}

    def write_documents(self, path: Path) -> Path:
        path.write_text(json.dumps({url: body.decode() for url, body in self.keys.documents().items()}))
        return path

    def request(self, method: str, suffix: str, user: int, body: object = None, query: str = "") -> bytes:
        url, company, sub, sid = ENDPOINT + suffix, f"https://{DOMAIN}", f"usr_{user:04d}", f"sid_{user:04d}"
        jwt = self.keys.header(method, url, company, now=time.time(), sub=sub, sid=sid)
        headers = [("poppy-session", jwt), ("poppy-version", "0.4"), ("content-type", "application/json")]
        target = f"/poppy/conversations{suffix}" + (f"?{query}" if query else "")
        return http_request(method, target, headers, b"" if body is None else json.dumps(body).encode())

    def message(self, text: str = TEXT) -> dict[str, object]:
        self._count += 1
        return {"message": {"id": f"msg_{self._count:012d}", "author": {"type": "agent"}, "text": text}}

    def say(self, conversation: str, query: str = "", text: str = TEXT) -> bytes:
        owner = self._owners[conversation]
        return self.request("POST", f"/{conversation}/messages", owner, self.message(text), query)

    def read(self, conversation: str, query: str = "") -> bytes:
        return self.request("GET", f"/{conversation}/events", self._owners[conversation], query=query)

    def started(self, server: Server, count: int) -> dict[str, str]:
        """So many conversations with one turn each: their ids, and cursors behind all that was said."""
        return {page["conversation_id"]: page["cursor"] for page in self._start(server, count, "wait=20")}

    def conversations(self, server: Server, count: int) -> list[str]:
        """So many conversations, and nobody has to reply."""
        return [page["conversation_id"] for page in self._start(server, count, "")]

    def _start(self, server: Server, count: int, query: str) -> list[dict[str, str]]:
        pages: list[dict[str, str]] = []
        for user in range(min(USERS, count)):
            mine = [self.request("POST", "", user, self.message(), query) for _ in range(user, count, USERS)]
            answers: list[bytes] = []
            drive(server, mine, answers=answers)
            for answer in answers:
                page = json.loads(answer)
                self._owners[page["conversation_id"]] = user
                pages.append(page)
        random.Random(1).shuffle(pages)
        return pages
