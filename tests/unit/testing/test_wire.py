"""The wire: names and addresses, an answer or none, who left, and any ASGI app as a site."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from papaver.adapters.httpx2.fetcher import GuardedFetcher
from papaver.adapters.httpx2.transport import open_client
from papaver.ports.system import FetchFailed, FetchFault, FetchPolicy
from papaver.testing.clock import ManualClock
from papaver.testing.wire import Exchange, Lost, Onward, Wire, asgi_site, documents_site
from papaver.web.messages import Headers, Response

pytestmark = pytest.mark.anyio

ONCE = FetchPolicy()
A = "https://a.example/doc"


async def hello(exchange: Exchange) -> Response:
    return Response(200, Headers([("x-url", exchange.request.url)]), exchange.request.body or b"hello")


@pytest.fixture
async def wire() -> AsyncIterator[Wire]:
    wire = Wire(ManualClock(1_790_900_000))
    wire.sites["a.example"] = hello
    yield wire
    await wire.close()


async def test_a_request_reaches_the_site_of_its_host(wire: Wire) -> None:
    """And both are noted, with the time on the answer."""
    answer = await GuardedFetcher(wire.network("me")).fetch(f"{A}?x=1", ONCE)
    assert (answer.status, answer.body, answer.headers.first("x-url")) == (200, b"hello", f"{A}?x=1")
    assert answer.headers.first("date") == "Fri, 02 Oct 2026 00:13:20 GMT"
    [one] = wire.exchanges
    assert (one.by, one.at, one.place) == ("me", 1_790_900_000, f"GET {A}")
    assert one.response is not None
    assert one.response.status == 200
    assert wire.sent("me") == wire.sent("me", "a.example") == [one]
    assert wire.sent("you") == wire.sent("me", "b.example") == []


async def test_names_and_addresses_are_judged_as_ever(wire: Wire) -> None:
    """A name without a site does not exist; a private address is not dialled."""
    fetcher = GuardedFetcher(wire.network("me"))
    wire.addresses["c.example"] = ["192.168.0.1"]
    for url, rule in (("https://b.example/", "fetch.name-exists"), ("https://c.example/", "fetch.address-public")):
        with pytest.raises(FetchFailed) as caught:
            await fetcher.fetch(url, ONCE)
        assert caught.value.rule == rule
    wire.addresses["a.example"] = ["1.1.1.1", "2606:4700::1111"]
    assert (await fetcher.fetch(A, ONCE)).status == 200
    assert len(wire.exchanges) == 1


async def test_what_stands_between_may_answer_change_or_lose(wire: Wire) -> None:
    """In place of the site, after it, or not at all."""
    fetcher = GuardedFetcher(wire.network("me"))

    async def between(exchange: Exchange, onward: Onward) -> Response:
        match exchange.request.url.rpartition("/")[2]:
            case "lost":
                raise Lost
            case "other":
                return Response(404)
            case _:
                answer = await onward()
                return Response(answer.status, Headers([("date", "now")]), answer.body + b"!")

    wire.interpose = between
    assert (await fetcher.fetch(A, ONCE)).body == b"hello!"
    assert (await fetcher.fetch("https://a.example/other", ONCE)).status == 404
    with pytest.raises(FetchFailed) as caught:
        await fetcher.fetch("https://a.example/lost", ONCE)
    assert caught.value.fault is FetchFault.UNREACHABLE
    assert wire.exchanges[-1].response is None


@pytest.mark.parametrize("chunked", [False, True])
async def test_a_body_arrives_whole_and_a_connection_serves_again(wire: Wire, chunked: bool) -> None:
    """With a length, or in chunks."""

    async def pieces() -> AsyncIterator[bytes]:
        for piece in (b"a" * 70_000, b"", b"\r\n0\r\n\r\n", b"b"):
            yield piece

    async with open_client(wire.network("me")) as client:
        for _ in range(2):
            content = pieces() if chunked else b"".join([piece async for piece in pieces()])
            answer = await client.post(A, content=content)
            assert answer.content == b"a" * 70_000 + b"\r\n0\r\n\r\nb"
    assert {len(one.request.body) for one in wire.exchanges} == {70_008}


async def test_the_work_of_a_site_goes_on_when_its_caller_leaves(wire: Wire) -> None:
    """As a server's does; it is told that the caller left."""
    reached, done = asyncio.Event(), asyncio.Event()

    async def slow(exchange: Exchange) -> Response:
        reached.set()
        await exchange.left.wait()
        done.set()
        return Response(200)

    wire.sites["a.example"] = slow
    async with open_client(wire.network("me")) as client:
        asking = asyncio.create_task(client.get(A))
        await reached.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        await done.wait()


async def test_a_site_that_is_silent_ends_in_a_timeout(wire: Wire) -> None:
    """The real limits of the real client."""

    async def silent(exchange: Exchange) -> Response:
        await asyncio.Event().wait()
        raise AssertionError

    wire.sites["a.example"] = silent
    async with open_client(wire.network("me"), timeout=httpx2.Timeout(0.01)) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.get(A)


async def test_a_fault_of_a_site_is_the_tests_to_see(wire: Wire) -> None:
    """It is no answer and no lost connection."""

    async def faulty(exchange: Exchange) -> Response:
        raise ZeroDivisionError

    wire.sites["a.example"] = faulty
    with pytest.raises(ZeroDivisionError):
        await GuardedFetcher(wire.network("me")).fetch(A, ONCE)


async def test_documents_are_read_anew_for_each_request(wire: Wire) -> None:
    """Octets as they are, values as JSON, and 404."""
    published: dict[str, object] = {A: {"n": 1}}
    wire.sites["a.example"] = documents_site(lambda: published, fresh=5)
    fetcher = GuardedFetcher(wire.network("me"))
    first = await fetcher.fetch(A, ONCE)
    assert (first.body, first.headers.first("cache-control")) == (b'{"n":1}', "max-age=5")
    published[A] = b"octets"
    assert (await fetcher.fetch(A, ONCE)).body == b"octets"
    assert (await fetcher.fetch("https://a.example/other", ONCE)).status == 404


async def test_any_asgi_app_is_a_site(wire: Wire) -> None:
    """Its scope says what was asked for; who left is told as a server tells it."""
    seen: dict[str, Any] = {}
    waiting, left = asyncio.Event(), asyncio.Event()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        body = await receive()
        seen.update(scope, body=body["body"])
        if scope["path"] == "/wait":
            waiting.set()
            seen["last"] = await receive()
            left.set()
        await send({"type": "http.response.start", "status": 418, "headers": [(b"x-a", b"b")]})
        await send({"type": "http.response.body", "body": b"tea", "more_body": True})
        await send({"type": "http.response.body", "body": b"pot"})

    wire.sites["a.example"] = asgi_site(app)
    async with open_client(wire.network("me")) as client:
        answer = await client.post("https://a.example/caf%C3%A9?x=1", content=b"in")
        assert (answer.status_code, answer.content, answer.headers["x-a"]) == (418, b"teapot", "b")
        assert seen["path"] == "/café"
        assert (seen["method"], seen["raw_path"], seen["query_string"], seen["body"]) == (
            "POST", b"/caf%C3%A9", b"x=1", b"in",
        )  # fmt: skip
        assert dict(seen["headers"])[b"host"] == b"a.example"
        leaving = asyncio.create_task(client.get("https://a.example/wait"))
        await waiting.wait()
        leaving.cancel()
        with pytest.raises(asyncio.CancelledError):
            await leaving
        await left.wait()
        assert seen["last"] == {"type": "http.disconnect"}
