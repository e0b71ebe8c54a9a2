"""What pydantic lets through, and what it says of the rest."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.versions.v0_4.conversation_wire import WireError, WireMessage, WireSay, WireStart, WireState, shape

SECRET = "planted-secret"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["id", "author", "type", "text"]), inner)
    ),
    max_leaves=10,
)


def test_messages_keep_unknown_members_and_the_rest_drops_them() -> None:
    """Events record a message as it was sent; other documents may grow without being kept."""
    message = {"id": "m", "author": {"type": "agent", "x": 1}, "text": "Hi", "y": [2]}
    wire = shape(WireSay, {"message": message, "z": 3})
    assert (wire.message.model_extra, wire.message.author.model_extra, wire.model_extra) == ({"y": [2]}, {"x": 1}, None)


@pytest.mark.parametrize(
    ("document", "where"),
    [
        ({"message": {"id": 7, "author": {"type": "agent"}}}, "message.id"),
        ({"message": {"id": "m", "author": {"type": SECRET}}}, "message.author.type"),
        ({"message": {"id": "m", "author": {"type": "agent"}, "text": [SECRET]}}, "message.text"),
        ({"message": {"id": "m", "author": {"type": "agent"}, "data": SECRET}}, "message.data"),
        ({"message": SECRET}, "message"),
        ({}, "message"),
    ],
)
def test_a_wrong_member_is_named_and_its_value_is_not(document: dict[str, object], where: str) -> None:
    """The sentence goes to the other side's developer, so it holds nothing that was sent."""
    with pytest.raises(WireError) as wrong:
        shape(WireSay, document)
    assert wrong.value.description.startswith(f"{where}: ")
    assert SECRET not in str(wrong.value)


def test_a_long_name_is_cut() -> None:
    """A hostile member name does not fill our answer."""
    with pytest.raises(WireError) as wrong:
        shape(WireMessage, {"id": "m", "author": {"type": "agent"}, "extensions": {"x" * 5_000: 7}})
    assert len(wrong.value.description) <= 300


@given(st.dictionaries(st.sampled_from(["message", "parent_conversation_id", "status", "responder"]), JSON, max_size=3))
def test_no_document_raises_anything_else(document: dict[str, object]) -> None:
    """Whatever JSON comes, it has the shape or is told that it has not."""
    for model in (WireSay, WireStart, WireState):
        with suppress(WireError):
            assert shape(model, document) is not None
