"""Fuzzing header fields: what is read can be written and read again, and no error but its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from papaver.web import fields
from papaver.web.messages import Headers
from tests.fuzz.seeds import files, grown, unreached

NOW = 1_800_000_000


def drive(data: bytes) -> None:
    """Every reader gets every line; the lines `name: value` are headers too."""
    lines = data.decode("utf-8", "surrogateescape").split("\n")
    headers = Headers([(name, value.strip()) for name, _, value in (line.partition(":") for line in lines)])
    seconds = fields.freshness(headers, NOW)
    assert seconds is None or 0 <= seconds <= fields.MAX_SECONDS
    try:
        pairs = fields.read_extensions(lines)
        assert fields.read_extensions([fields.write_extensions(pairs)]) == pairs
    except fields.FieldError:
        pass
    for line in lines:
        try:
            fields.write_extensions([(line, line)])
        except fields.FieldError:
            pass
        try:
            moment = fields.read_sunset(line, NOW)
            assert fields.read_sunset(fields.write_sunset(moment), NOW) == moment
        except fields.FieldError:
            pass
        try:
            moment = fields.read_deprecation(line)
            assert fields.read_deprecation(fields.write_deprecation(moment)) == moment
            fields.write_http_date(moment * 1000)
        except fields.FieldError:
            pass
        try:
            wait = fields.read_retry_after(line, NOW)
            assert fields.read_retry_after(fields.write_retry_after(wait), NOW) == wait
        except fields.FieldError:
            pass


@pytest.mark.parametrize("path", files("fields"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("fields"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `FieldError` comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("fields", "papaver.web.fields") == ""
