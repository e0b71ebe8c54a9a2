"""No secret that reaches a Company is seen anywhere: whatever it is asked, it refuses, or goes wrong over.

Planted are every Session JWT that is sent, their signatures and delegations, the keys that made them, access tokens
and a cookie. Looked at are the answers, every log record at every level, of each value and error the text, the repr,
the pickle and the traceback, local variables included, and the octets of the store's files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from papaver.adapters.asgi import CompanyEndpoint, incoming_of
from papaver.adapters.exchange_log import note_request, note_response
from papaver.company.incoming import Incoming
from papaver.company.turn import Turn
from papaver.protocol.errors import PoppyError
from papaver.stores.faults import StoreFailed, StoreMisused
from papaver.stores.sqlite import SqliteStore
from papaver.stores.sqlite.sessions import SqliteSessions
from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import AgentKeys
from papaver.values.base64url import decode
from papaver.versions import DIALECTS
from papaver.web.messages import Headers, Response
from tests.house.canary import Everything, Seen, logged

pytestmark = pytest.mark.anyio

TOKEN = "planted-access-token-Zk9vR3"
COOKIE = "planted-cookie-pL4x"
CONVERSATIONS = "/poppy/conversations"


@pytest.fixture
def everything() -> Iterator[tuple[Seen, Everything]]:
    """All loggers at their lowest level."""
    with logged() as both:
        yield both


class Planting(AgentKeys):
    """A Personal Agent that keeps every header that it signs."""

    def __init__(self) -> None:
        super().__init__()
        self.jwts: list[str] = []

    def header(self, *arguments: Any, **options: Any) -> str:
        self.jwts.append(super().header(*arguments, **options))
        return self.jwts[-1]

    def delegations(self) -> set[str]:
        return set(self._delegations.values())


def secrets_of(agent: Planting) -> set[bytes]:
    """In every form in which they could be seen."""
    texts = {TOKEN, COOKIE, *agent.jwts, *agent.delegations()}
    texts |= {jwt.rpartition(".")[2] for jwt in (*agent.jwts, *agent.delegations())}
    texts |= {str(key.private_jwk()["d"]) for key in (agent.identity, agent.delegated)}
    raw = {decode(jwt.rpartition(".")[2].encode()) for jwt in agent.jwts}
    return {text.encode() for text in texts} | raw | {repr(octets)[2:-1].encode() for octets in raw}


def files_in(folder: Path) -> dict[str, bytes]:
    """What its files hold."""
    return {f"file {file.name}": file.read_bytes() for file in folder.rglob("*") if file.is_file()}


async def moody(turn: Turn) -> str:
    """A Company Agent that fails when it is told to."""
    if "fail" in turn.text:
        raise RuntimeError("as the test wants it")
    return "Well."


class Journey:
    """One request after another to a Company as an ASGI server hands them in, each looked at from all sides."""

    def __init__(self, bench: CompanyBench, agent: Planting, seen: Seen) -> None:
        self.bench, self.agent, self.seen = bench, agent, seen
        self._app = CompanyEndpoint(bench.company)

    def scope(self, method: str, path: str, headers: Mapping[str, str], query: str = "") -> dict[str, Any]:
        fields = {"host": "api.example.com", "content-type": "application/json", "cookie": f"c={COOKIE}", **headers}
        return {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in fields.items()],
        }

    def signed(self, method: str, path: str, **claims: Any) -> dict[str, str]:
        said: dict[str, Any] = {"now": self.bench.clock.now(), **claims}
        url = f"https://api.example.com{path}"
        jwt = self.agent.header(method, url, self.bench.company.id, **said)
        return {"poppy-session": jwt, "poppy-version": "0.4"}

    async def ask(self, name: str, scope: dict[str, Any], body: bytes = b"") -> Answer:
        """What `--trace` shows of it too."""
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        incoming = incoming_of(scope, receive)
        note_request(f"{incoming.method} {incoming.path}?{incoming.query}", incoming.headers)
        for what in (incoming, incoming.headers):
            self.seen.note(f"{name}, {type(what).__name__}", what)
        await self._app(scope, receive, send)
        headers = Headers([(key.decode(), value.decode()) for key, value in sent[0]["headers"]])
        note_response(f"{incoming.method} {incoming.path}", sent[0]["status"], headers)
        self.seen.pieces[f"{name}, answer"] = repr(sent).encode()
        return Answer(Response(sent[0]["status"], headers, sent[1]["body"]))

    async def post(
        self, name: str, headers: Mapping[str, str] | None = None, body: bytes | None = None, query: str = ""
    ) -> Answer:
        """A start; of `headers` those that are not signed by default."""
        fields = self.signed("POST", CONVERSATIONS) if headers is None else headers
        said = b'{"message":{"id":"msg_%s","author":{"type":"agent"},"text":"%s"}}'
        whole = said % (name.replace(" ", "_").encode(), name.encode()) if body is None else body
        return await self.ask(name, self.scope("POST", CONVERSATIONS, fields, query), whole)

    async def verify(self, name: str, headers: Mapping[str, str], query: str = "") -> None:
        """An API's request, which has to fail."""
        await self.refused(name, self.bench.bare("GET", "/cart", query, Headers(headers)))

    async def refused(self, name: str, incoming: Incoming) -> None:
        self.seen.note(f"{name}, bare Incoming", incoming)
        try:
            await self.bench.company.verify_api(incoming)
        except PoppyError as error:
            self.seen.failed(name, error)
            self.seen.note(f"{name}, refusal", self.bench.company.api_error(error, incoming))
        else:
            raise AssertionError(f"{name} did not fail")


