"""Requests that are held: what ends them, who may hold how many, and what they answer then (8.3, 8.5)."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from papaver.company.incoming import Incoming
from papaver.company.turn import Turn
from papaver.protocol.terms import ClientId, SessionId
from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import AgentKeys
from papaver.web.messages import Response, Stream
from tests.house.company_tokens import SCOPES, TokenTable, bearer

pytestmark = pytest.mark.anyio

CLIENT, SID = ClientId("https://agent.example/agent.json"), SessionId("sid_Yx2b7Qd")


async def started(bench: CompanyBench, **claims: Any) -> tuple[str, str]:
    """A conversation with nothing left to do, and the cursor at its end."""
    conversation = (await bench.start(**claims)).json["conversation_id"]
    page = await bench.read(conversation, **claims)
    return conversation, page.json["cursor"]


def holding(bench: CompanyBench, conversation: str, cursor: str, **options: Any) -> asyncio.Task[Answer]:
    return asyncio.create_task(bench.read(conversation, f"cursor={cursor}&wait=25", **options))


@pytest.mark.requirement("8.5-15")
async def test_c18_a_held_read_wakes_at_an_event() -> None:
    """At once, with that event."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        held = holding(bench, conversation, cursor)
        await bench.held(1)
        await bench.say(conversation, "now", sid="sid_two")
        answer = await held
        assert [event["message"]["text"] for event in answer.json["events"]] == ["now"]
        assert bench.company.held == 0


@pytest.mark.requirement("8.5-15", "8.5-17", "8.5-18")
async def test_c18_a_read_that_nothing_happens_to_ends_empty() -> None:
    """After `wait`, or after the Company's own cap when that is shorter (one second here)."""
    async with company_bench(turns=False, wait_cap=1) as bench:
        conversation, cursor = await started(bench)
        begin = asyncio.get_running_loop().time()
        answers = await asyncio.gather(
            *(bench.read(conversation, f"cursor={cursor}&wait={wait}") for wait in (0, 1, 999_999_999))
        )
        assert asyncio.get_running_loop().time() - begin >= 1
        for answer in answers:
            assert answer.json == {
                "conversation_id": conversation,
                "events": [],
                "cursor": cursor,
                "has_more": False,
                "status": "working",
                "responder": "agent",
            }


@pytest.mark.requirement("8.5-16")
async def test_c64_however_long_the_wait_the_companys_own_cap_ends_it() -> None:
    """What wakes it after that, here a piece of a text that is being written, finds the wait over: an empty page."""
    writes, ends = asyncio.Event(), asyncio.Event()

    async def answer(turn: Turn) -> None:
        await writes.wait()
        await turn.write("One")
        await ends.wait()

    async with company_bench(handler=answer, wait_cap=7) as bench, asyncio.timeout(5):
        conversation, cursor = await started(bench)
        async with await bench.stream(conversation, f"cursor={cursor}"):
            held = asyncio.create_task(bench.read(conversation, f"cursor={cursor}&wait=999999"))
            await bench.held(2)
            bench.clock.advance(7)
            writes.set()
            page = await held
            assert (page.status, page.json["events"], page.json["status"]) == (200, [], "working")
            ends.set()


async def test_a_held_read_ends_when_its_caller_leaves() -> None:
    """Nothing is held for nobody; what it was waiting for is not consumed."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        gone = asyncio.Event()
        held = holding(bench, conversation, cursor, gone=gone)
        await bench.held(1)
        gone.set()
        assert (await held).json["events"] == []
        assert bench.company.held == 0


async def test_stop_ends_what_is_held_and_holds_nothing_more() -> None:
    """Each gets its empty page; a message is still accepted and answered after the next start."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        held = [holding(bench, conversation, cursor) for _ in range(10)]
        await bench.held(10)
        bench.company.stop()
        assert {answer.status for answer in await asyncio.gather(*held)} == {200}
        assert (await bench.read(conversation, f"cursor={cursor}&wait=25")).json["events"] == []
        assert (await bench.say(conversation, query="wait=25")).status == 202
        bench.company.stop()


@pytest.mark.requirement("papaver-22")
async def test_one_user_holds_so_many_and_another_is_not_held_up() -> None:
    """One more is a 429 with Retry-After; the others keep waiting."""
    async with company_bench(turns=False, held_per_user=3) as bench:
        conversation, cursor = await started(bench)
        theirs, at = await started(bench, sub="usr_robin", sid="sid_robin")
        held = [holding(bench, conversation, cursor) for _ in range(3)]
        await bench.held(3)
        answer = await bench.read(conversation, f"cursor={cursor}&wait=25")
        assert (answer.status, answer.error, answer.headers.first("retry-after")) == (429, "rate_limited", "1")
        other = holding(bench, theirs, at, sub="usr_robin", sid="sid_robin")
        await bench.held(4)
        bench.company.stop()
        assert {one.status for one in await asyncio.gather(*held, other)} == {200}


