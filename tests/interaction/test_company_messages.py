"""Messages on the wire of a Company: what is taken, recorded once and answered, and what is refused (8.3, 8.4, 8.7)."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any

import pytest

from papaver.company import Reply, Turn
from papaver.protocol.conversation.model import Author, AuthorType
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


@pytest.mark.requirement("8.3-02", "8.7-10", "8.5-20")
async def test_c7_a_start_is_message_reply_and_idle() -> None:
    """Readings 20: the 201 tells the first values, so no state event does."""
    async with company_bench() as bench:
        answer = await bench.start()
        assert (answer.status, answer.json["status"], answer.json["responder"]) == (201, "working", "agent")
        page = await bench.idle(answer.json["conversation_id"])
        assert kinds(page) == ["user", "company", "idle"]
        assert (page.json["status"], page.json["responder"]) == ("idle", "agent")


@pytest.mark.requirement("8.3-03", "8.7-11", "8.7-02")
async def test_c7_a_later_message_is_message_working_reply_and_idle() -> None:
    """One state event for each change, and the reply before `idle`."""
    async with company_bench() as bench:
        conversation = await started(bench)
        before = (await bench.idle(conversation)).json["cursor"]
        answer = await bench.say(conversation)
        assert (answer.status, answer.json["conversation_id"]) == (202, conversation)
        await bench.idle(conversation)
        assert kinds(await bench.read(conversation, f"cursor={before}")) == ["user", "working", "company", "idle"]


@pytest.mark.requirement("8.4-21", "8.7-14", "8.5-02")
async def test_every_event_has_its_members_and_every_message_its_author() -> None:
    """Ids of the alphabet, RFC 3339 times in order, and who wrote it."""
    async with company_bench() as bench:
        conversation = await started(bench)
        page = await bench.idle(conversation)
        times = [datetime.fromisoformat(event["created_at"]) for event in page.json["events"]]
        assert times == sorted(times)
        assert len({event["id"] for event in page.json["events"]}) == 3
        messages = [event["message"] for event in page.json["events"] if event["type"] == "message"]
        assert {message["author"]["type"] for message in messages} == {"agent"}


@pytest.mark.requirement("8.3-06", "8.3-07")
async def test_c9_a_retry_is_accepted_once() -> None:
    """With other members that nobody knows it is still the same message; the answer is the first one's."""
    async with company_bench(turns=False) as bench:
        message = bench.message("Hello")
        first = await bench.send("POST", "", {"message": message})
        again = await bench.send("POST", "", {"message": {**message, "mood": "calm"}, "priority": 3})
        assert (again.status, again.json) == (201, first.json)
        conversation = first.json["conversation_id"]
        more = {"message": bench.message("More")}
        answers = [await bench.send("POST", f"/{conversation}/messages", more) for _ in range(2)]
        assert [(answer.status, answer.json) for answer in answers] == [(202, answers[0].json)] * 2
        assert kinds(await bench.read(conversation)) == ["user", "user"]


@pytest.mark.requirement("8.3-08", "8.13-06")
async def test_c10_an_id_reused_with_other_content_conflicts() -> None:
    """In the same conversation, in another one, and at a start."""
    async with company_bench(turns=False) as bench:
        message = bench.message("Hello")
        conversation = (await bench.send("POST", "", {"message": message})).json["conversation_id"]
        other = await started(bench)
        changed = {"message": {**message, "text": "Bye"}}
        for suffix in ("", f"/{conversation}/messages"):
            answer = await bench.send("POST", suffix, changed)
            assert (answer.status, answer.error) == (409, "message_id_conflict")
        moved = await bench.send("POST", f"/{other}/messages", {"message": message})
        assert (moved.status, moved.error) == (409, "message_id_conflict")
        assert kinds(await bench.read(conversation)) == ["user"]


async def test_c12_another_user_may_use_the_same_id() -> None:
    """Ids are unique for one User, and a retry of another's start starts its own."""
    async with company_bench(turns=False) as bench:
        message = bench.message("Hello")
        mine = await bench.send("POST", "", {"message": message})
        theirs = await bench.send("POST", "", {"message": {**message, "text": "Hi"}}, sub="usr_robin", sid="sid_r")
        assert (theirs.status, theirs.json["conversation_id"] != mine.json["conversation_id"]) == (201, True)


