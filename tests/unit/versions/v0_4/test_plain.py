"""The short way to read a message: what it reads, the models read alike, and everything else it leaves to them."""

from __future__ import annotations

import json
import random

import pytest

from papaver.protocol.conversation.model import Author, AuthorType, Message
from papaver.protocol.errors import InvalidRequest, PayloadTooLarge, PoppyError
from papaver.protocol.terms import MessageId
from papaver.values import strict_json
from papaver.versions.v0_4.conversation_events import read_said
from papaver.versions.v0_4.conversation_wire import WireError, WireSay, shape
from papaver.versions.v0_4.plain import read_plain

BODY = json.dumps(
    {"message": {"id": "msg_1", "author": {"type": "agent"}, "text": "Où est ma commande ? €"}}, ensure_ascii=False
).encode()
PIECES = (b'"', b"\\", b"{", b"}", b",", b":", b"\x00", b"\n", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf")
WORDS = (b"null", b"1", b" ", b"\t", b"\x7f", b"agent", b"human", b"message", b"text", b"id", b"", b"\xf4\x90\x80\x80")


def carefully(body: bytes) -> Message | str:
    try:
        return read_said(shape(WireSay, strict_json.loads_object(body)).message)
    except (PoppyError, WireError, strict_json.JsonError) as error:
        return error.rule or "refused"


def shortly(body: bytes) -> Message | str | None:
    try:
        return read_plain(body)
    except PoppyError as error:
        return error.rule or "refused"


def test_a_message_of_text_is_read() -> None:
    """Whatever its alphabet."""
    expected = Message(MessageId("msg_1"), Author(AuthorType.AGENT), text="Où est ma commande ? €")
    assert (read_plain(BODY), carefully(BODY)) == (expected, expected)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"message": {"id": "a", "author": {"type": "agent"}}}',
        b'{"message": {"id": "a", "author": {"type": "robot"}, "text": "x"}}',
        b'{"message": {"id": "a", "author": {"type": "agent"}, "text": "\\u0041"}}',
        b'{"message": {"id": "a", "author": {"type": "agent"}, "text": "x", "text": "y"}}',
        b'{"message": {"id": "a", "author": {"type": "agent"}, "other": "x"}}',
        b'{"message": {"id": "a", "author": {"type": "agent"}, "text": "x"}, "n": 1}',
        b'{"message": {"id": "a", "author": {"type": "agent"}, "text": "\xff"}}',
        b'["","","","","","","",""]',
    ],
)
def test_anything_else_is_left_to_the_models(body: bytes) -> None:
    """Also what they refuse: they know the words for it."""
    assert read_plain(body) is None


@pytest.mark.parametrize(
    ("text", "id", "error", "rule"),
    [
        ("x", "no id", InvalidRequest, "conversation.id-alphabet"),
        ("", "a", InvalidRequest, "message.content"),
        ("x" * 65_537, "a", PayloadTooLarge, "message.text-size"),
    ],
)
def test_the_rules_of_a_message_hold(text: str, id: str, error: type[PoppyError], rule: str) -> None:
    """As they do for the models."""
    body = json.dumps({"message": {"id": id, "author": {"type": "human"}, "text": text}}).encode()
    with pytest.raises(error) as caught:
        read_plain(body)
    assert (caught.value.rule, carefully(body)) == (rule, rule)


def test_both_ways_read_the_same() -> None:
    """Over bodies that are nearly right."""
    chance, read = random.Random(8), 0
    for _ in range(20_000):
        body = bytearray(BODY)
        for _ in range(chance.randint(1, 3)):
            at = chance.randrange(len(body) + 1)
            body[at : at + chance.randint(0, 4)] = chance.choice((*PIECES, *WORDS))
        found = shortly(bytes(body))
        if found is not None:
            read += 1
            assert found == carefully(bytes(body)), bytes(body)
    assert read > 500