async def ended(answer: Response | Stream | None) -> None:
    """A page, or a stream, which is given back."""
    assert answer is not None
    assert answer.status == 200
    if isinstance(answer, Stream):
        await answer.chunks.aclose()


@pytest.mark.requirement("papaver-22", "8.2-10", "8.2-11")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_readings_2_a_read_that_finds_no_place_binds_nothing(accept: str) -> None:
    """Signed in and refused, it is none of the account's: signed out it goes on. With a place it is bound."""
    tokens = TokenTable()
    tokens.issue("reads", "acc_a", "orders:read")
    signed_in = bearer("reads")
    signed_in["headers"]["accept"] = accept
    async with company_bench(turns=False, held_per_user=1, sign_in=tokens, scopes=SCOPES) as bench:
        conversation, cursor = await started(bench)
        held = holding(bench, conversation, cursor)
        await bench.held(1)
        answer = await bench.read(conversation, f"cursor={cursor}&wait=25", **signed_in)
        assert (answer.status, answer.error, answer.headers.first("retry-after")) == (429, "rate_limited", "1")
        assert (await bench.read(conversation)).status == 200
        bench.company.stop()
        await held
        at_once = await bench.handled("GET", f"/{conversation}/events", query=f"cursor={cursor}&wait=25", **signed_in)
        await ended(at_once)
        assert (await bench.read(conversation)).status == 401


@pytest.mark.requirement("papaver-22", "8.2-11")
@pytest.mark.parametrize("accept", ["application/json", "text/event-stream"])
async def test_a_read_that_binds_takes_one_place_in_all(accept: str) -> None:
    """The place that it found first is the one it is held in."""
    tokens = TokenTable()
    tokens.issue("reads", "acc_a", "orders:read")
    signed_in = bearer("reads")
    signed_in["headers"]["accept"] = accept
    async with company_bench(turns=False, held_per_user=1, sign_in=tokens, scopes=SCOPES) as bench:
        conversation, cursor = await started(bench)
        path, query = f"/{conversation}/events", f"cursor={cursor}&wait=25"
        held = asyncio.create_task(bench.handled("GET", path, query=query, **signed_in))
        await bench.held(1)
        assert (await bench.read(conversation)).status == 401
        bench.company.stop()
        await ended(await held)
        assert bench.company.held == 0


@pytest.mark.requirement("papaver-22")
@pytest.mark.parametrize(("limit", "others"), [("held_per_client", 200), ("held_in_all", 429)])
async def test_many_users_of_one_client_hold_so_many_in_all(limit: str, others: int) -> None:
    """Whoever makes up Users has no more for that; and what all hold together fits into the process."""
    other = AgentKeys("https://other.example/agent.json")
    options: dict[str, Any] = {limit: 2}
    async with company_bench(turns=False, **options) as bench:
        bench.documents.publish(other)
        callers: list[dict[str, Any]] = [{"sub": f"usr_{n}", "sid": f"sid_{n}"} for n in range(3)]
        callers.append({"agent": other})
        own = [await started(bench, **caller) for caller in callers]
        held = [holding(bench, *own[n], **callers[n]) for n in range(2)]
        await bench.held(2)
        third = await bench.read(own[2][0], f"cursor={own[2][1]}&wait=25", **callers[2])
        assert (third.status, third.error) == (429, "rate_limited")
        fourth = holding(bench, *own[3], **callers[3])
        if others == 200:
            await bench.held(3)
        else:
            await fourth
        bench.company.stop()
        assert [one.status for one in await asyncio.gather(*held, fourth)] == [200, 200, others]
        assert bench.company.held == 0


def without_bodies(bench: CompanyBench) -> None:
    """From now on the body of a request never comes."""
    company: Any = bench.company
    handle = company.handle

    async def never(limit: int) -> bytes:
        await asyncio.Event().wait()
        return b""

    def bodiless(incoming: Incoming) -> Any:
        return handle(replace(incoming, body=never))

    company.handle = bodiless


