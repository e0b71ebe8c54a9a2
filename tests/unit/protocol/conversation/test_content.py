"""What a message says: ids, content, size, what needs an answer, fingerprints and the merged context."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.protocol.conversation.content import (
    MAX_CONTEXT_BYTES,
    MAX_CONTEXT_FIELDS,
    MAX_TEXT_BYTES,
    as_company_message,
    check_content,
    check_context_size,
    check_id,
    check_text_size,
    fingerprint,
    is_id,
    merged_context,
    needs_answer,
)
from papaver.protocol.conversation.model import Author, AuthorType, Message, Role
from papaver.protocol.errors import InvalidRequest, PayloadTooLarge
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.values.strict_json import JsonError, canonical
from tests.unit.protocol.conversation.world import said

HERE = ConversationId("cnv_1")


@pytest.mark.requirement("8.2-15")
@pytest.mark.parametrize("text", ["a", "Z9_-", "x" * 256])
def test_ids_of_the_alphabet_pass(text: str) -> None:
    """1 to 256 letters, digits, hyphens and underscores."""
    check_id(text)
    assert is_id(text)


@pytest.mark.requirement("8.2-15", "8.13-09")
@pytest.mark.parametrize("text", ["", "x" * 257, "a b", "a/b", "a.b", "ä", "a\n", "a=", "\u0661", None, 7])
def test_c13_other_ids_are_refused(text: object) -> None:
    """Wrong characters, wrong lengths and what is no text."""
    with pytest.raises(InvalidRequest) as refused:
        check_id(text)
    assert refused.value.rule == "conversation.id-alphabet"


@pytest.mark.requirement("8.4-09", "8.13-09")
@pytest.mark.parametrize("message", [said("m", None), said("m", ""), said("m", "", data={}, context={}, extensions={})])
def test_c13_a_message_without_content_is_refused(message: Message) -> None:
    """Members that are all empty say nothing (readings 34)."""
    with pytest.raises(InvalidRequest) as refused:
        check_content(message)
    assert refused.value.rule == "message.content"


@pytest.mark.parametrize(
    ("message", "answer"),
    [
        pytest.param(said("m", "Hi"), True, marks=pytest.mark.requirement("8.4-05")),
        pytest.param(said("m", None, data={"size": "M"}), True, marks=pytest.mark.requirement("8.4-06")),
        pytest.param(said("m", None, extensions={"links": {}}), True, marks=pytest.mark.requirement("8.4-08")),
        pytest.param(said("m", None, context={"locale": "en"}), False, marks=pytest.mark.requirement("8.4-18")),
        (said("m", "Hi", context={"locale": "en"}), True),
    ],
)
def test_only_a_message_of_mere_context_needs_no_answer(message: Message, answer: bool) -> None:
    """Any one of the four members is content; context alone says nothing else (readings 21)."""
    check_content(message)
    assert needs_answer(message) is answer


@pytest.mark.requirement("papaver-20")
@pytest.mark.parametrize("text", ["x" * (MAX_TEXT_BYTES + 1), "ä" * (MAX_TEXT_BYTES // 2 + 1)])
def test_a_text_over_the_limit_is_too_large(text: str) -> None:
    """The limit counts octets of UTF-8."""
    with pytest.raises(PayloadTooLarge) as refused:
        check_text_size(said("m", text))
    assert refused.value.rule == "message.text-size"


@pytest.mark.parametrize("text", [None, "", "x" * MAX_TEXT_BYTES, "ä" * (MAX_TEXT_BYTES // 2)])
def test_a_text_at_the_limit_passes(text: str | None) -> None:
    """Exactly the limit is allowed, whatever the characters."""
    check_text_size(said("m", text))


@pytest.mark.parametrize(
    "other",
    [
        said("m", "Hi", role=Role.COMPANY),
        said("m", "Hi", extra={"mood": "curious"}),
        Message(MessageId("m"), Author(AuthorType.AGENT, "aut_1", "Alex", "https://x.example/a.png"), text="Hi"),
        Message(MessageId("m"), Author(AuthorType.AGENT, extra={"x": 1}), text="Hi"),
    ],
)
def test_c9_c94_c95_what_8_4_does_not_know_is_no_other_message(other: Message) -> None:
    """Unknown members, a role and an author's name leave the fingerprint as it is (readings 8)."""
    assert fingerprint(other, HERE) == fingerprint(said("m", "Hi"), HERE)


