"""The conversation requests of draft 0.4 as a Company reads and answers them: routes, queries, bodies, answers."""

from __future__ import annotations

import json
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from papaver.protocol.conversation.model import (
    Author,
    AuthorType,
    Message,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
)
from papaver.protocol.dialect import Accepted, NoRoute, Page, Route, RouteKind, StartBody, Wanted
from papaver.protocol.errors import InvalidCursor, InvalidRequest, PayloadTooLarge
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.versions.v0_4.conversations import CONVERSATIONS, MAX_BODY_BYTES
from papaver.web.messages import Headers, Request

HERE = ConversationId("cnv_8f3Kd2")
JSON = Headers([("Content-Type", "application/json")])
SAID: dict[str, object] = {"id": "msg_1", "author": {"type": "agent"}, "text": "Where is my order?"}


def _post(body: object, headers: Headers = JSON) -> Request:
    octets = body if isinstance(body, bytes) else json.dumps(body).encode()
    return Request("POST", "https://api.example.com/poppy/conversations", headers, octets)


def _say(**members: object) -> Message:
    return CONVERSATIONS.read_say(_post({"message": SAID | members}))


@pytest.mark.parametrize(
    ("method", "path", "route"),
    [
        pytest.param("POST", "", Route(RouteKind.START), marks=pytest.mark.requirement("8.2-02")),
        pytest.param("POST", f"/{HERE}/messages", Route(RouteKind.SAY, HERE), marks=pytest.mark.requirement("8.2-03")),
        pytest.param("GET", f"/{HERE}/events", Route(RouteKind.READ, HERE), marks=pytest.mark.requirement("8.2-04")),
        pytest.param(
            "POST", f"/{HERE}/handoff", Route(RouteKind.HAND_OFF, HERE), marks=pytest.mark.requirement("8.2-05")
        ),
        pytest.param("POST", f"/{HERE}/close", Route(RouteKind.CLOSE, HERE), marks=pytest.mark.requirement("8.2-06")),
    ],
)
def test_the_five_requests_have_their_routes(method: str, path: str, route: Route) -> None:
    """8.2's table."""
    assert CONVERSATIONS.route(method, path) == route


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "", ("POST",)),
        ("GET", f"/{HERE}/messages", ("POST",)),
        ("POST", f"/{HERE}/events", ("GET",)),
        ("HEAD", f"/{HERE}/events", ("GET",)),
        ("DELETE", f"/{HERE}/close", ("POST",)),
        ("GET", f"/{HERE}/handoff", ("POST",)),
        ("POST", "/", ()),
        ("GET", f"/{HERE}", ()),
        ("GET", f"/{HERE}/", ()),
        ("GET", f"/{HERE}/unheard", ()),
        ("POST", f"/{HERE}/messages/msg_1", ()),
        ("POST", f"x/{HERE}/messages", ()),
        ("GET", "/a b/unheard", ()),
    ],
)
def test_c1_other_paths_and_methods_are_no_routes(method: str, path: str, allow: tuple[str, ...]) -> None:
    """404 without a code for unknown paths, 405 with the methods for known ones (readings 44)."""
    assert CONVERSATIONS.route(method, path) == NoRoute(allow)


@pytest.mark.requirement("8.2-15", "8.13-09")
@pytest.mark.parametrize("name", ["", "a.b", "a%20b", "%63nv", "ä", "x" * 257, ".."])
def test_c13_an_id_in_the_path_keeps_to_its_alphabet(name: str) -> None:
    """Bad characters and lengths are a malformed request (readings 29)."""
    with pytest.raises(InvalidRequest) as refused:
        CONVERSATIONS.route("GET", f"/{name}/events")
    assert refused.value.rule == "conversation.id-alphabet"


