"""The Personal Agent of the server figures: signs requests before a round begins."""

from __future__ import annotations

import itertools
import json
import random
import time
from collections.abc import Mapping
from pathlib import Path

from bench.serving import Server, drive, http_request
from papaver.testing.keys import AgentKeys

__all__ = ["DOMAIN", "ENDPOINT", "TEXT", "USERS", "Agent"]

DOMAIN = "shop.example"
ENDPOINT = f"https://{DOMAIN}/poppy/conversations"
USERS = 100
TEXT = "Where is my order? It was promised for Tuesday."


class Agent:
    """One Personal Agent with a hundred Users, each in a Session of their own. What it signs is good for a minute."""

    def __init__(self, company: str = f"https://{DOMAIN}") -> None:
        """`company` is the identifier of the Company it works with."""
        self.keys = AgentKeys()
        self.company = company
        self.tokens: list[str] = []
        self.numbers = itertools.count(1)
        self._owners: dict[str, int] = {}

    def write_documents(self, path: Path, more: Mapping[str, str] | None = None) -> Path:
        own = {url: body.decode() for url, body in self.keys.documents().items()}
        path.write_text(json.dumps({**own, **(more or {})}))
        return path

    def request(self, method: str, suffix: str, user: int, body: object = None, query: str = "") -> bytes:
        """One to the conversation endpoint; signed in while there are `tokens`, one for each User."""
        headers = [*self.signed(method, ENDPOINT + suffix, user), ("content-type", "application/json")]
        target = f"/poppy/conversations{suffix}" + (f"?{query}" if query else "")
        return http_request(method, target, headers, b"" if body is None else json.dumps(body).encode())

    def call(self, path: str, user: int) -> bytes:
        """A GET of one of the app's own routes."""
        return http_request("GET", path, self.signed("GET", f"https://{DOMAIN}{path}", user))

    def signed(self, method: str, url: str, user: int) -> list[tuple[str, str]]:
        """The header fields of one request of this User's Session."""
        token = self.tokens[user] if self.tokens else None
        sub, sid = f"usr_{user:04d}", f"sid_{user:04d}"
        jwt = self.keys.header(method, url, self.company, access_token=token, now=time.time(), sub=sub, sid=sid)
        fields = [("poppy-session", jwt), ("poppy-version", "0.4")]
        return fields if token is None else [*fields, ("authorization", f"Bearer {token}")]

    def message(self, text: str = TEXT) -> dict[str, object]:
        return {"message": {"id": f"msg_{next(self.numbers):012d}", "author": {"type": "agent"}, "text": text}}

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
