"""A Company that answers as none may: what a Personal Agent raises, what it keeps, and that it never spins.

Beside each answer stands what is wrong with it. Nothing here may end in another error than our own.
"""

from __future__ import annotations

import gzip
import json
import logging
from dataclasses import replace
from typing import Any

import pytest

from papaver.personal_agent.settings import AgentLimits
from papaver.ports.system import FetchFailed
from papaver.protocol.conversation.model import MessageAdded
from papaver.protocol.errors import Misbehaved, RateLimited, Refused, SignInNeeded, TemporarilyUnavailable
from papaver.testing.pair import Pair, pair
from papaver.testing.wire import Exchange, Onward
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Response
from tests.house.pairing import Scene, Script, changed, replies, signed, told, with_members

pytestmark = pytest.mark.anyio

START, MESSAGES, EVENTS = "/conversations", "/messages", "/events"
ACCEPTED = {"conversation_id": "cnv_1", "status": "working", "responder": "agent"}
MIB = 1024 * 1024


def without(name: str) -> Scene:
    """The site's answer without a member."""
    return changed(lambda body: body.pop(name))


def zipped(octets: bytes, coding: str = "gzip") -> Response:
    return told(201, octets, content_encoding=coding, content_type="application/json")


async def refused_start(both: Pair, scene: Scene, *, always: bool = False) -> PapaverError:
    """The error of a start that is answered so."""
    script = Script(both)
    if always:
        script.always(START, scene)
    else:
        script.then(START, scene)
    session = (await both.agent.discover("example.com")).session("dana")
    with pytest.raises(PapaverError) as caught:
        await session.ask("Hi")
    return caught.value


BROKEN: list[tuple[str, Scene, str]] = [
    ("a success that no start has", told(200, ACCEPTED), "answer.status"),
    ("nothing", told(204), "answer.status"),
    ("a status of nobody's", told(299, ACCEPTED), "answer.status"),
    ("a page", told(201, b"<html>Welcome</html>"), "answer.json"),
    ("no body", told(201), "answer.json"),
    ("no object", told(201, [ACCEPTED]), "answer.json"),
    ("a member twice", told(201, json.dumps(ACCEPTED).replace("{", '{"status": "idle", ').encode()), "answer.json"),
    ("no number", told(201, b'{"conversation_id": NaN}'), "answer.json"),
    ("no text", told(201, json.dumps(ACCEPTED).encode("utf-16")), "answer.json"),
    ("a well", told(201, b'{"a":' * 10_000 + b"1" + b"}" * 10_000), "answer.json"),
    ("no id", without("conversation_id"), "answer.members"),
    ("no status", without("status"), "answer.members"),
    ("a status that is no text", with_members(status=7), "answer.members"),
    ("a responder that is nothing", with_members(responder=None), "answer.members"),
    ("an id that leaves the path", with_members(conversation_id="../../orders"), "answer.id-alphabet"),
    ("an id with a query", with_members(conversation_id="cnv_1?admin=1"), "answer.id-alphabet"),
    ("an id without an end", with_members(conversation_id="c" * 257), "answer.id-alphabet"),
    ("an empty id", with_members(conversation_id=""), "answer.id-alphabet"),
    ("events of no kind", with_members(events="none"), "page.members"),
]


@pytest.mark.parametrize(("scene", "rule"), [case[1:] for case in BROKEN], ids=[case[0] for case in BROKEN])
async def test_a_broken_answer_to_a_start_leaves_the_message_undecided(scene: Scene, rule: str) -> None:
    """It may have been accepted: it stays in the outbox, and sent again under its id it is the same message."""
    async with pair() as both:
        error = await refused_start(both, scene)
        assert (type(error), error.rule) == (Misbehaved, rule)
        assert len(signed(both)) == 1
        [waiting] = await both.agent.pending()
        session = (await both.agent.discover("example.com")).session("dana")
        [conversation] = await session.send_pending()
        assert await replies(conversation) == ["You said: Hi"]
        assert await both.agent.pending() == ()
        assert json.loads(signed(both)[1].request.body)["message"]["id"] == waiting.message_id