@pytest.mark.requirement("8.5-10", "8.5-14", "8.5-16")
@pytest.mark.parametrize(
    ("query", "wanted"),
    [
        ("", Wanted()),
        ("cursor=evt_1", Wanted()),
        ("cursor=%00&cursor=evt_1", Wanted()),
        ("wait=0", Wanted(wait=0)),
        ("wait=05&cursor=evt_-9", Wanted(EventId("evt_-9"), 5)),
        ("wait=999999999", Wanted(wait=999_999_999)),
        ("wait=9999999999", Wanted(wait=1_000_000_000)),
        ("wait=" + "9" * 5000, Wanted(wait=1_000_000_000)),
        ("wait=" + "0" * 5000, Wanted(wait=0)),
        ("wait=00000000000007", Wanted(wait=7)),
        ("other=1&other=2&wait=%31%30&flag", Wanted(wait=10)),
    ],
)
def test_queries_are_read(query: str, wanted: Wanted) -> None:
    """Whole seconds and a cursor; the wait is not capped here, and other parameters are ignored.

    So is a cursor without `wait`, whatever it is (readings 22).
    """
    assert CONVERSATIONS.read_query(query) == wanted


@pytest.mark.requirement("8.5-14", "8.13-09")
@pytest.mark.parametrize(
    "value", ["1.5", "-1", "abc", "", "+5", "1e3", " 5", "5 ", "12345678901x", "\u0661", "0x1", "5&wait=5", "1_0"]
)
def test_c64_wait_is_a_whole_number_of_seconds(value: str) -> None:
    """Digits alone, as many as there are, given once (readings 43)."""
    with pytest.raises(InvalidRequest) as refused:
        CONVERSATIONS.read_query(f"cursor=evt_1&wait={value}")
    assert refused.value.rule == "query.wait"


@pytest.mark.requirement("8.13-07")
@pytest.mark.parametrize("value", ["", "evt.1", "evt%201", "x" * 257, "evt_1&cursor=evt_1", "evt+1", "%00"])
def test_c17_a_cursor_that_is_no_event_id_is_invalid(value: str) -> None:
    """Whatever cannot be an id is an unknown cursor (readings 29), also at a read without `wait`."""
    with pytest.raises(InvalidCursor) as refused:
        CONVERSATIONS.read_query(f"wait=0&cursor={value}")
    assert refused.value.rule == "query.cursor"
    with pytest.raises(InvalidCursor) as refused:
        CONVERSATIONS.read_wanted(f"cursor={value}", Headers())
    assert refused.value.rule == "query.cursor"


@pytest.mark.requirement("8.6-08")
@pytest.mark.parametrize(
    ("query", "fields", "wanted"),
    [
        pytest.param("", [], Wanted(), id="nothing"),
        pytest.param("cursor=evt_1&wait=3", [("last-event-id", "evt_3")], Wanted(EventId("evt_3"), 3), id="both"),
        pytest.param("cursor=%00&cursor=evt_1", [("last-event-id", "evt_3")], Wanted(EventId("evt_3")), id="old"),
        pytest.param("", [("Last-Event-ID", "evt_3")], Wanted(EventId("evt_3")), id="alone"),
        pytest.param("cursor=evt_1", [("last-event-id", "")], Wanted(EventId("evt_1")), id="empty"),
        pytest.param("", [("accept", "text/event-stream")], Wanted(stream=True), id="stream"),
        pytest.param(
            "wait=5&cursor=evt_1",
            [("accept", "text/event-stream"), ("last-event-id", "evt_2")],
            Wanted(EventId("evt_2"), 5, stream=True),
            id="stream-goes-on",
        ),
    ],
)
def test_a_read_goes_on_after_the_last_event(query: str, fields: list[tuple[str, str]], wanted: Wanted) -> None:
    """Last-Event-ID in place of the cursor, which is as old as the URL; an empty one is none (readings 41)."""
    assert CONVERSATIONS.read_wanted(query, Headers(fields)) == wanted


@pytest.mark.parametrize("values", [["evt 1"], ["evt_1", "evt_1"], ["", "evt_1"], ["\xe9"], ["x" * 257]])
def test_c21_a_last_event_id_that_is_no_event_id_is_an_invalid_cursor(values: list[str]) -> None:
    """As in the query, and whatever the query says (readings 29)."""
    with pytest.raises(InvalidCursor) as refused:
        CONVERSATIONS.read_wanted("cursor=evt_1", Headers([("last-event-id", value) for value in values]))
    assert refused.value.rule == "query.cursor"


def test_a_stream_is_written_by_event_and_by_piece() -> None:
    """Ready to send; what a page would say."""
    at = datetime(2026, 10, 8, 19, 3, tzinfo=UTC)
    event = StateChanged(EventId("evt_2"), at, Status.IDLE, Responder.AGENT)
    assert CONVERSATIONS.write_stream_event(event, {}).startswith(b'id: evt_2\ndata: {"id":"evt_2",')
    assert CONVERSATIONS.write_delta(MessageId("msg_1"), "Hi").startswith(b"event: text-delta\ndata: ")


