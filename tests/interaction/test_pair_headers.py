"""Which requests carry the Session header and its companions: all that go to destinations, and no others."""

from __future__ import annotations

import httpx2
import pytest

from papaver.company.offer import Mcp
from papaver.protocol.errors import ConfigurationError, InvalidRequest, NotADestination, Refused
from papaver.testing.pair import Pair, echoing, pair
from papaver.testing.wire import Exchange
from papaver.web.messages import Response
from tests.house.pairing import POPPY_JSON, Script, changed, claims, replies, signed, told

pytestmark = pytest.mark.anyio

MCP = "https://mcp.example.com/mcp"
WRAP = "example.com/gift-wrap"


def with_api(both: Pair, *answers: Response) -> list[Exchange]:
    """Puts an API onto the wire that gives these answers, then 200; what it received."""
    left, received = list(answers), list[Exchange]()

    async def serve(exchange: Exchange) -> Response:
        received.append(exchange)
        return left.pop(0) if left else told(200, {"ok": True})

    both.wire.sites["mcp.example.com"] = both.wire.sites["elsewhere.example"] = serve
    return received


def lists_gift_wrap(both: Pair) -> None:
    """The Company's document lists an extension in two versions."""
    entries = [{"version": version, "endpoint": f"https://g.example.com/v{version}"} for version in ("1", "2")]

    def change(document: dict[str, object]) -> None:
        document["extensions"] = {WRAP: entries}

    Script(both).always(POPPY_JSON, changed(change))


@pytest.mark.requirement("5.2-01", "3.4-12", "5-04")
async def test_every_request_to_a_destination_carries_the_header_once() -> None:
    """Conversations of all five kinds and an API: the Session header and the version; no token, no cookie."""
    async with pair(echoing(apis=[Mcp(MCP, "Products")])) as both:
        received = with_api(both, told(200, {}, set_cookie="seen=1; Path=/"))
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        await conversation.say("More")
        await conversation.hand_off()
        await replies(conversation)
        await conversation.close()
        assert (await session.http.post(MCP, json={})).status_code == 200
        assert (await session.http.get(f"{MCP}?page=2")).status_code == 200
        assert len(received) == 2
        reached = both.wire.sent("agent", "api.example.com") + both.wire.sent("agent", "mcp.example.com")
        assert {one.place.rpartition("/")[2] for one in reached} == {
            "conversations", "events", "messages", "handoff", "close", "mcp",
        }  # fmt: skip
        for one in reached:
            headers = one.request.headers
            assert len(headers.all("poppy-session")) == 1
            assert headers.all("poppy-version") == ("0.4",)
            assert not {"authorization", "cookie", "poppy-extensions"} & {name for name, _ in headers}
        assert {id(one) for one in reached} == {id(one) for one in signed(both)}


@pytest.mark.requirement("5.6-02", "5.3-22")
async def test_no_option_leaves_the_header_out() -> None:
    """Neither a header of the caller's, nor a client without auth, reaches a destination unsigned."""
    async with pair(echoing(apis=[Mcp(MCP, "Products")])) as both:
        received = with_api(both)
        session = (await both.agent.discover("example.com")).session("dana")
        for name in ("Poppy-Session", "Poppy-Version", "Poppy-Extensions", "Authorization"):
            with pytest.raises(ConfigurationError) as caught:
                await session.http.post(MCP, headers={name: ""})
            assert caught.value.rule == "session.headers-ours"
        with pytest.raises(NotADestination) as refused:
            await session.http.post(MCP, auth=httpx2.Auth())
        assert refused.value.rule == "destination.signed"
        assert received == []


@pytest.mark.requirement("3-19")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
@pytest.mark.parametrize("target", ["https://elsewhere.example/mcp", "https://mcp.example.com/other"])
async def test_a_redirect_never_carries_the_header_on(status: int, target: str) -> None:
    """Whether the caller follows redirects or not: what comes after the destination gets nothing of the protocol."""
    async with pair(echoing(apis=[Mcp(MCP, "Products")])) as both:
        received = with_api(both, *[told(status, location=target)] * 2)
        session = (await both.agent.discover("example.com")).session("dana")
        assert (await session.http.post(MCP, json={})).status_code == status
        answer = await session.http.post(MCP, json={}, follow_redirects=True)
        assert answer.status_code == 200
        assert [one.request.url for one in received] == [MCP, MCP, target]
        assert not {name for name, _ in received[-1].request.headers if name.startswith("poppy")}


@pytest.mark.requirement("3-19")
async def test_a_redirect_to_another_destination_is_not_followed_unsigned() -> None:
    """A destination gets signed requests or none."""
    other = "https://elsewhere.example/mcp"
    async with pair(echoing(apis=[Mcp(MCP, "Products"), Mcp(other, "Sizes")])) as both:
        received = with_api(both, told(307, location=other))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(NotADestination) as caught:
            await session.http.post(MCP, json={}, follow_redirects=True)
        assert caught.value.rule == "destination.signed"
        assert len(received) == 1


