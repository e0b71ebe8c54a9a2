"""A refused request leaves nothing in any table of a real store but, once it is proven, the row of its Session."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

from papaver.protocol.terms import ClientId, SessionId
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import AgentKeys
from papaver.values.strict_json import dumps

pytestmark = pytest.mark.anyio

JTI: Final = "a-jti-that-was-used"
ENDED: Final = "sid_ended"
STRANGER: Final = AgentKeys("https://stranger.example/agent.json")
JWT: Final = {"poppy-session": "a.b.c"}


def rows(path: Path) -> dict[str, Counter[Any]]:
    """Every row of every table, read past the store."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        tables = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        return {name: Counter(connection.execute(f'SELECT * FROM "{name}"').fetchall()) for name in tables}


def traces(before: dict[str, Counter[Any]], after: dict[str, Counter[Any]]) -> dict[str, int]:
    """How many rows came, went or changed, for each table where any did."""
    changed = {name: (after[name] - before[name]).total() + (before[name] - after[name]).total() for name in after}
    return {name: count for name, count in changed.items() if count}


class Scene:
    """A Company in which much has happened: what a refusal could do harm to."""

    def __init__(self, bench: CompanyBench, path: Path) -> None:
        self.bench, self.path = bench, path
        self.open = self.closed = self.theirs = ""

    async def prepare(self) -> None:
        bench = self.bench
        self.open = (await bench.start(jti=JTI)).json["conversation_id"]
        self.closed = (await bench.start()).json["conversation_id"]
        assert (await bench.send("POST", f"/{self.closed}/close", {})).status == 200
        self.theirs = (await bench.start(sub="usr_other", sid="sid_other")).json["conversation_id"]
        assert (await bench.start(sid=ENDED)).status == 201
        await bench.company.sessions.end(ClientId(bench.agent.client_id), SessionId(ENDED))

    async def refuse(self, suffix: str, options: dict[str, Any]) -> Answer:
        """A POST with a Session of its own, below the open, the closed or another User's conversation."""
        given: dict[str, Any] = {"sid": "sid_new", **options}
        method = given.pop("method", "POST")
        body = given.pop("body", {"message": self.bench.message()})
        where = suffix.format(open=self.open, closed=self.closed, theirs=self.theirs)
        return await self.bench.send(method, where, body, **given)


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncGenerator[Scene]:
    """With a real file."""
    path = tmp_path / "poppy.db"
    async with company_bench(store=SqliteStore(path), turns=False) as bench:
        made = Scene(bench, path)
        await made.prepare()
        yield made


SAY: Final = "/{open}/messages"
LONG: Final = {"message": {"id": "msg_long", "author": {"type": "agent"}, "text": "x" * 65_537}}
UNPROVEN: Final[dict[str, tuple[str, dict[str, Any], int, str]]] = {
    "no Session": ("", {"headers": {"poppy-session": None}}, 400, "invalid_session"),
    "no JWT": ("", {"headers": JWT}, 400, "invalid_session"),
    "another's signature": ("", {"key": STRANGER.delegated}, 400, "invalid_session"),
    "another audience": ("", {"aud": "https://other.example"}, 400, "invalid_session"),
    "no sid": ("", {"sid": "a b"}, 400, "invalid_session"),
    "a client nobody knows": ("", {"agent": STRANGER}, 400, "invalid_session"),
    "no version": ("", {"headers": {"poppy-version": None}}, 400, "version_unsupported"),
    "another version": ("", {"headers": {"poppy-version": "9.9"}}, 400, "version_unsupported"),
    "superfluous ath": ("", {"ath": "x" * 43}, 400, "invalid_session"),
    "a token": ("", {"access_token": "t", "headers": {"authorization": "Bearer t"}}, 401, "invalid_token"),
    "two tokens": ("", {"more_headers": (("authorization", "a"), ("authorization", "b"))}, 400, "invalid_request"),
    "no such path": ("/a/b/c", {}, 404, "not_found"),
    "no such method": ("", {"method": "PUT"}, 405, "method_not_allowed"),
    "an ended Session": (SAY, {"sid": ENDED}, 400, "session_ended"),
    "another's Session": (SAY, {"sid": "sid_other"}, 400, "invalid_session"),
}
PROVEN: Final[dict[str, tuple[str, dict[str, Any], int, str]]] = {
    "a used JWT": (SAY, {"jti": JTI}, 400, "invalid_session"),
    "no JSON": ("", {"raw": b"{"}, 400, "invalid_request"),
    "an empty body": (SAY, {"raw": b""}, 400, "invalid_request"),
    "no message": ("", {"body": {}}, 400, "invalid_request"),
    "an empty message": (SAY, {"body": {"message": {"id": "m", "author": {"type": "agent"}}}}, 400, "invalid_request"),
    "another kind of body": ("", {"headers": {"content-type": "text/plain"}}, 400, "invalid_request"),
    "no id": ("/a%20b/messages", {}, 400, "invalid_request"),
    "wait": (SAY, {"query": "wait=x"}, 400, "invalid_request"),
    "a credential in the URL": (SAY, {"query": "access_token=t"}, 400, "invalid_request"),
    "a cursor of nobody": (SAY, {"query": "wait=0&cursor=evt_none"}, 400, "invalid_cursor"),
    "a cursor of a new conversation": ("", {"query": "wait=0&cursor=evt_none"}, 400, "invalid_cursor"),
    "no such conversation": ("/cnv_none/messages", {}, 404, "conversation_not_found"),
    "another User's": ("/{theirs}/messages", {}, 404, "conversation_not_found"),
    "another User's close": ("/{theirs}/close", {"body": {}}, 404, "conversation_not_found"),
    "closed": ("/{closed}/messages", {}, 409, "conversation_closed"),
    "handoff of a closed one": ("/{closed}/handoff", {"body": {}}, 409, "conversation_closed"),
    "an id that was used": (SAY, {"body": {"message": {"id": "msg_1", "text": "x"}}}, 400, "invalid_request"),
    "too long a text": (SAY, {"body": LONG}, 413, "invalid_request"),
    "too long a body": ("", {"raw": b" " * 262_145}, 413, "invalid_request"),
}