@pytest.mark.requirement("papaver-22")
async def test_a_user_whose_bodies_never_come_has_no_more_places_than_one_who_polls() -> None:
    """One more is a 429; the places of polls are others, and another User has their own."""
    async with company_bench(turns=False, held_per_user=3) as bench:
        conversation, cursor = await started(bench)
        polls = [holding(bench, conversation, cursor) for _ in range(3)]
        await bench.held(3)
        assert (await bench.say("cnv_none")).status == 404, "a body that is there needs no place of a poll"
        without_bodies(bench)
        waiting = [asyncio.create_task(bench.start()) for _ in range(3)]
        await bench.held(6)
        answer = await bench.start()
        assert (answer.status, answer.error, answer.headers.first("retry-after")) == (429, "rate_limited", "1")
        waiting.append(asyncio.create_task(bench.start(sub="usr_robin", sid="sid_robin")))
        await bench.held(7)
        for one in waiting:
            one.cancel()
        await asyncio.wait(waiting)
        assert bench.company.held == 3
        bench.company.stop()
        await asyncio.gather(*polls)


async def test_a_body_that_does_not_come_is_waited_for_so_long_only() -> None:
    """Then it is a bad request, with a JSON error; one that is there is taken, however short the time is."""
    async with company_bench(turns=False, body_seconds=0) as bench:
        assert (await bench.start()).status == 201
        without_bodies(bench)
        answer = await bench.start()
        assert (answer.status, answer.error) == (400, "invalid_request")
        assert "did not come" in answer.json["error_description"]
        assert bench.company.held == 0


async def test_readings_22_a_post_that_finds_no_place_is_accepted_and_answered_at_once() -> None:
    """An error would say that the message was not accepted."""
    async with company_bench(turns=False, held_per_user=1) as bench:
        conversation, cursor = await started(bench)
        held = holding(bench, conversation, cursor)
        await bench.held(1)
        begun = await bench.start(query="wait=25")
        assert (begun.status, len(begun.json["events"])) == (201, 1)
        said = await bench.say(conversation, query="wait=25")
        assert (said.status, len(said.json["events"])) == (202, 2)
        assert len((await held).json["events"]) == 1


async def test_readings_1_a_post_is_held_beyond_its_own_message() -> None:
    """The reply ends it; until then its own message and `working` do not."""
    release = asyncio.Event()

    async def answer(turn: object) -> str:
        await release.wait()
        return "Here"

    async with company_bench(handler=answer) as bench:
        posted = asyncio.create_task(bench.start(query="wait=25"))
        await bench.held(1)
        release.set()
        events = (await posted).json["events"]
        assert [event["message"]["text"] for event in events if event["type"] == "message"] == ["Hello", "Here"]


async def test_readings_3_a_session_that_ends_during_a_wait_gets_no_event() -> None:
    """What happens then is told to the next Session; the held read gets what a new request would get."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        held = holding(bench, conversation, cursor)
        await bench.held(1)
        await bench.company.sessions.end(CLIENT, SID)
        await bench.say(conversation, "private", sid="sid_two")
        answer = await held
        assert (answer.status, answer.error) == (400, "session_ended")


async def test_readings_3_a_session_that_ends_during_a_wait_is_told_when_the_wait_is_over() -> None:
    """Also when nothing else happened."""
    async with company_bench(turns=False, wait_cap=1) as bench:
        conversation, cursor = await started(bench)
        held = holding(bench, conversation, cursor)
        await bench.held(1)
        await bench.company.sessions.end(CLIENT, SID)
        assert (await held).error == "session_ended"


async def test_a_close_ends_a_held_read() -> None:
    """Its state event is an event; reads that come later are not held at all."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        held = holding(bench, conversation, cursor)
        await bench.held(1)
        await bench.send("POST", f"/{conversation}/close", {})
        page = (await held).json
        assert page["status"] == "closed"
        later = await bench.read(conversation, f"cursor={page['cursor']}&wait=25")
        assert (later.status, later.json["events"]) == (200, [])


async def test_a_task_that_is_cancelled_while_it_is_held_leaves_no_trace() -> None:
    """As a server does with its requests when it is made to end."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)
        held = holding(bench, conversation, cursor)
        await bench.held(1)
        held.cancel()
        with pytest.raises(asyncio.CancelledError):
            await held
        assert bench.company.held == 0


async def test_a_connection_that_fails_counts_as_gone() -> None:
    """Whatever the server raises while it watches the connection."""
    async with company_bench(turns=False) as bench:
        conversation, cursor = await started(bench)

        class Broken(asyncio.Event):
            async def wait(self) -> Any:
                raise ConnectionResetError

        answer = await bench.read(conversation, f"cursor={cursor}&wait=25", gone=Broken())
        assert answer.json["events"] == []