@given(st.text(max_size=60))
def test_no_query_raises_anything_else(query: str) -> None:
    """Hostile queries come out as the protocol's own errors."""
    with suppress(InvalidRequest, InvalidCursor):
        CONVERSATIONS.read_query(query)


@pytest.mark.requirement("8.4-01", "8.4-04", "8.4-21")
def test_a_message_is_read_as_sent() -> None:
    """Every member of 8.4, unknown ones kept (readings 36)."""
    message = _say(
        author={"type": "human", "device": "phone"},
        data={"lines": [1, None]},
        context={"locale": "en-US", "user_available": None},
        extensions={"links": {"items": []}},
        mood=["curious"],
    )
    assert message == Message(
        MessageId("msg_1"),
        Author(AuthorType.HUMAN, extra={"device": "phone"}),
        Role.USER,
        "Where is my order?",
        {"lines": [1, None]},
        {"locale": "en-US", "user_available": None},
        {"links": {"items": []}},
        {"mood": ["curious"]},
    )


@pytest.mark.requirement("8.4-25")
def test_c94_an_authors_id_name_and_image_are_ignored() -> None:
    """Only Company messages have them, so nobody can pose as staff (8.4)."""
    assert _say(author={"type": "agent", "id": 7, "name": "Alex", "image": None}).author == Author(AuthorType.AGENT)


@pytest.mark.requirement("8.4-03")
@pytest.mark.parametrize("role", ["company", "user", 7, None])
def test_c95_a_role_is_ignored(role: object) -> None:
    """The Company sets it when it records the message."""
    message = _say(role=role)
    assert (message.role, message.extra) == (Role.USER, {})


def test_null_is_absent() -> None:
    """A null member says as much as none (readings 34)."""
    assert _say(data=None, context=None, extensions=None) == _say()


@pytest.mark.requirement("8.4-28")
@pytest.mark.parametrize("content", ["x", 7, [], True])
def test_extension_content_is_an_object(content: object) -> None:
    """Another JSON type is malformed, whoever defines the extension (8.4; readings 34)."""
    with pytest.raises(InvalidRequest) as refused:
        _say(extensions={"links": content})
    assert refused.value.rule == "request.members"


@pytest.mark.requirement("8.4-30")
def test_c93_unknown_extension_content_is_accepted() -> None:
    """It says something, even when nobody here understands it (3.3, 8.4)."""
    assert _say(text=None, extensions={"unheard.example/of": {"x": 1}}).extensions == {"unheard.example/of": {"x": 1}}


BAD_MESSAGES: list[tuple[str, object, str]] = [
    ("no object", [], "request.json"),
    ("a string", "message", "request.json"),
    ("null", None, "request.json"),
    ("empty body", b"", "request.json"),
    ("broken JSON", b'{"message": ', "request.json"),
    ("a duplicate member", b'{"message": {}, "message": {}}', "request.json"),
    ("not UTF-8", b'{"message": "\xff"}', "request.json"),
    ("half a character", b'{"message": {"text": "\\ud800"}}', "request.json"),
    ("too deep", b'{"message": ' + b"[" * 64 + b"]" * 64 + b"}", "request.json"),
    ("a message that is no object", {"message": "Hi"}, "request.members"),
    ("no id", {"message": {"author": {"type": "agent"}, "text": "Hi"}}, "request.members"),
    ("a null id", {"message": SAID | {"id": None}}, "request.members"),
    ("a bad id", {"message": SAID | {"id": "a b"}}, "conversation.id-alphabet"),
    ("a long id", {"message": SAID | {"id": "x" * 257}}, "conversation.id-alphabet"),
    ("no author", {"message": {"id": "m", "text": "Hi"}}, "request.members"),
    ("an author without type", {"message": SAID | {"author": {}}}, "request.members"),
    ("an unknown author type", {"message": SAID | {"author": {"type": "robot"}}}, "request.members"),
    ("an author that is text", {"message": SAID | {"author": "agent"}}, "request.members"),
    ("text that is a number", {"message": SAID | {"text": 7}}, "request.members"),
    ("data that is an array", {"message": SAID | {"data": []}}, "request.members"),
    ("context that is text", {"message": SAID | {"context": "en"}}, "request.members"),
    ("extensions that are an array", {"message": SAID | {"extensions": []}}, "request.members"),
    ("extension content that is text", {"message": SAID | {"extensions": {"links": "x"}}}, "request.members"),
    ("nothing said", {"message": SAID | {"text": None}}, "message.content"),
    ("empty text", {"message": SAID | {"text": ""}}, "message.content"),
]


