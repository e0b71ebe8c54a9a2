"""The guarded fetcher on real sockets: what it connects to, and where it lets itself be led."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import httpcore2
import pytest

from papaver.adapters.httpx2.fetcher import GuardedFetcher
from papaver.adapters.httpx2.network import Network
from papaver.adapters.httpx2.resolve_map import NetworkSettings, ResolveMap
from papaver.ports.system import FetchFailed, FetchFault, FetchPolicy
from papaver.protocol.errors import ConfigurationError, NotADestination
from papaver.web.messages import Headers
from tests.house.tls_site import PUBLIC, PUBLIC_6, Answer, Site, answer, authority, fails, redirect, serve

pytestmark = pytest.mark.anyio

SHOP = "https://shop.example"
ONCE = FetchPolicy(seconds=10)
FIVE = replace(ONCE, redirects=5)
POPPY = replace(FIVE, exact_path="/.well-known/poppy.json")
PATH = "/.well-known/poppy.json"


@pytest.fixture
def ca_file(tmp_path: Path) -> Path:
    path = tmp_path / "ca.pem"
    authority().cert_pem.write_to_path(str(path))
    return path


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    answers: dict[str, Answer] = {"/": answer(b'{"at":"home"}'), PATH: answer(b'{"poppy":1}')}
    async with serve(answers, "shop.example", "other.example") as site:
        yield site


# What is connected to.


async def test_b16_the_judged_address_is_dialled_and_sni_and_host_stay_the_name(site: Site, ca_file: Path) -> None:
    """One look-up, one dial of what it gave, and the server sees only the name."""
    response = await GuardedFetcher(site.network({"shop.example": [PUBLIC]}, ca_file)).fetch(f"{SHOP}/#top", ONCE)
    assert (response.status, response.body, response.url) == (200, b'{"at":"home"}', f"{SHOP}/#top")
    assert (site.looked_up, site.dialled) == (["shop.example"], [PUBLIC])
    assert (site.names, site.fields("host"), site.paths) == (["shop.example"], ["shop.example"], ["/"])


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1", marks=pytest.mark.requirement("3-20", "3-21")),
        pytest.param("10.0.0.1", marks=pytest.mark.requirement("3-20")),
        pytest.param("192.168.0.10", marks=pytest.mark.requirement("3-21")),
        pytest.param("169.254.169.254", marks=pytest.mark.requirement("3-20", "3-21")),
        pytest.param("::1", marks=pytest.mark.requirement("3-20", "3-21")),
        pytest.param("fe80::1", marks=pytest.mark.requirement("3-20")),
        pytest.param("fc00::1", marks=pytest.mark.requirement("3-20")),
        "100.64.0.1",
        "0.0.0.0",
        "::",
        "::ffff:127.0.0.1",
        "::127.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    ],
)
async def test_c61_no_special_use_address_is_dialled_by_name_or_as_a_literal(
    site: Site, ca_file: Path, address: str
) -> None:
    """Whatever the form, the refusal comes before a socket is opened."""
    network = site.network({"shop.example": [address]}, ca_file)
    literal = f"[{address}]" if ":" in address else address
    for url in (f"{SHOP}/", f"https://{literal}:{site.port}/"):
        failure = await fails(network, url)
        assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "fetch.address-public")
    assert (site.dialled, site.connections) == ([], 0)


@pytest.mark.parametrize("host", ["127.1", "2130706433", "0x7f.1", "017700000001", "127.0.0.1.", "[fe80::1%25lo]"])
async def test_old_spellings_of_an_address_are_no_host(site: Site, ca_file: Path, host: str) -> None:
    """A resolver would take 127.1 for loopback; it is never asked."""
    failure = await fails(site.network({}, ca_file), f"https://{host}:{site.port}/")
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "web.https-only")
    assert (site.looked_up, site.connections) == ([], 0)


@pytest.mark.requirement("3-20", "3-21")
async def test_b13_a_resolver_that_answers_public_and_then_private_is_caught(site: Site, ca_file: Path) -> None:
    """The second look-up is judged as the first was, and neither fetch looks up twice."""
    network = site.network({"shop.example": [[PUBLIC], ["127.0.0.1"]]}, ca_file)
    assert (await GuardedFetcher(network).fetch(f"{SHOP}/", ONCE)).status == 200
    assert (await fails(network, f"{SHOP}/")).rule == "fetch.address-public"
    assert (site.looked_up, site.dialled) == (["shop.example"] * 2, [PUBLIC])


@pytest.mark.parametrize("mixed", [[PUBLIC, "127.0.0.1"], ["10.0.0.1", PUBLIC], [PUBLIC_6, PUBLIC, "::ffff:10.0.0.1"]])
async def test_c61_a_mixed_answer_is_refused(site: Site, ca_file: Path, mixed: list[str]) -> None:
    """One private address among public ones refuses the name."""
    failure = await fails(site.network({"shop.example": mixed}, ca_file), f"{SHOP}/")
    assert (failure.rule, site.dialled) == ("fetch.address-public", [])


async def test_a_socket_that_ends_elsewhere_is_refused_before_a_byte_is_sent(site: Site, ca_file: Path) -> None:
    """The connected socket is looked at again."""
    failure = await fails(site.network({"shop.example": [PUBLIC]}, ca_file, peer="127.0.0.1"), f"{SHOP}/")
    assert (failure.fault, failure.rule, site.heads) == (FetchFault.REFUSED, "fetch.peer-is-judged", [])


@pytest.mark.parametrize("error", [httpcore2.ConnectError("no route"), None], ids=["refused", "silent"])
async def test_a_dead_ipv6_address_does_not_keep_the_fetch_from_ipv4(
    site: Site, ca_file: Path, error: Exception | None
) -> None:
    """The next address is tried when one fails, and beside one that says nothing."""
    network = site.network({"shop.example": [PUBLIC_6, PUBLIC]}, ca_file, dead={PUBLIC_6: error})
    assert (await GuardedFetcher(network).fetch(f"{SHOP}/", ONCE)).status == 200
    assert site.dialled == [PUBLIC_6, PUBLIC]


@pytest.mark.requirement("3-22")
async def test_only_the_host_that_resolve_names_may_be_private(
    site: Site, ca_file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The map is exact in host and port, and says at start that it is there."""
    settings = NetworkSettings(ResolveMap.read([f"shop.example:443=127.0.0.1:{site.port}"]), ca_file)
    network = Network(settings)
    assert (await GuardedFetcher(network).fetch(f"{SHOP}/", ONCE)).status == 200
    assert (site.names, site.fields("host")) == (["shop.example"], ["shop.example"])
    for url in (f"https://localhost:{site.port}/", f"https://127.0.0.1:{site.port}/"):
        assert (await fails(network, url)).rule == "fetch.address-public"
    warned = [record.message for record in caplog.records if record.name == "papaver.network"]
    assert len(warned) == 2
    assert "shop.example:443=127.0.0.1" in warned[0]
    assert "ca.pem" in warned[1]


