"""Fuzzing what a Personal Agent makes of an error, and a Company of the small headers: no error comes out of either.

A seed's first line is the status, the next ones are fields, and after an empty line comes the body.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from papaver.protocol.errors import VersionUnsupported
from papaver.protocol.extensions import EXTENSIONS_HEADER, read_extensions, write_extensions
from papaver.protocol.negotiation import VERSION_HEADER, negotiate
from papaver.values.errors import PapaverError
from papaver.versions import DIALECTS
from papaver.versions.v0_4.errors import ERRORS
from papaver.web.messages import Headers, Response
from tests.fuzz.seeds import files, grown


def read(data: bytes) -> Response:
    """The answer that a seed describes."""
    head, _, body = data.partition(b"\n\n")
    status, *lines = head.decode("utf-8", "replace").split("\n")
    fields = [(name.strip() or "x", value.strip()) for name, _, value in (line.partition(":") for line in lines)]
    number = int(status) if len(status) == 3 and status.isascii() and status.isdigit() else 400
    return Response(number, Headers(fields), body)


def drive(data: bytes) -> None:
    """What is read is text, a token's errors are never taken from the body, and extensions are written as read."""
    response = read(data)
    received = ERRORS.read(response)
    if received is not None:
        assert response.status >= 400
        assert all(isinstance(value, str) for value in received.attributes.values())
        if received.code in ("invalid_token", "insufficient_scope"):
            assert response.headers.all("WWW-Authenticate")
    declared = read_extensions(response.headers.all(EXTENSIONS_HEADER))
    written = write_extensions(declared)
    assert read_extensions([] if written is None else [written]) == declared
    try:
        assert negotiate(response.headers.all(VERSION_HEADER), DIALECTS) in DIALECTS
    except VersionUnsupported as error:
        judge_refusal(error)


def judge_refusal(error: PapaverError) -> None:
    """It names its rule, and a long header is not repeated at length."""
    assert error.rule.startswith("version.")
    assert len(error.detail) < 200


@pytest.mark.parametrize("path", files("errors"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("errors"))
def test_grown_inputs(data: bytes) -> None:
    """Whatever a peer sends."""
    drive(data)
