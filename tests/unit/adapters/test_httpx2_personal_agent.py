"""The httpx2 door of a Personal Agent: what its client signs, where the header may go, and what nobody can see."""

from __future__ import annotations

import pickle
from collections.abc import AsyncIterator

import httpx2
import pytest

from papaver.adapters.httpx2.personal_agent import PersonalAgent
from papaver.adapters.httpx2.session_transport import SIGNED, SessionTransport, SignedHop, check_hop_signed
from papaver.adapters.httpx2.transport import MayReceive
from papaver.personal_agent.flows.effects import Send, SessionFields
from papaver.ports.system import FetchFailed
from papaver.protocol.destinations import Destination, Destinations
from papaver.protocol.errors import ConfigurationError, DiscoveryFailed, NotADestination
from papaver.testing.rules import switched_off
from papaver.values.secret import Secret
from papaver.web.messages import Request
from tests.house.agent_ports import MemoryVault
from tests.house.agent_scripted import scripted
from tests.house.agent_world import (
    CLIENT_ID,
    DOMAIN,
    ENDPOINT,
    Keys,
    ScriptedCompany,
    answer,
    document,
    error,
    unreachable,
)

pytestmark = pytest.mark.anyio

POPPY = f"https://{DOMAIN}/.well-known/poppy.json"
MCP = "https://mcp.shop.example/mcp"


def company() -> ScriptedCompany:
    """A Company with an MCP server, the one kind of API whose URL is a Session destination itself (5.2)."""
    found = ScriptedCompany()
    found.documents[POPPY] = document(apis=[{"type": "mcp", "url": MCP, "description": "Products"}])
    return found


async def test_every_request_of_the_client_is_signed() -> None:
    """Whatever library uses it, each has a header of its own, and the query is no part of what is signed."""
    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.company.script = [answer(200, {"n": 1}), answer(200), answer(204)]
        response = await session.http.post(MCP, json={"call": 1}, headers={"Mcp-Session-Id": "s"})
        assert response.json() == {"n": 1}
        await session.http.get(f"{MCP}?q=shoes")
        await session.http.request("DELETE", MCP)
        assert [proven.claims.htm for proven in network.company.proven] == ["POST", "GET", "DELETE"]
        assert {proven.claims.htu for proven in network.company.proven} == {MCP}
        assert network.company.requests[0].body == b'{"call":1}'
        assert network.company.requests[0].headers.first("mcp-session-id") == "s"


async def test_a_retry_inside_the_client_is_signed_afresh() -> None:
    """After `session_ended` the same body goes out once more, in a new Session (readings 49)."""

    async def body() -> AsyncIterator[bytes]:
        yield b"streamed "
        yield b"once"

    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.company.script = [error("session_ended"), answer(200)]
        response = await session.http.post(MCP, content=body())
        assert response.status_code == 200
        assert [request.body for request in network.company.requests] == [b"streamed once"] * 2
        first, second = network.company.proven
        assert first.jti != second.jti
        assert first.sid != second.sid
        assert len(response.history) == 1


async def test_an_error_of_a_recovery_is_the_requests_error() -> None:
    """The documents that a version asks for cannot be had."""
    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.company.documents[POPPY] = unreachable(POPPY)
        network.company.script = [error("version_unsupported")]
        with pytest.raises(DiscoveryFailed) as caught:
            await session.http.get(MCP)
        assert caught.value.rule == "discovery.fetched"


async def test_what_cannot_be_mended_is_the_callers_response() -> None:
    """A client for APIs gives back what came, and its body can be streamed."""

    async def pieces() -> AsyncIterator[bytes]:
        yield b"one "
        yield b"two"

    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.company.script = [error("invalid_session"), answer(401)]
        assert (await session.http.get(MCP)).json() == {"error": "invalid_session"}
        assert (await session.http.get(MCP)).status_code == 401
        network.elsewhere[MCP] = httpx2.Response(200, content=pieces())
        async with session.http.stream("GET", MCP) as response:
            assert not response.is_stream_consumed
            assert [piece async for piece in response.aiter_bytes()] == [b"one ", b"two"]


