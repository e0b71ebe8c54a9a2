"""A Personal Agent written from the specification alone: discovers a Company, talks to it and probes its checks."""

from __future__ import annotations

import argparse
import http.server
import json
import os
import re
import sys
import threading
import time
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import urljoin

import jwt
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec
from jwt.algorithms import ECAlgorithm
from second_wire import ID_PATTERN, VERSION, Answer, Fault, Https, Server, Unreachable, arr, https_url, new_id, obj
from second_wire import thumbprint as key_thumbprint

WELL_KNOWN = "/.well-known/poppy.json"


def emit(**members: Any) -> None:
    """Print one JSON object on a line of its own."""
    print(json.dumps(members, ensure_ascii=False), flush=True)


def expect(condition: object, message: str) -> None:
    """Fail with the message unless the condition holds."""
    if not condition:
        raise Fault(message)


def public_jwk(key: ec.EllipticCurvePrivateKey) -> dict[str, Any]:
    """Return the public half of a key as a JWK."""
    jwk = obj(ECAlgorithm.to_jwk(key.public_key(), as_dict=True), "the key")
    return {name: jwk[name] for name in ("kty", "crv", "x", "y")}


class Identity:
    """The Personal Agent's client_id and the key in its key set."""

    def __init__(self, client_id: str, key_file: str | None) -> None:
        self.client_id, self.host = client_id, https_url(client_id, "--client-id").netloc
        if key_file and os.path.exists(key_file):
            with open(key_file, "rb") as stream:
                loaded = serialization.load_pem_private_key(stream.read(), None)
            expect(isinstance(loaded, ec.EllipticCurvePrivateKey), "--key-file must hold a P-256 key")
            assert isinstance(loaded, ec.EllipticCurvePrivateKey)
            self.key = loaded
        else:
            self.key = ec.generate_private_key(ec.SECP256R1())
            if key_file:
                coding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
                with open(os.open(key_file, os.O_WRONLY | os.O_CREAT, 0o600), "wb") as stream:
                    stream.write(self.key.private_bytes(coding, form, serialization.NoEncryption()))
        self.kid = key_thumbprint(public_jwk(self.key))

    def documents(self) -> dict[str, dict[str, Any]]:
        """Return the documents to publish, by path."""
        metadata = {
            "client_id": self.client_id,
            "client_name": "Second Opinion",
            "jwks_uri": f"https://{self.host}/jwks.json",
            "redirect_uris": [f"https://{self.host}/oauth/callback"],
            "token_endpoint_auth_method": "private_key_jwt",
        }
        keys = {"keys": [{**public_jwk(self.key), "kid": self.kid, "use": "sig", "alg": "ES256"}]}
        return {https_url(self.client_id, "--client-id").path: metadata, "/jwks.json": keys}

    def delegate(self, key: ec.EllipticCurvePrivateKey, start: int = 0, lifetime: int = 3600) -> str:
        """Sign a delegation for the key, from start seconds after now (5.2)."""
        now = int(time.time()) + start
        claims = {"iss": self.client_id, "cnf": {"jwk": public_jwk(key)}, "iat": now, "exp": now + lifetime}
        headers = {"typ": "poppy-delegation+jwt", "kid": self.kid}
        return jwt.encode({**claims, "jti": new_id()}, self.key, "ES256", headers=headers)


