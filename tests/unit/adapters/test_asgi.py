"""ASGI ⇄ values: paths, hosts, prefixes, bodies, callers that leave, and what a gateway passes on."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Awaitable
from typing import Any

import pytest
import uvicorn
from anyio.lowlevel import checkpoint

from papaver.adapters.asgi import (
    CompanyEndpoint,
    Receive,
    Scope,
    Send,
    send_response,
    send_stream,
    upstream_headers,
)
from papaver.web.messages import Headers, Response, Stream
from papaver.web.urls import UrlError
from tests.unit.adapters.asgi_calls import call, message, served, shop, signed

pytestmark = pytest.mark.anyio

ENDPOINT = "https://api.example.com/poppy/conversations"


async def test_a_company_is_an_asgi_app() -> None:
    """Start, read, document; with their lengths."""
    company = shop()
    async with served(company) as app:
        fields = signed(company, "POST", ENDPOINT)
        started = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=[message()])
        assert (started.status, started.fields["content-length"]) == (201, str(len(started.body)))
        path = f"/{started.json['conversation_id']}/events"
        fields = signed(company, "GET", ENDPOINT + path)
        page = await call(app, "GET", f"/poppy/conversations{path}", query="wait=0", headers=fields)
        assert page.json["events"][0]["message"]["text"] == "Hello"
        document = await call(app, "GET", "/.well-known/poppy.json", headers={"host": "example.com"})
        head = await call(app, "HEAD", "/.well-known/poppy.json", headers={"host": "example.com"})
        assert (head.status, head.body, head.fields) == (200, b"", document.fields)


async def test_what_is_not_the_companys_is_handed_on() -> None:
    """To the app behind it, lifespan and websockets included; without one it is a 404."""
    seen: list[str] = []

    async def behind(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])
        if scope["type"] == "http":
            await send_response(Response(418), send)

    company = shop()
    async with served(company):
        app = CompanyEndpoint(company, behind)
        assert (await call(app, "GET", "/other")).status == 418
        for kind in ("lifespan", "websocket"):
            await call(app, "GET", "/poppy/conversations", type=kind)
        assert seen == ["http", "lifespan", "websocket"]
        assert (await call(CompanyEndpoint(company), "GET", "/other")).status == 404


async def test_a_websocket_at_a_company_is_closed_and_never_an_error_of_the_server() -> None:
    """Whatever its path, before it is opened: the server answers 403."""
    company = shop()
    async with served(company):
        for path in ("/poppy/conversations", "/other"):
            refused = await call(CompanyEndpoint(company), "GET", path, type="websocket")
            assert refused.messages == [{"type": "websocket.close"}]


async def test_a_company_that_is_run_may_be_a_server_s_whole_app() -> None:
    """Its lifespan starts and ends, though whoever runs the Company does the work."""
    company = shop()
    async with served(company):
        lived = await call(CompanyEndpoint(company), type="lifespan", chunks=[b"", b""])
        kinds = [message["type"] for message in lived.messages]
        assert kinds == ["lifespan.startup.complete", "lifespan.shutdown.complete"]


async def test_a_company_that_nobody_runs_does_not_start_a_server() -> None:
    """The server's log says what to do, before the first request fails."""
    (told,) = (await call(CompanyEndpoint(shop()), type="lifespan")).messages
    assert told["type"] == "lifespan.startup.failed"
    assert "running(" in told["message"]


async def test_a_server_with_its_lifespan_on_serves_a_bare_company() -> None:
    """uvicorn itself: it starts, refuses an upgrade with 403 and ends in order."""
    company = shop()
    async with served(company) as app:
        config = uvicorn.Config(app, host="127.0.0.1", port=0, lifespan="on", log_config=None, ws="websockets-sansio")
        server = uvicorn.Server(config)
        listening = socket.create_server(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([listening]))
        try:
            while not server.started:
                await asyncio.sleep(0)
                assert not serving.done()
            reader, writer = await asyncio.open_connection(*listening.getsockname())
            writer.write(UPGRADE)
            assert (await reader.readline()).split()[1] in (b"403", b"404")
            writer.close()
        finally:
            server.should_exit = True
            await serving
    assert server.lifespan.should_exit is False


