"""Where the demo's journey happens: its processes, what its steps share, and what is verified of an answer."""

from __future__ import annotations

import secrets
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from papaver.demo.authority import Authority
from papaver.demo.outcome import DemoFailed, check
from papaver.demo.outfitter.accounts import Users
from papaver.demo.outfitter.database import ACCOUNTS, Shop
from papaver.demo.processes import AgentProcess, Child, run_once
from papaver.demo.shop import Question, ShopRows
from papaver.demo.user import Place, the_user

__all__ = [
    "ACCOUNT",
    "AGENT_HOST",
    "APP",
    "BASE_URL",
    "CLIENT_ID",
    "DOMAIN",
    "EMAIL",
    "ISSUER",
    "OTHER_DOMAIN",
    "Say",
    "Stage",
    "as_typed",
]

DOMAIN: Final = "shop.example"
OTHER_DOMAIN: Final = "outlet.example"
"""The same Company under a second domain of its own (3.2)."""
BASE_URL: Final = f"https://{DOMAIN}/poppy"
ISSUER: Final = f"https://{DOMAIN}/account"
ACCOUNT: Final = ACCOUNTS[0]
EMAIL: Final = "dana@mail.example"
AGENT_HOST: Final = "agent.example"
CLIENT_ID: Final = f"https://{AGENT_HOST}/agent.json"
APP: Final = "papaver.demo.outfitter.app:build"

Say = Callable[[str], None]