SHOWS = {
    "no id": "8.4-01",
    "no author": "8.4-04",
    "an unknown author type": "8.4-04",
    "text that is a number": "8.4-05",
    "data that is an array": "8.4-06",
    "context that is text": "8.4-07",
    "extensions that are an array": "8.4-08",
    "extension content that is text": "8.4-28",
    "nothing said": "8.4-09",
}


def _malformed(name: str, body: object, rule: str) -> ParameterSet:
    """The case as a parameter, with the row that it shows beside 8.13-09."""
    marks = [pytest.mark.requirement(SHOWS[name])] if name in SHOWS else []
    return pytest.param(body, rule, id=name, marks=marks)


@pytest.mark.requirement("8.13-09")
@pytest.mark.parametrize(("body", "rule"), [_malformed(*case) for case in BAD_MESSAGES])
def test_c13_a_malformed_message_is_refused(body: object, rule: str) -> None:
    """400 for both POSTs, naming the rule; the public sentence never repeats a value."""
    for read in (CONVERSATIONS.read_say, CONVERSATIONS.read_start):
        with pytest.raises(InvalidRequest) as refused:
            read(_post(body))
        assert refused.value.rule == rule


def test_c13_a_message_is_there() -> None:
    """Without one, the two POSTs differ: a start may accept an invitation."""
    with pytest.raises(InvalidRequest) as said:
        CONVERSATIONS.read_say(_post({}))
    assert said.value.rule == "request.members"
    with pytest.raises(InvalidRequest) as started:
        CONVERSATIONS.read_start(_post({}))
    assert started.value.rule == "message.absent-only-when-accepting"


@pytest.mark.requirement("8.3-01")
@pytest.mark.parametrize("named", ["parent_conversation_id", "user_requested_event_id"])
def test_c72_a_message_is_omitted_only_with_both_ids(named: str) -> None:
    """One id alone does not do (8.10)."""
    with pytest.raises(InvalidRequest) as refused:
        CONVERSATIONS.read_start(_post({named: "id_1"}))
    assert refused.value.rule == "message.absent-only-when-accepting"


@pytest.mark.requirement("8.3-01")
def test_a_start_is_read() -> None:
    """With its message, or accepting an invitation with both ids; unknown members are ignored."""
    assert CONVERSATIONS.read_start(_post({"message": SAID, "later": 1})) == StartBody(_say())
    both = {"parent_conversation_id": "cnv_1", "user_requested_event_id": "evt_1"}
    assert CONVERSATIONS.read_start(_post(both)) == StartBody(None, ConversationId("cnv_1"), EventId("evt_1"))


@pytest.mark.parametrize("named", ["parent_conversation_id", "user_requested_event_id"])
def test_ids_of_a_start_keep_to_their_alphabet(named: str) -> None:
    """400 `invalid_request` for ids in a body (readings 29)."""
    with pytest.raises(InvalidRequest) as refused:
        CONVERSATIONS.read_start(_post({"message": SAID, named: "a/b"}))
    assert refused.value.rule == "conversation.id-alphabet"


@pytest.mark.parametrize("value", ["application/json; charset=utf-8", "Application/JSON;v=1", " application/json "])
def test_json_may_have_parameters(value: str) -> None:
    """Any case, any parameters (readings 37)."""
    CONVERSATIONS.read_say(_post({"message": SAID}, Headers([("Content-Type", value)])))


@pytest.mark.requirement("8.13-09", "8.2-01")
@pytest.mark.parametrize(
    "headers",
    [
        [],
        [("Content-Type", "text/plain")],
        [("Content-Type", "application/jsonp")],
        [("Content-Type", "application/json+x")],
        [("Content-Type", "application/json"), ("Content-Type", "application/json")],
    ],
)
def test_c89_another_media_type_is_refused(headers: list[tuple[str, str]]) -> None:
    """None, another, or two of them (readings 37)."""
    for read in (CONVERSATIONS.read_say, CONVERSATIONS.read_start):
        with pytest.raises(InvalidRequest) as refused:
            read(_post({"message": SAID}, Headers(headers)))
        assert refused.value.rule == "request.content-type"