@pytest.mark.parametrize(
    "other",
    [
        said("m2", "Hi"),
        said("m", "Hi!"),
        said("m", "Hi", data={}),
        said("m", "Hi", context={"locale": "en"}),
        said("m", "Hi", extensions={"x": {}}),
        replace(said("m", "Hi"), author=Author(AuthorType.HUMAN)),
    ],
)
def test_every_known_member_is_part_of_the_fingerprint(other: Message) -> None:
    """A difference in any member that 8.4 knows makes another message."""
    assert fingerprint(other, HERE) != fingerprint(said("m", "Hi"), HERE)


@given(st.text(), st.sampled_from(AuthorType), st.none() | st.text(), st.none() | st.text())
def test_a_message_of_text_has_the_fingerprint_of_its_canonical_form(
    id: str, author: AuthorType, text: str | None, target: str | None
) -> None:
    """The short way makes what the long way made for receipts that are stored already (8.3; readings 8)."""
    message = Message(MessageId(id), Author(author), text=text)
    known = (id, author.value, text, None, None, None, target, None, None)
    expected = sha256(canonical(known)).hexdigest()
    assert fingerprint(message, None if target is None else ConversationId(target)) == expected


def test_half_a_character_has_no_fingerprint() -> None:
    """No reader lets it through, and a Company's own mistake is told."""
    with pytest.raises(JsonError):
        fingerprint(said("m", "\ud800"), HERE)


def test_the_target_is_part_of_the_fingerprint() -> None:
    """Another conversation, a start, and a start with a parent or an invitation are different targets (readings 8)."""
    message = said("m", "Hi")
    marks = {
        fingerprint(message, HERE),
        fingerprint(message, ConversationId("cnv_2")),
        fingerprint(message, None),
        fingerprint(message, None, parent="cnv_1"),
        fingerprint(message, None, parent="cnv_1", accepts=EventId("evt_1")),
    }
    assert len(marks) == 5


def test_the_order_of_members_is_no_content() -> None:
    """A client that writes its JSON in another order repeats the same message."""
    one = said("m", "Hi", data={"a": 1, "b": {"c": [1, 2], "d": None}})
    two = said("m", "Hi", data={"b": {"d": None, "c": [1, 2]}, "a": 1})
    assert fingerprint(one, HERE) == fingerprint(two, HERE)


@pytest.mark.requirement("8.4-07", "8.4-17", "8.4-15")
def test_context_merges_field_by_field() -> None:
    """Fields that are left out keep their values, null clears one, others may be added (readings 35)."""
    first = merged_context({}, {"locale": "en-US", "time_zone": "America/Los_Angeles", "units": "metric"})
    second = merged_context(first, {"user_available": True, "units": None, "never": None})
    assert second == {"locale": "en-US", "time_zone": "America/Los_Angeles", "user_available": True}


@pytest.mark.requirement("8.4-16", "8.4-15")
@pytest.mark.parametrize("value", ["braille", 7, ["a", None], {"length": "cm"}, False])
def test_other_context_fields_may_be_anything(value: object) -> None:
    """The protocol does not define them, so nothing about them is judged."""
    assert merged_context({"locale": "de"}, {"accessibility": value}) == {"locale": "de", "accessibility": value}


def test_no_context_changes_nothing() -> None:
    """Absent and empty contexts leave the effective one alone."""
    before = {"locale": "en-US"}
    assert merged_context(before, None) is before
    assert merged_context(before, {}) is before


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        pytest.param("locale", "de-Latn-CH", "en_US", marks=pytest.mark.requirement("8.4-12")),
        pytest.param("locale", "x", 5, marks=pytest.mark.requirement("8.4-12")),
        pytest.param("time_zone", "Etc/GMT+1", "Los Angeles", marks=pytest.mark.requirement("8.4-13")),
        pytest.param("time_zone", "UTC", ["UTC"], marks=pytest.mark.requirement("8.4-13")),
        pytest.param("user_available", False, "false", marks=pytest.mark.requirement("8.4-14")),
    ],
)
def test_a_badly_formed_known_field_is_not_applied(name: str, good: object, bad: object) -> None:
    """The message is kept and the earlier value stays (readings 35)."""
    before = merged_context({}, {name: good})
    assert before == {name: good}
    assert merged_context(before, {name: bad}) == before


