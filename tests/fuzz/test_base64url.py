"""Fuzzing base64url: one spelling for each value, and no error but its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from papaver.values.base64url import Base64Error, decode, encode
from tests.fuzz.seeds import files, grown, unreached


def drive(data: bytes) -> None:
    """Octets decode to what encodes to them, or not at all; text likewise."""
    assert decode(encode(data)) == data
    for text in (data, data.decode("utf-8", "surrogateescape")):
        try:
            decoded = decode(text)
        except Base64Error:
            continue
        assert encode(decoded).encode() == data


@pytest.mark.parametrize("path", files("base64url"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("base64url"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `Base64Error` comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("base64url", "papaver.values.base64url") == ""
