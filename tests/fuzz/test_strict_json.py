"""Fuzzing strict JSON: two readers agree on what is accepted, and no error but its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given

from papaver.values.strict_json import JsonError, canonical, dumps, loads, loads_object
from tests.fuzz.seeds import files, grown, unreached


def drive(data: bytes) -> None:
    """What is accepted, the standard library reads alike; it is read back from both forms; text is as octets."""
    text = data.decode("utf-8", "surrogateescape")
    for spoken in (data, text):
        try:
            value = loads(spoken, max_bytes=256)
        except JsonError:
            continue
        assert json.loads(spoken) == value
        assert loads(dumps(value)) == value
        assert canonical(loads(canonical(value))) == canonical(value)
    for ask in (lambda: loads_object(data), lambda: dumps(text)):
        try:
            ask()
        except JsonError:
            continue


@pytest.mark.parametrize("path", files("strict_json"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("strict_json"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `JsonError` comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("strict_json", "papaver.values.strict_json") == ""