@pytest.mark.requirement("5.2-04", "5.2-03")
async def test_nothing_leaves_for_another_url() -> None:
    """Neither for another host nor for another path of the same."""
    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        for url in ("https://evil.example/", f"{MCP}/other", POPPY, "http://mcp.shop.example/mcp"):
            with pytest.raises(NotADestination) as caught:
                await session.http.get(url)
            assert caught.value.rule == "destination.listed"
        assert network.hops == []


@pytest.mark.requirement("3-19")
@pytest.mark.parametrize("target", ["https://evil.example/catch", f"{MCP}/again"])
async def test_a_redirect_never_carries_the_session(target: str) -> None:
    """Not to another host, not to another place of the same one; the versions stay behind as well."""
    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.elsewhere[target] = httpx2.Response(200, content=b"caught")
        for status in (302, 307):
            network.company.script = [answer(status, None, Location=target)]
            response = await session.http.post(MCP, json={}, follow_redirects=True)
            assert response.content == b"caught"
            hop = network.hops[-1]
            assert str(hop.url) == target
            assert not [name for name in hop.headers if name.startswith("poppy-") or name == "authorization"]


@pytest.mark.requirement("3-19")
@pytest.mark.parametrize("target", [f"{ENDPOINT}/cnv_1/events", f"{MCP}?again=1"])
async def test_a_redirect_to_a_destination_ends_there(target: str) -> None:
    """It may not carry the header, and a destination gets no request without it."""
    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.company.script = [answer(302, None, Location=target)]
        with pytest.raises(NotADestination) as caught:
            await session.http.post(MCP, json={}, follow_redirects=True)
        assert caught.value.rule == "destination.signed"
        assert len(network.hops) == 1


@pytest.mark.requirement("3-19")
async def test_redirects_are_not_followed_unless_asked() -> None:
    """The answer is the redirect; a conversation takes it for a refusal."""
    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.company.script = [answer(302, None, Location="https://evil.example/")]
        assert (await session.http.get(MCP)).status_code == 302
        assert len(network.hops) == 1


async def test_nobody_above_the_transport_sees_the_header() -> None:
    """Hooks, the response's request, its pickle and its repr are without it."""
    seen: list[httpx2.Request] = []

    async def hook(request: httpx2.Request) -> None:
        seen.append(request)

    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        session.http.event_hooks["request"] = [hook]
        network.company.script = [answer(200)]
        response = await session.http.get(MCP)
        [hop] = network.hops
        jwt = hop.headers["poppy-session"]
        for request in (*seen, response.request):
            assert "poppy-session" not in request.headers
            assert jwt not in repr(request.__dict__)
            assert jwt.encode() not in pickle.dumps(request)


