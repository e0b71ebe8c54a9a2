"""Fuzzing conversations in JSON, both directions: what a Company reads and answers, and what a Personal Agent reads.

A seed's first line says what the rest is: `start`, `say`, `nothing`, `route METHOD PATH`, `query TEXT`,
`accepted STATUS`, `page STATUS`, `state STATUS`; words such as `type=text/plain` and `pad=300000` change the request.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from papaver.protocol.conversation.content import is_id
from papaver.protocol.conversation.model import Event, Message, MessageAdded
from papaver.protocol.dialect import Accepted, NoRoute, Page, Wanted
from papaver.protocol.errors import InvalidCursor, InvalidRequest, Misbehaved, PayloadTooLarge
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.values.errors import PapaverError
from papaver.versions.v0_4.conversations import CONVERSATIONS
from papaver.web.messages import Headers, Request, Response
from papaver.web.sse import Decoder
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import files, grown, unreached

ENDPOINT = "https://api.example.com/poppy/conversations"
HERE = ConversationId("cnv_1")
EVERYTHING = Wanted(EventId("evt_1"), 5)
REFUSALS = (InvalidCursor, InvalidRequest, PayloadTooLarge)
SEEDS = Path(__file__).parent / "corpus" / "conversations"


def seed(name: str) -> dict[str, Any]:
    """The JSON of a seed."""
    return json.loads((SEEDS / name).read_text("utf-8").partition("\n")[2])


def posted(body: bytes, words: list[str]) -> Request:
    """A POST as the words of a seed change it."""
    options = {name: value for name, _, value in (word.partition("=") for word in words)}
    types = [value for value in options.get("type", "application/json").split("|") if value]
    padding = options.get("pad", "")
    body += b" " * min(int(padding), 400_000) if padding.isascii() and padding.isdigit() else b""
    return Request("POST", ENDPOINT, Headers([("Content-Type", value) for value in types]), body)


def judge_refusal(error: PapaverError) -> None:
    """It names its rule, and does not repeat what was sent at length."""
    assert error.rule
    assert len(error.description) < 400


def judge_message(message: Message) -> None:
    """What a Company read is what a Personal Agent would send, and comes back as it was sent in an event."""
    for wanted in (Wanted(), EVERYTHING):
        start = CONVERSATIONS.write_start(ENDPOINT, message, wanted)
        assert CONVERSATIONS.read_start(start).message == message
        say = CONVERSATIONS.write_say(ENDPOINT, HERE, message, wanted)
        assert CONVERSATIONS.read_say(say) == message
        assert CONVERSATIONS.read_query(say.url.partition("?")[2]) == wanted
    assert "role" not in message.extra
    assert message.author.extra.keys().isdisjoint({"id", "name", "image"})
    recorded = MessageAdded(EventId("evt_1"), AT, message)
    read = CONVERSATIONS.read_page(CONVERSATIONS.write_page(200, replace(PAGE, events=(recorded,)), {}))
    (event,) = read.events
    assert isinstance(event, MessageAdded)
    assert event.message == replace(message, extensions=None)


def judge_page(page: Page) -> None:
    """Ids are ids, and what was read is written and read again without a difference."""
    assert is_id(page.conversation_id)
    assert page.cursor is None or is_id(page.cursor)
    assert all(is_id(event.id) for event in page.events)
    names = {name: "1" for event in page.events for name in extension_names(event)}
    written = CONVERSATIONS.write_page(201, page, names)
    again = CONVERSATIONS.read_accepted(written)
    assert isinstance(again, Page)
    assert again == replace(page, events=tuple(map(as_written, page.events)))
    hidden = CONVERSATIONS.read_accepted(CONVERSATIONS.write_page(202, page, {}))
    assert isinstance(hidden, Page)
    assert all(not extension_names(event) for event in hidden.events)


def extension_names(event: Event) -> list[str]:
    return list(event.message.extensions or ()) if isinstance(event, MessageAdded) else []


def as_written(event: Event) -> Event:
    """Times go to the millisecond, and an empty `extensions` is left out (readings 9)."""
    event = replace(event, at=event.at.replace(microsecond=event.at.microsecond // 1000 * 1000))
    if isinstance(event, MessageAdded) and not event.message.extensions:
        return replace(event, message=replace(event.message, extensions=None))
    return event


def drive(data: bytes) -> None:
    """One request or answer. Every error but the codec's own fails the test."""
    first, _, body = data.partition(b"\n")
    what, *words = first.decode("utf-8", "replace").split(" ") or [""]
    if what in ("start", "say", "nothing"):
        drive_request(what, posted(body, words))
    elif what in ("route", "query"):
        drive_line(what, words)
    else:
        drive_answer(what, words, body)


def drive_request(what: str, request: Request) -> None:
    try:
        match what:
            case "start":
                start = CONVERSATIONS.read_start(request)
                assert start.message is not None or (start.parent and start.user_requested)
                message = start.message
            case "say":
                message = CONVERSATIONS.read_say(request)
            case _:
                CONVERSATIONS.read_nothing(request)
                return
    except REFUSALS as error:
        judge_refusal(error)
        return
    if message is not None:
        judge_message(message)