async def test_b15_a_proxy_of_the_environment_is_not_asked(
    site: Site, ca_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTPS_PROXY would go round every check."""
    async with serve({}, tls=False) as proxy:
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
        network = site.network({"shop.example": [PUBLIC]}, ca_file)
        assert (await GuardedFetcher(network).fetch(f"{SHOP}/", ONCE)).status == 200
        assert (proxy.connections, site.connections) == (0, 1)


async def test_b15_nothing_ambient_is_sent_and_no_cookie_is_kept(site: Site, ca_file: Path) -> None:
    """The request has the fields that we named, also after a Set-Cookie."""
    site.put(sets=answer(b"{}", "200 OK", "Set-Cookie: seen=1; Path=/"))
    fetcher = GuardedFetcher(site.network({"shop.example": [PUBLIC]}, ca_file))
    await fetcher.fetch(f"{SHOP}/sets", ONCE)
    await fetcher.fetch(f"{SHOP}/", ONCE, Headers([("Accept", "application/json")]))
    names = [line.split(":")[0].lower() for line in site.heads[-1].split("\r\n")[1:] if line]
    assert sorted(names) == ["accept", "accept-encoding", "host", "user-agent"]
    assert site.fields("accept") == ["application/json"]


# Where redirects lead.


@pytest.mark.requirement("3-03", "3-05")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirect_is_followed_to_another_host(site: Site, ca_file: Path, status: int) -> None:
    """Every status that redirects, through a relative and an absolute Location."""
    site.put(start=redirect("next", status), next=redirect(f"https://other.example{PATH}", status))
    network = site.network({"shop.example": [PUBLIC], "other.example": [PUBLIC]}, ca_file)
    response = await GuardedFetcher(network).fetch(f"{SHOP}/start", POPPY)
    assert (response.url, response.body) == (f"https://other.example{PATH}", b'{"poppy":1}')
    assert site.names == ["shop.example", "shop.example", "other.example"]


@pytest.mark.requirement("3-20", "3-21")
async def test_b13_a_redirect_hop_to_a_private_address_is_refused(site: Site, ca_file: Path) -> None:
    """By name and by literal; the hop gets no socket."""
    site.put(name=redirect("https://other.example/"), literal=redirect(f"https://169.254.169.254:{site.port}/"))
    network = site.network({"shop.example": [PUBLIC], "other.example": ["127.0.0.1"]}, ca_file)
    for path in ("name", "literal"):
        assert (await fails(network, f"{SHOP}/{path}", FIVE)).rule == "fetch.address-public"
    assert site.dialled == [PUBLIC, PUBLIC]


@pytest.mark.requirement("3-04", "3-13")
async def test_a_redirect_to_http_is_refused_before_it_is_asked(site: Site, ca_file: Path) -> None:
    """The chain ends where it would leave https."""
    site.put(down=redirect("http://other.example/"))
    network = site.network({"shop.example": [PUBLIC], "other.example": [PUBLIC]}, ca_file)
    failure = await fails(network, f"{SHOP}/down", FIVE)
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "web.https-only")
    assert (site.looked_up, site.paths) == (["shop.example"], ["/down"])


async def test_c62_an_http_url_is_never_fetched(site: Site, ca_file: Path) -> None:
    """Not even its name is looked up."""
    failure = await fails(site.network({"shop.example": [PUBLIC]}, ca_file), "http://shop.example/agent.json")
    assert (failure.rule, site.looked_up, site.connections) == ("web.https-only", [], 0)


@pytest.mark.parametrize(
    ("last", "accepted"),
    [
        (PATH, True),
        pytest.param("/uploads/poppy.json", False, marks=pytest.mark.requirement("3-06")),
        pytest.param(f"/x{PATH}", False, marks=pytest.mark.requirement("3-06")),
        pytest.param(f"{PATH}/", False, marks=pytest.mark.requirement("3-06")),
        pytest.param("/.well-known/poppy%2Ejson", False, marks=pytest.mark.requirement("3-06")),
        pytest.param(f"{PATH}?x=1", False, marks=pytest.mark.requirement("3-07")),
        pytest.param(f"{PATH}?", False, marks=pytest.mark.requirement("3-07")),
    ],
)
async def test_the_last_url_has_precisely_the_path(site: Site, ca_file: Path, last: str, accepted: bool) -> None:
    """Judged on the URL that answered, an empty query included."""
    site.put(start=redirect(last))
    site.answers = {**site.answers, last: answer(b'{"poppy":1}')}
    network = site.network({"shop.example": [PUBLIC]}, ca_file)
    if accepted:
        assert (await GuardedFetcher(network).fetch(f"{SHOP}/start", POPPY)).url == f"{SHOP}{last}"
    else:
        assert (await fails(network, f"{SHOP}/start", POPPY)).rule == "fetch.exact-path"


@pytest.mark.requirement("3.4-03")
async def test_a_document_without_redirects_has_none_followed(site: Site, ca_file: Path) -> None:
    """The target is not asked."""
    site.put(start=redirect("/"))
    failure = await fails(site.network({"shop.example": [PUBLIC]}, ca_file), f"{SHOP}/start")
    assert (failure.fault, failure.rule, site.paths) == (FetchFault.REFUSED, "fetch.redirects", ["/start"])


@pytest.mark.requirement("papaver-06")
async def test_redirects_end_at_the_limit_and_in_a_circle(site: Site, ca_file: Path) -> None:
    """Five hops are followed and the sixth is not; a circle is seen at once."""
    site.put(**{f"h{n}": redirect(f"h{n + 1}") for n in range(6)}, h6=answer(), here=redirect("there"))
    site.put(there=redirect("here"))
    network = site.network({"shop.example": [PUBLIC]}, ca_file)
    assert (await GuardedFetcher(network).fetch(f"{SHOP}/h1", FIVE)).url == f"{SHOP}/h6"
    assert (await fails(network, f"{SHOP}/h0", FIVE)).rule == "fetch.redirects"
    assert (await fails(network, f"{SHOP}/here", FIVE)).rule == "fetch.no-loop"


@pytest.mark.parametrize(
    "fields",
    [(), ("Location: /", "Location: /"), ("Location: https://a b/",), ("Location: ftp://shop.example/",)],
    ids=["none", "two", "not a URL", "not HTTP"],
)
async def test_a_redirect_that_leads_nowhere_is_refused(site: Site, ca_file: Path, fields: tuple[str, ...]) -> None:
    """Exactly one Location that is an http URL."""
    site.put(start=answer(b"", "302 Found", *fields))
    failure = await fails(site.network({"shop.example": [PUBLIC]}, ca_file), f"{SHOP}/start", FIVE)
    assert (failure.fault, failure.rule) == (FetchFault.REFUSED, "fetch.location")


async def test_headers_stay_with_their_origin(site: Site, ca_file: Path) -> None:
    """A hop to the same origin keeps them; one to another origin loses them for good, but for Accept."""
    site.put(start=redirect("/again"), again=redirect("https://other.example/away"))
    site.put(away=redirect(f"{SHOP}/"))
    network = site.network({"shop.example": [PUBLIC], "other.example": [PUBLIC]}, ca_file)
    sent = Headers([("Poppy-Version", "0.4"), ("Accept", "application/json")])
    await GuardedFetcher(network).fetch(f"{SHOP}/start", FIVE, sent)
    assert [site.fields("poppy-version", hop) for hop in range(4)] == [["0.4"], ["0.4"], [], []]
    assert all(site.fields("accept", hop) == ["application/json"] for hop in range(4))


@pytest.mark.requirement("papaver-08")
@pytest.mark.parametrize("name", ["Host", "Cookie", "Accept-Encoding", "Content-Length", "Connection"])
async def test_a_caller_cannot_name_the_fetcher_s_own_fields(site: Site, ca_file: Path, name: str) -> None:
    """What says where a request goes, or how its octets are sent, is not a document's matter."""
    fetcher = GuardedFetcher(site.network({"shop.example": [PUBLIC]}, ca_file))
    with pytest.raises(ConfigurationError) as caught:
        await fetcher.fetch(f"{SHOP}/", ONCE, Headers([(name, "x")]))
    assert (caught.value.rule, site.connections) == ("fetch.headers", 0)


async def test_a_fetch_carries_no_credential_and_no_second_line(site: Site, ca_file: Path) -> None:
    """Documents are public; a value cannot smuggle a field in. The fetcher may be used as a block."""
    async with GuardedFetcher(site.network({"shop.example": [PUBLIC]}, ca_file)) as fetcher:
        for name in ("Authorization", "Poppy-Session"):
            with pytest.raises(NotADestination) as caught:
                await fetcher.fetch(f"{SHOP}/", ONCE, Headers([(name, "x")]))
            assert caught.value.rule == "fetch.no-credentials"
        with pytest.raises(FetchFailed) as failed:
            await fetcher.fetch(f"{SHOP}/", ONCE, Headers([("Poppy-Version", "0.4\r\nAuthorization: x")]))
        assert failed.value.rule == "fetch.http"
    assert site.heads == []