@dataclass
class User:
    """One User ID at one Company with the only delegated key that signs for it."""

    identity: Identity
    company: str
    sub: str = field(default_factory=lambda: new_id("usr_"))
    key: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))
    delegation: str = ""
    renew_at: float = 0

    def session_jwt(self, sid: str, method: str, url: str, **changes: Any) -> str:
        """Sign a Session JWT for one request; changes replace claims, or `typ`, `kid` and `poppy_dlg` of the header.

        Without a delegation (None) the key of the key set signs instead, which a Company has to refuse.
        """
        if time.time() >= self.renew_at:
            self.delegation, self.renew_at = self.identity.delegate(self.key), time.time() + 3000
        headers: dict[str, Any] = {"typ": changes.pop("typ", "poppy-session+jwt")}
        headers["kid"] = changes.pop("kid", key_thumbprint(public_jwk(self.key)))
        headers["poppy_dlg"], key = changes.pop("poppy_dlg", self.delegation), self.key
        if headers["poppy_dlg"] is None:
            headers, key = {"typ": "poppy-session+jwt", "kid": self.identity.kid}, self.identity.key
        claims: dict[str, Any] = {"iss": self.identity.client_id, "aud": self.company, "sid": sid, "sub": self.sub}
        claims |= {"htm": method, "htu": url.partition("?")[0], "iat": int(time.time()), "jti": new_id()}
        return jwt.encode({**claims, **changes}, key, "ES256", headers=headers)


def publish(identity: Identity, listen: str, cert: str, key: str) -> int:
    """Serve the client metadata and the key set, and return the port."""
    documents = {path: json.dumps(value).encode() for path, value in identity.documents().items()}

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers GET for the published documents only."""

        def do_GET(self) -> None:
            """Send one document."""
            body = documents.get(self.path)
            self.send_response(200 if body else 404)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, format: str, *args: Any) -> None:
            """Keep quiet."""

    server = Server(listen, cert, key, Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return int(server.server_address[1])


def discover(https: Https, domain: str) -> tuple[str, str | None, str]:
    """Find a Company as section 3 says, and return its identifier, its issuer and its conversation endpoint."""
    url = f"https://{domain.lower()}{WELL_KNOWN}"
    answer = https.send("GET", url)
    for _ in range(5):
        if answer.status not in (301, 302, 303, 307, 308):
            break
        url = urljoin(url, answer.headers.get("Location", ""))
        https_url(url, "the redirect")
        answer = https.send("GET", url)
    parts = https_url(url, "the document's URL")
    expect(answer.status == 200, f"poppy.json answered {answer.status}")
    expect(parts.path == WELL_KNOWN and "?" not in url, "poppy.json was not served at the well-known path")
    expect(parts.port in (None, 443), "poppy.json was not served on the HTTPS port")
    host = str(parts.hostname)
    first = document = check_document(answer.json("poppy.json"), host)
    if document["protocol_version"] != VERSION:
        other = obj(document.get("supported_versions", {}), "supported_versions").get(VERSION)
        expect(https_url(other, "no compatible version: its URL").hostname == host, "the version is on another host")
        answer = https.send("GET", str(other))
        expect(answer.status == 200, f"the document for {VERSION} answered {answer.status}")
        document = check_document(answer.json("the version's document"), host)
        expect(document["protocol_version"] == VERSION, "the document has another version than it is listed under")
        expect("supported_versions" not in document, "the version's document has supported_versions")
    resource = f"https://{host}"
    protocols = arr(obj(document.get("agent", {}), "agent").get("protocols", []), "agent.protocols")
    poppy = [item for item in (obj(item, "a protocol") for item in protocols) if item.get("type") == "poppy"]
    expect(poppy, "the Company offers no poppy conversations")
    endpoint = str(poppy[0].get("endpoint"))
    https_url(endpoint, "the conversation endpoint")
    issuer = find_issuer(https, resource, obj(document.get("auth", {}), "auth"))
    if first is not document:
        same = find_issuer(https, resource, obj(first.get("auth", {}), "auth"))
        expect(same == issuer, "the versions' documents select different issuers")
    disabled = obj(document.get("auth", {}), "auth").get("disabled") is True
    signed_in = any(item.get("access") == "signed_in" for item in poppy)
    expect(not signed_in or (issuer and not disabled), "signed_in access without sign-in")
    return issuer or resource, issuer, endpoint


def check_document(document: dict[str, Any], host: str) -> dict[str, Any]:
    """Check the required fields of poppy.json and that it speaks for the host that served it (3, 3.1)."""
    expect(re.fullmatch(r"\d+\.\d+", str(document.get("protocol_version"))), "protocol_version is not major.minor")
    organization = obj(document.get("organization"), "organization")
    expect(isinstance(organization.get("name"), str), "organization.name is missing")
    expect(str(organization.get("domain")).lower() == host, "organization.domain is not the host that served it")
    expect(any(name in document for name in ("agent", "apis", "web")), "the document offers no channel")
    return document


def find_issuer(https: Https, resource: str, auth: dict[str, Any]) -> str | None:
    """Find and verify the issuer from the domain's protected resource metadata (3.2)."""
    answer = https.send("GET", f"{resource}/.well-known/oauth-protected-resource")
    servers: list[Any] = []
    if answer.status != 404:
        expect(answer.status == 200, f"the protected resource metadata answered {answer.status}")
        metadata = answer.json("the protected resource metadata")
        expect(lower_host(metadata.get("resource")) == resource, "the metadata's resource is not the domain")
        servers = arr(metadata.get("authorization_servers", []), "authorization_servers")
    named = auth.get("issuer")
    if not servers:
        expect(named is None, "auth.issuer is set, but the domain has no authorization server")
        return None
    expect(named in servers if named is not None else len(servers) == 1, "auth.issuer does not select a listed server")
    issuer = str(named or servers[0])
    parts = https_url(issuer, "the issuer")
    expect("?" not in issuer, "the issuer has a query")
    where = f"https://{parts.netloc}/.well-known/oauth-authorization-server{parts.path.rstrip('/')}"
    answer = https.send("GET", where)
    expect(answer.status == 200, f"the issuer's metadata answered {answer.status}")
    metadata = answer.json("the issuer's metadata")
    expect(metadata.get("issuer") == issuer, "the metadata names another issuer")
    listed = [lower_host(item) for item in arr(metadata.get("protected_resources"), "protected_resources")]
    expect(resource in listed, "the issuer does not list the domain")
    grants = arr(metadata.get("grant_types_supported"), "grant_types_supported")
    expect("refresh_token" in grants, "grant_types_supported lacks refresh_token")
    needed = ["token_endpoint", "revocation_endpoint"]
    needed += ["authorization_endpoint"] if "authorization_code" in grants else []
    needed += ["device_authorization_endpoint"] if "urn:ietf:params:oauth:grant-type:device_code" in grants else []
    for name in needed:
        https_url(metadata.get(name), name)
    return issuer