UPGRADE = (
    b"GET /poppy/conversations HTTP/1.1\r\nHost: api.example.com\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)


@pytest.mark.parametrize("host", ["api.example.com", "evil.example", "127.0.0.1:8000", "example.com", ""])
async def test_b18_a_forged_host_changes_nothing_that_is_compared(host: str) -> None:
    """`htu` is that of the configured URL, whatever Host and X-Forwarded-Host say (B20)."""
    company = shop()
    async with served(company) as app:
        forged = {"x_forwarded_host": "evil.example", "x_forwarded_proto": "http", "x_forwarded_prefix": "/evil"}
        right = signed(company, "POST", ENDPOINT, host=host, **forged)
        assert (await call(app, "POST", "/poppy/conversations", headers=right, chunks=[message()])).status == 201
        url = f"https://{host or 'evil.example'}/evil/poppy/conversations"
        wrong = signed(company, "POST", url, host=host, **forged)
        refused = await call(app, "POST", "/poppy/conversations", headers=wrong, chunks=[message()])
        assert (refused.status, refused.json["error"]) == (400, "invalid_session")
        assert "evil" not in refused.body.decode()


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_c39_b20_behind_tls_termination_the_public_url_counts(scheme: str) -> None:
    """The hop from the proxy is plain http; the agent signed https."""
    company = shop()
    async with served(company) as app:
        fields = signed(company, "POST", ENDPOINT, host="backend:8000")
        answer = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=[message()], scheme=scheme)
        assert answer.status == 201
        plain = signed(company, "POST", ENDPOINT.replace("https", "http"))
        answer = await call(app, "POST", "/poppy/conversations", headers=plain, chunks=[message()], scheme=scheme)
        assert answer.json["error"] == "invalid_session"


async def test_b21_a_prefix_that_the_proxy_strips_is_part_of_htu() -> None:
    """Public /svc2/x, served at /x; and served at /svc2/x when the proxy strips nothing."""
    company = shop(base_url="https://api.example.com/svc2/x", local_path="/x")
    url = "https://api.example.com/svc2/x/conversations"
    async with served(company) as app:
        answer = await call(app, "POST", "/x/conversations", headers=signed(company, "POST", url), chunks=[message()])
        assert answer.status == 201
        stripped = signed(company, "POST", "https://api.example.com/x/conversations")
        answer = await call(app, "POST", "/x/conversations", headers=stripped, chunks=[message()])
        assert answer.json["error"] == "invalid_session"
        assert (await call(app, "POST", "/svc2/x/conversations", headers=signed(company, "POST", url))).status == 404
    whole = shop(base_url="https://api.example.com/svc2/x")
    async with served(whole) as app:
        fields = signed(whole, "POST", url)
        answer = await call(app, "POST", "/svc2/x/conversations", headers=fields, chunks=[message()], root_path="/svc2")
        assert answer.status == 201


@pytest.mark.parametrize(
    ("path", "raw_path", "status"),
    [
        ("/poppy/conversations/a b/events", b"/poppy/conversations/a%20b/events", 400),
        ("/poppy/conversations/x/events", b"/poppy/conversations/%78/events", 400),
        ("/poppy/conversations/a/b/events", b"/poppy/conversations/a%2Fb/events", 400),
        ("/poppy/conversations/é/events", b"/poppy/conversations/\xc3\xa9/events", 400),
        ("/poppy/conversations/x/events", b"/poppy/conversations/x/events?wait=0", 404),
        ('/poppy/conversations/"/events', b'/poppy/conversations/"/events', 400),
        ("/poppy/conversations/\x00/events", b"/poppy/conversations/\x00/events", 400),
        ("/poppy/conversations//events", b"/poppy/conversations//events", 400),
        ("/poppy/conversations/../events", b"/poppy/conversations/../events", 400),
    ],
)
async def test_a_path_is_taken_as_it_was_received(path: str, raw_path: bytes, status: int) -> None:
    """Still percent-encoded; whatever it holds, the answer is an error of the protocol and never a 500."""
    company = shop()
    async with served(company) as app:
        url = "https://api.example.com" + raw_path.partition(b"?")[0].decode("latin-1")
        try:
            fields = signed(company, "GET", url)
        except UrlError:
            fields = signed(company, "GET", ENDPOINT)
        answer = await call(app, "GET", path, headers=fields, raw_path=raw_path)
        assert answer.status == status
        assert answer.json["error"]


async def test_a_server_without_raw_paths_and_addresses_will_do() -> None:
    """Both are optional in ASGI."""
    company = shop()
    async with served(company) as app:
        fields = signed(company, "POST", ENDPOINT)
        answer = await call(
            app, "POST", "/poppy/conversations", headers=fields, chunks=[message()], raw=False, peer=None
        )
        assert answer.status == 201


@pytest.mark.parametrize("declared", [True, False])
async def test_c91_a_body_above_the_limit_is_413_with_and_without_its_length(declared: bool) -> None:
    """Refused as soon as it is known to be too long: by the declared length before anything is read."""
    company = shop()
    async with served(company) as app:
        fields = signed(company, "POST", ENDPOINT)
        chunks = [b" " * 65_536] * 4 + [b" "]
        if declared:
            fields["content-length"] = "262145"
            chunks = [b""]
        answer = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=chunks)
        assert (answer.status, answer.json["error"]) == (413, "invalid_request")
        fits = message() + b" " * (262_144 - len(message()))
        fields = signed(company, "POST", ENDPOINT)
        halves = [fits[:100_000], fits[100_000:]]
        answer = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=halves)
        assert answer.status == 201