@pytest.mark.parametrize(
    ("scene", "rule"),
    [
        (told(201, b" " * (10 * MIB + 1)), "fetch.size"),
        (zipped(gzip.compress(b" " * (11 * MIB))), "fetch.size"),
        (zipped(b"{}", "br"), "fetch.decodable"),
        (zipped(b"{}"), "fetch.decodable"),
        (zipped(gzip.compress(b"{}")[:-4]), "fetch.decodable"),
        (told(201, b"{}", content_length="99999999"), "fetch.size"),
    ],
    ids=["large", "bomb", "another-coding", "no-gzip", "cut-gzip", "announced"],
)
async def test_b15_an_answer_beyond_the_limits_is_not_read(scene: Scene, rule: str) -> None:
    """Once; whether the message was accepted is not known."""
    async with pair() as both:
        error = await refused_start(both, scene)
        assert isinstance(error, FetchFailed)
        assert error.rule == rule
        assert len(signed(both)) == 1
        assert len(await both.agent.pending()) == 1


REFUSALS: list[tuple[str, Response, str]] = [
    ("no reason", told(400), "http_400"),
    ("a page", told(404, b"<html>Not found</html>"), "http_404"),
    ("an error of no kind", told(409, {"error": {"code": 7}}), "http_409"),
    ("an empty error", told(400, {"error": ""}), "http_400"),
    ("an unknown error", told(418, {"error": "out_of_coffee"}), "out_of_coffee"),
    ("an error that moves the cursor", told(400, {"error": "\x1b[2J\nINFO all is well"}), "http_400"),
    ("an error without an end", told(400, {"error": "e" * 500}), "http_400"),
    ("a list", told(400, ["invalid_session"]), "http_400"),
    ("a description that is none", told(400, {"error": "odd", "error_description": ["x"]}), "odd"),
    ("a redirect", told(302, location="https://evil.example/"), "http_302"),
    ("nothing new", told(304), "http_304"),
    ("a challenge that is none", told(401, www_authenticate="==,,\x7f Bearer"), "http_401"),
]  # fmt: skip


