"""The conversation endpoint on the wire: reads, cursors, waits, close, handoff, whose it is (8.2, 8.5, 8.9, 8.12)."""

from __future__ import annotations

import pytest

from papaver.testing.company import Answer, CompanyBench, company_bench
from papaver.testing.keys import AgentKeys

pytestmark = pytest.mark.anyio

OTHER = AgentKeys("https://other.example/agent.json")


def kinds(page: Answer) -> list[str]:
    """Each event in a word: who said something, or what the status became."""
    return [
        event["message"]["role"] if event["type"] == "message" else event["status"] for event in page.json["events"]
    ]


async def started(bench: CompanyBench, text: str = "Hello") -> str:
    return (await bench.start(text)).json["conversation_id"]


@pytest.mark.requirement("8.5-16")
async def test_c16_a_hundred_and_five_events_are_two_pages() -> None:
    """100, then 5, then an empty page that echoes its cursor."""
    async with company_bench(turns=False) as bench:
        conversation = await started(bench)
        for n in range(104):
            await bench.say(conversation, str(n), sid=f"sid_{n}")
            bench.clock.advance(1)
        first = await bench.read(conversation)
        second = await bench.read(conversation, f"cursor={first.json['cursor']}")
        third = await bench.read(conversation, f"cursor={second.json['cursor']}&wait=0")
        assert [len(page.json["events"]) for page in (first, second, third)] == [100, 5, 0]
        assert [page.json["has_more"] for page in (first, second, third)] == [True, False, False]
        assert third.json["cursor"] == second.json["cursor"] == second.json["events"][-1]["id"]


@pytest.mark.requirement("8.13-07", "8.5-11")
async def test_c17_an_unknown_and_a_foreign_cursor_are_invalid_cursor() -> None:
    """At reads and at both POSTs with `wait`; each event id of the conversation is one that works."""
    async with company_bench(turns=False) as bench:
        one, two = await started(bench), await started(bench)
        foreign = (await bench.read(two)).json["cursor"]
        for cursor in (foreign, "evt_unknown", "x" * 256, "a.b", "", "%20"):
            read = await bench.read(one, f"cursor={cursor}")
            posted = await bench.say(one, query=f"wait=0&cursor={cursor}")
            begun = await bench.start(query=f"wait=0&cursor={cursor}")
            assert {(answer.status, answer.error) for answer in (read, posted, begun)} == {(400, "invalid_cursor")}
        assert len((await bench.read(one)).json["events"]) == 1
        own = (await bench.read(one)).json["events"][0]["id"]
        assert (await bench.say(one, query=f"wait=0&cursor={own}")).status == 202


@pytest.mark.requirement("8.13-03", "8.2-13", "8.2-14")
async def test_c28_unknown_and_foreign_conversations_look_alike() -> None:
    """To another User, to another client, and where there is none: the same bytes.

    A malformed id is told, because it is nobody's (readings 29).
    """
    async with company_bench(turns=False) as bench:
        bench.documents.publish(OTHER)
        conversation = await started(bench)
        answers = [
            await bench.read(conversation, sub="usr_robin", sid="sid_robin"),
            await bench.read(conversation, agent=OTHER),
            await bench.read("cnv_unknown"),
            await bench.say(conversation, sub="usr_robin", sid="sid_robin"),
            await bench.say("cnv_unknown"),
            await bench.send("POST", f"/{conversation}/close", {}, agent=OTHER),
            await bench.send("POST", f"/{conversation}/handoff", {}, agent=OTHER),
        ]
        assert {(answer.status, answer.error) for answer in answers} == {(404, "conversation_not_found")}
        assert len({answer.response.body for answer in answers}) == 1
        assert kinds(await bench.read(conversation)) == ["user"]
        for malformed in ("a.b", "a%2Fb", "%20", "x" * 257):
            assert (await bench.read(malformed)).error == "invalid_request"


@pytest.mark.requirement("5.1-12", "8.2-08")
async def test_another_agent_id_of_the_user_continues_the_conversation() -> None:
    """Agent IDs play no part in whose it is."""
    async with company_bench(turns=False) as bench:
        conversation = (await bench.start(agent_id="agt_1")).json["conversation_id"]
        assert (await bench.say(conversation, agent_id="agt_2", sid="sid_two")).status == 202