def lower_host(value: object) -> str:
    """Lowercase the scheme and host of a URL and leave the rest as it is."""
    head, mark, rest = str(value).partition("://")
    host, slash, path = rest.partition("/")
    return head.lower() + mark + host.lower() + slash + path


@dataclass
class Talk:
    """One User's conversation at a Company."""

    https: Https
    user: User
    endpoint: str
    sid: str = field(default_factory=new_id)
    conversation: str = ""
    cursor: str | None = None
    state: str = "working"
    handled: set[str] = field(default_factory=lambda: set[str]())
    events: list[dict[str, Any]] = field(default_factory=lambda: list[dict[str, Any]]())
    skipped: int = 0

    def once(
        self,
        method: str,
        path: str,
        body: dict[str, Any] | None = None,
        wait: int = 0,
        version: str | None = VERSION,
        **changes: Any,
    ) -> Answer:
        """Send one request with a fresh Session JWT, again only when the Company limits the rate."""
        url = self.endpoint + path
        user, sid = changes.pop("user", self.user), changes.pop("sid", self.sid)
        data = None if body is None else json.dumps(body).encode()
        for attempt in range(4):
            headers = {"Poppy-Session": user.session_jwt(sid, method, url, **changes), "Accept": "application/json"}
            headers |= {"Poppy-Version": version} if version else {}
            headers |= {} if data is None else {"Content-Type": "application/json"}
            answer = self.https.send(method, url, headers, data, wait)
            if answer.status != 429:
                return answer
            pause(answer, attempt)
        raise Fault("the Company keeps limiting the rate")

    def call(self, method: str, path: str, body: dict[str, Any] | None = None, wait: int = 0) -> Answer:
        """Send a request, again after a network failure or 5xx, and once in a new Session after session_ended."""
        renewed = False
        for attempt in range(4):
            try:
                answer = self.once(method, path, body, wait)
            except Unreachable:
                if attempt == 3:
                    raise
                time.sleep(0.2 * 2**attempt)
                continue
            if answer.status == 400 and error_of(answer) == "session_ended" and not renewed:
                self.sid, renewed = new_id(), True
            elif answer.status >= 500:
                pause(answer, attempt)
            else:
                return answer
        raise Fault(f"{method} {path or '/'} kept failing")

    def take(self, answer: Answer, status: int, events: bool = False) -> dict[str, Any]:
        """Check a successful response and handle its events in order, each once."""
        expect(answer.status == status, f"expected {status}, got {answer.status} {error_of(answer)}")
        body = answer.json("the response")
        expect(isinstance(body.get("status"), str) and isinstance(body.get("responder"), str), "no status or responder")
        self.state = str(body["status"])
        if not events:
            return body
        expect(body.get("conversation_id") == self.conversation, "the read names another conversation")
        expect(isinstance(body.get("has_more"), bool), "has_more is missing")
        items = [obj(item, "an event") for item in arr(body.get("events"), "events")]
        for event in items:
            expect(isinstance(event.get("type"), str) and isinstance(event.get("created_at"), str), "incomplete event")
            expect(ID_PATTERN.fullmatch(str(event.get("id"))), "an event ID has other characters")
            if event["id"] in self.handled:
                self.skipped += 1
                continue
            self.handled.add(event["id"])
            self.events.append(event)
        expect(body.get("cursor") == (items[-1]["id"] if items else self.cursor), "cursor is not the last event")
        self.cursor = body.get("cursor") or self.cursor
        return body

    def read(self, wait: int = 0) -> dict[str, Any]:
        """Read the events after the saved cursor, and from the beginning when the Company no longer has it."""
        query = "&".join(([f"cursor={self.cursor}"] if self.cursor else []) + ([f"wait={wait}"] if wait else []))
        answer = self.call("GET", f"/{self.conversation}/events" + (f"?{query}" if query else ""), wait=wait)
        if answer.status == 410 and error_of(answer) == "cursor_expired" and self.cursor:
            self.cursor = None
            return self.read(wait)
        return self.take(answer, 200, events=True)

    def until_idle(self, seconds: float = 60) -> None:
        """Read until the Company has no work in progress."""
        end = time.monotonic() + seconds
        more = False
        while more or self.state not in ("idle", "closed"):
            expect(time.monotonic() < end, f"still {self.state} after {seconds:.0f} seconds")
            started, before = time.monotonic(), len(self.events)
            more = self.read(wait=10)["has_more"]
            if len(self.events) == before and time.monotonic() - started < 0.2:
                time.sleep(0.2)
        while self.read()["has_more"]:
            pass

    def replies(self, start: int) -> list[str]:
        """Return the texts of the Company's messages among the events from an index on."""
        messages = [obj(event.get("message"), "message") for event in self.events[start:] if event["type"] == "message"]
        ours = [item for item in messages if item.get("role") == "company"]
        for item in ours:
            expect(obj(item.get("author"), "author").get("type") in ("agent", "human"), "a message without author.type")
        return [str(item.get("text", "")) for item in ours]


