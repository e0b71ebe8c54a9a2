"""Base64url has one spelling for each value, and only that one is read."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.values.base64url import Base64Error, decode, encode


@given(st.binary(max_size=80))
def test_round_trip(data: bytes) -> None:
    """What is encoded is decoded to itself, from text and from octets, and it is what the standard library makes."""
    text = encode(data)
    assert text == base64.urlsafe_b64encode(data).rstrip(b"=").decode()
    assert decode(text) == data
    assert decode(text.encode()) == data


@given(st.text(alphabet="ABQgwE_-+/=8 \n", max_size=9))
def test_what_is_accepted_has_no_other_spelling(text: str) -> None:
    """Every accepted text is the one that encoding makes."""
    try:
        data = decode(text)
    except Base64Error:
        return
    assert encode(data) == text


@pytest.mark.parametrize(
    "text",
    [
        "A",
        "AAAAA",
        "AB",
        "AAB",
        "AA==",
        "AAA=",
        "AAAA====",
        "A+AA",
        "A/AA",
        "AA A",
        "AAAA\n",
        "\nAAAA",
        "AAAé",
        "AAA\u0661",
        "AA!A",
        "!!",
        "A\0AA",
    ],
)
def test_other_spellings_are_refused(text: str) -> None:
    """Padding, the other alphabet, white space, a lone character, set bits at the end, and other characters."""
    with pytest.raises(Base64Error) as caught:
        decode(text)
    assert caught.value.code == "invalid_base64url"


@pytest.mark.parametrize("last", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
def test_only_a_canonical_last_character_is_read(last: str) -> None:
    """Of 64 last characters 4 end a single octet and 16 end two."""
    index = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".index(last)
    for prefix, step in (("A", 16), ("AA", 4)):
        if index % step:
            with pytest.raises(Base64Error):
                decode(prefix + last)
        else:
            assert encode(decode(prefix + last)) == prefix + last


def test_the_empty_text_is_no_octets() -> None:
    """An empty payload segment is legal base64url."""
    assert decode("") == b""
    assert encode(b"") == ""
