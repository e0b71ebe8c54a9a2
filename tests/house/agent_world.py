"""A Personal Agent's flows driven by hand: no event loop, rows in a dict, a Company that a test scripts.

`World.run` performs the effects of a flow one by one, and can stop dead before or after any of them, as a crash does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from papaver.jose.keys import KeySet, PrivateKey, PublicKey
from papaver.personal_agent.delegated import DelegatedKeys
from papaver.personal_agent.flows.discover import discover
from papaver.personal_agent.flows.effects import Exclusive, Fetch, Flow, Keep, Load, LoadAll, Post, Send, Sign, Wait
from papaver.personal_agent.identity import Identity
from papaver.personal_agent.live import LiveSession, Whose
from papaver.personal_agent.settings import AgentLimits
from papaver.personal_agent.setup import Setup
from papaver.ports.system import FetchFailed, FetchFault
from papaver.protocol.dialect import Dialect, Version
from papaver.protocol.session import ProvenSession, expect
from papaver.protocol.terms import ClientId
from papaver.testing.clock import ManualClock, SeededIds
from papaver.testing.keys import NOW
from papaver.values.errors import PapaverError
from papaver.values.secret import Secret
from papaver.versions import DIALECTS
from papaver.web.messages import Headers, Request, Response

T = TypeVar("T")

CLIENT_ID = ClientId("https://agent.example/agent.json")
DOMAIN = "shop.example"
ENDPOINT = "https://api.shop.example/poppy/conversations"
V = max(DIALECTS)
IDENTITY_KEY = PrivateKey.generate("ES256")


class Keys:
    """Identity keys in memory."""

    def __init__(self, *keys: PrivateKey) -> None:
        self.keys = keys or (IDENTITY_KEY,)

    @property
    def current(self) -> PrivateKey:
        return self.keys[0]

    @property
    def public_keys(self) -> tuple[PublicKey, ...]:
        return tuple(key.public for key in self.keys)


class Crash(Exception):
    """The process is gone."""


def answer(status: int, body: object = None, **headers: str) -> Response:
    """A JSON answer; `_` in a header's name is a hyphen."""
    fields = Headers((name.replace("_", "-"), value) for name, value in headers.items())
    return Response(status, fields, b"" if body is None else json.dumps(body).encode())


def error(code: str, status: int = 400, **headers: str) -> Response:
    """An error of section 7 or 8.13."""
    return answer(status, {"error": code}, **headers)


def document(domain: str = DOMAIN, **members: object) -> dict[str, Any]:
    """A `poppy.json`."""
    agent = {"protocols": [{"type": "poppy", "endpoint": ENDPOINT}]}
    organization = {"name": "Shop", "domain": domain}
    return {"protocol_version": str(V), "organization": organization, "agent": agent, **members}


