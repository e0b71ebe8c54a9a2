"""Event streams of a Company (8.6): who gets one, what is in it, and what ends it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from papaver.company.settings import CompanyLimits
from papaver.company.turn import Turn
from papaver.ports.deltas import Delta
from papaver.protocol.terms import ClientId, ConversationId, MessageId, SessionId
from papaver.testing.company import CompanyBench, Streamed, company_bench
from papaver.testing.keys import NOW
from papaver.web.messages import Headers, Response
from papaver.web.sse import KEEP_ALIVE, MEDIA_TYPE
from tests.house.company_tokens import SCOPES, TokenTable, bearer

pytestmark = pytest.mark.anyio

CLIENT, SID = ClientId("https://agent.example/agent.json"), SessionId("sid_Yx2b7Qd")
STREAM = {"accept": MEDIA_TYPE}
CARD = "https://cards.example/ext"
A, WIDER = bearer("token-a"), bearer("token-a2")


async def started(bench: CompanyBench, **claims: Any) -> tuple[str, str]:
    """A conversation with nothing left to do, and the cursor at its end."""
    conversation = (await bench.start(**claims)).json["conversation_id"]
    page = await bench.read(conversation, **claims)
    return conversation, page.json["cursor"]


@asynccontextmanager
async def open_at(bench: CompanyBench, conversation: str, query: str = "", **options: Any) -> AsyncGenerator[Streamed]:
    """A stream whose first chunk was taken: everything after it is news."""
    async with await bench.stream(conversation, query, **options) as stream:
        assert (await stream.chunk()).startswith(b"retry: 1000\n\n")
        yield stream


def said(event: Any) -> Any:
    """The JSON of an event that is there."""
    assert event is not None, "the stream has ended"
    return json.loads(event.data)


async def publish(bench: CompanyBench, conversation: str, *deltas: Delta) -> None:
    """As a turn does that writes."""
    tables: Any = await bench.company.store.tables(bench.company.id)
    for delta in deltas:
        tables.deltas.publish(ConversationId(conversation), delta)


@pytest.mark.requirement("8.6-01", "8.6-04")
async def test_a_read_that_asks_for_a_stream_gets_what_a_page_has() -> None:
    """The id of each event is the id of the SSE event, its JSON the data; what follows comes as it happens."""
    async with company_bench(turns=False) as bench:
        conversation, _ = await started(bench)
        async with await bench.stream(conversation) as stream:
            assert (stream.status, stream.headers.all("content-type")) == (200, (MEDIA_TYPE,))
            page = (await bench.read(conversation)).json["events"]
            for recorded in page:
                event = await stream.event()
                assert (event and event.id, event and event.event, said(event)) == (recorded["id"], "message", recorded)
            await bench.say(conversation, "more")
            assert said(await stream.event())["message"]["text"] == "more"
            assert bench.company.held == 1
        assert bench.company.held == 0


@pytest.mark.parametrize("page", [1, 2, 100])
async def test_what_is_recorded_already_comes_page_by_page(page: int) -> None:
    """Each event once and in order, however many a page has."""
    async with company_bench(turns=False, page=page) as bench:
        conversation, _ = await started(bench)
        for number in range(5):
            await bench.say(conversation, str(number))
        async with await bench.stream(conversation) as stream:
            texts = [said(await stream.event())["message"]["text"] for _ in range(6)]
        assert texts == ["Hello", "0", "1", "2", "3", "4"]


@pytest.mark.requirement("papaver-129")
async def test_b61_nobody_on_the_way_is_to_hold_a_stream_back() -> None:
    """Its fields say so, and it begins at once: with the wait before a new connection, and what there is."""
    async with company_bench(turns=False, stream_retry=7) as bench:
        conversation, cursor = await started(bench)
        async with await bench.stream(conversation, f"cursor={cursor}") as stream:
            assert stream.headers == Headers(
                [
                    ("content-type", "text/event-stream"),
                    ("cache-control", "no-store, no-transform"),
                    ("x-accel-buffering", "no"),
                ]
            )
            assert await stream.chunk() == b"retry: 7000\n\n"


@pytest.mark.requirement("papaver-129")
async def test_b61_a_stream_without_news_has_a_comment_now_and_then() -> None:
    """So that it is not taken for dead. It is no event, and nothing is lost beside it.

    Every 15 seconds, as no `wait` is held longer than 25: proxies close what is silent for 30 or 60.
    """
    assert (CompanyLimits().stream_keep_alive, CompanyLimits().wait_cap) == (15, 25)
    async with company_bench(turns=False, stream_keep_alive=1) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            assert [await stream.chunk() for _ in range(2)] == [KEEP_ALIVE] * 2
            await bench.say(conversation, "more")
            assert said(await stream.event())["message"]["text"] == "more"


@pytest.mark.requirement("papaver-129")
async def test_b61_wake_ups_without_news_keep_no_comment_back() -> None:
    """Such as the pieces of a long text whose beginning this reader has missed."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            next_one = asyncio.create_task(stream.chunk())
            for number in range(15):
                bench.clock.advance(1)
                await publish(bench, conversation, piece("msg_late", "x", 100 + number))
                for _ in range(5):
                    await bench.tick()
            assert await next_one == KEEP_ALIVE


