"""The conversation requests of draft 0.4 as a Personal Agent writes them, and the answers it reads."""

from __future__ import annotations

import json

import pytest

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
from papaver.protocol.dialect import Accepted, NoRoute, Page, StartBody, Wanted
from papaver.protocol.errors import InvalidRequest, Misbehaved
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.versions.v0_4.conversations import CONVERSATIONS
from papaver.web.messages import Request, Response
from papaver.web.sse import ServerEvent

ENDPOINT = "https://api.example.com/poppy/conversations"
HERE = ConversationId("cnv_1")
ASKED = Message(
    MessageId("msg_1"),
    Author(AuthorType.AGENT),
    text="Where is my order?",
    data={"order": 1042},
    context={"locale": "en-US", "time_zone": "America/Los_Angeles", "user_available": True},
)
WAITING = Wanted(EventId("evt_1"), 10)
ACCEPTED: dict[str, object] = {"conversation_id": "cnv_1", "status": "working", "responder": "agent"}
STATE: dict[str, object] = {
    "id": "evt_2",
    "type": "state",
    "created_at": "2026-10-08T19:03:00Z",
    "status": "idle",
    "responder": "agent",
}
PAGE: dict[str, object] = ACCEPTED | {"events": [STATE], "cursor": "evt_2", "has_more": False}


def _response(document: object, status: int = 200) -> Response:
    return Response(status, body=document if isinstance(document, bytes) else json.dumps(document).encode())


def _path(request: Request) -> tuple[str, str]:
    path, _, query = request.url.removeprefix(ENDPOINT).partition("?")
    return path, query


@pytest.mark.requirement("8.1-03", "8.2-01")
def test_a_start_reads_as_it_was_written() -> None:
    """Both sides of one request, at the endpoint itself; the id that the agent chose is kept."""
    request = CONVERSATIONS.write_start(ENDPOINT, ASKED, Wanted(wait=10))
    assert _path(request) == ("", "wait=10")
    assert CONVERSATIONS.read_start(request) == StartBody(ASKED)
    assert request.headers.first("Content-Type") == "application/json"


@pytest.mark.requirement("8.3-10", "8.5-10")
def test_a_message_reads_as_it_was_written() -> None:
    """With its cursor and wait in the query, written as they came."""
    request = CONVERSATIONS.write_say(ENDPOINT, HERE, ASKED, WAITING)
    assert _path(request) == ("/cnv_1/messages", "cursor=evt_1&wait=10")
    assert CONVERSATIONS.read_say(request) == ASKED
    assert CONVERSATIONS.read_query(_path(request)[1]) == WAITING


@pytest.mark.parametrize(
    ("request_", "method", "path"),
    [
        pytest.param(
            CONVERSATIONS.write_read(ENDPOINT, HERE, Wanted()),
            "GET",
            "/cnv_1/events",
            marks=pytest.mark.requirement("8.2-04"),
        ),
        (CONVERSATIONS.write_hand_off(ENDPOINT, HERE), "POST", "/cnv_1/handoff"),
        pytest.param(
            CONVERSATIONS.write_close(ENDPOINT, HERE), "POST", "/cnv_1/close", marks=pytest.mark.requirement("8.12-01")
        ),
    ],
)
def test_the_other_requests_find_their_routes(request_: Request, method: str, path: str) -> None:
    """The Company's side reads where the Personal Agent's side writes; handoff and close send an empty object."""
    assert (request_.method, _path(request_)) == (method, (path, ""))
    assert not isinstance(CONVERSATIONS.route(method, path), NoRoute)
    assert request_.body == (b"" if method == "GET" else b"{}")
    CONVERSATIONS.read_nothing(request_)


@pytest.mark.requirement("8.4-03", "8.4-25")
def test_the_agent_sends_no_role_and_no_authors_name() -> None:
    """Whatever the message value holds, only the User's side's members leave (8.4)."""
    author = Author(AuthorType.HUMAN, "aut_1", "Dana", "https://x.example/d.png")
    request = CONVERSATIONS.write_say(
        ENDPOINT, HERE, Message(MessageId("m"), author, Role.COMPANY, "Hi", extra={"mood": 1}), Wanted()
    )
    assert json.loads(request.body) == {
        "message": {"id": "m", "author": {"type": "human"}, "text": "Hi", "mood": 1},
    }


@pytest.mark.requirement("8.4-11", "8.4-12", "8.4-13")
def test_context_is_sent_in_its_fields() -> None:
    """The three facts that 8.4 defines, in their formats."""
    request = CONVERSATIONS.write_start(ENDPOINT, ASKED, Wanted())
    assert json.loads(request.body)["message"]["context"] == {
        "locale": "en-US",
        "time_zone": "America/Los_Angeles",
        "user_available": True,
    }