async def refusals(journey: Journey) -> None:
    """At both doors, by every step of 5.3, and after it."""
    agent, now = journey.agent, journey.bench.clock.now()
    stranger = AgentKeys("https://unknown.example/agent.json")
    wrong: dict[str, dict[str, Any]] = {
        "audience": {"aud": "https://other.example"},
        "method": {"htm": "DELETE"},
        "url": {"htu": "https://elsewhere.example/"},
        "old": {"iat": int(now) - 1000},
        "another key": {"key": stranger.delegated},
        "another signer": {"delegation": agent.delegation(now, signer=stranger.identity)},
        "expired delegation": {"delegation": agent.delegation(now - 90_000)},
        "type": {"jose": {"typ": "jwt"}},
        "no claims": {"payload": b"[]"},
        "token claim": {"ath": "x" * 43},
        "stranger": {"iss": stranger.client_id},
        "no url": {"iss": "nonsense"},
        "bad sid": {"sid": "a b"},
        "large": {"padding": "x" * 9000},
    }
    for name, claims in wrong.items():
        fields = journey.signed("POST", CONVERSATIONS, **claims)
        assert (await journey.post(name, fields)).status == 400, name
        await journey.verify(f"{name} at an API", journey.signed("GET", "/cart", **claims))
    right = journey.signed("POST", CONVERSATIONS)
    more = {
        "cut": {**right, "poppy-session": right["poppy-session"][:-9]},
        "version": {**right, "poppy-version": "9.9"},
        "no version": {"poppy-session": right["poppy-session"]},
        "field name": {"authorization": f"Bearer {TOKEN}"},
    }
    for name, headers in more.items():
        assert (await journey.post(name, headers)).status == 400, name
        await journey.verify(f"{name} at an API", headers)
    query = f"access_token={TOKEN}&poppy-session={right['poppy-session']}"
    assert (await journey.post("in the URL", query=query)).status == 400
    await journey.verify("in an API's URL", journey.signed("GET", "/cart"), query)
    with_token = journey.signed("POST", CONVERSATIONS, access_token=TOKEN)
    assert (await journey.post("with token", {**with_token, "authorization": f"Bearer {TOKEN}"})).status in (400, 401)
    for name, body in {"no JSON": b"{", "a JWT as JSON": right["poppy-session"].encode(), "no message": b"{}"}.items():
        assert (await journey.post(name, body=body)).status == 400
    for name, query in {"wait": "wait=x", "cursor": "wait=0&cursor=evt_none"}.items():
        assert (await journey.post(name, query=query)).status == 400


async def faults(journey: Journey, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is our own failure: a store that lost its disk, and one that we use wrongly."""
    for name, error in {"store failed": StoreFailed("disk full"), "store misused": StoreMisused("a gap")}.items():

        async def fails(*_: object, error: Exception = error, **__: object) -> Any:
            raise error

        with monkeypatch.context() as patch:
            patch.setattr(SqliteSessions, "open", fails)
            patch.setattr(SqliteSessions, "load", fails)
            journey.bench.clock.advance(120)
            answer = await journey.post(name)
            assert answer.status == (503 if isinstance(error, StoreFailed) else 500)


async def test_no_secret_that_a_company_meets_is_seen(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    everything: tuple[Seen, Everything],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A conversation, every refusal, a handler that raises, a store that fails; through an adapter, and at an API."""
    seen, handler = everything
    agent = Planting()
    async with company_bench(store=SqliteStore(tmp_path / "poppy.db"), agent=agent, handler=moody) as bench:
        journey = Journey(bench, agent, seen)
        for text in ("Hello", "please fail"):
            assert (await journey.post(text)).status == 201
        await refusals(journey)
        await faults(journey, monkeypatch)
        for jwt in agent.jwts[:3]:
            read = DIALECTS[bench.company.offer.versions[0]].session.read(Headers([("poppy-session", jwt)]))
            for what in (read, read.compact, read.claims):
                seen.note(type(what).__name__, what)
        session = await bench.verify("GET", "/cart")
        for what in (session, agent.identity, agent.delegated, bench.company, bench.company.sessions):
            seen.note(type(what).__name__, what)
        await bench.company.sessions.end(session.client_id, session.sid)
        assert (await journey.post("ended")).error == "session_ended"
        seen.pieces |= files_in(tmp_path)
    output = capfd.readouterr()
    seen.pieces["stdout"], seen.pieces["stderr"] = output.out.encode(), output.err.encode()
    secrets = secrets_of(agent)
    assert len(agent.jwts) > 40
    assert "papaver" in handler.names
    assert any(b"> POST /poppy/conversations" in piece for piece in seen.pieces.values())
    assert any(b"as the test wants it" in piece for piece in seen.pieces.values())
    assert all(len(secret) > 15 for secret in secrets)
    assert sorted(set(seen.leaks(secrets))) == []
