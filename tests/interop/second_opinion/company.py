"""A Company without an issuer, written from the specification alone: one domain, in memory, an agent that echoes."""

from __future__ import annotations

import argparse
import base64
import hashlib
import http.server
import json
import queue
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from typing import Any
from urllib.parse import parse_qs

import jwt
from second_wire import (
    ID_PATTERN,
    MAX_BODY,
    VERSION,
    Answer,
    Fault,
    Https,
    Server,
    Unreachable,
    arr,
    b64url,
    https_url,
    new_id,
    obj,
    thumbprint,
    verify_jws,
)

MAX_WAIT, PAGE, WINDOW, CACHE_SECONDS = 25, 100, 60, 60
ROUTE = re.compile(r"/poppy/conversations(?:/([^/]+)/(messages|events|handoff|close))?")


class Reject(Exception):
    """An error response."""

    def __init__(self, status: int, error: str, description: str = "", **more: str) -> None:
        super().__init__(error)
        self.status, self.body = status, {"error": error} | more
        self.headers: dict[str, str] = {}
        if description:
            self.body["error_description"] = description


@dataclass(frozen=True)
class Owner:
    """Who a verified request is from."""

    client_id: str
    sub: str


@dataclass
class Conversation:
    """One conversation and the work that is open in it."""

    id: str
    owner: Owner
    parent: Conversation | None = None
    direct: Conversation | None = None
    events: list[dict[str, Any]] = field(default_factory=lambda: list[dict[str, Any]]())
    status: str = ""
    replies_due: int = 0
    handoff: bool = False
    closed: bool = False

    def add(self, kind: str, **members: Any) -> None:
        """Record an event."""
        created = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        self.events.append({"id": new_id("evt_"), "type": kind, "created_at": created, **members})

    def say(self, text: str) -> None:
        """Record a message of the Company Agent."""
        message = {"id": new_id("msg_"), "role": "company", "author": {"type": "agent"}, "text": text}
        self.add("message", message=message)

    def settle(self) -> None:
        """Work out the status and record its change; the first one is no change."""
        work = "queued" if self.handoff else "working" if self.replies_due else "idle"
        before, self.status = self.status, "closed" if self.closed else work
        if before and before != self.status:
            self.add("state", status=self.status, responder="agent")

    def close(self) -> None:
        """Close the conversation after its open Direct Conversation, and tell the parent."""
        if self.closed:
            return
        if self.direct:
            self.direct.close()
        self.closed, self.handoff = True, False
        self.settle()
        if self.parent:
            self.parent.direct = None
            self.parent.add("direct_closed", conversation_id=self.id)

    def state(self) -> dict[str, Any]:
        """Return the members every successful response has."""
        return {"conversation_id": self.id, "status": self.status, "responder": "agent"}


@dataclass(frozen=True)
class Accepted:
    """What was answered to an accepted message."""

    content: str
    conversation: Conversation
    answer: dict[str, Any]


def known(value: Any, kind: type, what: str) -> Any:
    """Return an optional member, or refuse one of another type; null counts as absent."""
    if value is not None and not isinstance(value, kind):
        raise Reject(400, "invalid_request", f"{what} has the wrong type")
    return value


def good_id(value: Any, what: str) -> str:
    """Return an ID of section 8.2 or refuse it."""
    if not isinstance(value, str) or not ID_PATTERN.fullmatch(value):
        raise Reject(400, "invalid_request", f"{what} is not an ID")
    return value


def check_message(value: Any) -> dict[str, Any]:
    """Check a message (8.4) and return it as it is recorded."""
    message: dict[str, Any] = dict(known(value, dict, "message"))
    good_id(message.get("id"), "message.id")
    author: dict[str, Any] = dict(known(message.get("author"), dict, "author") or {})
    if author.get("type") not in ("agent", "human"):
        raise Reject(400, "invalid_request", "author.type is neither agent nor human")
    parts = [known(message.get("text"), str, "text")]
    parts += [known(message.get(name), dict, name) for name in ("data", "context", "extensions")]
    extensions: dict[str, Any] = parts[3] or {}
    for name, content in extensions.items():
        known(content, dict, f"extensions.{name}")
    if not any(parts):
        raise Reject(400, "invalid_request", "the message has no content")
    message["author"] = {name: item for name, item in author.items() if name not in ("id", "name", "image")}
    return {**message, "role": "user"}


def content_of(message: dict[str, Any], target: list[str | None]) -> str:
    """Return what has to be the same in a retry: the members the specification knows, and where it was sent."""
    names = ("id", "text", "data", "context", "extensions")
    members = {name: message[name] for name in names if message.get(name) is not None}
    return json.dumps([target, members, message["author"]["type"]], sort_keys=True)