@pytest.mark.parametrize("chunk", [1024, 4096, 100_000, 262_145])
@pytest.mark.parametrize("declared", ["", "0", "262144", "many"])
async def test_c91_a_body_that_never_ends_is_refused_at_the_limit(chunk: int, declared: str) -> None:
    """Without a length, or with one that is not true: no more is asked for than what goes one piece above the limit."""
    company, asked, sent = shop(), 0, list[Any]()
    body = message() + b" " * chunk

    async def receive() -> dict[str, Any]:
        nonlocal asked
        asked += 1
        return {"type": "http.request", "body": body[:chunk] if asked == 1 else b" " * chunk, "more_body": True}

    async def send(event: Any) -> None:
        sent.append(event)

    fields = {**signed(company, "POST", ENDPOINT), **({"content-length": declared} if declared else {})}
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/poppy/conversations",
        "query_string": b"",
        "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
    }
    async with served(company) as app:
        await app(scope, receive, send)
    assert (sent[0]["status"], json.loads(sent[1]["body"])["error"]) == (413, "invalid_request")
    assert asked == 262_144 // chunk + 1


@pytest.mark.parametrize("suffix", ["", "/close"])
async def test_a_body_that_breaks_off_changes_nothing(suffix: str) -> None:
    """Half a request is none, even where an empty body would be allowed."""
    company = shop()
    async with served(company) as app:
        fields = signed(company, "POST", ENDPOINT)
        started = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=[message()])
        conversation = started.json["conversation_id"]
        path = f"/{conversation}{suffix}" if suffix else ""
        fields = signed(company, "POST", ENDPOINT + path)
        answer = await call(app, "POST", f"/poppy/conversations{path}", headers=fields, chunks=[b"{"], leaves=True)
        assert (answer.status, answer.json["error"]) == (400, "invalid_request")


async def test_a_held_read_ends_when_the_connection_does() -> None:
    """`http.disconnect` is what a server says then."""
    company = shop()
    async with served(company, turns=False) as app:
        fields = signed(company, "POST", ENDPOINT)
        started = await call(app, "POST", "/poppy/conversations", headers=fields, chunks=[message()])
        path = f"/{started.json['conversation_id']}/events"
        first = await call(app, "GET", f"/poppy/conversations{path}", headers=signed(company, "GET", ENDPOINT + path))
        query = f"wait=25&cursor={first.json['cursor']}"
        fields = signed(company, "GET", ENDPOINT + path)
        answer = await call(app, "GET", f"/poppy/conversations{path}", query=query, headers=fields, leaves=True)
        assert (answer.status, answer.json["events"], company.held) == (200, [], 0)


async def test_responses_without_a_body_say_no_length() -> None:
    """204 and 304 have none (RFC 9110 8.6)."""
    messages: list[Any] = []

    async def send(sent: Any) -> None:
        messages.append(sent)

    await send_response(Response(204), send)
    assert messages[0] == {"type": "http.response.start", "status": 204, "headers": []}


@pytest.mark.parametrize("name", ["Poppy-Session", "poppy-session", "POPPY-SESSION"])
def test_b5_a_gateway_strips_the_session_header_unless_told_otherwise(name: str) -> None:
    """Every field of that name; all others go through in their order."""
    received = Headers([("accept", "a"), (name, "jwt"), ("poppy-version", "0.4"), (name, "jwt"), ("accept", "b")])
    assert list(upstream_headers(received)) == [("accept", "a"), ("poppy-version", "0.4"), ("accept", "b")]
    assert upstream_headers(received, with_session=True) == received


class Chunks:
    """The body of a stream: these, and whether it was closed."""

    def __init__(self, *chunks: bytes) -> None:
        self._chunks = list(chunks)
        self.closed = False

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        if not self._chunks:
            raise StopAsyncIteration
        return self._chunks.pop(0)

    async def aclose(self) -> None:
        self.closed = True


async def test_a_stream_is_sent_chunk_by_chunk_and_closed() -> None:
    """No length is told; the body's end is."""
    chunks, sent = Chunks(b"one", b"two"), list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)

    await send_stream(Stream(200, Headers([("content-type", "text/event-stream")]), chunks), send)
    assert sent == [
        {"type": "http.response.start", "status": 200, "headers": ((b"content-type", b"text/event-stream"),)},
        {"type": "http.response.body", "body": b"one", "more_body": True},
        {"type": "http.response.body", "body": b"two", "more_body": True},
        {"type": "http.response.body", "body": b""},
    ]
    assert chunks.closed


@pytest.mark.parametrize("fault", [TimeoutError, OSError, RuntimeError, asyncio.CancelledError])
async def test_c86_a_stream_is_closed_however_its_sending_ends(fault: type[BaseException]) -> None:
    """A reader that takes nothing or has left is no error of the app; others go on up. No end is told."""
    chunks, sent = Chunks(b"one", b"two"), list[Any]()

    async def send(message: Any) -> None:
        sent.append(message)
        if message.get("body") == b"one":
            await checkpoint()

    async def taken(sending: Awaitable[None]) -> None:
        await sending
        raise fault

    stream = Stream(200, Headers(), chunks, taken)
    if issubclass(fault, OSError):
        await send_stream(stream, send)
    else:
        with pytest.raises(fault):
            await send_stream(stream, send)
    assert [message.get("body") for message in sent] == [None, b"one"]
    assert chunks.closed