def pause(answer: Answer, attempt: int) -> None:
    """Wait as long as the response asks, or a little when it does not; give up when it asks for too long."""
    after = answer.headers.get("Retry-After", "").strip()
    seconds = int(after) if after.isdigit() else 0.2 * 2**attempt
    if after and not after.isdigit():
        seconds = parsedate_to_datetime(after).timestamp() - time.time()
    expect(seconds <= 60, f"the Company asks to wait {seconds:.0f} seconds")
    time.sleep(max(seconds, 0))


def error_of(answer: Answer) -> str:
    """Return the error code of a response, if it has one."""
    try:
        return str(answer.json("the error").get("error", ""))
    except Fault:
        return ""


def refused(step: str, answer: Answer, status: int, error: str) -> None:
    """Report a probe that has to be refused in one particular way."""
    got = error_of(answer)
    expect((answer.status, got) == (status, error), f"{step}: expected {status} {error}, got {answer.status} {got}")
    emit(step=step, ok=True, status=status, error=error)


def message(text: str, **more: Any) -> dict[str, Any]:
    """Make a message body."""
    return {"message": {"id": new_id("msg_"), "author": {"type": "agent"}, "text": text, **more}}


def probe_session(talk: Talk, identity: Identity) -> None:
    """Send requests whose Session header or version has one fault each."""
    body, key = message("Please refuse this."), talk.user.key
    refused("missing_version", talk.once("POST", "", body, version=None), 400, "version_unsupported")
    refused("other_version", talk.once("POST", "", body, version="99.0"), 400, "version_unsupported")
    headers = {"Poppy-Version": VERSION, "Content-Type": "application/json"}
    answer = talk.https.send("POST", talk.endpoint, headers, json.dumps(body).encode())
    refused("missing_session", answer, 400, "invalid_session")
    faults: dict[str, dict[str, Any]] = {
        "wrong_aud": {"aud": "https://someone-else.example"},
        "aud_list": {"aud": [talk.user.company]},
        "wrong_htu": {"htu": talk.endpoint + "/elsewhere"},
        "wrong_htm": {"htm": "GET"},
        "old_iat": {"iat": int(time.time()) - 3600},
        "ath_without_token": {"ath": "A" * 43},
        "expired_delegation": {"poppy_dlg": identity.delegate(key, start=-7200)},
        "long_delegation": {"poppy_dlg": identity.delegate(key, start=-60, lifetime=86401)},
        "other_key_delegation": {"poppy_dlg": identity.delegate(ec.generate_private_key(ec.SECP256R1()))},
        "wrong_kid": {"kid": identity.kid},
        "wrong_typ": {"typ": "JWT"},
        "no_delegation": {"poppy_dlg": None},
    }
    for step, changes in faults.items():
        refused(step, talk.once("POST", "", body, **changes), 400, "invalid_session")