def normal(url: str) -> str:
    """Normalize an HTTPS URL as RFC 9449 section 4.3 advises, and drop its query and fragment."""
    parts = https_url(url.partition("#")[0], "htu")
    host = str(parts.hostname) + ("" if parts.port in (None, 443) else f":{parts.port}")

    def escape(match: re.Match[str]) -> str:
        char = chr(int(match[1], 16))
        return char if re.fullmatch(r"[A-Za-z0-9._~-]", char) else match[0].upper()

    return f"https://{host}" + (re.sub("%([0-9A-Fa-f]{2})", escape, parts.path) or "/")


class Company:
    """The Company's documents, Session checks and conversations."""

    def __init__(self, domain: str, https: Https) -> None:
        self.domain, self.https, self.identifier = domain, https, f"https://{domain.lower()}"
        self.lock = threading.Condition()
        self.cache: dict[str, tuple[float, dict[str, Any]]] = {}
        self.sessions: dict[tuple[str, str], tuple[str, str | None]] = {}
        self.conversations: dict[str, Conversation] = {}
        self.accepted: dict[tuple[Owner, str], Accepted] = {}
        self.jobs: queue.Queue[tuple[Conversation, str | None]] = queue.Queue()
        threading.Thread(target=self.work, daemon=True).start()

    def document(self) -> dict[str, Any]:
        """Return poppy.json."""
        poppy = {"type": "poppy", "endpoint": f"{self.identifier}/poppy/conversations"}
        organization = {"name": "Echo Company", "domain": self.domain}
        return {"protocol_version": VERSION, "organization": organization, "agent": {"protocols": [poppy]}}

    def work(self) -> None:
        """Do the Company Agent's work, one job after another: an echo, or (without text) the end of a handoff."""
        while True:
            conversation, text = self.jobs.get()
            with self.lock:
                if text is not None:
                    conversation.replies_due -= 1
                if not conversation.closed and text is not None:
                    conversation.say(text)
                elif conversation.handoff:
                    conversation.handoff = False
                    conversation.say("No one is available right now, so I will keep helping you.")
                conversation.settle()
                self.lock.notify_all()

    def fetch(self, url: str, fresh: bool = False) -> dict[str, Any]:
        """Fetch an agent's document without following redirects, or take it from the cache."""
        until, document = self.cache.get(url, (0.0, {}))
        if fresh or time.monotonic() >= until:
            answer: Answer = self.https.send("GET", url, {"Accept": "application/json"})
            if answer.status >= 500 or answer.status == 429:
                raise Unreachable(f"{url} answered {answer.status}")
            if answer.status != 200:
                raise Fault(f"{url} answered {answer.status}")
            document = answer.json(url)
            self.cache[url] = (time.monotonic() + CACHE_SECONDS, document)
        return document

    def key(self, client_id: str, kid: object) -> dict[str, Any]:
        """Find the key a delegation names in the client's key set (4.1), fetching the set again for an unknown one."""
        parts = https_url(client_id, "iss")
        if parts.path in ("", "/") or re.search(r"/\.\.?(/|$)", parts.path):
            raise Fault("iss is not a client_id URL")
        metadata = self.fetch(client_id)
        where = metadata.get("jwks_uri")
        if metadata.get("client_id") != client_id or https_url(where, "jwks_uri").hostname != parts.hostname:
            raise Fault("the client metadata is not about iss or keeps its keys on another domain")
        for fresh in (False, True):
            keys = [obj(item, "a key") for item in arr(self.fetch(str(where), fresh).get("keys"), "keys")]
            if len(found := [item for item in keys if item.get("kid") == kid]) == 1:
                return found[0]
        raise Fault("the key set does not have the delegation's key once")

    def claims(self, token: str) -> dict[str, Any]:
        """Verify the delegation and the signature of a Session JWT in the order of section 5.2."""
        try:
            header: dict[str, Any] = jwt.get_unverified_header(token)
            delegation = str(header.get("poppy_dlg"))
            outer: dict[str, Any] = jwt.get_unverified_header(delegation)
            iss = obj(json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "==")), "the payload").get("iss")
        except (jwt.PyJWTError, ValueError, IndexError) as error:
            raise Fault("no Session JWT with a delegation") from error
        if outer.get("alg") not in ("ES256", "PS384") or "crit" in outer or "crit" in header:
            raise Fault("the delegation has another alg, or there is a crit")
        grant = verify_jws(delegation, self.key(str(iss), outer.get("kid")), str(outer["alg"]))
        start, end, now = grant.get("iat"), grant.get("exp"), time.time()
        if outer.get("typ") != "poppy-delegation+jwt" or grant.get("iss") != iss or not grant.get("jti"):
            raise Fault("the delegation has another typ or iss, or no jti")
        if type(start) is not int or type(end) is not int or not start < end <= start + 86400:
            raise Fault("the delegation's times are not in order")
        if end <= now or start > now + WINDOW:
            raise Fault("the delegation is not valid now")
        jwk = obj(obj(grant.get("cnf"), "cnf").get("jwk"), "cnf.jwk")
        if header.get("alg") != "ES256" or header.get("typ") != "poppy-session+jwt":
            raise Fault("the Session JWT has another alg or typ")
        claims = verify_jws(token, jwk, "ES256")
        if header.get("kid") != thumbprint(jwk):
            raise Fault("kid is not the delegated key's thumbprint")
        return claims

    def verify(self, method: str, path: str, headers: Message) -> Owner:
        """Check the Session header and the version of a request (5.3, 3.4), and start or continue its Session."""
        tokens = headers.get_all("Poppy-Session", [])
        if len(tokens) != 1:
            raise Reject(400, "invalid_session", "not exactly one Poppy-Session header")
        if headers.get_all("Poppy-Version", []) != [VERSION]:
            raise Reject(400, "version_unsupported")
        access = headers.get("Authorization")
        try:
            claims = self.claims(tokens[0])
            self.check_claims(claims, method, path, access)
        except Fault as error:
            raise Reject(400, "invalid_session", str(error)) from error
        except Unreachable as error:
            later = Reject(503, "temporarily_unavailable", str(error))
            later.headers["Retry-After"] = "1"
            raise later from error
        if access:
            denied = Reject(401, "invalid_token")
            denied.headers["WWW-Authenticate"] = 'Bearer error="invalid_token"'
            raise denied
        client_id, sub, agent = str(claims["iss"]), str(claims["sub"]), claims.get("agent_id")
        with self.lock:
            if self.sessions.setdefault((client_id, str(claims["sid"])), (sub, agent)) != (sub, agent):
                raise Reject(400, "invalid_session", "the Session has another User or agent")
        return Owner(client_id, sub)

    def check_claims(self, claims: dict[str, Any], method: str, path: str, access: str | None) -> None:
        """Check the claims of a Session JWT against the request it came with (5.2, 5.3)."""
        if claims.get("aud") != self.identifier or claims.get("htm") != method:
            raise Fault("another aud or htm")
        if normal(str(claims.get("htu"))) != normal(self.identifier + path):
            raise Fault("another htu")
        if type(claims.get("iat")) is not int or abs(time.time() - claims["iat"]) > WINDOW:
            raise Fault("iat is outside the window")
        if not ID_PATTERN.fullmatch(str(claims.get("sid", ""))):
            raise Fault("sid is missing or not an ID")
        texts = [claims.get(name) for name in ("sid", "sub", "jti")]
        texts += [claims["agent_id"]] if "agent_id" in claims else []
        if not all(isinstance(item, str) and 0 < len(item) <= 256 for item in texts):
            raise Fault("sid, sub, jti or agent_id is missing or not a string")
        digest = b64url(hashlib.sha256(access.partition(" ")[2].strip().encode()).digest()) if access else None
        if claims.get("ath") != digest or ("ath" in claims and not access):
            raise Fault("ath does not fit the access token")

    def find(self, owner: Owner, conversation_id: str) -> Conversation:
        """Return the owner's conversation or refuse."""
        found = self.conversations.get(good_id(conversation_id, "the Conversation ID"))
        if found is None or found.owner != owner:
            raise Reject(404, "conversation_not_found")
        return found

    def position(self, conversation: Conversation, cursor: str | None) -> int:
        """Return the index of the first event after the cursor."""
        if cursor is None:
            return 0
        for index, event in enumerate(conversation.events):
            if event["id"] == cursor:
                return index + 1
        raise Reject(400, "invalid_cursor")

    def read(self, conversation: Conversation, cursor: str | None, wait: int, posted: bool = False) -> dict[str, Any]:
        """Return the events after the cursor, once there are any or the wait is over.

        After a POST the message itself and the `working` it causes do not count, but being settled does.
        """
        start = self.position(conversation, cursor)

        def ready() -> bool:
            after = conversation.events[start:]
            if not posted:
                return bool(after)
            return conversation.status in ("idle", "closed") or any(not caused_by_message(event) for event in after)

        self.lock.wait_for(ready, min(wait, MAX_WAIT))
        events = [without_extensions(event) for event in conversation.events[start : start + PAGE]]
        last = events[-1]["id"] if events else cursor
        more = len(conversation.events) > start + PAGE
        return conversation.state() | {"events": events, "cursor": last, "has_more": more}

    def start(self, owner: Owner, body: dict[str, Any], wait: int | None, cursor: str | None) -> dict[str, Any]:
        """Start a conversation, or a Direct Conversation when a parent is named (8.3, 8.10)."""
        parent_id, event_id = body.get("parent_conversation_id"), body.get("user_requested_event_id")
        message = check_message(body["message"]) if body.get("message") is not None else None
        if event_id is not None:
            good_id(event_id, "user_requested_event_id")
        if (message is None and event_id is None) or (event_id is not None and parent_id is None):
            raise Reject(400, "invalid_request", "no message, or an acceptance without its parent")
        parent = self.find(owner, parent_id) if parent_id is not None else None
        if event_id is not None or message is None:
            raise Reject(400, "invalid_request", "this Company never asks for the User")
        content = content_of(message, ["start", parent_id])
        if (before := self.repeated(owner, message, content)) is not None:
            return self.answer(before, wait, cursor)
        if wait is not None and cursor is not None:
            raise Reject(400, "invalid_cursor", "a new conversation has no cursor yet")
        if parent:
            if parent.parent:
                raise Reject(400, "invalid_request", "the parent is a Direct Conversation")
            self.open_for_messages(parent)
        conversation = Conversation(new_id("cnv_"), owner, parent)
        self.conversations[conversation.id] = conversation
        if parent:
            parent.direct = conversation
            parent.add("direct_opened", conversation_id=conversation.id)
        return self.answer(self.record(conversation, message, content), wait, None)

    def message(
        self, conversation: Conversation, body: dict[str, Any], wait: int | None, cursor: str | None
    ) -> dict[str, Any]:
        """Accept one more message (8.3)."""
        message = check_message(body.get("message") or {})
        content = content_of(message, ["message", conversation.id])
        if wait is not None:
            self.position(conversation, cursor)
        if (before := self.repeated(conversation.owner, message, content)) is not None:
            return self.answer(before, wait, cursor)
        self.open_for_messages(conversation)
        return self.answer(self.record(conversation, message, content), wait, cursor)

    def open_for_messages(self, conversation: Conversation) -> None:
        """Refuse messages, handoffs and Direct Conversations where there can be none."""
        if conversation.closed:
            raise Reject(409, "conversation_closed")
        if conversation.direct:
            raise Reject(409, "direct_conversation_open", conversation_id=conversation.direct.id)

    def repeated(self, owner: Owner, message: dict[str, Any], content: str) -> Accepted | None:
        """Return what was answered to a message with this ID before, unless its content was different."""
        before = self.accepted.get((owner, message["id"]))
        if before and before.content != content:
            raise Reject(409, "message_id_conflict")
        return before

    def record(self, conversation: Conversation, message: dict[str, Any], content: str) -> Accepted:
        """Record an accepted message and have it answered, unless it only changes the context."""
        conversation.add("message", message=message)
        if any(message.get(name) for name in ("text", "data", "extensions")):
            data = json.dumps(message["data"]) if message.get("data") else "(nothing I can read)"
            text = message.get("text") or data
            conversation.replies_due += 1
            self.jobs.put((conversation, f"You said: {text}"))
        conversation.settle()
        self.lock.notify_all()
        accepted = Accepted(content, conversation, conversation.state())
        self.accepted[conversation.owner, message["id"]] = accepted
        return accepted

    def answer(self, accepted: Accepted, wait: int | None, cursor: str | None) -> dict[str, Any]:
        """Answer an accepted message, with a read of the events when it asks for one."""
        return accepted.answer if wait is None else self.read(accepted.conversation, cursor, wait, posted=True)

    def handoff(self, conversation: Conversation) -> dict[str, Any]:
        """Queue for a person, who is never available (8.9)."""
        self.open_for_messages(conversation)
        if not conversation.handoff:
            conversation.handoff = True
            conversation.settle()
            self.jobs.put((conversation, None))
            self.lock.notify_all()
        return conversation.state()

    def handle(
        self, method: str, target: str, headers: Message, data: bytes
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Answer one request with a status, a JSON body and more headers."""
        path, _, query = target.partition("?")
        route = ROUTE.fullmatch(path)
        if headers.get("Host", "").partition(":")[0].lower() != self.domain.lower():
            return 421, {}, {}
        if path == "/.well-known/poppy.json" and method == "GET":
            return 200, self.document(), {"Cache-Control": "max-age=60"}
        if not route:
            return 404, {}, {}
        if method != ("GET" if route[2] == "events" else "POST"):
            return 405, {}, {"Allow": "GET" if route[2] == "events" else "POST"}
        try:
            if len(data) > MAX_BODY:
                raise Reject(413, "invalid_request", "the body is too large")
            owner = self.verify(method, path, headers)
            return self.route(owner, route[1], route[2], parse_qs(query, keep_blank_values=True), headers, data)
        except Reject as error:
            return error.status, error.body, error.headers

    def route(
        self,
        owner: Owner,
        name: str | None,
        action: str | None,
        query: dict[str, list[str]],
        headers: Message,
        data: bytes,
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Answer one verified request on the conversations endpoint."""
        waits, cursors = query.get("wait", []), query.get("cursor", [])
        if action == "events" and headers.get("Last-Event-ID"):
            cursors = [str(headers["Last-Event-ID"])]
        body: dict[str, Any] = {}
        if action not in ("handoff", "close"):
            if len(waits) > 1 or not all(re.fullmatch("[0-9]{1,9}", item) for item in waits):
                raise Reject(400, "invalid_request", "wait is not a whole number of seconds")
            if len(cursors) > 1 or not all(ID_PATTERN.fullmatch(item) for item in cursors):
                raise Reject(400, "invalid_cursor")
        if action != "events" and (data or action not in ("handoff", "close")):
            if headers.get_content_type() != "application/json":
                raise Reject(400, "invalid_request", "the body is not application/json")
            try:
                body = obj(json.loads(data), "the body")
            except (Fault, ValueError) as error:
                raise Reject(400, "invalid_request", "the body is not a JSON object") from error
        wait, cursor = (int(waits[0]) if waits else None), (cursors[0] if cursors else None)
        with self.lock:
            if name is None:
                return 201, self.start(owner, body, wait, cursor), {}
            conversation = self.find(owner, name)
            if action == "messages":
                return 202, self.message(conversation, body, wait, cursor), {}
            if action == "events":
                return 200, self.read(conversation, cursor, wait or 0), {}
            if action == "handoff":
                return 202, self.handoff(conversation), {}
            conversation.close()
            self.lock.notify_all()
            return 200, conversation.state(), {}


def caused_by_message(event: dict[str, Any]) -> bool:
    """Tell whether an event comes from the agent's own message."""
    return event.get("message", {}).get("role") == "user" or event.get("status") == "working"


def without_extensions(event: dict[str, Any]) -> dict[str, Any]:
    """Return an event without extension content, because this Company uses no extension (8.4)."""
    if "extensions" not in event.get("message", {}):
        return event
    return {**event, "message": {name: item for name, item in event["message"].items() if name != "extensions"}}


def handler(company: Company) -> type[http.server.BaseHTTPRequestHandler]:
    """Make the HTTP request handler of a Company."""

    class Handler(http.server.BaseHTTPRequestHandler):
        """Passes requests to the Company."""

        protocol_version = "HTTP/1.1"

        def answer(self) -> None:
            """Answer one request."""
            length = self.headers.get("Content-Length", "0")
            if "Transfer-Encoding" in self.headers or not re.fullmatch("[0-9]{1,9}", length) or int(length) > MAX_BODY:
                self.close_connection = True
            data = self.rfile.read(min(int(length), MAX_BODY + 1)) if length.isdigit() else b""
            status, body, more = company.handle(self.command, self.path, self.headers, data)
            content = json.dumps(body, ensure_ascii=False).encode()
            self.send_response(status)
            fixed = {"Content-Type": "application/json", "Content-Length": str(len(content))}
            for name, value in ({"Cache-Control": "no-store"} | fixed | more).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    return Handler


def main() -> int:
    """Serve until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--domain", "--listen", "--tls-cert", "--tls-key"):
        parser.add_argument(name, required=True)
    parser.add_argument("--ca-file")
    parser.add_argument("--resolve", action="append", default=[], metavar="HOST:PORT=ADDRESS:PORT")
    options = parser.parse_args()
    company = Company(options.domain, Https(options.ca_file, options.resolve))
    server = Server(options.listen, options.tls_cert, options.tls_key, handler(company))
    print(f"port {server.server_address[1]}\nready", flush=True)
    server.serve_forever()
    return 0


if __name__ == "__main__":
    sys.exit(main())
