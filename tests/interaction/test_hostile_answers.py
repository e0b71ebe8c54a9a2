"""A hostile Company against the Personal Agent: bodies without an end, and pages without an end."""

from __future__ import annotations

import gzip

import pytest

from papaver.adapters.httpx2.auth import ERROR_BYTES
from papaver.adapters.httpx2.transport import MAX_BYTES
from papaver.company import Mcp
from papaver.personal_agent.conversation import Conversation
from papaver.personal_agent.events import EMPTY_MOST, STALE_AT_ONCE, STALE_MOST
from papaver.personal_agent.settings import AgentLimits
from papaver.ports.system import FetchFailed
from papaver.protocol.errors import Misbehaved
from papaver.testing.pair import Pair, echoing, pair
from papaver.testing.rules import switched_off
from papaver.testing.wire import Exchange, Onward
from papaver.web.messages import Response
from tests.house.pairing import Script, replies, told

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


def event(number: int) -> dict[str, object]:
    """A message of the Company."""
    said = {"id": f"cm_{number}", "role": "company", "author": {"type": "agent"}, "text": str(number)}
    return {"id": f"evt_{number}", "type": "message", "created_at": "2026-10-02T00:13:20Z", "message": said}


class Endless:
    """Answers each read with a page that has `events`, a cursor of its own, and more to come.

    With `ends_after` so many of them comes a last page, with one new event.
    """

    def __init__(self, both: Pair, conversation: Conversation, *events: object, ends_after: int | None = None) -> None:
        self._conversation, self._events, self._ends_after = conversation, events, ends_after
        self._clock, self._before = both.agent_clock, len(both.agent_clock.slept)
        self.pages = 0
        Script(both).always("/events", self._page)

    async def _page(self, exchange: Exchange, onward: Onward) -> Response:
        self.pages += 1
        last = self._ends_after is not None and self.pages > self._ends_after
        events = [event(1)] if last else self._events
        page = {"conversation_id": self._conversation.id, "events": events, "cursor": f"evt_x{self.pages}"}
        return told(200, {**page, "has_more": not last, "status": "idle", "responder": "agent"})

    @property
    def pauses(self) -> list[float]:
        """Since it began."""
        return self._clock.slept[self._before :]


async def started(both: Pair) -> Conversation:
    """A conversation whose events were read."""
    conversation = await (await both.agent.discover("example.com")).session("dana").ask("Hi")
    assert await replies(conversation) == ["You said: Hi"]
    return conversation


@pytest.mark.requirement("papaver-29")
async def test_more_without_end_under_fresh_cursors_is_paused_over_and_then_refused() -> None:
    """No event comes and each cursor is another: a few reads, a pause before each further one, and that is it."""
    async with pair() as both:
        conversation = await started(both)
        endless = Endless(both, conversation)
        with pytest.raises(Misbehaved) as caught:
            await replies(conversation)
        assert caught.value.rule == "page.brings-events"
        assert endless.pages == EMPTY_MOST + 1
        assert endless.pauses == [AgentLimits().poll_pause] * EMPTY_MOST
        Endless(both, conversation, ends_after=2 * EMPTY_MOST)
        with switched_off("page.brings-events"):
            assert await replies(conversation) == ["1"]


async def test_a_few_empty_pages_on_the_way_are_no_fault() -> None:
    """A Company may skip over what it does not show."""
    async with pair() as both:
        conversation = await started(both)
        Endless(both, conversation, ends_after=EMPTY_MOST)
        assert await replies(conversation) == ["1"]


async def test_known_events_without_end_are_paused_over_and_then_refused() -> None:
    """As many as are remembered may come again after an expired cursor, at once; further ones slowly, not for ever."""
    async with pair() as both:
        conversation = await started(both)
        Endless(both, conversation, ends_after=0)
        assert await replies(conversation) == ["1"]
        endless = Endless(both, conversation, event(1))
        with pytest.raises(Misbehaved) as caught:
            await replies(conversation)
        assert caught.value.rule == "page.brings-events"
        assert endless.pages == STALE_MOST + 1
        assert endless.pauses == [AgentLimits().poll_pause] * (STALE_MOST - STALE_AT_ONCE)