def converse(talk: Talk, question: str, stranger: User) -> str:
    """Hold one conversation from start to close, with the probes in between, and return the first reply."""
    first = message(question, context={"locale": "en-US", "time_zone": "Europe/Berlin", "user_available": True})
    body = talk.take(talk.call("POST", "", first), 201)
    talk.conversation = str(body.get("conversation_id"))
    expect(ID_PATTERN.fullmatch(talk.conversation), "the Conversation ID has other characters")
    base = "/" + talk.conversation
    emit(step="start", ok=True, conversation_id=talk.conversation, status=talk.state)
    retry = talk.take(talk.call("POST", "", first), 201)
    expect(retry.get("conversation_id") == talk.conversation, "the retry started another conversation")
    emit(step="retry_start", ok=True, conversation_id=talk.conversation)
    changed = {"message": {**first["message"], "text": question + " (changed)"}}
    refused("changed_start", talk.once("POST", "", changed), 409, "message_id_conflict")
    talk.state = "working"
    talk.until_idle()
    own = [item["message"] for item in talk.events if item["type"] == "message" and item["message"]["role"] == "user"]
    expect([item["id"] for item in own] == [first["message"]["id"]], "the retried message was not recorded once")
    sent = {name: value for name, value in own[0].items() if name != "role"}
    expect(sent == first["message"], "the message was not recorded as it was sent")
    replies = talk.replies(0)
    expect(replies, "the Company did not reply")
    emit(step="read", ok=True, events=len(talk.events), replies=replies)
    last, before, talk.cursor, talk.skipped = talk.cursor, len(talk.events), None, 0
    while talk.read()["has_more"]:
        pass
    expect(len(talk.events) == before and talk.skipped == before and talk.cursor == last, "a second read differs")
    emit(step="read_again", ok=True, skipped=talk.skipped)
    second = message("And another question.")
    answer = talk.call("POST", f"{base}/messages?cursor={talk.cursor}&wait=10", second, wait=10)
    talk.take(answer, 202, events=True)
    at_once = len(talk.replies(before))
    talk.until_idle()
    expect(talk.replies(before), "the Company did not reply to the second message")
    emit(step="wait_in_post", ok=True, reply_in_response=bool(at_once), replies=talk.replies(before))
    old, talk.sid = talk.sid, new_id()
    talk.take(talk.call("GET", f"{base}/events"), 200)
    emit(step="new_session_continues", ok=True)
    answer = talk.once("GET", f"{base}/events", user=stranger, sid=old)
    refused("sub_changed_in_session", answer, 400, "invalid_session")
    answer = talk.once("GET", f"{base}/events", user=stranger, sid=new_id())
    refused("other_user", answer, 404, "conversation_not_found")
    unknown = "/" + new_id("cnv_unknown_")
    refused("unknown_read", talk.once("GET", f"{unknown}/events"), 404, "conversation_not_found")
    refused("unknown_message", talk.once("POST", f"{unknown}/messages", message("Hi")), 404, "conversation_not_found")
    refused("unknown_cursor", talk.once("GET", f"{base}/events?cursor=nosuchevent"), 400, "invalid_cursor")
    refused("bad_wait", talk.once("GET", f"{base}/events?wait=soon"), 400, "invalid_request")
    empty = {"message": {"id": new_id("msg_"), "author": {"type": "agent"}}}
    refused("empty_message", talk.once("POST", f"{base}/messages", empty), 400, "invalid_request")
    talk.take(talk.call("POST", f"{base}/handoff", {}), 202)
    emit(step="handoff", ok=True, status=talk.state)
    closed = talk.take(talk.call("POST", f"{base}/close", {}), 200)
    expect(closed["status"] == "closed", "the conversation is not closed")
    again = talk.take(talk.call("POST", f"{base}/close", {}), 200)
    expect((again["status"], again["responder"]) == ("closed", closed["responder"]), "closing again differs")
    emit(step="close", ok=True)
    refused("message_after_close", talk.once("POST", f"{base}/messages", message("Hi")), 409, "conversation_closed")
    refused("handoff_after_close", talk.once("POST", f"{base}/handoff", {}), 409, "conversation_closed")
    answer = talk.call("POST", f"{base}/messages", second)
    expect(answer.status == 202, f"a retry after closing got {answer.status} {error_of(answer)}")
    emit(step="retry_after_close", ok=True)
    while talk.read()["has_more"]:
        pass
    states = [item["status"] for item in talk.events if item["type"] == "state"]
    expect(states.count("closed") == 1 and states[-1] == "closed", "not exactly one closing event at the end")
    emit(step="read_after_close", ok=True, events=len(talk.events))
    return replies[0]