def drive_line(what: str, words: list[str]) -> None:
    try:
        if what == "route":
            route = CONVERSATIONS.route(words[0] if words else "", " ".join(words[1:]))
            assert isinstance(route, NoRoute) or route.conversation_id is None or is_id(route.conversation_id)
        else:
            wanted = CONVERSATIONS.read_query(" ".join(words))
            assert wanted.cursor is None or is_id(wanted.cursor)
            assert wanted.wait is None or 0 <= wanted.wait < 10**9
            line = " ".join(words)
            read = CONVERSATIONS.read_wanted(
                line, Headers([("accept", line), ("last-event-id", words[0] if words else "")])
            )
            assert read.cursor is None or is_id(read.cursor)
    except REFUSALS as error:
        judge_refusal(error)


def drive_answer(what: str, words: list[str], body: bytes) -> None:
    number = words[0] if words else ""
    response = Response(int(number) if len(number) == 3 and number.isascii() and number.isdigit() else 200, body=body)
    try:
        match what:
            case "accepted":
                read = CONVERSATIONS.read_accepted(response)
            case "state":
                state = CONVERSATIONS.read_state(response)
                assert CONVERSATIONS.read_state(CONVERSATIONS.write_state(200, *state)) == state
                return
            case _:
                read = CONVERSATIONS.read_page(response)
    except Misbehaved as error:
        judge_refusal(error)
        return
    if isinstance(read, Page):
        judge_page(read)
        for event in read.events:
            [sent] = Decoder().feed(CONVERSATIONS.write_stream_event(event, {}))
            assert (sent.id, json.loads(sent.data)["id"]) == (event.id, event.id)
            streamed = CONVERSATIONS.read_stream_event(sent)
            assert streamed is not None
            assert (type(streamed), getattr(streamed, "id", None)) == (type(event), event.id)
        assert Decoder().feed(CONVERSATIONS.write_delta(MessageId("msg_1"), body.decode("utf-8", "replace")))
        asked = CONVERSATIONS.write_read(ENDPOINT, read.conversation_id, Wanted(read.cursor))
        assert CONVERSATIONS.read_wanted(asked.url.partition("?")[2], Headers()) == Wanted(read.cursor)
        followed = Wanted(stream=True, last_event_id=read.cursor)
        asked = CONVERSATIONS.write_read(ENDPOINT, read.conversation_id, followed)
        assert CONVERSATIONS.read_wanted("", asked.headers).stream
    else:
        assert CONVERSATIONS.read_accepted(CONVERSATIONS.write_accepted(202, read)) == read
        drive_bodies(read)


def drive_bodies(accepted: Accepted) -> None:
    """The two requests that say nothing."""
    for write in (CONVERSATIONS.write_hand_off, CONVERSATIONS.write_close):
        request = write(ENDPOINT, accepted.conversation_id)
        CONVERSATIONS.read_nothing(request)
        suffix = request.url.removeprefix(ENDPOINT)
        assert not isinstance(CONVERSATIONS.route(request.method, suffix), NoRoute)


PAGE = CONVERSATIONS.read_page(Response(200, body=json.dumps(seed("page-events")).encode()))
AT = PAGE.events[0].at


@pytest.mark.parametrize("path", files("conversations"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("conversations"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but the codec's own errors comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    modules = ("conversations", "conversation_events", "conversation_wire")
    assert unreached("conversations", *(f"papaver.versions.v0_4.{module}" for module in modules)) == ""


@given(mutated((seed("start-full"), seed("start-accepts"), seed("start-extensions"))))
def test_c13_a_spoiled_start_is_read_or_refused(body: object) -> None:
    """A 400 or 413 of our own, and what is read is what was sent."""
    drive(b"start\n" + json.dumps(body).encode())


@given(mutated((seed("say"),)))
def test_c13_a_spoiled_message_is_read_or_refused(body: object) -> None:
    """As for a start."""
    drive(b"say\n" + json.dumps(body).encode())


@given(mutated((seed("page-events"), seed("page-later"), seed("page-empty"))))
def test_a_spoiled_page_is_read_or_is_misbehaviour(body: object) -> None:
    """A Personal Agent takes nothing on trust from a Company, and nothing else than `Misbehaved` comes out."""
    drive(b"page 200\n" + json.dumps(body).encode())


@given(mutated((seed("accepted"), seed("page-events"))))
def test_a_spoiled_answer_to_a_message_is_read_or_is_misbehaviour(body: object) -> None:
    """With events or without them."""
    drive(b"accepted 201\n" + json.dumps(body).encode())


def test_a_message_as_deep_as_a_company_takes_is_read_back() -> None:
    """An event nests a message deeper than a request does; who wrote it can still read it."""
    deep: object = "x"
    for _ in range(30):
        deep = {"d": deep}
    body, deeper = (
        json.dumps({"message": {"id": "m", "author": {"type": "agent"}, "data": data}}).encode()
        for data in (deep, {"d": deep})
    )
    drive(b"say\n" + body)
    assert CONVERSATIONS.read_say(posted(body, [])).data == deep
    with pytest.raises(InvalidRequest) as caught:
        CONVERSATIONS.read_say(posted(deeper, []))
    assert caught.value.rule == "request.json"