@pytest.mark.requirement("8.12-02", "8.12-03", "8.12-05")
async def test_c34_a_closed_conversation_is_readable_and_nothing_more() -> None:
    """Messages and handoffs are refused; closing again is answered alike and adds nothing."""
    async with company_bench() as bench:
        conversation = await started(bench)
        await bench.idle(conversation)
        first = await bench.send("POST", f"/{conversation}/close", {})
        assert (first.status, first.json) == (200, {"status": "closed", "responder": "agent"})
        again = await bench.send("POST", f"/{conversation}/close", raw=b"")
        assert (again.status, again.json) == (200, first.json)
        refusals = [await bench.say(conversation), await bench.send("POST", f"/{conversation}/handoff", {})]
        assert {(answer.status, answer.error) for answer in refusals} == {(409, "conversation_closed")}
        assert kinds(await bench.read(conversation)) == ["user", "company", "idle", "closed"]


@pytest.mark.requirement("8.13-04")
async def test_c66_a_retry_after_the_close_returns_the_first_answer() -> None:
    """Readings 7: the receipt is looked up before the state; with `wait` the events are read afresh."""
    async with company_bench(turns=False) as bench:
        message = bench.message("Hello")
        first = await bench.send("POST", "", {"message": message})
        conversation = first.json["conversation_id"]
        more = {"message": bench.message("More")}
        second = await bench.send("POST", f"/{conversation}/messages", more)
        await bench.send("POST", f"/{conversation}/close", {})
        again = await bench.send("POST", f"/{conversation}/messages", more)
        assert (again.status, again.json) == (202, second.json)
        restarted = await bench.send("POST", "", {"message": message})
        assert (restarted.status, restarted.json) == (201, first.json)
        waited = await bench.send("POST", "", {"message": message}, query="wait=5")
        assert (waited.status, waited.json["status"]) == (201, "closed")
        assert kinds(waited) == ["user", "user", "closed"]


@pytest.mark.requirement("8.2-05", "8.7-03")
async def test_a_handoff_without_a_desk_is_202_then_says_that_nobody_is_there() -> None:
    """Readings 38: queued, then a message that says so, then idle; and the conversation goes on."""
    async with company_bench() as bench:
        conversation = await started(bench)
        before = (await bench.idle(conversation)).json["cursor"]
        answer = await bench.send("POST", f"/{conversation}/handoff", {})
        assert (answer.status, answer.json) == (202, {"status": "queued", "responder": "agent"})
        page = await bench.read(conversation, f"cursor={before}")
        while page.json["status"] != "idle":
            page = await bench.read(conversation, f"cursor={page.json['cursor']}&wait=5")
        assert kinds(await bench.read(conversation, f"cursor={before}")) == ["queued", "company", "idle"]
        assert page.json["responder"] == "agent"
        assert (await bench.say(conversation)).status == 202


@pytest.mark.parametrize("query", ["wait=1.5", "wait=-1", "wait=abc", "wait=", "wait=+5", "wait=1&wait=2", "wait=1e3"])
@pytest.mark.requirement("8.5-14", "8.13-09")
async def test_c64_a_wait_that_is_no_whole_number_is_invalid_request(query: str) -> None:
    """At reads and POSTs, and then nothing is recorded (readings 22, 43)."""
    async with company_bench(turns=False) as bench:
        conversation = await started(bench)
        for answer in (
            await bench.read(conversation, query),
            await bench.say(conversation, query=query),
            await bench.start(query=query),
        ):
            assert (answer.status, answer.error) == (400, "invalid_request")
        assert kinds(await bench.read(conversation)) == ["user"]


@pytest.mark.parametrize("query", ["wait=0", "wait=30", "wait=9999999999", "wait=007"])
@pytest.mark.requirement("8.5-14", "8.5-16")
async def test_c64_a_huge_wait_is_capped_and_not_refused(query: str) -> None:
    """Where there is something to return, it is returned at once."""
    async with company_bench(turns=False) as bench:
        conversation = await started(bench)
        assert (await bench.read(conversation, query)).status == 200


