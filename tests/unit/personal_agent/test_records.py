"""Rows of the vault: read as written, refused otherwise, and never showing a secret."""

from __future__ import annotations

import pickle

import msgspec
import pytest

from papaver.personal_agent.records import (
    CompanyRow,
    ConversationRow,
    DelegatedKeyRow,
    DocumentRow,
    IdRow,
    OutboxRow,
    read_row,
    row_key,
    write_row,
)
from papaver.protocol.errors import ConfigurationError

KEY = DelegatedKeyRow(
    company="https://shop.example",
    user_id="usr_1",
    kid="thumb",
    iat=1,
    exp=2,
    jwk={"d": "c2VjcmV0"},
    delegation="eyJ.c2Vj.cmV0",
    signed_by="kid",
    client_id="https://agent.example/agent.json",
)
OUTBOX = OutboxRow(
    company="https://shop.example",
    domain="shop.example",
    user="dana",
    message_id="msg_1",
    written_at=1.5,
    author="agent",
    text="private words",
    data={"n": 1},
)
CONVERSATION = ConversationRow(
    company="https://shop.example",
    domain="shop.example",
    user="dana",
    user_id="usr_1",
    conversation_id="cnv_1",
    started_at=1.0,
    status="idle",
    responder="agent",
    cursor="evt_2",
    handled=("evt_1", "evt_2"),
)
COMPANY = CompanyRow(
    domain="shop.example",
    name="Shop",
    identifier="https://shop.example",
    version="0.4",
    discovered_at=1.0,
    documents=(DocumentRow("https://shop.example/a", "https://shop.example/b", "{}", 2.0),),
)


@pytest.mark.parametrize("row", [KEY, OUTBOX, CONVERSATION, COMPANY, IdRow("dana", "c", "usr_1")], ids=repr)
def test_a_row_is_read_as_it_was_written(row: msgspec.Struct) -> None:
    """Nothing is lost on the way."""
    assert read_row(type(row), write_row(row)) == row


def test_members_that_came_later_have_a_default() -> None:
    """A row of an older release is read; an unknown member of a newer one is ignored."""
    old = b'{"company":"c","domain":"d","user":"u","user_id":"i","conversation_id":"v","started_at":1,"status":"idle"'
    assert read_row(ConversationRow, old + b',"responder":"agent","new":1}').handled == ()


@pytest.mark.parametrize("value", [b"", b"{}", b'{"jwk":"c2VjcmV0"}', b"\xff"])
def test_what_is_no_row_is_refused_without_being_shown(value: bytes) -> None:
    """The error names the kind of row and nothing of its content."""
    with pytest.raises(ConfigurationError) as caught:
        read_row(DelegatedKeyRow, value)
    assert caught.value.rule == "vault.readable"
    assert "c2VjcmV0" not in repr(caught.value)
    assert caught.value.__suppress_context__


def test_rows_do_not_show_what_they_keep() -> None:
    """Neither a key, nor a delegation, nor what a User said."""
    for shown in (repr(KEY), str(KEY), repr(OUTBOX)):
        assert "c2VjcmV0" not in shown
        assert "eyJ" not in shown
        assert "private" not in shown


def test_a_delegated_key_is_never_pickled() -> None:
    """A pickle would hold it in the clear."""
    with pytest.raises(TypeError):
        pickle.dumps(KEY)


def test_keys_of_rows_are_not_mistaken_for_each_other() -> None:
    """The parts are kept apart."""
    assert row_key("a", "b c") != row_key("a b", "c")
    assert row_key('a","b') != row_key("a", "b")