@dataclass
class Stage:
    """Two processes in a folder, and all messages that were heard so far, as (role, id, text)."""

    seed: int
    say: Say
    folder: Path
    _number: int = 0
    _children: list[Child] = field(default_factory=list[Child])
    _heard: list[list[str]] = field(default_factory=list[list[str]])

    def end(self) -> None:
        """End the processes."""
        while self._children:
            self._children.pop().end()

    def _start(self) -> None:
        self._step("Start a shop and a Personal Agent")
        self._authority = Authority(self.folder)
        self._shop, self._gate = self.folder / "shop.db", self.folder / "gate"
        Shop(self._shop).fill(self.seed)
        self.password, self._staff = secrets.token_urlsafe(12), secrets.token_urlsafe(12)
        Users(self._shop).add(EMAIL, ACCOUNT, self.password)
        self._rows = ShopRows(self._shop, self.seed)
        self.home = self.folder / "home"
        run_once(["init", CLIENT_ID, "--name", "Dana's agent", "--home", str(self.home)])
        cert, key = self._authority.issue(AGENT_HOST)
        agent_options = [
            "--name",
            "Dana's agent",
            "--home",
            str(self.home),
            "--tls-cert",
            str(cert),
            "--tls-key",
            str(key),
        ]
        command = ["papaver.demo.agent", CLIENT_ID, *agent_options]
        self._agent = AgentProcess("Personal Agent", command, self.folder / "agent.log")
        self._children.append(self._agent)
        self._agent_at = f"{AGENT_HOST}:443=127.0.0.1:{self._agent.hear()['port']}"
        self._certificate = self._authority.issue(DOMAIN, OTHER_DOMAIN)
        self._company = self._serve(0)
        self._agent.tell(resolve=self.company_at, ca_file=str(self.ca_file))
        self._show(f"the Company {DOMAIN}, process {self._company.pid}, its database {self._shop}")
        self._show(f"the Personal Agent {CLIENT_ID}, process {self._agent.pid}")

    def _serve(self, port: int) -> Child:
        cert, key = self._certificate
        command = ["papaver.cli", "company", "serve", APP, "--json", "--port", str(port)]
        child = Child(
            "Company",
            [*command, "--tls-cert", str(cert), "--tls-key", str(key)],
            self.folder / "company.log",
            **self.company_environment,
        )
        self._children.append(child)
        self._port = int(child.hear()["listening"].rpartition(":")[2])
        return child

    def _killed_and_started(self, where: str) -> None:
        status = self._company.kill()
        self._children.remove(self._company)
        self._show(f"SIGKILL to process {self._company.pid} {where}; it ended with {status}")
        self._gate.unlink()
        self._company = self._serve(self._port)
        self._show(f"started again as process {self._company.pid}")

    def _gate_at(self, place: str) -> None:
        """At once the whole word, never a part of it."""
        new = self._gate.with_suffix(".new")
        new.write_text(place, encoding="ascii")
        new.replace(self._gate)

    def _step(self, title: str) -> None:
        self._number += 1
        self.say(f"\n{self._number}. {title}")

    def _show(self, text: str) -> None:
        self.say(f"   {text}")

    def _answered(self, question: Question, answer: dict[str, Any]) -> None:
        """Exactly one new answer, and a true one."""
        self._heard += answer["messages"]
        check("there is one answer", 1, len(answer["replies"]))
        check("the Company is idle", "idle", answer["status"])
        reply = answer["replies"][0]
        self._show(f"> {question.text}")
        self._show(f"< {reply}")
        truth = self._rows.check_true(question, reply)
        self._show(f"{as_typed(question)}\n     says {' | '.join(truth)}, and so does the answer")

    def _needed(self, question: Question, answer: dict[str, Any], scope: str) -> None:
        """The Company Agent asked for access instead of answering (8.11)."""
        self._heard += answer["messages"]
        self._show(f"> {question.text}")
        check("the Company asks for access, once", [scope], answer["needs"])
        check("and does not answer", [], answer["replies"])
        self._show(f"authorization event: the Company Agent needs {scope}")

    def _approved(self, *scopes: str) -> None:
        """The User signs in at the Company's own page and approves what is asked for (4.2)."""
        begun = self._agent.do("sign_in", scopes=list(scopes))
        check("everything that is held and needed is asked for", sorted(scopes), sorted(begun["scopes"]))
        user = the_user(self._place)
        self._agent.tell(do="signed_in")
        user.approve(begun["url"], EMAIL, self.password)
        done = self._agent.hear()
        check("what was approved is held", sorted(scopes), sorted(done["scopes"]))
        self._show(f"{EMAIL} signed in and approved {', '.join(scopes)}, with {user.browser}")

    @property
    def _place(self) -> Place:
        return Place((DOMAIN, OTHER_DOMAIN), self._port, self._certificate[0], self.ca_file)

    def _once(self, message: str) -> None:
        """The message is in the conversation once, with one answer after it, in all that was ever read."""
        places = [place for place, (_, one, _) in enumerate(self._heard) if one == message]
        check("the message was recorded once", 1, len(places))
        check("and answered once", ["company"], [role for role, _, _ in self._heard[places[0] + 1 :]])

    def _users_of(self, sid: str) -> list[str]:
        store = f"file:{self._store}?mode=ro"
        with closing(sqlite3.connect(store, uri=True, timeout=10)) as connection:
            rows = connection.execute("SELECT user_id FROM sessions WHERE sid = ? AND ended_at IS NULL", (sid,))
            return [str(user) for (user,) in rows]

    def _wait_for(self, path: Path, seconds: float = 30.0) -> None:
        until = time.monotonic() + seconds
        while not (path.exists() and path.read_text(encoding="ascii")):
            if time.monotonic() > until:
                raise DemoFailed("the handler did not begin", self._company.errors())
            time.sleep(0.02)

    @property
    def _store(self) -> Path:
        return self.folder / "poppy.db"

    @property
    def serving(self) -> dict[str, str]:
        """How the Company is served: its process, and what `papaver company serve` was given."""
        cert, key = self._certificate
        return {"pid": str(self._company.pid), "port": str(self._port), "tls_cert": str(cert), "tls_key": str(key)}

    @property
    def ca_file(self) -> Path:
        return self._authority.ca_file

    @property
    def company_at(self) -> list[str]:
        """Where the Company really is, as `--resolve` takes it, for each of its domains."""
        return [f"{domain}:443=127.0.0.1:{self._port}" for domain in (DOMAIN, OTHER_DOMAIN)]

    @property
    def company_environment(self) -> dict[str, str]:
        """What the shop reads; `papaver company clients` and its like need the same."""
        return {
            "OUTFITTER_DOMAINS": f"{DOMAIN},{OTHER_DOMAIN}",
            "OUTFITTER_BASE_URL": BASE_URL,
            "OUTFITTER_ISSUER": ISSUER,
            "OUTFITTER_SHOP": str(self._shop),
            "OUTFITTER_STORE": str(self._store),
            "OUTFITTER_GATE": str(self._gate),
            "OUTFITTER_AGENT": "generator",
            "OUTFITTER_STAFF": self._staff,
            "PAPAVER_RESOLVE": self._agent_at,
            "PAPAVER_CA_FILE": str(self.ca_file),
        }


def as_typed(question: Question) -> str:
    """The SQL with its values in place, to be pasted into any SQLite shell."""
    sql = question.sql
    for value in question.values:
        sql = sql.replace("?", str(value) if isinstance(value, int) else f"'{value}'", 1)
    return sql
