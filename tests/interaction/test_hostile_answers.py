"""A hostile Company against the Personal Agent: bodies without an end, and pages without an end."""

from __future__ import annotations

import gzip

import pytest

from papaver.adapters.httpx2.auth import ERROR_BYTES
from papaver.adapters.httpx2.transport import MAX_BYTES
from papaver.company import Mcp
from papaver.ports.system import FetchFailed
from papaver.testing.pair import Pair, echoing, pair
from papaver.testing.wire import Exchange
from papaver.web.messages import Response
from tests.house.pairing import told

pytestmark = pytest.mark.anyio

MCP = "https://mcp.example.com/mcp"
ACCEPT = "application/json, text/event-stream"
"""What every client of MCP accepts, each time."""


def with_mcp(both: Pair, response: Response) -> None:
    """The Company's MCP server answers this."""

    async def site(exchange: Exchange) -> Response:
        return response

    both.wire.sites["mcp.example.com"] = site


def bomb(size: int) -> bytes:
    """So many octets, a thousandth of them on the wire."""
    return gzip.compress(b" " * size)


@pytest.mark.requirement("papaver-03")
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, "application/json"),
        (400, "text/event-stream"),
        (503, "text/html"),
        (200, "application/json"),
        (201, "text/event-stream"),
        (200, "text/event-streams"),
        (200, ""),
    ],
)
async def test_accepting_event_streams_does_not_lift_the_limit_of_other_answers(status: int, kind: str) -> None:
    """Only a 200 that is an event stream has no end: neither an error nor a document may unfold to anything."""
    async with pair(echoing(apis=[Mcp(url=MCP, description="x")])) as both:
        with_mcp(both, told(status, bomb(MAX_BYTES + 1), content_type=kind, content_encoding="gzip"))
        session = (await both.agent.discover("example.com")).session("dana")
        with pytest.raises(FetchFailed) as caught:
            await session.http.post(MCP, json={}, headers={"Accept": ACCEPT})
        assert (caught.value.rule, caught.value.url) == ("fetch.size", MCP)


@pytest.mark.requirement("papaver-03")
async def test_an_event_stream_that_was_asked_for_is_read_as_long_as_its_reader_wants() -> None:
    """Upper case and parameters included; it is not held in memory."""
    async with pair(echoing(apis=[Mcp(url=MCP, description="x")])) as both:
        with_mcp(
            both,
            told(200, bomb(MAX_BYTES + 1), content_type="Text/Event-Stream; charset=utf-8", content_encoding="gzip"),
        )
        session = (await both.agent.discover("example.com")).session("dana")
        async with session.http.stream("POST", MCP, json={}, headers={"Accept": ACCEPT}) as response:
            assert sum([len(piece) async for piece in response.aiter_raw()]) == MAX_BYTES + 1


@pytest.mark.requirement("papaver-03")
@pytest.mark.parametrize(("more", "fits"), [(0, True), (1, False)])
async def test_a_refusal_is_read_up_to_a_limit_of_its_own(more: int, fits: bool) -> None:
    """It is read before the caller sees it, also where the caller streams: so it ends long before other answers do."""
    async with pair(echoing(apis=[Mcp(url=MCP, description="x")])) as both:
        with_mcp(both, told(400, bomb(ERROR_BYTES + more), content_type="text/html", content_encoding="gzip"))
        session = (await both.agent.discover("example.com")).session("dana")
        if fits:
            async with session.http.stream("POST", MCP, json={}) as response:
                assert len(await response.aread()) == ERROR_BYTES
            return
        with pytest.raises(FetchFailed) as caught:
            async with session.http.stream("POST", MCP, json={}):
                pass
        assert caught.value.rule == "fetch.size"
