"""No secret of a Personal Agent is seen anywhere: a whole journey over TLS, with every failure on the way.

Planted are the identity key, the delegated key, the key of the vault, the delegation and every Session JWT that was
sent. Looked at are stdout, stderr, every log record of every library at every level, and of each object and error the
text, the repr, the pickle and the traceback, local variables included.
"""

from __future__ import annotations

import asyncio
import gc
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from papaver.adapters.httpx2.personal_agent import HttpSession, PersonalAgent
from papaver.adapters.keyfile import KeyFile
from papaver.personal_agent.anonymous import AnonymousVault
from papaver.personal_agent.driver import Ports
from papaver.personal_agent.flows.effects import Send, SessionFields
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.personal_agent.records import DelegatedKeyRow, read_row
from papaver.personal_agent.settings import AgentLimits
from papaver.personal_agent.setup import Setup
from papaver.stores.sqlite.vault import SqliteVault
from papaver.values.secret import Secret
from tests.house.agent_world import CLIENT_ID, DOMAIN, document
from tests.house.canary import Everything, Seen, logged
from tests.house.tls_site import PUBLIC, Answer, Site, answer, authority, serve

pytestmark = pytest.mark.anyio

API = f"api.{DOMAIN}"
TALK = "/poppy/conversations"
MCP = f"https://{API}/mcp"
IDLE = {"conversation_id": "cnv_1", "status": "idle", "responder": "agent"}


def once(*answers: bytes | None) -> Answer:
    """One answer after another, the last one for ever; None breaks the connection off. Each closes it."""
    left = list(answers)

    async def write(writer: asyncio.StreamWriter) -> None:
        chosen = left.pop(0) if len(left) > 1 else left[0]
        if chosen is not None:
            writer.write(chosen)
            await writer.drain()

    return write


def json_answer(status: str, body: object, *fields: str) -> bytes:
    """A JSON answer that is the last on its connection."""
    return answer(json.dumps(body).encode(), status, "Content-Type: application/json", "Connection: close", *fields)


def error(code: str, status: str = "400 Bad Request", *fields: str) -> bytes:
    return json_answer(status, {"error": code, "error_description": "no"}, *fields)


@pytest.fixture
def everything() -> Iterator[tuple[Seen, Everything]]:
    """All loggers at their lowest level."""
    with logged() as both:
        yield both


async def attempt(seen: Seen, name: str, doing: Any) -> None:
    """Something that has to fail."""
    try:
        await doing
    except Exception as failure:  # noqa: BLE001 - whatever it is, it is looked at
        seen.failed(name, failure)
    else:
        raise AssertionError(f"{name} did not fail")


async def journey(agent: PersonalAgent, site: Site, seen: Seen) -> None:
    """Everything that works, and everything that does not."""
    site.put(**{"poppy/conversations": once(None, json_answer("201 Created", IDLE))})
    company = await agent.discover(DOMAIN)
    session: HttpSession = company.session("dana", agent_id="travel")
    conversation = await session.ask("Hello", locale="en-US")
    page: dict[str, object] = {**IDLE, "events": (), "cursor": None, "has_more": False}
    events, messages = (
        f"poppy/conversations/{conversation.id}/events",
        f"poppy/conversations/{conversation.id}/messages",
    )
    site.put(**{events: once(error("session_ended"), json_answer("200 OK", page))})
    assert [event async for event in conversation.events()] == []
    for name, said in {
        "invalid_session": error("invalid_session"),
        "version_unsupported": error("version_unsupported"),
        "rate limit": error("rate_limited", "429 Too Many Requests", "Retry-After: 600"),
        "challenge": error("x", "401 Unauthorized", 'WWW-Authenticate: Bearer scope="a"'),
        "server error": error("x", "500 Oops"),
        "redirect": answer(b"", "302 Found", "Location: https://evil.example/", "Connection: close"),
        "nonsense": json_answer("202 Accepted", {"what": "?"}),
        "no JSON": answer(b"<html>", "202 Accepted", "Connection: close"),
        "no HTTP": b"nonsense\r\n\r\n",
        "broken off": None,
    }.items():
        site.put(**{messages: once(said)})
        other = await company.session("dana").resume(conversation.id)
        await attempt(seen, name, other.say("Now?"))
    site.put(mcp=once(answer(b"", "307 Moved", f"Location: https://{API}/other", "Connection: close")))
    response = await session.http.post(MCP, json={}, follow_redirects=True)
    for what in (response, response.request, response.headers, response.request.headers, *response.history):
        seen.note(f"http {type(what).__name__}", what)
    site.put(mcp=once(None))
    await attempt(seen, "broken http", session.http.get(MCP))
    await attempt(seen, "elsewhere", session.http.get("https://evil.example/"))
    await attempt(seen, "own header", session.http.get(MCP, headers={"Authorization": "Bearer x"}))
    await attempt(seen, "no domain", agent.discover("https://shop.example"))
    await attempt(seen, "private", agent.discover("private.example"))
    async with company.session("dana", anonymous=True) as nobody:
        await nobody.ask("Who am I?")
        seen.note("anonymous", nobody)
    for what in (agent, company, session, session.http, conversation, await agent.companies(), await agent.pending()):
        seen.note(type(what).__name__, what)
    for what in (await agent.delegated_keys(), await agent.conversations(), agent.documents()):
        seen.note(f"{type(what).__name__} of values", what)


