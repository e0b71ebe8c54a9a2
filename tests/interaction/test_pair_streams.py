"""Events as a stream between both parties: pieces, resumption, what breaks, what has to do with pages (8.6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest
from anyio.lowlevel import checkpoint

from papaver.company.turn import Turn
from papaver.personal_agent.conversation import Conversation
from papaver.personal_agent.flows.effects import StreamedResponse
from papaver.protocol.conversation.model import Event, MessageAdded, Role, TextDelta
from papaver.protocol.errors import Misbehaved
from papaver.testing.pair import Pair, echoing, pair
from papaver.testing.wire import Exchange, Onward
from papaver.web import sse
from papaver.web.messages import Headers, Response
from tests.house.pairing import Script, answering, signed, told

pytestmark = pytest.mark.anyio

EVENTS = "/events"


def reads(both: Pair) -> list[Exchange]:
    return [one for one in signed(both) if one.place.endswith(EVENTS)]


def streamed(*octets: bytes) -> StreamedResponse:
    """A stream of these pieces, which then ends."""

    async def chunks() -> AsyncGenerator[bytes]:
        for one in octets:
            yield one

    return StreamedResponse(200, Headers({"content-type": sse.MEDIA_TYPE}), chunks=chunks())


async def opened(both: Pair) -> Conversation:
    session = (await both.agent.discover("example.com")).session("dana")
    return await session.ask("Where is my order?")


def texts(events: list[Event]) -> list[str | None]:
    return [
        event.message.text for event in events if isinstance(event, MessageAdded) and event.message.role is Role.COMPANY
    ]


@pytest.mark.requirement("8.6-02", "8.6-04", "8.6-05")
async def test_the_reply_comes_over_one_stream() -> None:
    """The read that would be held asks for a stream, by Accept; events and states come over it, each once."""
    async with pair() as both:
        conversation = await opened(both)
        events = [event async for event in conversation.events()]
        assert texts(events) == ["You said: Where is my order?"]
        assert len({event.id for event in events}) == len(events)
        accepts = [one.request.headers.first("accept") or "" for one in reads(both)]
        assert [sse.MEDIA_TYPE in accept for accept in accepts].count(True) == 1


@pytest.mark.requirement("8.6-09", "8.6-10")
async def test_c19_pieces_come_before_the_message_that_replaces_them() -> None:
    """In order, with the id of the message; what they say together is its beginning."""
    begin = asyncio.Event()

    async def slow(turn: Turn) -> AsyncGenerator[str]:
        await begin.wait()
        for piece in ("It is ", "on its ", "way."):
            yield piece
            await asyncio.sleep(0)

    async with pair(answering(slow)) as both:
        conversation = await opened(both)
        shown: list[TextDelta] = []
        whole: MessageAdded | None = None
        async for found in conversation.live():
            if isinstance(found, TextDelta):
                assert whole is None
                shown.append(found)
            elif isinstance(found, MessageAdded) and found.message.role is Role.COMPANY:
                whole = found
            begin.set()
        assert whole is not None
        assert whole.message.text == "It is on its way."
        assert {piece.message_id for piece in shown} <= {whole.message.id}
        assert all(whole.message.text.startswith(piece.so_far) for piece in shown)


@pytest.mark.requirement("8.6-07", "8.6-11")
async def test_b60_a_broken_stream_goes_on_after_the_last_event_and_nothing_is_posted_again() -> None:
    """The next one names it in Last-Event-ID, without a cursor; pieces that were not finished are taken back."""
    async with pair(echoing(), turns=False) as both:
        conversation = await opened(both)
        page = await conversation.next_page(hold=False)
        own = page.events[0]
        piece = sse.encode(None, b'{"message_id":"msg_r","text":"It is "}', "text-delta")
        first = streamed(sse.encode(own.id, _json(own.id, "msg_x", "one")), piece)
        second = streamed(sse.encode("evt_2", _json("evt_2", "msg_r", "It is here.")), _state("evt_3"))
        Script(both).then(EVENTS, first, second, told(200, _page(conversation.id)))
        seen = [found async for found in conversation.live()]
        assert [(one.text, one.so_far) for one in seen if isinstance(one, TextDelta)] == [
            ("It is ", "It is "),
            ("", ""),
        ]
        assert texts([one for one in seen if not isinstance(one, TextDelta)])[-1] == "It is here."
        resumed = reads(both)[2].request
        assert resumed.headers.first("last-event-id") == own.id
        assert "cursor=" not in resumed.url
        assert [one.request.method for one in signed(both)].count("POST") == 1


def _json(event_id: str, message_id: str, text: str) -> str:
    return (
        f'{{"id":"{event_id}","type":"message","created_at":"2026-10-08T19:03:00Z","message":{{"id":"{message_id}",'
        f'"role":"company","author":{{"type":"agent"}},"text":"{text}"}}}}'
    )


def _state(event_id: str) -> bytes:
    state = (
        f'{{"id":"{event_id}","type":"state","created_at":"2026-10-08T19:03:00Z","status":"idle","responder":"agent"}}'
    )
    return sse.encode(event_id, state)


def _page(conversation: str) -> dict[str, object]:
    return {
        "conversation_id": conversation,
        "events": [],
        "cursor": "evt_3",
        "has_more": False,
        "status": "idle",
        "responder": "agent",
    }


@pytest.mark.requirement("8.6-03")
async def test_a_company_that_answers_in_pages_is_read_in_pages() -> None:
    """JSON in answer to the wish for a stream is a page; no second stream is asked for."""
    async with pair() as both:

        async def no_stream(exchange: Exchange, onward: Onward) -> Response:
            kept = [pair for pair in exchange.request.headers if pair[0] != "accept"]
            exchange.request = type(exchange.request)(
                exchange.request.method, exchange.request.url, Headers([*kept, ("accept", "application/json")])
            )
            return await onward()

        Script(both).always(EVENTS, no_stream)
        conversation = await opened(both)
        assert texts([event async for event in conversation.events()]) == ["You said: Where is my order?"]
        await conversation.say("And?")
        assert texts([event async for event in conversation.events()]) == ["You said: And?"]


@pytest.mark.requirement("8.6-06")
async def test_b61_streams_that_end_at_once_give_way_to_pages() -> None:
    """Three without an event, as behind a proxy that cuts them off; then the same is read in pages."""
    async with pair() as both:
        conversation = await opened(both)
        Script(both).then(EVENTS, streamed(), streamed(sse.KEEP_ALIVE), streamed())
        assert texts([event async for event in conversation.events()]) == ["You said: Where is my order?"]
        asked = [sse.MEDIA_TYPE in (one.request.headers.first("accept") or "") for one in reads(both)]
        assert asked.count(True) == 3


@pytest.mark.parametrize("kind", ["known event", "pieces"])
async def test_streams_without_anything_new_give_way_to_pages(kind: str) -> None:
    """What is known already, and pieces of what never comes, are no reason to go on with streams."""
    async with pair(turns=False) as both:
        conversation = await opened(both)
        own = (await conversation.next_page(hold=False)).events[0]
        octets = {
            "known event": sse.encode(own.id, _json(own.id, "msg_x", "one")),
            "pieces": sse.encode(None, b'{"message_id":"msg_r","text":"It is "}', "text-delta"),
        }[kind]
        conversation.delivered(own)
        pages = [told(200, _page(conversation.id))] * 2
        Script(both).then(EVENTS, *(streamed(octets) for _ in range(3)), *pages)
        assert [event async for event in conversation.events()] == []
        asked = [sse.MEDIA_TYPE in (one.request.headers.first("accept") or "") for one in reads(both)]
        assert asked == [False, True, True, True, False, False]


async def test_a_company_cannot_have_streams_opened_without_a_pause() -> None:
    """Whatever it says in `retry`, and whatever each of them brings."""
    async with pair(turns=False) as both:
        conversation = await opened(both)
        limits = conversation.session.live.setup.limits
        streams = [
            streamed(b"retry: 0\n\n", sse.encode(f"evt_{n}", _json(f"evt_{n}", f"msg_{n}", "x"))) for n in range(5)
        ]
        Script(both).then(EVENTS, *streams, told(200, _page(conversation.id)), told(200, _page(conversation.id)))
        before = len(both.agent_clock.slept)
        assert texts([event async for event in conversation.events()]) == ["x"] * 5
        assert both.agent_clock.slept[before:][:4] == [limits.poll_pause] * 4


async def test_what_is_no_event_ends_the_reading() -> None:
    """The Company misbehaves; the rule says how."""
    async with pair(turns=False) as both:
        conversation = await opened(both)
        for octets, rule in (
            (b"data: nonsense\n\n", "stream.json"),
            (b'event: text-delta\ndata: {"text": 1}\n\n', "stream.text-delta"),
            (b'event: text-delta\ndata: {"message_id": "/", "text": "x"}\n\n', "stream.text-delta"),
        ):
            Script(both).then(EVENTS, streamed(octets))
            with pytest.raises(Misbehaved) as refused:
                [event async for event in conversation.events()]
            assert refused.value.rule == rule
            assert not conversation.session.listening


async def test_events_of_kinds_that_are_not_known_are_passed_over() -> None:
    """In a stream as in a page (8.5)."""
    async with pair(turns=False) as both:
        conversation = await opened(both)
        odd = sse.encode("evt_1", '{"id":"evt_1","type":"later","created_at":"2026-10-08T19:03:00Z"}')
        other = sse.encode(None, "{}", "something-else")
        Script(both).then(
            EVENTS,
            streamed(odd, other, _state("evt_2")),
            told(200, _page(conversation.id)),
        )
        assert len([event async for event in conversation.events()]) == 1


@pytest.mark.requirement("8.5-23")
async def test_what_the_company_has_dropped_is_told_as_a_gap() -> None:
    """The stream is opened again from the beginning of what is kept, and known events are not given out again."""
    async with pair() as both:
        conversation = await opened(both)
        Script(both).then(EVENTS, told(410, {"error": "cursor_expired"}))
        assert not conversation.history_gap
        assert texts([event async for event in conversation.events()]) == ["You said: Where is my order?"]
        assert conversation.history_gap


async def test_an_open_stream_is_closed_with_its_session() -> None:
    """Whoever stops in the middle leaves nothing open."""
    async with pair(turns=False) as both:
        conversation = await opened(both)
        session = conversation.session
        reading = conversation.events()
        await anext(reading)
        waiting = asyncio.ensure_future(anext(reading))
        while not session.listening:
            await checkpoint()
        waiting.cancel()
        await asyncio.wait({waiting})
        await session.aclose()
        assert not session.listening