@pytest.mark.requirement("8.4-09", "8.2-15")
@pytest.mark.parametrize(
    ("message", "rule"),
    [
        (Message(MessageId("m"), Author(AuthorType.AGENT), text=""), "message.content"),
        (Message(MessageId("a b"), Author(AuthorType.AGENT), text="Hi"), "conversation.id-alphabet"),
    ],
)
def test_the_agent_sends_nothing_that_would_be_refused(message: Message, rule: str) -> None:
    """The same checks judge both sides."""
    with pytest.raises(InvalidRequest) as refused:
        CONVERSATIONS.write_start(ENDPOINT, message, Wanted())
    assert refused.value.rule == rule


@pytest.mark.requirement("8.3-02", "8.3-03")
@pytest.mark.parametrize("status", [201, 202])
def test_an_accepted_message_is_read(status: int) -> None:
    """Without `wait`: id, status, responder; unknown members are ignored."""
    accepted = CONVERSATIONS.read_accepted(_response(ACCEPTED | {"later": 1}, status))
    assert accepted == Accepted(HERE, Status.WORKING, Responder.AGENT)


@pytest.mark.requirement("8.3-12", "8.5-18")
def test_a_page_is_read_from_a_read_and_from_a_post() -> None:
    """The same page under 200, 201 and 202."""
    page = CONVERSATIONS.read_page(_response(PAGE))
    assert isinstance(page.events[0], StateChanged)
    assert (page.cursor, page.has_more, page.status) == ("evt_2", False, Status.WORKING)
    for status in (201, 202):
        assert CONVERSATIONS.read_accepted(_response(PAGE, status)) == page


@pytest.mark.requirement("8.7-08", "8.7-09")
def test_later_statuses_and_responders_are_mapped() -> None:
    """Unknown ones read as `working` and `human`, in answers and in state events."""
    later = {"status": "pondering", "responder": "oracle"}
    expected = (Status.WORKING, Responder.HUMAN)
    assert CONVERSATIONS.read_state(_response(later)) == expected
    page = CONVERSATIONS.read_page(_response(PAGE | later | {"events": [STATE | later]}))
    assert (page.status, page.responder) == expected
    event = page.events[0]
    assert isinstance(event, StateChanged)
    assert (event.status, event.responder) == expected


@pytest.mark.requirement("8.5-09")
def test_unknown_events_are_skipped() -> None:
    """Whatever they look like besides their type."""
    unknown = [{"type": "confetti"}, {"type": "text", "id": 7}]
    page = CONVERSATIONS.read_page(_response(PAGE | {"events": [unknown[0], STATE, unknown[1]], "cursor": "evt_9"}))
    assert [event.id for event in page.events] == ["evt_2"]
    assert page.cursor == "evt_9"


@pytest.mark.requirement("8.5-13", "8.2-17")
@pytest.mark.parametrize("name", ["0", "-_-", "evt_2", "x" * 256])
def test_cursors_and_ids_are_opaque(name: str) -> None:
    """Whatever the Company chose goes back as it came."""
    page = CONVERSATIONS.read_page(_response(PAGE | {"cursor": name, "conversation_id": name}))
    request = CONVERSATIONS.write_read(ENDPOINT, page.conversation_id, Wanted(page.cursor))
    assert _path(request) == (f"/{name}/events", f"cursor={name}")


@pytest.mark.parametrize("missing", [True, False])
def test_a_page_may_have_no_cursor_yet(missing: bool) -> None:
    """Null or missing means that there is none (readings 19)."""
    document: dict[str, object] = PAGE | {"events": list[object](), "cursor": None}
    if missing:
        del document["cursor"]
    assert CONVERSATIONS.read_page(_response(document)).cursor is None


def test_a_handoff_and_a_close_are_read() -> None:
    """202 and 200, the same members."""
    for status, state in ((202, "queued"), (200, "closed")):
        response = _response({"status": state, "responder": "agent"}, status)
        assert CONVERSATIONS.read_state(response) == (Status(state), Responder.AGENT)


BAD_PAGES: list[tuple[str, object, str]] = [
    ("no JSON", b"<html>", "answer.json"),
    ("an array", [], "answer.json"),
    ("no events", {name: value for name, value in PAGE.items() if name != "events"}, "page.members"),
    ("no has_more", {name: value for name, value in PAGE.items() if name != "has_more"}, "page.members"),
    ("no conversation", {name: value for name, value in PAGE.items() if name != "conversation_id"}, "page.members"),
    ("no status", {name: value for name, value in PAGE.items() if name != "status"}, "page.members"),
    ("no responder", {name: value for name, value in PAGE.items() if name != "responder"}, "page.members"),
    ("a number for has_more", PAGE | {"has_more": 1}, "page.members"),
    ("an event that is text", PAGE | {"events": ["x"]}, "page.members"),
    ("an event without type", PAGE | {"events": [{"id": "evt_1"}]}, "event.type"),
    ("a bad conversation id", PAGE | {"conversation_id": "a/b"}, "answer.id-alphabet"),
    ("a bad cursor", PAGE | {"cursor": ""}, "answer.id-alphabet"),
]