MESSAGE: dict[str, Any] = {"id": "m", "author": {"type": "agent"}, "text": "Hello"}
BAD_MESSAGES: dict[str, Any] = {
    "no id": {"author": {"type": "agent"}, "text": "x"},
    "an id with a dot": {**MESSAGE, "id": "a.b"},
    "an empty id": {**MESSAGE, "id": ""},
    "a long id": {**MESSAGE, "id": "a" * 257},
    "an id that is a number": {**MESSAGE, "id": 1},
    "no author": {"id": "m", "text": "x"},
    "an author without type": {**MESSAGE, "author": {}},
    "an author of another type": {**MESSAGE, "author": {"type": "bot"}},
    "nothing said": {"id": "m", "author": {"type": "agent"}},
    "only empty members": {"id": "m", "author": {"type": "agent"}, "text": "", "data": {}, "context": {}},
    "a number as text": {**MESSAGE, "text": 5},
    "an array as data": {**MESSAGE, "data": []},
    "text as context": {**MESSAGE, "context": "x"},
    "an array as extensions": {**MESSAGE, "extensions": []},
    "half a character": {**MESSAGE, "text": "\ud800"},
}


@pytest.mark.parametrize("fault", BAD_MESSAGES)
@pytest.mark.requirement("8.4-01", "8.4-04", "8.13-09")
async def test_c13_a_malformed_message_is_invalid_request(fault: str) -> None:
    """At both POSTs; and nothing of it is recorded."""
    async with company_bench(turns=False) as bench:
        conversation = await started(bench)
        for suffix in ("", f"/{conversation}/messages"):
            raw = json.dumps({"message": BAD_MESSAGES[fault]}).encode()
            answer = await bench.send("POST", suffix, raw=raw)
            assert (answer.status, answer.error) == (400, "invalid_request")
        assert kinds(await bench.read(conversation)) == ["user"]


@pytest.mark.parametrize(
    "raw",
    [b"", b"{", b"[]", b"null", b'"x"', b"{}", b'{"message": null}', b'{"message": []}', b"\xff{}", b"\xef\xbb\xbf{}"],
)
@pytest.mark.requirement("8.13-02", "8.13-09", "8.3-01")
async def test_c13_a_body_that_is_no_message_is_invalid_request(raw: bytes) -> None:
    """Broken JSON, another kind of JSON, and none (B10)."""
    async with company_bench(turns=False) as bench:
        conversation = await started(bench)
        for suffix in ("", f"/{conversation}/messages"):
            answer = await bench.send("POST", suffix, raw=raw)
            assert (answer.status, answer.error) == (400, "invalid_request")
            assert answer.headers.first("content-type") == "application/json"


@pytest.mark.parametrize("raw", [b'{"message": {"id": "a", "id": "b"}}', b'{"a":' * 40 + b"1" + b"}" * 40])
async def test_c13_json_that_two_readers_could_read_differently_is_refused(raw: bytes) -> None:
    """Duplicate members, and nesting beyond what is read."""
    async with company_bench(turns=False) as bench:
        assert (await bench.send("POST", "", raw=raw)).error == "invalid_request"


@pytest.mark.parametrize("kind", [None, "text/plain", "application/jsonp", "multipart/form-data"])
async def test_readings_37_another_media_type_is_invalid_request(kind: str | None) -> None:
    """A form on some web page could otherwise post."""
    async with company_bench(turns=False) as bench:
        assert (await bench.start(headers={"content-type": kind})).error == "invalid_request"
        assert (await bench.start(headers={"content-type": "Application/JSON; charset=utf-8"})).status == 201


async def test_c81_a_status_that_stays_adds_no_state_event() -> None:
    """Three messages while it works are one change."""
    async with company_bench(turns=False) as bench:
        conversation = await started(bench)
        for _ in range(3):
            await bench.say(conversation)
        assert kinds(await bench.read(conversation)) == ["user"] * 4


