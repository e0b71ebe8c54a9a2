"""The second-opinion agent and Company talk to each other over TLS on the loopback interface."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jwt
import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from agent import Identity, Talk, User, error_of, message, public_jwk, publish  # noqa: E402
from company import Company, handler  # noqa: E402
from second_wire import Answer, Https, Server, new_id, thumbprint  # noqa: E402

CLIENT, OTHER, SHOP = "https://agent2.example/agent.json", "https://agent3.example/agent.json", "shop.example"


class Place:
    """A certificate authority's file and the certificates it signed."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.authority = folder, trustme.CA()
        self.ca_file = str(folder / "ca.pem")
        self.authority.cert_pem.write_to_path(self.ca_file)

    def cert(self, *hosts: str) -> str:
        """Return a PEM file with a certificate for the hosts and its key."""
        path = str(self.folder / f"{'-'.join(hosts)}.pem")
        self.authority.issue_cert(*hosts).private_key_and_cert_chain_pem.write_to_path(path)
        return path

    def publish(self, identity: Identity) -> str:
        """Publish an agent's documents and return how to reach them."""
        cert = self.cert(identity.host)
        return f"{identity.host}:443=127.0.0.1:{publish(identity, '127.0.0.1:0', cert, cert)}"

    def serve(self, company: Company) -> str:
        """Serve a Company in this process and return how to reach it."""
        cert = self.cert(company.domain)
        server = Server("127.0.0.1:0", cert, cert, handler(company))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return f"{company.domain}:443=127.0.0.1:{server.server_address[1]}"


@pytest.fixture(name="place", scope="module")
def make_place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    """Make one certificate authority for all tests."""
    return Place(tmp_path_factory.mktemp("tls"))


class World:
    """One Company and two Personal Agents in this process."""

    def __init__(self, place: Place) -> None:
        self.identity, self.other = Identity(CLIENT, None), Identity(OTHER, None)
        agents = [place.publish(self.identity), place.publish(self.other)]
        shop = place.serve(Company(SHOP, Https(place.ca_file, agents)))
        self.https = Https(place.ca_file, [shop])

    def talk(self, identity: Identity | None = None) -> Talk:
        """Return a new User's talk with the Company."""
        user = User(identity or self.identity, f"https://{SHOP}")
        return Talk(self.https, user, f"https://{SHOP}/poppy/conversations")

    def started(self) -> Talk:
        """Return a talk whose first message was answered."""
        talk = self.talk()
        talk.conversation = str(talk.take(talk.call("POST", "", message("Hello")), 201)["conversation_id"])
        talk.until_idle()
        return talk


@pytest.fixture(name="world")
def make_world(place: Place) -> World:
    """Make a Company and two Personal Agents."""
    return World(place)