@given(
    st.dictionaries(st.sampled_from(["locale", "units", "x"]), st.none() | st.text() | st.booleans()),
    st.dictionaries(st.sampled_from(["locale", "units", "x"]), st.none() | st.text() | st.booleans()),
)
def test_merging_never_keeps_a_null(before: Mapping[str, object], said_now: Mapping[str, object]) -> None:
    """The effective context holds values only, and merging the same again changes nothing."""
    once = merged_context(merged_context({}, before), said_now)
    assert None not in once.values()
    assert merged_context(once, said_now) == once


@pytest.mark.requirement("papaver-25")
def test_a_merged_context_has_a_largest_size() -> None:
    """In octets of canonical JSON, and in fields; both at the limit are taken."""
    check_context_size({str(n): n for n in range(MAX_CONTEXT_FIELDS)})
    check_context_size({"é": "x" * (MAX_CONTEXT_BYTES - 9)})
    check_context_size({"a": 1}, 7)
    for context, limit in (
        ({str(n): n for n in range(MAX_CONTEXT_FIELDS + 1)}, MAX_CONTEXT_BYTES),
        ({"é": "x" * (MAX_CONTEXT_BYTES - 8)}, MAX_CONTEXT_BYTES),
        ({"a": 1}, 6),
    ):
        with pytest.raises(PayloadTooLarge) as refused:
            check_context_size(context, limit)
        assert refused.value.rule == "message.context-size"


@pytest.mark.requirement("8.4-19", "8.4-20", "8.7-15")
def test_a_company_message_has_only_its_own_members() -> None:
    """Role company, no context, nothing unknown; a person's words keep the role."""
    author = Author(AuthorType.HUMAN, "aut_alex", "Alex", "https://x.example/a.png", {"x": 1})
    message = replace(said("m", "Hello", context={"locale": "en"}, extra={"y": 2}), author=author)
    recorded = as_company_message(message)
    assert recorded == Message(MessageId("m"), replace(author, extra={}), Role.COMPANY, "Hello")


@pytest.mark.parametrize("message", [said("m", None, context={"locale": "en"}), said("m", "")])
def test_a_company_message_says_something(message: Message) -> None:
    """Context is no content of a Company message."""
    with pytest.raises(InvalidRequest) as refused:
        as_company_message(message)
    assert refused.value.rule == "message.content"


AGENT = AuthorType.AGENT


def nested(depth: int) -> dict[str, object]:
    return {"in": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    "message",
    [
        said("m", "a\ud800"),
        said("m", "x", data={"price": float("nan")}),
        said("m", "x", data={"at": object()}),
        said("m", "x", data={"number": 10**101}),
        said("m", "x", data=cast(Any, {1: "one", "1": "another one"})),
        said("m", "x", extensions={"links": {"s": {1, 2}}}),
        said("m", cast(Any, 5)),
        said("m", "x", data=cast(Any, ["a list"])),
        said("m", "x", data=cast(Any, "text")),
        said("m", "x", data=nested(32)),
        replace(said("m", "x"), author=Author(cast(AuthorType, "robot"))),
        replace(said("m", "x"), author=Author(AGENT, name="a\ud800")),
        replace(said("m", "x"), author=Author(AGENT, id=cast(Any, 7))),
    ],
)
def test_a_company_message_is_what_a_reader_can_read(message: Message) -> None:
    """Every member has its type and is JSON of the depth and size of numbers that we read: the log stays readable."""
    with pytest.raises(JsonError):
        as_company_message(message)


def test_a_company_message_is_recorded_as_it_will_be_read() -> None:
    """Tuples are arrays and names are text, from the first reader on."""
    message = said("m", "x", data=cast(Any, {"sizes": (1, 2), 3: None}))
    recorded = as_company_message(message)
    assert recorded.data == {"sizes": [1, 2], "3": None}
    assert as_company_message(recorded) == recorded