@pytest.mark.requirement("8.6-03")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream;q=0.5, application/json", "*/*"])
async def test_a_read_that_asks_for_json_gets_it(accept: str) -> None:
    """Also where JSON is only the more welcome one, and for the wildcard that every client sends (readings 41)."""
    async with company_bench(turns=False) as bench:
        conversation, _ = await started(bench)
        answer = await bench.read(conversation, headers={"accept": accept})
        assert (answer.status, answer.headers.first("content-type")) == (200, "application/json")


@pytest.mark.requirement("8.6-03")
async def test_a_company_without_streams_answers_in_json() -> None:
    """With all that a read has, `wait` too."""
    async with company_bench(turns=False, stream_longest=0, wait_cap=1) as bench:
        conversation, cursor = await started(bench)
        page = (await bench.read(conversation, headers=STREAM)).json
        assert [event["id"] for event in page["events"]] == [cursor]
        empty = (await bench.read(conversation, f"cursor={cursor}&wait=1", headers=STREAM)).json
        assert (empty["events"], empty["cursor"]) == ([], cursor)


async def test_a_post_never_streams() -> None:
    """Whatever it accepts, and with `wait` (readings 41)."""
    async with company_bench(turns=False, wait_cap=1) as bench:
        begun = await bench.start(headers=STREAM, query="wait=1")
        conversation = begun.json["conversation_id"]
        answers = [await bench.say(conversation, headers={**STREAM, "last-event-id": "evt 1"})]
        answers += [
            await bench.send("POST", f"/{conversation}/{what}", {}, headers=STREAM) for what in ("handoff", "close")
        ]
        assert [answer.status for answer in answers] == [202, 202, 200]
        refused = await bench.handled("GET", f"/{conversation}/messages", headers=STREAM)
        assert isinstance(refused, Response)
        assert refused.status == 405


@pytest.mark.requirement("8.6-08", "8.13-07", "ca-62")
async def test_last_event_id_wins_over_the_cursor() -> None:
    """In a stream and in a page, whose empty answer echoes it; an empty one is as none (readings 41)."""
    async with company_bench(turns=False) as bench:
        conversation, first = await started(bench)
        for text in ("two", "three"):
            await bench.say(conversation, text)
        ids = [event["id"] for event in (await bench.read(conversation)).json["events"]]
        for query in ("", f"cursor={first}", "cursor=%00", f"cursor={ids[2]}"):
            page = await bench.read(conversation, query, headers={"last-event-id": ids[1]})
            assert [event["id"] for event in page.json["events"]] == [ids[2]]
            async with await bench.stream(conversation, query, last=ids[1]) as stream:
                event = await stream.event()
                assert event is not None
                assert event.id == ids[2]
        page = await bench.read(conversation, f"cursor={ids[1]}", headers={"last-event-id": ""})
        assert [event["id"] for event in page.json["events"]] == [ids[2]]
        page = await bench.read(conversation, headers={"last-event-id": ids[2]})
        assert (page.json["events"], page.json["cursor"]) == ([], ids[2])


@pytest.mark.requirement("8.13-02", "ca-114")
async def test_c21_what_is_wrong_is_told_in_json_before_a_stream_begins() -> None:
    """The status of a read, and nothing is held."""
    async with company_bench(turns=False) as bench:
        conversation, _ = await started(bench)
        _, foreign = await started(bench)
        wrong = [
            (bench.read(conversation, headers={**STREAM, "last-event-id": "evt 1"}), 400, "invalid_cursor"),
            (bench.read(conversation, headers={**STREAM, "last-event-id": foreign}), 400, "invalid_cursor"),
            (bench.read(conversation, f"cursor={foreign}", headers=STREAM), 400, "invalid_cursor"),
            (bench.read(conversation, "wait=soon", headers=STREAM), 400, "invalid_request"),
            (bench.read("cnv_none", headers=STREAM), 404, "conversation_not_found"),
            (bench.read(conversation, sub="usr_robin", sid="sid_robin", headers=STREAM), 404, "conversation_not_found"),
            (bench.read(conversation, aud="https://other.example", headers=STREAM), 400, "invalid_session"),
        ]
        for reading, status, code in wrong:
            answer = await reading
            assert (answer.status, answer.error) == (status, code)
            assert answer.headers.first("content-type") == "application/json"
        await bench.company.sessions.end(CLIENT, SID)
        assert (await bench.read(conversation, headers=STREAM)).error == "session_ended"
        assert bench.company.held == 0


async def test_wait_is_read_and_ignored_in_a_stream() -> None:
    """A stream holds as long as it does."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}&wait=0") as stream:
            await bench.say(conversation, "more")
            assert said(await stream.event())["message"]["text"] == "more"


@pytest.mark.requirement("8.6-05", "ca-63")
async def test_c22_a_stream_ends_once_it_has_told_of_the_close() -> None:
    """The last event is the state; whoever asks again gets JSON that says the same, and no stream to wait in."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            await bench.send("POST", f"/{conversation}/close", {})
            events = await stream.events()
        assert [(said(event)["type"], said(event)["status"]) for event in events] == [("state", "closed")]
        again = await bench.read(conversation, headers={**STREAM, "last-event-id": events[0].id})
        assert (again.json["events"], again.json["status"]) == ([], "closed")
        async with await bench.stream(conversation, f"cursor={cursor}") as late:
            assert [event.id for event in await late.events()] == [events[0].id]


@pytest.mark.requirement("8.6-09")
async def test_c19_pieces_come_before_their_message_in_order_and_without_an_id() -> None:
    """Each with the id that the message will have; the cursor is the events' alone."""
    pieces = ["I can ", "do that", "."]

    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            for number, text in enumerate(pieces):
                await publish(bench, conversation, piece("msg_r", text, sum(map(len, pieces[:number]))))
                event = await stream.event()
                assert event is not None
                assert (event.event, event.id, said(event)) == (
                    "text-delta",
                    None,
                    {"message_id": "msg_r", "text": text},
                )
            await publish(bench, conversation, piece("msg_s", "two", 0), piece("msg_s", " at once", 3))
            assert [said(await stream.event())["text"] for _ in range(2)] == ["two", " at once"]


def piece(message_id: str, text: str, at: int) -> Delta:
    return Delta(MessageId(message_id), text, at)


@pytest.mark.requirement("8.6-05", "8.6-09", "ca-57")
async def test_c19_a_turn_that_writes_is_read_as_it_writes() -> None:
    """Its pieces, then the message under the same id with their text, then the state; `working` before all of them."""
    read = asyncio.Event()

    async def answer(turn: Turn) -> None:
        await turn.write("I can ")
        await read.wait()
        await turn.write("do that.")

    async with company_bench(handler=answer) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        read.set()
        cursor = (await bench.idle(conversation)).json["cursor"]
        read.clear()
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            await bench.say(conversation)
            events = [await stream.event() for _ in range(3)]
            assert said(events[2])["text"] == "I can "
            read.set()
            events += [await stream.event() for _ in range(3)]
        *before, first, second, message, state = [(event and event.event, said(event)) for event in events]
        assert [one["type"] for _, one in before] == ["message", "state"]
        assert [kind for kind, _ in (first, second)] == ["text-delta"] * 2
        assert message[1]["message"]["text"] == first[1]["text"] + second[1]["text"] == "I can do that."
        assert {one["message_id"] for _, one in (first, second)} == {message[1]["message"]["id"]}
        assert (state[1]["status"], state[1]["responder"]) == ("idle", "agent")


@pytest.mark.requirement("8.5-23", "8.13-08")
async def test_c17_a_stream_after_what_is_gone_is_refused_in_json() -> None:
    """410, as a read; whoever has read on meanwhile is not concerned."""
    async with company_bench(events_kept=3600) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        first = (await bench.idle(conversation)).json["events"][0]["id"]
        bench.clock.advance(3700)
        await bench.say(conversation)
        last = (await bench.idle(conversation)).json["events"][-1]["id"]
        async with open_at(bench, conversation, f"cursor={last}") as stream:
            await bench.sleepers(1)
            bench.clock.advance(61)
            while (await bench.read(conversation, f"cursor={first}")).status == 200:
                await bench.tick()
            refused = await bench.read(conversation, f"cursor={first}", headers=STREAM)
            assert (refused.status, refused.error) == (410, "cursor_expired")
            await bench.say(conversation, "more")
            assert said(await stream.event())["message"]["text"] == "more"


@pytest.mark.requirement("papaver-130")
async def test_c19_who_joins_late_gets_no_half_text() -> None:
    """Nor one that lost a piece: what follows is dropped, the next message is not."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            await publish(
                bench,
                conversation,
                piece("msg_late", " the end", 9),
                piece("msg_gap", "one ", 0),
                piece("msg_gap", "three", 8),
                piece("msg_gap", "one ", 0),
                piece("msg_odd", "\ud800", 0),
                piece("msg_odd", "half", 1),
                piece("msg_whole", "whole", 0),
            )
            texts = [said(await stream.event()) for _ in range(2)]
            assert texts == [{"message_id": "msg_gap", "text": "one "}, {"message_id": "msg_whole", "text": "whole"}]


@pytest.mark.requirement("papaver-130")
async def test_c19_no_piece_of_a_message_follows_it() -> None:
    """What is there with it comes before it; nothing after it, in whatever order the two reach this reader."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            await publish(bench, conversation, piece("msg_2", "wh", 0))
            assert said(await stream.event()) == {"message_id": "msg_2", "text": "wh"}
            await publish(bench, conversation, piece("msg_2", "ole", 2))
            await bench.say(conversation, "whole")
            assert said(await stream.event()) == {"message_id": "msg_2", "text": "ole"}
            assert said(await stream.event())["message"]["id"] == "msg_2"
            await publish(
                bench, conversation, piece("msg_2", "!", 5), piece("msg_2", "wh", 0), piece("msg_3", "next", 0)
            )
            assert said(await stream.event()) == {"message_id": "msg_3", "text": "next"}


async def test_readings_9_a_stream_has_the_extensions_of_its_reader_alone() -> None:
    """Two streams of one conversation, one of them by a request that declares the extension."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        declared = {"poppy-extensions": f'"{CARD}";v="1"'}
        async with (
            open_at(bench, conversation, f"cursor={cursor}") as plain,
            open_at(bench, conversation, f"cursor={cursor}", headers=declared) as knowing,
        ):
            extended = bench.message("Hello", extensions={CARD: {"colour": "red"}})
            await bench.send("POST", f"/{conversation}/messages", {"message": extended}, headers=declared)
            assert "extensions" not in said(await plain.event())["message"]
            assert said(await knowing.event())["message"]["extensions"] == {CARD: {"colour": "red"}}


@pytest.mark.requirement("papaver-132")
async def test_a_user_has_so_many_polls_and_streams_together() -> None:
    """One more is a 429 with Retry-After, in JSON; whoever leaves makes room."""
    async with company_bench(turns=False, held_per_user=2) as bench:
        conversation, cursor = await started(bench)
        poll = asyncio.create_task(bench.read(conversation, f"cursor={cursor}&wait=25"))
        await bench.held(1)
        async with await bench.stream(conversation):
            refused = await bench.read(conversation, headers=STREAM)
            assert (refused.status, refused.error, refused.headers.first("retry-after")) == (429, "rate_limited", "1")
        async with await bench.stream(conversation):
            assert bench.company.held == 2
        bench.company.stop()
        await poll


@pytest.mark.requirement("8.6-06", "papaver-132")
async def test_a_stream_ends_when_its_caller_leaves_or_the_company_stops() -> None:
    """Without a word; what it was waiting for is not consumed. After the stop it begins and ends."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        gone = asyncio.Event()
        async with open_at(bench, conversation, f"cursor={cursor}", gone=gone) as stream:
            gone.set()
            assert await stream.chunk() == b""
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            bench.company.stop()
            assert await stream.chunk() == b""
        assert bench.company.held == 0
        async with open_at(bench, conversation) as stream:
            assert await stream.chunk() == b""


@pytest.mark.requirement("8.6-06", "papaver-132")
async def test_no_stream_is_longer_than_the_longest() -> None:
    """A second here; the reader goes on where it was."""
    async with company_bench(turns=False, stream_longest=1) as bench:
        conversation, cursor = await started(bench)
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            assert await stream.chunk() == b""
        async with open_at(bench, conversation, f"cursor={cursor}") as stream:
            bench.clock.advance(1)
            await bench.say(conversation, "more")
            assert await stream.chunk() == b""
        async with await bench.stream(conversation, last=cursor) as stream:
            assert said(await stream.event())["message"]["text"] == "more"


@asynccontextmanager
async def accounts() -> AsyncGenerator[tuple[CompanyBench, TokenTable]]:
    """A Company whose issuer is a table of tokens, two of them one account's."""
    table = TokenTable()
    table.issue("token-a", "acc_a", "orders:read")
    table.issue("token-a2", "acc_a", "orders:read", "orders:write")
    async with company_bench(turns=False, sign_in=table, scopes=SCOPES, stream_keep_alive=1) as bench:
        yield bench, table


@pytest.mark.requirement("8.6-06", "papaver-128")
@pytest.mark.parametrize("why", ["session", "revoked", "expired", "account", "erased"])
@pytest.mark.parametrize("news", [True, False], ids=["news", "no-news"])
async def test_c85_a_stream_ends_with_what_it_was_opened_by(why: str, news: bool) -> None:
    """Its Session, its token, or that it was signed out in a conversation that is an account's now: no event comes."""
    async with accounts() as (bench, table):
        token = bearer(table.issue("short", "acc_a", "orders:read", until=NOW + 50))
        mine: dict[str, Any] = {} if why == "account" else token
        conversation = (await bench.start(**mine)).json["conversation_id"]
        cursor = (await bench.read(conversation, **mine)).json["cursor"]
        async with open_at(bench, conversation, f"cursor={cursor}", **mine) as stream:
            match why:
                case "session":
                    await bench.company.sessions.end(CLIENT, SID)
                case "revoked":
                    table.revoke("short")
                case "expired":
                    bench.clock.advance(50)
                case "account":
                    await bench.read(conversation, sid="sid_two", **A)
                case _:
                    tables: Any = await bench.company.store.tables(bench.company.id)
                    await tables.erase(CLIENT, "usr_dana")
            if news and why != "erased":
                await bench.say(conversation, "private", sid="sid_two", **WIDER)
                await publish(bench, conversation, piece("msg_9", "private", 0))
            assert await stream.events() == []
        told = await bench.read(conversation, f"cursor={cursor}", **mine)
        assert told.status in ((200,) if why == "expired" else (400, 401, 404)), "the table of tokens knows no time"


@pytest.mark.requirement("8.6-01")
async def test_a_stream_that_begins_with_a_need_has_its_challenge() -> None:
    """As a page that tells of it (8.11); a stream that begins after it has none."""

    async def answer(turn: Turn) -> str:
        return turn.require("orders:read")

    async with company_bench(handler=answer, sign_in=TokenTable(), scopes=SCOPES) as bench:
        conversation = (await bench.start()).json["conversation_id"]
        page = await bench.idle(conversation)
        async with await bench.stream(conversation) as stream:
            challenges = stream.headers.all("www-authenticate")
            assert challenges == page.headers.all("www-authenticate")
            assert 'scope="orders:read"' in challenges[0]
            types = [said(await stream.event())["type"] for _ in page.json["events"]]
            assert "authorization" in types
        async with await bench.stream(conversation, f"cursor={page.json['cursor']}") as stream:
            assert "www-authenticate" not in stream.headers