@pytest.fixture(name="free_port")
def find_free_port() -> int:
    """Find a port for the one side that has to be known before it starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def run_agent(place: Place, domain: str, resolve: str, serve: str, *more: str) -> tuple[int, list[dict[str, Any]]]:
    """Run the agent's command and return its exit code and the objects it printed."""
    cert = place.cert("agent2.example")
    command = [sys.executable, str(HERE / "agent.py"), "--domain", domain, "--question", "Where is my order?"]
    command += ["--client-id", CLIENT, "--ca-file", place.ca_file, "--resolve", resolve, "--serve", serve]
    command += ["--tls-cert", cert, "--tls-key", cert, *more]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.stderr == ""
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture(name="shop_command")
def run_company(place: Place, free_port: int) -> Iterator[tuple[str, str]]:
    """Run the Company's command, and return how to reach it and where the agent has to serve."""
    cert, agent = place.cert(SHOP), f"127.0.0.1:{free_port}"
    command = [sys.executable, str(HERE / "company.py"), "--domain", SHOP, "--listen", "127.0.0.1:0"]
    command += ["--tls-cert", cert, "--tls-key", cert, "--ca-file", place.ca_file]
    command += ["--resolve", f"agent2.example:443={agent}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        port = process.stdout.readline().split()[1]
        assert process.stdout.readline() == "ready\n"
        yield f"{SHOP}:443=127.0.0.1:{port}", agent
        process.terminate()


def test_whole_conversation(place: Place, shop_command: tuple[str, str]) -> None:
    """The two commands hold a conversation and every probe is refused as the text says."""
    code, lines = run_agent(place, SHOP, *shop_command)
    assert code == 0, lines
    assert lines[-1]["ok"] is True
    assert lines[-1]["reply"] == "You said: Where is my order?"
    steps = {line["step"]: line for line in lines[:-1]}
    assert all(line["ok"] for line in lines)
    assert steps["wait_in_post"]["reply_in_response"] is True
    assert {"missing_version", "expired_delegation", "changed_start", "unknown_cursor", "close"} <= set(steps)


def site(place: Place, documents: dict[str, dict[str, Any]], redirects: dict[str, str] | None = None) -> str:
    """Serve documents on shop.example and www.example, and return how to reach the first."""

    class Static(Company):
        """Serves fixed documents instead of a Company's."""

        def handle(self, method: str, target: str, headers: Any, data: bytes) -> Any:
            """Send a document, a redirect or an error."""
            if redirects and target in redirects:
                return 302, {}, {"Location": redirects[target]}
            body = documents.get(target)
            return (404, {}, {}) if body is None else (body.get("http_status", 200), body, {})

    return place.serve(Static(SHOP, Https(place.ca_file, [])))


def poppy(domain: str = SHOP, **more: Any) -> dict[str, Any]:
    """Make a poppy.json."""
    protocols = [{"type": "future", "endpoint": "https://x.example"}]
    protocols += [{"type": "poppy", "endpoint": "https://api.example/poppy"}]
    organization = {"name": "Shop", "domain": domain}
    return {"protocol_version": "0.4", "organization": organization, "agent": {"protocols": protocols}, **more}


def issuer(*resources: str, **more: Any) -> dict[str, Any]:
    """Make the metadata of an issuer on the Company's own host."""
    urls = {name: f"https://{SHOP}/{name}" for name in ("token_endpoint", "revocation_endpoint")}
    grants = {"grant_types_supported": ["refresh_token"], "protected_resources": list(resources)}
    return {"issuer": f"https://{SHOP}/as", **urls, **grants, **more}


WELL, PRM, META = (
    "/.well-known/poppy.json",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server/as",
)
RESOURCE = {"resource": f"https://{SHOP}", "authorization_servers": [f"https://{SHOP}/as"]}
TWO = RESOURCE | {"authorization_servers": [f"https://{SHOP}/staff", f"https://{SHOP}/as"]}
NAMED: dict[str, Any] = {"auth": {"issuer": f"https://{SHOP}/as"}}


@pytest.mark.parametrize(
    ("documents", "company"),
    [
        ({WELL: poppy()}, f"https://{SHOP}"),
        ({WELL: poppy("Shop.Example")}, f"https://{SHOP}"),
        ({WELL: poppy(), PRM: {"resource": f"https://{SHOP}"}}, f"https://{SHOP}"),
        ({WELL: poppy(), PRM: RESOURCE, META: issuer("https://Shop.example")}, f"https://{SHOP}/as"),
        ({WELL: poppy(**NAMED), PRM: TWO, META: issuer(f"https://{SHOP}")}, f"https://{SHOP}/as"),
        ({WELL: poppy(protocol_version="0.5", supported_versions={"0.4": f"https://{SHOP}/4"}), "/4": poppy()},
         f"https://{SHOP}"),
        ({WELL: poppy("evil.example")}, None),
        ({WELL: poppy(protocol_version="0.5")}, None),
        ({WELL: poppy(protocol_version="0.5", supported_versions={"0.4": "https://x.example/4"})}, None),
        ({WELL: poppy(), PRM: {"http_status": 500, "resource": f"https://{SHOP}"}}, None),
        ({WELL: poppy(), PRM: {"resource": "https://other.example"}}, None),
        ({WELL: poppy(**NAMED)}, None),
        ({WELL: poppy(), PRM: TWO, META: issuer(f"https://{SHOP}")}, None),
        ({WELL: poppy(), PRM: RESOURCE, META: issuer("https://other.example")}, None),
        ({WELL: poppy(), PRM: RESOURCE, META: issuer(f"https://{SHOP}", issuer=f"https://{SHOP}/as/")}, None),
        ({WELL: poppy(), PRM: RESOURCE}, None),
    ],
)  # fmt: skip
def test_discovery_checks(place: Place, documents: dict[str, dict[str, Any]], company: str | None) -> None:
    """The agent takes the identifier of section 3.2 and stops at every document that fails a check."""
    code, lines = run_agent(place, SHOP, site(place, documents), "127.0.0.1:0", "--discover-only")
    assert (code, lines[-1]["ok"]) == ((0, True) if company else (1, False)), lines
    assert not company or lines[1]["company"] == company


@pytest.mark.parametrize(
    "target", [f"https://{SHOP}/upload.json", f"https://{SHOP}{WELL}?a=1", f"http://{SHOP}{WELL}", "https://127.0.0.1/"]
)
def test_bad_redirects(place: Place, target: str) -> None:
    """The agent does not use a document that a redirect leads to elsewhere than the well-known path."""
    documents = {"/upload.json": poppy(), f"{WELL}?a=1": poppy()}
    code, lines = run_agent(place, SHOP, site(place, documents, {WELL: target}), "127.0.0.1:0", "--discover-only")
    assert (code, lines[-1]["ok"]) == (1, False)


def check(answer: Answer, status: int, error: str = "") -> None:
    """Compare the status and the error of a response."""
    assert (answer.status, error_of(answer)) == (status, error)


def test_other_agent_cannot_see_the_conversation(world: World) -> None:
    """Another client with the same User ID gets conversation_not_found."""
    talk, thief = world.started(), world.talk(world.other)
    thief.user.sub = talk.user.sub
    check(thief.once("GET", f"/{talk.conversation}/events"), 404, "conversation_not_found")
    check(thief.once("POST", f"/{talk.conversation}/close", {}), 404, "conversation_not_found")


def test_direct_conversation(world: World) -> None:
    """A Direct Conversation blocks its parent until it closes, and the parent records both."""
    talk = world.started()
    hello = {**message("It is me."), "parent_conversation_id": talk.conversation}
    child = str(talk.take(talk.call("POST", "", hello), 201)["conversation_id"])
    blocked = talk.once("POST", f"/{talk.conversation}/messages", message("Hi"))
    check(blocked, 409, "direct_conversation_open")
    assert blocked.json("the error")["conversation_id"] == child
    check(talk.once("POST", "", {**hello, **message("Hi")}), 409, "direct_conversation_open")
    check(talk.once("POST", "", {**message("Hi"), "parent_conversation_id": child}), 400, "invalid_request")
    talk.take(talk.call("POST", f"/{child}/close", {}), 200)
    talk.take(talk.call("POST", f"/{talk.conversation}/messages", message("Back.")), 202)
    talk.until_idle()
    linked = [(event["type"], event["conversation_id"]) for event in talk.events if event["type"].startswith("direct")]
    assert linked == [("direct_opened", child), ("direct_closed", child)]


def test_closing_the_parent_closes_the_direct_conversation(world: World) -> None:
    """Closing a parent closes its open Direct Conversation first."""
    talk = world.started()
    answer = talk.call("POST", "", {**message("It is me."), "parent_conversation_id": talk.conversation})
    child = str(talk.take(answer, 201)["conversation_id"])
    talk.take(talk.call("POST", f"/{talk.conversation}/close", {}), 200)
    check(talk.once("POST", f"/{child}/messages", message("Hi")), 409, "conversation_closed")
    assert talk.take(talk.call("GET", f"/{child}/events"), 200)["status"] == "closed"
    talk.read()
    assert [event["type"] for event in talk.events[-2:]] == ["direct_closed", "state"]


def test_messages_of_one_id_at_once(world: World) -> None:
    """Several first messages with one ID at the same time start one conversation."""
    talk, body, found = world.talk(), message("Once, please."), list[str]()

    def send() -> None:
        found.append(str(talk.take(talk.call("POST", "", body), 201)["conversation_id"]))

    threads = [threading.Thread(target=send) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8
    assert len(set(found)) == 1


def test_retries(place: Place) -> None:
    """A lost response, a rate limit, a 5xx and an ended Session lead to one conversation in a new Session."""
    answers: list[Any] = [None, (429, {}, {"Retry-After": "0"}), (503, {}, {"Retry-After": "0"})]
    answers.append((400, {"error": "session_ended"}, {}))

    class Flaky(Company):
        """Handles the first POST but loses its response, and then answers with errors."""

        def handle(self, method: str, target: str, headers: Any, data: bytes) -> Any:
            """Answer with what is planned, then as usual."""
            if not answers:
                return super().handle(method, target, headers, data)
            if (planned := answers.pop(0)) is None:
                super().handle(method, target, headers, data)
                raise ConnectionError
            return planned

    identity = Identity(CLIENT, None)
    company = Flaky(SHOP, Https(place.ca_file, [place.publish(identity)]))
    user, endpoint = User(identity, f"https://{SHOP}"), f"https://{SHOP}/poppy/conversations"
    talk = Talk(Https(place.ca_file, [place.serve(company)]), user, endpoint)
    before = talk.sid
    talk.conversation = str(talk.take(talk.call("POST", "", message("Hello")), 201)["conversation_id"])
    talk.state = "working"
    talk.until_idle()
    assert list(company.conversations) == [talk.conversation]
    assert talk.sid != before
    assert talk.replies(0) == ["You said: Hello"]


def test_context_alone_needs_no_reply(world: World) -> None:
    """A message with only context is recorded, leaves the status idle and is not answered."""
    talk = world.started()
    known = len(talk.events)
    note = {"message": {"id": new_id(), "author": {"type": "agent"}, "context": {"user_available": False}}}
    assert talk.take(talk.call("POST", f"/{talk.conversation}/messages", note), 202)["status"] == "idle"
    talk.read()
    assert [event["message"]["context"] for event in talk.events[known:]] == [{"user_available": False}]


def test_handoff_comes_back(world: World) -> None:
    """A handoff is queued and goes back to idle with a message, since nobody is there."""
    talk = world.started()
    known = len(talk.events)
    assert talk.take(talk.call("POST", f"/{talk.conversation}/handoff"), 202)["status"] == "queued"
    talk.until_idle()
    assert [event.get("status", event["type"]) for event in talk.events[known:]] == ["queued", "message", "idle"]


def test_read_is_held_until_an_event(world: World) -> None:
    """A read with wait returns when another request adds an event."""
    talk = world.started()
    got: list[dict[str, Any]] = []
    reader = threading.Thread(target=lambda: got.append(talk.read(wait=20)))
    reader.start()
    talk.once("POST", f"/{talk.conversation}/close", {})
    reader.join()
    assert got[0]["events"][0]["status"] == "closed"


def test_blind_signature_algorithm(place: Place) -> None:
    """A delegation signed with PS384 is accepted when the key set has the RSA key."""
    key = rsa.generate_private_key(65537, 2048)
    full = RSAAlgorithm.to_jwk(key.public_key(), as_dict=True)
    jwk = {name: full[name] for name in ("kty", "n", "e")}

    class Blind(Identity):
        """An agent whose key set has the RSA key only."""

        def documents(self) -> dict[str, dict[str, Any]]:
            """Return the documents to publish, by path."""
            return super().documents() | {"/jwks.json": {"keys": [{**jwk, "kid": thumbprint(jwk)}]}}

    identity = Blind("https://agent4.example/agent.json", None)
    company = Company(SHOP, Https(place.ca_file, [place.publish(identity)]))
    user, endpoint = User(identity, f"https://{SHOP}"), f"https://{SHOP}/poppy/conversations"
    talk = Talk(Https(place.ca_file, [place.serve(company)]), user, endpoint)
    now = int(time.time())
    claims = {"iss": identity.client_id, "cnf": {"jwk": public_jwk(talk.user.key)}, "iat": now, "exp": now + 60}
    headers = {"typ": "poppy-delegation+jwt", "kid": thumbprint(jwk)}
    grant = jwt.encode({**claims, "jti": new_id()}, key, "PS384", headers=headers)
    check(talk.once("POST", "", message("Hi"), poppy_dlg=grant), 201)
    check(talk.once("POST", "", message("Hi")), 400, "invalid_session")


def test_unreachable_agent(place: Place) -> None:
    """An agent whose documents cannot be fetched gets 503, and one at a private address invalid_session."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        gone = f"agent2.example:443=127.0.0.1:{closed.getsockname()[1]}"
        shop = place.serve(Company(SHOP, Https(place.ca_file, [gone])))
        for client_id, status in ((CLIENT, 503), ("https://127.0.0.1/agent.json", 400)):
            user = User(Identity(client_id, None), f"https://{SHOP}")
            talk = Talk(Https(place.ca_file, [shop]), user, f"https://{SHOP}/poppy/conversations")
            assert talk.once("POST", "", message("Hi")).status == status
