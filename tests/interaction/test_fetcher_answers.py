"""The guarded fetcher on real sockets: what an answer may be, what a hostile one costs, what a failure is called."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from papaver.adapters.httpx2.fetcher import GuardedFetcher
from papaver.adapters.httpx2.network import Network
from papaver.adapters.httpx2.resolve_map import NetworkSettings, ResolveMap
from papaver.ports.system import FetchFault, FetchPolicy
from papaver.web.messages import Headers
from tests.house.tls_site import PUBLIC, Site, answer, authority, fails, redirect, serve

pytestmark = pytest.mark.anyio

SHOP = "https://shop.example"
ONCE = FetchPolicy(seconds=10)


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    async with serve({"/": answer()}, "shop.example") as site:
        yield site


async def test_a_compressed_document_is_given_decoded(site: Site, ca_file: Path) -> None:
    """gzip, in two members as one may send it; the fields that spoke of the coding are gone."""
    zipped = gzip.compress(b'{"a":') + gzip.compress(b"1}")
    site.put(zipped=answer(zipped, "200 OK", "Content-Encoding: gzip", "Cache-Control: max-age=60"))
    network = site.network({"shop.example": [PUBLIC]}, ca_file)
    response = await GuardedFetcher(network).fetch(f"{SHOP}/zipped", replace(ONCE, max_bytes=100))
    assert (response.body, response.headers) == (b'{"a":1}', Headers([("cache-control", "max-age=60")]))
    assert site.fields("accept-encoding") == ["gzip"]


async def test_b15_a_gzip_bomb_is_refused_at_the_limit(site: Site, ca_file: Path) -> None:
    """The size after decompression counts, on a body that is small on the wire."""
    bomb = gzip.compress(bytes(20_000_000))
    site.put(bomb=answer(bomb, "200 OK", "Content-Encoding: gzip"))
    failure = await fails(
        site.network({"shop.example": [PUBLIC]}, ca_file), f"{SHOP}/bomb", replace(ONCE, max_bytes=100 * 1024)
    )
    assert (failure.fault, failure.rule, len(bomb) < 100 * 1024) == (FetchFault.REFUSED, "fetch.size", True)


async def test_b15_a_body_without_a_length_is_cut_at_the_limit(site: Site, ca_file: Path) -> None:
    """The server goes on until the connection is gone."""
    gone = asyncio.Event()

    async def forever(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        try:
            while True:
                writer.write(bytes(65536))
                await writer.drain()
        finally:
            gone.set()

    site.put(endless=forever)
    failure = await fails(site.network({"shop.example": [PUBLIC]}, ca_file), f"{SHOP}/endless")
    await gone.wait()
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "fetch.size")


@pytest.mark.parametrize(
    ("body", "coding", "rule"),
    [
        (gzip.compress(b'{"a":1}')[:-4], "gzip", "fetch.decodable"),
        (b"not gzip", "gzip", "fetch.decodable"),
        (gzip.compress(b"{}") + b"and more", "gzip", "fetch.decodable"),
        (b"{}", "br", "fetch.decodable"),
        (b"{}", "gzip, gzip", "fetch.decodable"),
        (bytes(200), "identity", "fetch.size"),
    ],
    ids=["cut off", "no gzip", "more after it", "brotli", "twice", "too large"],
)
async def test_a_body_that_is_not_what_was_asked_for_is_refused(
    site: Site, ca_file: Path, body: bytes, coding: str, rule: str
) -> None:
    """A broken or unknown coding, and a length beyond the limit."""
    site.put(odd=answer(body, "200 OK", f"Content-Encoding: {coding}"))
    failure = await fails(
        site.network({"shop.example": [PUBLIC]}, ca_file), f"{SHOP}/odd", replace(ONCE, max_bytes=199)
    )
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, rule)


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n", answer(b"{}" * 9)[:-1]])
async def test_b15_an_answer_that_stops_midway_ends_at_the_deadline(
    site: Site, ca_file: Path, beginning: bytes
) -> None:
    """Silence before, in and after the header fields."""
    over = asyncio.Event()

    async def stop(writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        await writer.drain()
        await over.wait()

    site.put(stop=stop)
    network = site.network({"shop.example": [PUBLIC]}, ca_file)
    failure = await fails(network, f"{SHOP}/stop", replace(ONCE, seconds=0.3))
    over.set()
    assert (failure.fault, failure.detail) == (FetchFault.UNREACHABLE, "no complete answer within 0.3 s")


@pytest.mark.parametrize(
    ("beginning", "drop"),
    [
        (b"", b"HTTP/1.1 102 Processing\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\n \r\n"),
    ],
    ids=["before the answer", "in the body"],
)
async def test_b15_a_slow_drip_ends_at_the_deadline(site: Site, ca_file: Path, beginning: bytes, drop: bytes) -> None:
    """Every read gets something, so only a deadline over all of it helps; it spans the redirect too."""

    async def drip(writer: asyncio.StreamWriter) -> None:
        writer.write(beginning)
        while True:
            writer.write(drop)
            await writer.drain()
            await asyncio.sleep(0)

    site.put(start=redirect("/drip"), drip=drip)
    network = site.network({"shop.example": [PUBLIC]}, ca_file)
    policy = replace(ONCE, redirects=1, seconds=0.3, max_bytes=2**40)
    failure = await fails(network, f"{SHOP}/start", policy)
    assert (failure.fault, failure.detail) == (FetchFault.UNREACHABLE, "no complete answer within 0.3 s")


async def test_a_silent_resolver_and_a_silent_address_end_at_the_deadline(site: Site, ca_file: Path) -> None:
    """Time spent before there is a connection counts as well."""

    async def silent(host: str, port: int) -> list[str]:
        await asyncio.Event().wait()
        return []

    soon = replace(ONCE, seconds=0.05)
    for network in (Network(resolver=silent), site.network({"shop.example": [PUBLIC]}, ca_file, dead={PUBLIC: None})):
        assert (await fails(network, f"{SHOP}/", soon)).fault is FetchFault.UNREACHABLE


async def test_a_certificate_for_another_name_is_refused(site: Site, ca_file: Path) -> None:
    """Also under --resolve: there is no way round it."""
    resolve = [f"wrong.example:443=127.0.0.1:{site.port}"]
    for network in (
        site.network({"wrong.example": [PUBLIC]}, ca_file),
        Network(NetworkSettings(ResolveMap.read(resolve), ca_file)),
    ):
        failure = await fails(network, "https://wrong.example/")
        assert (failure.fault, failure.rule, site.heads) == (FetchFault.REFUSED, "fetch.tls", [])


async def test_a_certificate_of_an_unknown_authority_is_refused(site: Site) -> None:
    """Without the CA file the same server is not believed."""
    settings = NetworkSettings(ResolveMap.read([f"shop.example:443=127.0.0.1:{site.port}"]))
    failure = await fails(Network(settings), f"{SHOP}/")
    assert (failure.fault, failure.rule, site.heads) == (FetchFault.REFUSED, "fetch.tls", [])


async def test_a_server_without_tls_is_refused(ca_file: Path) -> None:
    """What answers on the port does not speak TLS."""

    async def hello(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer())
        await writer.drain()
        await reader.read()
        writer.close()

    server = await asyncio.start_server(hello, "127.0.0.1", 0)
    site = Site({}, port=server.sockets[0].getsockname()[1])
    failure = await fails(site.network({"shop.example": [PUBLIC]}, ca_file), f"{SHOP}/")
    server.close()
    await server.wait_closed()
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "fetch.tls")


@pytest.mark.requirement("papaver-05")
async def test_a_name_that_does_not_exist_is_refused(site: Site, ca_file: Path) -> None:
    """A definite answer (readings 15)."""
    failure = await fails(site.network({}, ca_file), f"{SHOP}/")
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "fetch.name-exists")


async def test_what_may_pass_is_unreachable(site: Site, ca_file: Path) -> None:
    """A refused connection, a reset, an answer cut off, a resolver that is down."""

    async def nothing(writer: asyncio.StreamWriter) -> None:
        writer.transport.abort()

    async def half(writer: asyncio.StreamWriter) -> None:
        writer.write(answer(b"{}" * 9)[:-1])
        await writer.drain()

    async def down(host: str, port: int) -> list[str]:
        raise OSError("no resolver answers")

    site.put(nothing=nothing, half=half)
    network = site.network({"shop.example": [PUBLIC]}, ca_file)
    async with serve({}, tls=False) as closed:
        port = closed.port
    for case, url in (
        (network, f"{SHOP}/nothing"),
        (network, f"{SHOP}/half"),
        (Network(resolver=down), f"{SHOP}/"),
        (Network(NetworkSettings(ResolveMap.read([f"shop.example:443=127.0.0.1:{port}"]))), f"{SHOP}/"),
    ):
        assert (await fails(case, url)).fault is FetchFault.UNREACHABLE


@pytest.mark.parametrize("octets", [b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n"])
async def test_an_answer_that_is_not_http_is_refused(site: Site, ca_file: Path, octets: bytes) -> None:
    """It will not become HTTP by asking again."""
    site.put(odd=octets)
    failure = await fails(site.network({"shop.example": [PUBLIC]}, ca_file), f"{SHOP}/odd")
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "fetch.http")


async def test_b13_every_refusal_looks_the_same_from_outside(site: Site, ca_file: Path) -> None:
    """The public sentence does not tell a private address from a missing name or a redirect."""
    site.put(start=redirect("/"))
    network = site.network({"shop.example": [PUBLIC], "private.example": ["10.0.0.1"]}, ca_file)
    urls = (f"{SHOP}/start", "https://private.example/", "https://missing.example/", "https://wrong.example/")
    failures = [await fails(network, url) for url in urls]
    assert len({(failure.code, failure.fault, failure.description) for failure in failures}) == 1
    assert all(failure.detail and failure.url for failure in failures)