@pytest.mark.parametrize(("suffix", "options", "status", "code"), UNPROVEN.values(), ids=UNPROVEN)
async def test_what_fails_before_a_session_is_open_leaves_no_trace(
    scene: Scene, suffix: str, options: dict[str, Any], status: int, code: str
) -> None:
    """Not one row of any table differs."""
    before = rows(scene.path)
    answer = await scene.refuse(suffix, options)
    assert (answer.status, answer.error) == (status, code)
    assert traces(before, rows(scene.path)) == {}


@pytest.mark.parametrize(("suffix", "options", "status", "code"), PROVEN.values(), ids=PROVEN)
async def test_what_fails_after_it_leaves_the_row_of_its_session(
    scene: Scene, suffix: str, options: dict[str, Any], status: int, code: str
) -> None:
    """Which began with this request, because it was proven (5.3); no message, receipt, replay key, or turn."""
    before = rows(scene.path)
    answer = await scene.refuse(suffix, options)
    assert (answer.status, answer.error) == (status, code)
    assert traces(before, rows(scene.path)) == {"sessions": 1}


async def test_a_conflicting_message_leaves_the_row_of_its_session(scene: Scene) -> None:
    """409 for an id that was accepted with other content."""
    body = {"message": {"id": "msg_1", "author": {"type": "agent"}, "text": "Something else"}}
    before = rows(scene.path)
    answer = await scene.refuse(SAY, {"raw": dumps(body)})
    assert (answer.status, answer.error) == (409, "message_id_conflict")
    assert traces(before, rows(scene.path)) == {"sessions": 1}


async def test_too_many_requests_leave_no_trace(tmp_path: Path) -> None:
    """429 comes before the Session is opened."""
    path = tmp_path / "poppy.db"
    async with company_bench(store=SqliteStore(path), turns=False, requests_per_user=1) as bench:
        assert (await bench.start()).status == 201
        before = rows(path)
        answer = await bench.start(sid="sid_new")
        assert (answer.status, answer.error) == (429, "rate_limited")
        assert traces(before, rows(path)) == {}


async def test_a_client_that_is_proven_for_the_first_time_is_entered_in_the_registry(scene: Scene) -> None:
    """The one exception: who it is and what it publishes, so that it is a stranger no more (docs/company.md)."""
    scene.bench.documents.publish(STRANGER)
    before = rows(scene.path)
    answer = await scene.refuse("", {"agent": STRANGER, "raw": b"{"})
    assert (answer.status, answer.error) == (400, "invalid_request")
    assert traces(before, rows(scene.path)) == {"sessions": 1, "clients": 1, "documents": 2}