@dataclass
class ScriptedCompany:
    """A Company that checks each Session header and answers with what is in `script`, else as a Company does.

    `documents`  URL → decoded document, a status, a Response, or the failure to raise
    `proven`     the Session of each request that arrived, in order; `requests` beside it
    `script`     answers, or failures, for the next requests; None for an ordinary answer
    `accepted`   message id → (conversation id, content), as 8.3 has it
    """

    domain: str = DOMAIN
    identifier: str = f"https://{DOMAIN}"
    documents: dict[str, object] = field(default_factory=dict[str, object])
    script: list[Response | FetchFailed | None] = field(default_factory=list[Any])
    requests: list[Request] = field(default_factory=list[Request])
    proven: list[ProvenSession] = field(default_factory=list[ProvenSession])
    accepted: dict[str, tuple[str, object]] = field(default_factory=dict[str, Any])
    events: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, Any])
    status: str = "working"
    responder: str = "agent"
    keys: tuple[PublicKey, ...] = (IDENTITY_KEY.public,)
    check_time: bool = True

    def __post_init__(self) -> None:
        self.documents.setdefault(f"https://{self.domain}/.well-known/poppy.json", document(self.domain))

    def serve(self, url: str) -> Response:
        """A document."""
        found = self.documents.get(url, 404)
        if isinstance(found, FetchFailed):
            raise found
        if isinstance(found, Response):
            return found if found.url else replace(found, url=url)
        if isinstance(found, int):
            return Response(found, url=url)
        return Response(200, Headers(), json.dumps(found).encode(), url)

    def take(self, request: Request, now: float) -> Response:
        """A request with a Session header."""
        self.requests.append(request)
        self.proven.append(self._proven(request, now))
        scripted = self.script.pop(0) if self.script else None
        if isinstance(scripted, FetchFailed):
            raise scripted
        return scripted or self._answer(request)

    def say(self, conversation: str, text: str, **members: object) -> None:
        """A message of the Company, after which it is idle."""
        message = {"id": f"cm_{len(self.events[conversation])}", "role": "company", "author": {"type": "agent"}}
        self.add(conversation, "message", message={**message, "text": text, **members})
        self.add(conversation, "state", status="idle", responder="agent")
        self.status = "idle"

    def add(self, conversation: str, kind: str, **members: object) -> None:
        """An event."""
        log = self.events[conversation]
        created = "2026-10-02T00:13:20Z"
        log.append({"id": f"evt_{len(log) + 1}", "type": kind, "created_at": created, **members})

    def _proven(self, request: Request, now: float) -> ProvenSession:
        versions = request.headers.all("poppy-version")
        assert len(versions) == 1
        major, minor = versions[0].split(".")
        profile = DIALECTS[Version(int(major), int(minor))].session
        keys = KeySet.read({"keys": [key.entry() for key in self.keys]})
        jwt = profile.read(request.headers)
        when = now if self.check_time else float(jwt.claims.iat)
        asked = expect(company_id=self.identifier, method=request.method, url=request.url, now=when)
        return profile.verify(jwt, keys, asked)

    def _answer(self, request: Request) -> Response:
        path, query = urlsplit(request.url).path, parse_qs(urlsplit(request.url).query)
        parts = path.removeprefix(urlsplit(ENDPOINT).path).strip("/").split("/")
        if parts == [""]:
            return self._message(request, None, query)
        conversation, action = parts
        if conversation not in self.events:
            return error("conversation_not_found", 404)
        if action == "messages":
            return self._message(request, conversation, query)
        if action == "events":
            return answer(200, self.page(conversation, query))
        self.status = "queued" if action == "handoff" else "closed"
        self.add(conversation, "state", status=self.status, responder="agent")
        return answer(202 if action == "handoff" else 200, {"status": self.status, "responder": "agent"})

    def _message(self, request: Request, target: str | None, query: Mapping[str, list[str]]) -> Response:
        message = json.loads(request.body)["message"]
        known = self.accepted.get(message["id"])
        if known is None:
            conversation = target or f"cnv_{len(self.events) + 1}"
            self.accepted[message["id"]] = (conversation, (target, message))
            self.events.setdefault(conversation, [])
            self.add(conversation, "message", message={**message, "role": "user"})
        elif known[1] != (target, message):
            return error("message_id_conflict", 409)
        else:
            conversation = known[0]
        body: dict[str, Any] = {"conversation_id": conversation, "status": self.status, "responder": self.responder}
        if "wait" in query:
            body = self.page(conversation, query)
        return answer(201 if target is None else 202, body)

    def page(self, conversation: str, query: Mapping[str, list[str]], size: int = 100) -> dict[str, Any]:
        """A page of events after the cursor."""
        log = self.events[conversation]
        cursor = query.get("cursor", [None])[0]
        ids = [event["id"] for event in log]
        after = 0 if cursor is None else ids.index(cursor) + 1
        part = log[after : after + size]
        return {
            "conversation_id": conversation,
            "events": part,
            "cursor": part[-1]["id"] if part else cursor,
            "has_more": after + size < len(log),
            "status": self.status,
            "responder": self.responder,
        }