@pytest.mark.requirement("8.3-10", "8.3-11", "8.3-12")
async def test_a_waiting_post_returns_the_reply() -> None:
    """All events from the first one, with the POST's own status code; from the cursor when there is one."""
    async with company_bench() as bench:
        begun = await bench.start(query="wait=5")
        assert (begun.status, kinds(begun)) == (201, ["user", "company", "idle"])
        conversation, cursor = begun.json["conversation_id"], begun.json["cursor"]
        said = await bench.say(conversation, query="wait=5")
        assert (said.status, kinds(said)[:3]) == (202, ["user", "company", "idle"])
        more = await bench.say(conversation, query=f"wait=5&cursor={cursor}")
        assert kinds(more)[:2] == ["user", "working"]
        assert set(more.json) == {"conversation_id", "events", "cursor", "has_more", "status", "responder"}


@pytest.mark.requirement("8.5-10", "8.5-17")
async def test_wait_and_cursor_are_taken_from_the_query_alone() -> None:
    """In a body they mean nothing, on a handoff and a close they mean nothing either (readings 22)."""
    async with company_bench(turns=False) as bench:
        answer = await bench.send("POST", "", {"message": bench.message(), "wait": 5, "cursor": "x"})
        assert set(answer.json) == {"conversation_id", "status", "responder"}
        conversation, cursor = answer.json["conversation_id"], (await bench.read(answer.json["conversation_id"])).json
        for ignored in ("cursor=evt_unknown", "cursor=!!", "cursor=", "cursor=a&cursor=b"):
            assert (await bench.say(conversation, query=ignored)).status == 202, ignored
            assert (await bench.start(query=ignored)).status == 201, ignored
        for ignored in ("wait=abc", "wait=1&wait=2", "wait=5&cursor=!!", "cursor=a&cursor=b"):
            handed = await bench.send("POST", f"/{conversation}/handoff", {}, query=ignored)
            assert handed.status == 202, ignored
        closed = await bench.send("POST", f"/{conversation}/close", {}, query=f"wait=5&cursor={cursor['cursor']}")
        assert closed.status == 200
        assert (await bench.send("POST", f"/{conversation}/close", {}, query="wait=-1&cursor=%00")).status == 200


@pytest.mark.requirement("8.13-01")
async def test_errors_of_section_7_are_the_same_at_a_conversation_and_at_an_api() -> None:
    """Session, version and rate limits: same status, same body."""
    async with company_bench(turns=False) as bench:
        endpoint = await bench.read("x", headers={"poppy-version": "9.9"})
        assert (endpoint.status, endpoint.error) == (400, "version_unsupported")
        endpoint = await bench.read("x", headers={"poppy-session": None})
        assert (endpoint.status, endpoint.error) == (400, "invalid_session")


@pytest.mark.parametrize(
    ("method", "suffix", "status", "allow"),
    [
        ("GET", "", 405, "POST"),
        ("PUT", "/x/events", 405, "GET"),
        ("DELETE", "/x/messages", 405, "POST"),
        ("GET", "/", 404, None),
        ("GET", "/x", 404, None),
        ("GET", "/x/y/z", 404, None),
        ("POST", "/x/escalate", 404, None),
        ("OPTIONS", "/x/close", 405, "POST"),
    ],
)
async def test_c1_other_methods_and_paths_below_the_endpoint(
    method: str, suffix: str, status: int, allow: str | None
) -> None:
    """405 names what is allowed; an unknown path is 404 without a code of the protocol (readings 44)."""
    async with company_bench(turns=False) as bench:
        answer = await bench.send(method, suffix, headers={"poppy-session": None})
        assert (answer.status, answer.headers.first("allow")) == (status, allow)
        assert answer.error != "conversation_not_found"


async def test_c1_paths_outside_are_left_to_the_app() -> None:
    """Whatever they resemble."""
    async with company_bench(turns=False) as bench:
        for path in ("/", "/poppy", "/poppy/", "/poppy/conversationsx", "/conversations", "/poppy/conversation", ""):
            assert await bench.fetch(path) is None
            assert not bench.company.owns("example.com", path)