def main() -> int:
    """Run all steps and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("--domain", "--question", "--client-id", "--serve", "--tls-cert", "--tls-key"):
        parser.add_argument(name, required=True)
    parser.add_argument("--ca-file")
    parser.add_argument("--key-file", help="PEM file that keeps the key of the key set; made when missing")
    parser.add_argument("--resolve", action="append", default=[], metavar="HOST:PORT=ADDRESS:PORT")
    parser.add_argument("--discover-only", action="store_true", help="stop after discovery")
    options = parser.parse_args()
    try:
        identity = Identity(options.client_id, options.key_file)
        https = Https(options.ca_file, options.resolve)
        emit(step="serve", ok=True, port=publish(identity, options.serve, options.tls_cert, options.tls_key))
        company, issuer, endpoint = discover(https, options.domain)
        emit(step="discover", ok=True, company=company, issuer=issuer, endpoint=endpoint)
        if options.discover_only:
            emit(ok=True)
            return 0
        talk = Talk(https, User(identity, company), endpoint)
        probe_session(talk, identity)
        reply = converse(talk, options.question, User(identity, company))
        emit(ok=True, conversation_id=talk.conversation, reply=reply)
        return 0
    except (Fault, Unreachable, OSError, LookupError, TypeError, ValueError) as error:
        emit(ok=False, error=f"{type(error).__name__}: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
