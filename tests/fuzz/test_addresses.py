"""Fuzzing addresses: every text gets a verdict."""

from __future__ import annotations

from ipaddress import ip_address
from pathlib import Path

import pytest
from hypothesis import given

from papaver.web.addresses import is_public, why_refused
from tests.fuzz.seeds import files, grown, unreached


def drive(data: bytes) -> None:
    """A text that is public is an address that the standard library does not call private."""
    text = data.decode("utf-8", "surrogateescape")
    assert is_public(text) == (why_refused(text) is None)
    if is_public(text):
        address = ip_address(text)
        assert is_public(address)
        assert not address.is_multicast
        assert not address.is_loopback


@pytest.mark.parametrize("path", files("addresses"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("addresses"))
def test_grown_inputs(data: bytes) -> None:
    """No error comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("addresses", "papaver.web.addresses") == ""