@pytest.mark.requirement("3-19")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_conversation_endpoint_that_redirects_is_not_followed(status: int) -> None:
    """No hop at all: not the header, and not the message either."""
    async with pair() as both:
        received = with_api(both)
        Script(both).always("/conversations", told(status, location="https://elsewhere.example/poppy/conversations"))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(Refused, match=str(status)):
            await session.ask("Hi")
        assert received == []


@pytest.mark.requirement("5.6-03")
async def test_no_jwt_is_ever_in_a_url() -> None:
    """Nor any part of one, in the URLs that are asked for and in the bodies."""
    async with pair(echoing(apis=[Mcp(MCP, "Products")])) as both:
        with_api(both)
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi", wait=5)
        await replies(conversation)
        await session.http.post(MCP, params={"page": "2"}, json={})
        parts = {part for one in signed(both) for part in str(one.request.headers.first("poppy-session")).split(".")}
        assert len(parts) > 4
        for one in both.wire.exchanges:
            where = one.request.url + one.request.body.decode()
            assert [part for part in parts if part in where] == []


@pytest.mark.requirement("3.4-15", "3.4-13", "3.3-06")
async def test_a_session_declares_the_same_on_every_request() -> None:
    """The extensions that both sides have, each in one version: the newest that the agent prefers."""
    async with pair(extensions={WRAP: ["2", "1"], "links": ["1"]}) as both:
        lists_gift_wrap(both)
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Hi")
        await replies(conversation)
        await conversation.close()
        declared = {
            (one.request.headers.all("poppy-version"), one.request.headers.all("poppy-extensions"))
            for one in signed(both)
        }
        assert declared == {(("0.4",), (f'"{WRAP}";v="2"',))}
        assert len({claims(one)["sid"] for one in signed(both)}) == 1


@pytest.mark.requirement("3.3-07")
async def test_an_extension_that_a_request_shows_by_itself_is_not_declared() -> None:
    """One with a grant type of its own is listed by the Company and needs no entry: every request is served without."""
    async with pair(extensions={WRAP: ["2"]}) as both:

        def change(document: dict[str, object]) -> None:
            document["extensions"] = {"example.com/own-grant": [{"version": "1"}], WRAP: [{"version": "2"}]}

        Script(both).always(POPPY_JSON, changed(change))
        company = await both.agent.discover("example.com")
        assert set(company.document.extensions) == {"example.com/own-grant", WRAP}
        conversation = await company.session("dana").ask("Hi")
        await replies(conversation)
        assert {one.request.headers.all("poppy-extensions") for one in signed(both)} == {(f'"{WRAP}";v="2"',)}
        assert all(one.response is not None and one.response.status < 300 for one in signed(both))


@pytest.mark.requirement("3.3-10", "8.4-28")
async def test_extension_content_comes_back_to_who_declared_it() -> None:
    """It goes out in the message, is recorded, and is read back in a Session that declares the extension."""
    async with pair(extensions={WRAP: ["2"]}) as both:
        lists_gift_wrap(both)
        session = (await both.agent.discover("example.com")).session("dana")
        conversation = await session.ask("Wrapped, please.", extensions={WRAP: {"paper": "green"}})
        [first, *_] = [event async for event in conversation.events()]
        assert first.message.extensions == {WRAP: {"paper": "green"}}  # type: ignore[union-attr]


async def test_c93_extension_content_never_goes_to_a_company_that_does_not_list_it() -> None:
    """Implemented here, not listed there: refused before anything is sent or stored."""
    async with pair(extensions={WRAP: ["2"]}) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(InvalidRequest) as caught:
            await session.ask("Wrapped, please.", extensions={WRAP: {"paper": "green"}})
        assert caught.value.rule == "message.extensions-shared"
        assert signed(both) == []
        assert await both.agent.pending() == ()


async def test_a_client_that_was_handed_on_is_as_strict(caplog: pytest.LogCaptureFixture) -> None:
    """Libraries that take an httpx2 client get one that signs; it keeps no cookie and logs no header."""
    async with pair(echoing(apis=[Mcp(MCP, "Products")])) as both:
        received = with_api(both, told(200, {}, set_cookie="seen=1; Path=/; Secure"))
        http: httpx2.AsyncClient = (await both.agent.discover("example.com")).session("dana").http
        for _ in range(2):
            await http.post(MCP, json={})
        assert all("cookie" not in one.request.headers for one in received)
        assert claims(received[0])["jti"] != claims(received[1])["jti"]
        assert str(received[0].request.headers.first("poppy-session")) not in caplog.text


@pytest.mark.requirement("5.2-03", "5.2-04")
@pytest.mark.parametrize("name", ["Poppy-Session", "Authorization"])
async def test_a_credential_that_somebody_puts_on_goes_nowhere(name: str) -> None:
    """Past the signing, to a place on the Company's own host: the guard below lets out what was signed, and no more."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        for url in ("https://api.example.com/poppy", "https://example.com/orders"):
            with pytest.raises(NotADestination) as caught:
                await session.http.post(url, headers={name: "Bearer a.b.c"}, auth=httpx2.Auth())
            assert caught.value.rule == "destination.signed-hop"
        assert both.wire.sent("agent", "api.example.com") == []