@pytest.mark.requirement("8.5-18")
@pytest.mark.parametrize(("document", "rule"), [case[1:] for case in BAD_PAGES], ids=[case[0] for case in BAD_PAGES])
def test_a_malformed_page_is_misbehaviour(document: object, rule: str) -> None:
    """The Company broke a MUST, and which is named."""
    with pytest.raises(Misbehaved) as refused:
        CONVERSATIONS.read_page(_response(document))
    assert refused.value.rule == rule


@pytest.mark.parametrize(
    ("document", "rule"),
    [
        ({"status": "working", "responder": "agent"}, "answer.members"),
        (ACCEPTED | {"conversation_id": ""}, "answer.id-alphabet"),
        (ACCEPTED | {"status": 7}, "answer.members"),
    ],
)
def test_a_malformed_acceptance_is_misbehaviour(document: object, rule: str) -> None:
    """As for pages."""
    with pytest.raises(Misbehaved) as refused:
        CONVERSATIONS.read_accepted(_response(document, 202))
    assert refused.value.rule == rule


@pytest.mark.requirement("8.7-10")
def test_a_state_without_a_responder_is_misbehaviour() -> None:
    """Every successful answer to a POST has both."""
    with pytest.raises(Misbehaved) as refused:
        CONVERSATIONS.read_state(_response({"status": "closed"}))
    assert refused.value.rule == "answer.members"


def test_another_status_is_misbehaviour() -> None:
    """A 200 to a message, a 202 to a read, a 204 to a close: not what the request ends in."""
    for read, status in (
        (CONVERSATIONS.read_accepted, 200),
        (CONVERSATIONS.read_page, 202),
        (CONVERSATIONS.read_state, 204),
    ):
        with pytest.raises(Misbehaved) as refused:
            read(_response(PAGE, status))
        assert refused.value.rule == "answer.status"


def test_what_the_company_writes_the_agent_reads() -> None:
    """A page goes through the wire unchanged, to the millisecond."""
    said = Message(MessageId("msg_1"), Author(AuthorType.AGENT), Role.USER, "Hi", extra={"mood": 1})
    page = CONVERSATIONS.read_page(_response(PAGE))
    event = MessageAdded(EventId("evt_1"), page.events[0].at, said)
    whole = Page(HERE, (event, *page.events), EventId("evt_2"), True, Status.QUEUED, Responder.AGENT)
    assert CONVERSATIONS.read_page(CONVERSATIONS.write_page(200, whole, {})) == whole


@pytest.mark.requirement("8.10-12", "8.10-15")
@pytest.mark.parametrize(
    ("message", "parent", "event"),
    [(ASKED, HERE, None), (ASKED, HERE, EventId("evt_6")), (None, HERE, EventId("evt_6"))],
    ids=["parent", "acceptance", "without words"],
)
def test_a_direct_conversation_is_opened_as_it_is_read(
    message: Message | None, parent: ConversationId, event: EventId | None
) -> None:
    """Only what was given is written (8.10)."""
    request = CONVERSATIONS.write_start(ENDPOINT, message, Wanted(), parent, event)
    assert CONVERSATIONS.read_start(request) == StartBody(message, parent, event)


def test_nothing_alone_is_not_sent() -> None:
    """A start without a message names both (8.10)."""
    with pytest.raises(InvalidRequest) as refused:
        CONVERSATIONS.write_start(ENDPOINT, None, Wanted(), HERE)
    assert refused.value.rule == "message.absent-only-when-accepting"


@pytest.mark.requirement("8.6-02", "8.6-07")
def test_a_stream_is_asked_for_by_accept_and_goes_on_by_its_header() -> None:
    """JSON is taken as well; the last event takes the place of the cursor (8.6)."""
    request = CONVERSATIONS.write_read(ENDPOINT, HERE, Wanted(wait=25, stream=True, last_event_id=EventId("evt_3")))
    assert _path(request) == ("/cnv_1/events", "wait=25")
    assert request.headers.first("accept") == "text/event-stream, application/json;q=0.5"
    assert request.headers.first("last-event-id") == "evt_3"
    assert "last-event-id" not in CONVERSATIONS.write_read(ENDPOINT, HERE, Wanted()).headers


def test_an_event_of_a_stream_is_read() -> None:
    """As one of a page."""
    event = CONVERSATIONS.read_stream_event(ServerEvent("message", json.dumps(STATE)))
    assert isinstance(event, StateChanged)
