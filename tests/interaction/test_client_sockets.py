"""The guarded client on real sockets: what its transport lets out under every hop, and what it lets in."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from papaver.adapters.httpx2.network import Network
from papaver.adapters.httpx2.transport import open_client
from papaver.ports.system import FetchFailed
from papaver.protocol.errors import NotADestination
from tests.house.tls_site import PUBLIC, Site, answer, authority, redirect, serve

pytestmark = pytest.mark.anyio

API = "https://api.example/orders"
SIGNED = {"Poppy-Session": "a.b.c", "Authorization": "Bearer token"}


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serve({"/orders": answer(b"[]")}, "api.example", "evil.example") as site:
        yield site


@pytest.fixture
def network(site: Site, ca_file: Path) -> Network:
    return site.network({"api.example": [PUBLIC], "evil.example": [PUBLIC], "inner.example": ["10.0.0.1"]}, ca_file)


def only_api(method: str, url: str) -> None:
    """The Company's one destination."""
    if not url.startswith("https://api.example/"):
        raise NotADestination(rule="session.destination", detail=url)


async def test_credentials_reach_a_destination(site: Site, network: Network) -> None:
    """What the guard allows is sent as it is, with a User-Agent that says who we are."""
    async with open_client(network, may_receive=only_api) as client:
        assert (await client.get(API, headers=SIGNED)).json() == []
    assert (site.fields("poppy-session"), site.fields("authorization")) == (["a.b.c"], ["Bearer token"])
    assert site.fields("user-agent")[0].startswith("papaver/")


@pytest.mark.requirement("3-19")
@pytest.mark.parametrize("status", [302, 307, 308])
async def test_no_credential_follows_a_redirect(site: Site, network: Network, status: int) -> None:
    """A redirect is not followed; where a caller insists, the transport stops the hop that httpx2 would have made."""
    site.put(orders=redirect("https://evil.example/catch", status))
    async with open_client(network, may_receive=only_api) as client:
        assert (await client.get(API, headers=SIGNED)).status_code == status
        with pytest.raises(NotADestination) as caught:
            await client.get(API, headers=SIGNED, follow_redirects=True)
    assert caught.value.rule == "session.destination"
    assert site.paths == ["/orders", "/orders"]


@pytest.mark.requirement("papaver-09")
@pytest.mark.parametrize("name", ["Poppy-Session", "Authorization"])
async def test_a_client_without_destinations_sends_no_credential(site: Site, network: Network, name: str) -> None:
    """The default is that nobody may receive them."""
    async with open_client(network) as client:
        with pytest.raises(NotADestination) as caught:
            await client.get(API, headers={name: "x"})
        assert (await client.get(API)).status_code == 200
    assert (caught.value.rule, site.connections) == ("fetch.no-credentials", 1)


@pytest.mark.requirement("3-13", "3-20")
@pytest.mark.parametrize(
    ("url", "rule"),
    [
        ("https://inner.example/", "fetch.address-public"),
        ("https://127.0.0.1/", "fetch.address-public"),
        ("http://api.example/orders", "web.https-only"),
    ],
)
async def test_a_client_refuses_private_addresses_and_http(site: Site, network: Network, url: str, rule: str) -> None:
    """As the fetcher does, and also for a redirect that a caller follows."""
    site.put(orders=redirect(url))
    async with open_client(network) as client:
        for start, follow in ((url, False), (API, True)):
            with pytest.raises(FetchFailed) as caught:
                await client.get(start, follow_redirects=follow)
            assert caught.value.rule == rule
    assert site.paths == ["/orders"]


@pytest.mark.requirement("papaver-08")
async def test_host_and_sni_cannot_be_forged(site: Site, network: Network) -> None:
    """A request says where it goes in one way only."""
    async with open_client(network) as client:
        for request in (
            client.build_request("GET", API, headers={"Host": "evil.example"}),
            client.build_request("GET", API, headers=[("Host", "api.example"), ("Host", "evil.example")]),
            client.build_request("GET", API, extensions={"sni_hostname": "evil.example"}),
        ):
            with pytest.raises(FetchFailed) as caught:
                await client.send(request)
            assert caught.value.rule == "fetch.names-agree"
    assert site.connections == 0


async def test_b15_a_client_keeps_no_cookie_and_asks_no_proxy(
    site: Site, network: Network, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing comes from the environment, and nothing stays from an answer."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
    site.put(orders=answer(b"[]", "200 OK", "Set-Cookie: seen=1; Path=/; Secure"))
    async with open_client(network) as client:
        await client.get(API)
        await client.get(API)
        assert len(client.cookies) == 0
    assert site.fields("cookie") == []


async def test_b15_a_response_is_bounded_after_decompression(site: Site, network: Network) -> None:
    """The connection that carried it is not used again."""
    zipped = gzip.compress(bytes(1_000_000))
    site.put(orders=answer(zipped, "200 OK", "Content-Encoding: gzip"))
    async with open_client(network, max_bytes=1_000_000) as client:
        assert len((await client.get(API)).content) == 1_000_000
    async with open_client(network, max_bytes=999_999) as client:
        with pytest.raises(FetchFailed) as caught:
            await client.get(API)
        assert caught.value.rule == "fetch.size"
        site.put(orders=answer(b"[]"))
        assert (await client.get(API)).content == b"[]"
        site.put(orders=answer(b"", "200 OK", "Content-Encoding: br"))
        with pytest.raises(FetchFailed) as caught:
            await client.get(API)
        assert caught.value.rule == "fetch.decodable"


@pytest.mark.parametrize(("accept", "bounded"), [("text/event-stream", False), ("application/json", True)])
async def test_a_stream_that_was_asked_for_has_no_end_of_its_own(
    site: Site, network: Network, accept: str, bounded: bool
) -> None:
    """An event stream is bounded by its reader; a body that merely goes on is not read."""
    left = asyncio.Event()

    async def events(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n")
        writer.write(b"data: {}\n\n" * 100)
        await writer.drain()
        await left.wait()

    site.put(orders=events)
    async with (
        open_client(network, max_bytes=500) as client,
        client.stream("GET", API, headers={"Accept": accept}) as response,
    ):
        pieces = response.aiter_bytes(1000)
        if bounded:
            with pytest.raises(FetchFailed) as caught:
                await anext(pieces)
            assert caught.value.rule == "fetch.size"
        else:
            assert len(await anext(pieces)) == 1000
        await pieces.aclose()
    left.set()


async def test_other_network_errors_stay_those_of_httpx2(site: Site, network: Network) -> None:
    """A caller who knows httpx2 finds what it documents."""

    async def nothing(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    site.put(orders=nothing)
    async with open_client(network) as client:
        with pytest.raises(httpx2.TransportError):
            await client.get(API)