def test_c91_a_large_body_is_413() -> None:
    """And so is a text beyond its own limit."""
    with pytest.raises(PayloadTooLarge) as body:
        CONVERSATIONS.read_say(_post(b" " * (MAX_BODY_BYTES + 1)))
    assert body.value.rule == "request.body-size"
    with pytest.raises(PayloadTooLarge) as text:
        _say(text="x" * 65_537)
    assert text.value.rule == "message.text-size"


@pytest.mark.requirement("8.12-01")
@pytest.mark.parametrize("body", [b"", b" \r\n", b"{}", b'{"later": 1}'])
def test_handoff_and_close_say_nothing(body: bytes) -> None:
    """An empty body or any JSON object, whatever its media type (readings 37)."""
    CONVERSATIONS.read_nothing(_post(body, Headers()))


@pytest.mark.parametrize("body", [b"[]", b"null", b"{", b'"x"'])
def test_handoff_and_close_refuse_other_json(body: bytes) -> None:
    """What is no object is malformed."""
    with pytest.raises(InvalidRequest) as refused:
        CONVERSATIONS.read_nothing(_post(body))
    assert refused.value.rule == "request.json"


@pytest.mark.requirement("8.3-02", "8.7-10", "8.3-12")
@pytest.mark.parametrize("status_code", [201, 202])
def test_an_accepted_message_is_answered(status_code: int) -> None:
    """Id, status and responder, not to be stored (readings 30)."""
    response = CONVERSATIONS.write_accepted(status_code, Accepted(HERE, Status.WORKING, Responder.AGENT))
    assert response.status == status_code
    assert json.loads(response.body) == {"conversation_id": HERE, "status": "working", "responder": "agent"}
    assert response.headers.first("Content-Type") == "application/json"
    assert response.headers.first("Cache-Control") == "no-store"


@pytest.mark.requirement("8.7-10", "8.12-02")
def test_handoff_and_close_are_answered() -> None:
    """Status and responder."""
    response = CONVERSATIONS.write_state(200, Status.CLOSED, Responder.HUMAN)
    assert (response.status, json.loads(response.body)) == (200, {"status": "closed", "responder": "human"})
    assert response.headers.first("Cache-Control") == "no-store"


@pytest.mark.requirement("8.5-18", "8.5-02", "8.5-05")
def test_a_page_is_written() -> None:
    """All six members, each event with id, type and time; empty pages too."""
    at = datetime(2026, 10, 8, 19, 3, tzinfo=UTC)
    said = Message(MessageId("msg_2"), Author(AuthorType.AGENT, "aut_1", "Robin"), Role.COMPANY, "On its way.")
    events = (
        MessageAdded(EventId("evt_1"), at, said),
        StateChanged(EventId("evt_2"), at, Status.IDLE, Responder.AGENT),
    )
    page = Page(HERE, events, EventId("evt_2"), False, Status.IDLE, Responder.AGENT)
    response = CONVERSATIONS.write_page(200, page, {})
    assert (response.status, response.headers.first("Cache-Control")) == (200, "no-store")
    assert json.loads(response.body) == {
        "conversation_id": HERE,
        "events": [
            {
                "id": "evt_1",
                "type": "message",
                "created_at": "2026-10-08T19:03:00.000Z",
                "message": {
                    "id": "msg_2",
                    "role": "company",
                    "author": {"type": "agent", "id": "aut_1", "name": "Robin"},
                    "text": "On its way.",
                },
            },
            {
                "id": "evt_2",
                "type": "state",
                "created_at": "2026-10-08T19:03:00.000Z",
                "status": "idle",
                "responder": "agent",
            },
        ],
        "cursor": "evt_2",
        "has_more": False,
        "status": "idle",
        "responder": "agent",
    }
    empty = Page(HERE, (), EventId("evt_2"), False, Status.IDLE, Responder.AGENT)
    assert json.loads(CONVERSATIONS.write_page(200, empty, {}).body)["events"] == []