async def test_a_broken_connection_is_an_error_of_the_network() -> None:
    """The conversation tries again; what remains is FetchFailed, with the URL and no request inside."""

    class Broken(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            raise httpx2.ReadError("reset", request=request)

    async with scripted(transport=Broken()) as (agent, _):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        with pytest.raises(FetchFailed) as caught:
            await session.ask("Hello")
        assert caught.value.url == ENDPOINT
        [pending] = await agent.pending()
        assert pending.text == "Hello"


async def test_each_session_has_connections_of_its_own() -> None:
    """Two Users never share a client; closing the Personal Agent closes each."""
    async with scripted(company()) as (agent, _):
        found = await agent.discover(DOMAIN)
        first, second = found.session("dana"), found.session("sam")
        assert first.http is not second.http
        await first.aclose()
        assert first.http.is_closed
        with pytest.raises(ConfigurationError) as caught:
            await first.ask("Hello")
        assert caught.value.rule == "session.open"
        async with found.session("dana") as third:
            assert not third.http.is_closed
        assert third.http.is_closed
    assert second.http.is_closed


async def test_exchanges_can_be_traced() -> None:
    """Documents and requests alike: method, URL, status, and nothing else."""
    told: list[tuple[str, str, int]] = []

    def trace(method: str, url: str, status: int) -> None:
        told.append((method, url, status))

    async with scripted(trace=trace) as (agent, _):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        await session.ask("Hello")
        resource = f"https://{DOMAIN}/.well-known/oauth-protected-resource"
        assert told == [("GET", POPPY, 200), ("GET", resource, 404), ("POST", ENDPOINT, 201)]


async def test_the_real_network_is_the_guarded_one() -> None:
    """Without `transport` and `fetcher`, documents and requests pass the guards that know no private address."""
    async with PersonalAgent(CLIENT_ID, keys=Keys(), vault=MemoryVault()) as agent:
        with pytest.raises(Exception, match="discovery_failed"):
            await agent.discover("localhost")
        assert "PersonalAgent" in repr(agent)


class TestSessionTransport:
    """The guard below the client."""

    hop = SignedHop(
        Send(
            Request("GET", MCP),
            SessionFields("Poppy-Session", Secret("jwt"), (("poppy-version", "x"),)),
            Destinations((Destination(MCP),)),
        )
    )

    async def carry(self, request: httpx2.Request) -> httpx2.Request:
        """What arrives below; the inner transport asks whether it may carry credentials, as the guarded one does."""
        arrived: list[httpx2.Request] = []

        class Inner(httpx2.AsyncBaseTransport):
            def __init__(self, may_receive: MayReceive) -> None:
                self.may_receive = may_receive

            async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
                if "poppy-session" in request.headers:
                    self.may_receive(request.method, str(request.url))
                arrived.append(request)
                return httpx2.Response(200)

        async with SessionTransport(Inner, lambda: Destinations(())) as transport:
            await transport.handle_async_request(request)
        return arrived[0]

    async def test_the_signed_hop_gets_its_header(self) -> None:
        """And the extension does not go further down."""
        arrived = await self.carry(httpx2.Request("GET", MCP, extensions={SIGNED: self.hop, "timeout": {}}))
        assert arrived.headers["poppy-session"] == "jwt"
        assert arrived.headers["poppy-version"] == "x"
        assert set(arrived.extensions) == {"timeout"}

    @pytest.mark.parametrize(("method", "url"), [("POST", MCP), ("GET", f"{MCP}?a"), ("GET", "https://evil.example/")])
    async def test_another_hop_does_not(self, method: str, url: str) -> None:
        """Another method or URL is another request."""
        arrived = await self.carry(httpx2.Request(method, url, extensions={SIGNED: self.hop}))
        assert "poppy-session" not in arrived.headers

    async def test_a_hop_is_judged_again_where_it_leaves(self) -> None:
        """A header that somebody got past the first check goes no further."""
        elsewhere = SignedHop(Send(self.hop.send.request, self.hop.send.fields, Destinations(())))
        with pytest.raises(NotADestination) as caught:
            await self.carry(httpx2.Request("GET", MCP, extensions={SIGNED: elsewhere}))
        assert caught.value.rule == "destination.listed"

    @pytest.mark.requirement("5.2-03")
    async def test_a_smuggled_header_is_refused_below(self) -> None:
        """A request that carries the header without having been signed a moment ago does not leave."""
        with pytest.raises(NotADestination) as caught:
            await self.carry(httpx2.Request("GET", MCP, headers={"Poppy-Session": "stolen"}))
        assert caught.value.rule == "destination.signed-hop"
        with switched_off("destination.signed-hop"):
            await self.carry(httpx2.Request("GET", MCP, headers={"Poppy-Session": "stolen"}))
        check_hop_signed("GET", MCP, frozenset({("GET", MCP)}))


async def test_an_error_of_the_transport_reaches_the_clients_user() -> None:
    """It is the network's own error, and no answer."""
    async with scripted(company()) as (agent, network):
        session = (await agent.discover(DOMAIN)).session(user="dana")
        network.company.script = [unreachable(MCP)]
        with pytest.raises(FetchFailed):
            await session.http.get(MCP)