class World:
    """The vault, the clock and the network of one Personal Agent, and one Company."""

    def __init__(self, company: ScriptedCompany | None = None, **limits: int) -> None:
        self.company = company or ScriptedCompany()
        self.rows: dict[tuple[str, str], bytes] = {}
        self.clock = ManualClock(NOW)
        self.ids = SeededIds()
        self.keys = Keys()
        self.redirect_uris: tuple[str, ...] = ()
        self.company_ahead = 0.0
        self.waits: list[float] = []
        self.fetched: list[Request] = []
        self.done: list[object] = []
        self.dialects: Mapping[Version, Dialect] = DIALECTS
        self.extensions: Mapping[str, tuple[str, ...]] = {}
        self.limits = AgentLimits(**limits)

    def setup(self) -> Setup:
        """A process of this Personal Agent: everything that a restart makes anew."""
        identity = Identity(CLIENT_ID, self.keys, redirect_uris=self.redirect_uris)
        return Setup(
            identity=identity,
            limits=self.limits,
            clock=self.clock,
            ids=self.ids,
            keys=DelegatedKeys(identity, self.limits, self.ids),
            dialects=self.dialects,
            extensions=self.extensions,
        )

    def live(
        self, user: str = "dana", agent: str | None = None, *, setup: Setup | None = None, **more: Any
    ) -> LiveSession:
        """A Session of a discovered Company."""
        setup = setup or self.setup()
        outcome = self.run(discover(setup, self.company.domain))
        return LiveSession(setup, outcome.found, Whose(user, agent, **more))

    def run(self, flow: Flow[T], *, before: int | None = None, after: int | None = None) -> T:
        """Drive a flow. Crash when the effect of that number, from 0, is due (`before`) or was performed (`after`)."""
        number = 0
        try:
            effect = next(flow)
            while True:
                if number == before:
                    raise Crash
                try:
                    result = self.perform(effect)
                except PapaverError as failure:
                    effect = flow.throw(failure)
                else:
                    if number == after:
                        raise Crash
                    effect = flow.send(result)
                number += 1
        except StopIteration as end:
            value: T = end.value
            return value
        finally:
            flow.close()

    def perform(self, effect: object) -> object:
        self.done.append(effect)
        match effect:
            case Send():
                sent = effect.request.headers.with_(
                    *effect.fields.declared, (effect.fields.header, effect.fields.jwt.reveal())
                )
                for name, secret in (("authorization", effect.fields.authorization), ("dpop", effect.fields.proof)):
                    sent = sent if secret is None else sent.with_((name, secret.reveal()))
                request = replace(effect.request, headers=sent)
                return self.company.take(request, self.clock.now() + self.company_ahead)
            case Fetch():
                self.fetched.append(effect.request)
                return self.company.serve(effect.request.url)
            case Post():
                auth: Any = getattr(self.company, "auth", None)
                response: Response = auth.take(effect.request, self.clock.now())
                return replace(response, url=effect.request.url)
            case Wait():
                self.waits.append(effect.seconds)
                self.clock.advance(effect.seconds)
                return None
            case Load():
                return self.rows.get((effect.kind, effect.key))
            case LoadAll():
                return tuple((key, value) for (kind, key), value in self.rows.items() if kind == effect.kind)
            case Keep():
                return self._keep(effect.kind, effect.key, effect.decide)
            case Exclusive():
                return self.run(effect.flow)
            case Sign():
                return Secret(
                    effect.signer.sign(
                        sid=effect.sid,
                        method=effect.method,
                        url=effect.url,
                        now=self.clock.now() + effect.offset,
                        jti=self.ids.token(),
                        agent_id=effect.agent_id,
                        access_token=None if effect.access_token is None else effect.access_token.reveal(),
                    )
                )
            case _:
                raise TypeError(f"{effect!r} is no effect")

    def _keep(self, kind: str, key: str, decide: Callable[[bytes | None], bytes | None]) -> bytes | None:
        value = decide(self.rows.get((kind, key)))
        if value is None:
            self.rows.pop((kind, key), None)
        else:
            self.rows[kind, key] = value
        return value

    def of_kind(self, kind: str) -> list[Any]:
        """The decoded rows of one kind."""
        return [json.loads(value) for (of, _), value in self.rows.items() if of == kind]


def unreachable(url: str = ENDPOINT) -> FetchFailed:
    """A failure that may pass."""
    return FetchFailed(FetchFault.UNREACHABLE, "no answer", url=url)


def refused(url: str = ENDPOINT, rule: str = "fetch.address-public") -> FetchFailed:
    """A failure that stays."""
    return FetchFailed(FetchFault.REFUSED, "refused", url=url, rule=rule)