async def test_no_secret_is_seen_anywhere(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], everything: tuple[Seen, Everything]
) -> None:
    """The journey is made with real sockets, so that the libraries below log what they see, too."""
    seen, handler = everything
    ca_file = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(ca_file))
    apis = [{"type": "mcp", "url": MCP, "description": "Products"}]
    poppy = document(agent={"protocols": [{"type": "poppy", "endpoint": f"https://{API}{TALK}"}]}, apis=apis)
    answers = {"/.well-known/poppy.json": once(json_answer("200 OK", poppy))}
    keys, vault = KeyFile(tmp_path / "keys.json"), SqliteVault(tmp_path / "agent.db")
    async with serve(answers, DOMAIN, API) as site:
        network = site.network({DOMAIN: [PUBLIC], API: [PUBLIC], "private.example": ["10.0.0.1"]}, ca_file)
        limits = AgentLimits(attempts=2)
        async with PersonalAgent(CLIENT_ID, keys=keys, vault=vault, network=network, limits=limits) as agent:
            await journey(agent, site, seen)
            rows = [read_row(DelegatedKeyRow, value) for _, value in await vault.rows("delegated-key")]
            for what in (keys, vault, keys.current, *rows, *(value for value in gc.get_objects() if _is_ours(value))):
                seen.note(type(what).__name__, what)
        heads = site.heads
    secrets = {str(keys.current.private_jwk()["d"]).encode(), *_vault_key(vault)}
    secrets |= {row.jwk["d"].encode() for row in rows} | {row.delegation.encode() for row in rows}
    jwts = [
        line.partition(": ")[2]
        for head in heads
        for line in head.split("\r\n")
        if line.lower().startswith("poppy-session:")
    ]
    secrets |= {jwt.encode() for jwt in jwts} | {jwt.rpartition(".")[2].encode() for jwt in jwts}
    output = capfd.readouterr()
    seen.pieces["stdout"], seen.pieces["stderr"] = output.out.encode(), output.err.encode()
    assert len(jwts) > 15
    assert {"httpx2", "httpcore2", "papaver"} <= handler.names
    assert all(len(secret) > 20 for secret in secrets)
    assert seen.leaks(secrets) == []


def _is_ours(value: object) -> bool:
    """Objects of the Personal Agent that hold secrets, or something that does."""
    kinds = LiveSession | OpenedSession | Send | SessionFields | Setup | Ports | AnonymousVault | Secret
    return isinstance(value, kinds)


def _vault_key(vault: SqliteVault) -> set[bytes]:
    """The vault's key where it lies in a file, in the forms in which it could be seen."""
    path = Path(vault.guarded_by)
    return {path.read_bytes().strip()} if path.is_file() else set()


def test_the_canary_sings() -> None:
    """What is planted where it can be seen is found: in a text, a pickle, a traceback's locals."""
    seen = Seen()
    seen.note("value", {"jwt": "planted-in-a-value"})
    try:
        held = "planted-in-a-frame"
        raise ValueError(len(held))
    except ValueError as failure:
        seen.failed("error", failure)
    found = seen.leaks([b"planted-in-a-value", b"planted-in-a-frame"])
    assert {"value, text", "value, repr", "value, pickle", "error, traceback"} <= set(found)