@pytest.mark.requirement("8.5-04", "8.4-18")
async def test_a_context_only_message_is_recorded_and_answered_by_nobody() -> None:
    """Readings 21: it says nothing, so the status stays."""
    async with company_bench() as bench:
        conversation = await started(bench)
        await bench.idle(conversation)
        message = bench.message(None, context={"locale": "de-DE"})
        answer = await bench.send("POST", f"/{conversation}/messages", {"message": message})
        assert (answer.status, answer.json["status"]) == (202, "idle")
        assert kinds(await bench.read(conversation)) == ["user", "company", "idle", "user"]


@pytest.mark.requirement("8.4-03", "8.4-02")
async def test_c95_a_role_that_the_agent_sends_is_ignored() -> None:
    """The Company sets it."""
    async with company_bench(turns=False) as bench:
        answer = await bench.send("POST", "", {"message": {**bench.message(), "role": "company"}}, query="wait=0")
        assert answer.json["events"][0]["message"]["role"] == "user"


@pytest.mark.requirement("8.4-25")
async def test_c94_names_and_pictures_that_the_agent_sends_are_ignored() -> None:
    """Only Company messages have them: nobody writes as the Company's staff."""
    async with company_bench(turns=False) as bench:
        author = {"type": "human", "id": "aut_1", "name": "Support", "image": "https://x.example/i.png"}
        answer = await bench.send("POST", "", {"message": bench.message(author=author)}, query="wait=0")
        assert answer.json["events"][0]["message"]["author"] == {"type": "human"}


@pytest.mark.requirement("8.4-22", "8.4-23", "8.4-26")
async def test_replies_may_name_their_author() -> None:
    """Several people or personas are told apart by a stable id and a name."""
    marta = Author(AuthorType.HUMAN, "aut_marta", "Marta", "https://example.com/marta.png")

    async def answer(turn: Turn) -> Reply:
        return Reply("Hello", {"n": len(turn.messages)}, marta)

    async with company_bench(handler=answer) as bench:
        page = await bench.idle(await started(bench))
        again = await bench.idle(await started(bench))
        written = [event["message"] for event in page.json["events"] if event["type"] == "message"][-1]
        assert written["author"] == {
            "type": "human",
            "id": "aut_marta",
            "name": "Marta",
            "image": "https://example.com/marta.png",
        }
        assert again.json["events"][1]["message"]["author"] == written["author"]


@pytest.mark.requirement("8.4-24")
async def test_a_picture_that_is_not_https_fails_the_turn() -> None:
    """It is the Company's own mistake: logged, and a worded message for the User."""

    async def answer(turn: Turn) -> Reply:
        return Reply("Hello", author=Author(AuthorType.HUMAN, image="http://example.com/marta.png"))

    async with company_bench(handler=answer) as bench:
        page = await bench.idle(await started(bench))
        assert "went wrong" in page.json["events"][1]["message"]["text"]


@pytest.mark.parametrize("length", [65_537, 70_000])
@pytest.mark.requirement("papaver-20")
async def test_c91_a_text_above_the_limit_is_413(length: int) -> None:
    """In octets of UTF-8, with the same JSON error; at the limit it is taken."""
    async with company_bench(turns=False) as bench:
        answer = await bench.start("x" * length)
        assert (answer.status, answer.error) == (413, "invalid_request")
        assert (await bench.start("é" * 32_768)).status == 201
        assert (await bench.start("é" * 32_769)).status == 413


@pytest.mark.requirement("papaver-20")
async def test_c91_the_limits_are_settings() -> None:
    """A Company may take less."""
    async with company_bench(turns=False, text_bytes=10, body_bytes=1024) as bench:
        assert (await bench.start("x" * 10)).status == 201
        assert (await bench.start("x" * 11)).status == 413
        assert (await bench.start("x", headers={}, raw=b" " * 1025)).status == 413


@pytest.mark.requirement("papaver-23")
async def test_an_acceptance_names_its_parent() -> None:
    """An event alone is refused, and nothing is recorded (8.10)."""
    async with company_bench(turns=False) as bench:
        answer = await bench.send("POST", "", {"message": bench.message(), "user_requested_event_id": "evt_1"})
        assert (answer.status, answer.error) == (400, "invalid_request")