@pytest.mark.parametrize(("answer", "code"), [case[1:] for case in REFUSALS], ids=[case[0] for case in REFUSALS])
async def test_a_refusal_without_a_usable_reason_is_a_refusal(
    answer: Response, code: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One try, the caller is told, and no word of the Company's reaches a log unread."""
    caplog.set_level(logging.DEBUG)
    async with pair() as both:
        error = await refused_start(both, answer)
        assert isinstance(error, Refused)
        assert (error.code, error.response.status) == (code, answer.status)
        assert len(signed(both)) == 1
        assert await both.agent.pending() == ()
        shown = f"{error} {error!r}"
        assert shown.isprintable()
        assert len(shown) < 200
        assert "\x1b" not in caplog.text


@pytest.mark.requirement("5.6-06")
@pytest.mark.parametrize(("value", "waited"), [("9" * 30, 0), ("86400", 0), ("61", 0), ("60", 60)])
async def test_a_pause_without_an_end_is_not_waited_for(value: str, waited: int) -> None:
    """Beyond a minute the caller is told at once."""
    async with pair() as both:
        error = await refused_start(both, told(429, retry_after=value), always=True)
        assert isinstance(error, RateLimited)
        assert error.retry_after >= 1
        assert sum(both.agent_clock.slept) == waited
        assert len(signed(both)) == (2 if waited else 1)


@pytest.mark.parametrize(
    ("answer", "kind", "tries"),
    [
        (told(400, {"error": "session_ended"}), Refused, 2),
        (told(400, {"error": "version_unsupported"}), Refused, 1),
        (told(400, {"error": "invalid_session"}), Refused, 1),
        (told(429, retry_after="1"), RateLimited, 2),
        (told(503, {"error": "temporarily_unavailable"}, retry_after="1"), TemporarilyUnavailable, 2),
        (told(503), Refused, 6),
        (told(500), Refused, 1),
        (told(401, www_authenticate="Bearer " * 500), SignInNeeded, 1),
    ],
    ids=["ended", "version", "invalid", "429", "503", "gateway", "500", "challenges"],
)
async def test_a_company_that_always_refuses_is_given_up(
    answer: Response, kind: type[PapaverError], tries: int
) -> None:
    """Each answer has its number of tries, and none is endless."""
    async with pair() as both:
        assert isinstance(await refused_start(both, answer, always=True), kind)
        assert len(signed(both)) == tries
        assert sum(both.agent_clock.slept) < 60


async def test_recoveries_that_chase_each_other_end() -> None:
    """Every refusal that can be mended, over and over: each is mended once."""
    refusals = [
        told(400, {"error": "session_ended"}),
        told(429, retry_after="1"),
        told(400, {"error": "invalid_session"}, date="Fri, 02 Oct 2026 05:13:20 GMT"),
    ]
    count = 0

    async def chase(exchange: Exchange, onward: Onward) -> Response:
        nonlocal count
        count += 1
        return refusals[count % 3]

    async with pair() as both:
        assert isinstance(await refused_start(both, chase, always=True), Refused | RateLimited)
        assert count <= 5


@pytest.mark.parametrize(
    ("scene", "rule"),
    [
        (with_members(conversation_id="cnv_other"), "answer.same-conversation"),
        (with_members(events=None), "page.members"),
        (with_members(events=[7]), "page.members"),
        (with_members(has_more="no"), "page.members"),
        (with_members(cursor="evt 1&wait=9"), "answer.id-alphabet"),
        (with_members(events=[{"id": "evt_1"}]), "event.type"),
        (with_members(events=[{"type": "state"}]), "event.state"),
        (told(202, {}), "answer.status"),
        (told(200, b"data: {}\n\n", content_type="text/event-stream"), "answer.json"),
    ],
)
async def test_a_broken_page_is_raised_and_the_next_reading_goes_on(scene: Scene, rule: str) -> None:
    """Nothing of it is handled; when the Company is well again, no event is missing."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        session.streams = False  # pages
        conversation = await session.ask("Hi")
        Script(both).then(EVENTS, scene)
        with pytest.raises(Misbehaved) as caught:
            await replies(conversation)
        assert caught.value.rule == rule
        assert conversation.cursor is None
        assert await replies(conversation) == ["You said: Hi"]


EVENT = {"id": "evt_x", "type": "message", "created_at": "2026-10-02T00:13:20Z"}
MESSAGE = {"id": "cm_x", "role": "company", "author": {"type": "agent"}, "text": "Hello"}


@pytest.mark.parametrize(
    ("event", "rule"),
    [
        ({**EVENT, "id": "a b"}, "answer.id-alphabet"),
        ({**EVENT, "created_at": "yesterday"}, "event.created-at"),
        ({**EVENT, "created_at": "2026-13-45T99:99:99Z"}, "event.created-at"),
        ({**EVENT, "message": "Hello"}, "event.message"),
        ({**EVENT, "message": {**MESSAGE, "role": "system"}}, "event.message"),
        ({**EVENT, "message": {**MESSAGE, "author": {"type": "god"}}}, "event.message"),
        ({**EVENT, "message": {**MESSAGE, "text": {"html": "<b>"}}}, "event.message"),
        ({**EVENT, "type": "direct_opened", "conversation_id": "/etc/passwd"}, "answer.id-alphabet"),
    ],
)
async def test_a_broken_event_is_raised_under_its_rule(event: dict[str, object], rule: str) -> None:
    """What cannot be read is not given out half read."""
    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        session.streams = False  # pages
        conversation = await session.ask("Hi")
        Script(both).then(EVENTS, with_members(events=[{"message": MESSAGE, **event}]))
        with pytest.raises(Misbehaved) as caught:
            await replies(conversation)
        assert caught.value.rule == rule


async def test_an_event_that_comes_again_and_again_is_given_out_once() -> None:
    """In one page, and in the next ones."""

    def doubled(page: dict[str, Any]) -> None:
        page["events"] = [one for event in page["events"] for one in (event, event)]

    async with pair() as both:
        Script(both).always(EVENTS, changed(doubled))
        session = (await both.agent.discover("example.com")).session("dana")
        session.streams = False  # pages
        conversation = await session.ask("Hi")
        assert await replies(conversation) == ["You said: Hi"]
        await conversation.say("More")
        assert await replies(conversation) == ["You said: More"]


@pytest.mark.parametrize("ignored", [["wait"], ["wait", "cursor"]], ids=["wait", "cursor"])
async def test_a_company_that_is_never_done_is_not_asked_without_a_pause(ignored: list[str]) -> None:
    """`working` for a long time, and each held read comes back at once with nothing new."""
    count = 0

    async def busy(exchange: Exchange, onward: Onward) -> Response:
        nonlocal count
        count += 1
        path, _, query = exchange.request.url.partition("?")
        kept = "&".join(pair for pair in query.split("&") if pair.partition("=")[0] not in ignored)
        exchange.request = replace(exchange.request, url=f"{path}?{kept}" if kept else path)
        body = {**json.loads((await onward()).body), "status": "working" if count < 12 else "idle"}
        return told(200, body)

    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        session.streams = False  # pages
        conversation = await session.ask("Hi")
        Script(both).always(EVENTS, busy)
        assert await replies(conversation) == ["You said: Hi"]
        assert count == 12
        assert len(both.agent_clock.slept) >= 9


async def test_cursors_that_go_in_a_circle_end_the_reading() -> None:
    """`has_more`, and the cursors A, B, A: there is no end to it."""
    cursors = ["evt_a", "evt_b"] * 20

    async def circle(exchange: Exchange, onward: Onward) -> Response:
        page: dict[str, object] = {"conversation_id": conversation.id, "events": [], "has_more": True, **STATE}
        return told(200, {**page, "cursor": cursors.pop()})

    async with pair() as both:
        session = (await both.agent.discover("example.com")).session("dana")
        session.streams = False  # pages
        conversation = await session.ask("Hi")
        Script(both).always(EVENTS, circle)
        with pytest.raises(Misbehaved) as caught:
            await replies(conversation)
        assert caught.value.rule == "page.moves-on"
        assert len(cursors) > 35


STATE = {"status": "working", "responder": "agent"}


async def test_a_long_page_is_read_to_its_end() -> None:
    """Thousands of events are no fault."""
    created = "2026-10-02T00:13:20Z"

    def many(page: dict[str, Any]) -> None:
        page["events"] = [
            {"id": f"evt_{n}", "type": "message", "created_at": created, "message": {**MESSAGE, "id": f"cm_{n}"}}
            for n in range(3_000)
        ]
        page["cursor"] = "evt_2999"
        page["status"] = "idle"

    async with pair(limits=AgentLimits(events_remembered=10)) as both:
        session = (await both.agent.discover("example.com")).session("dana")
        session.streams = False  # pages
        conversation = await session.ask("Hi")
        Script(both).then(EVENTS, changed(many))
        seen = [event.id async for event in conversation.events() if isinstance(event, MessageAdded)]
        assert (len(seen), len(set(seen))) == (3_000, 3_000)


async def test_nothing_of_the_protocol_goes_anywhere_else_whatever_a_company_says() -> None:
    """Redirects, challenges, metadata and texts name other places: the Session header stays with its destinations."""
    evil: list[Exchange] = []

    async def elsewhere(exchange: Exchange) -> Response:
        evil.append(exchange)
        return told(200, {})

    lures = {
        "location": "https://evil.example/take",
        "content-location": "https://evil.example/take",
        "link": '<https://evil.example/take>; rel="next"',
        "alt-svc": 'h2="evil.example:443"',
        "refresh": "0; url=https://evil.example/take",
        "www-authenticate": 'Bearer resource_metadata="https://evil.example/take"',
        "set-cookie": "session=evil; Domain=example.com",
    }
    async with pair() as both:
        both.wire.sites["evil.example"] = elsewhere
        session = (await both.agent.discover("example.com")).session("dana")
        for status in (307, 401, 400, 201):
            Script(both).then(START, Response(status, Headers(lures), json.dumps({"url": lures["location"]}).encode()))
            with pytest.raises(PapaverError):
                await session.ask("Hi")
            await both.restart()
            session = (await both.agent.discover("example.com")).session("dana")
        await replies(await session.ask("See https://evil.example/take"))
        assert evil == []
        assert all("cookie" not in one.request.headers for one in both.wire.exchanges)
