"""Fuzzing what a Personal Agent makes of an error, and a Company of the small headers: no error comes out of either.

A seed's first line is the status, the next ones are fields, and after an empty line comes the body.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given

from papaver.protocol.company import ExtensionEntry
from papaver.protocol.dialect import BEARER_ONLY, Challenged, Place
from papaver.protocol.errors import ExtensionRequired, ProofNonceNeeded, VersionUnsupported
from papaver.protocol.extensions import (
    EXTENSIONS_HEADER,
    check_extension_declared,
    choose_extensions,
    in_force,
    read_extensions,
    write_extensions,
)
from papaver.protocol.negotiation import VERSION_HEADER, negotiate
from papaver.values.errors import PapaverError
from papaver.versions import DIALECTS
from papaver.versions.v0_4.errors import ERRORS, STATUSES
from papaver.web.challenges import ChallengeError
from papaver.web.messages import Headers, Response
from tests.fuzz.seeds import files, grown, unreached


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
        say_again(received.code, received.attributes)
    declared = read_extensions(response.headers.all(EXTENSIONS_HEADER))
    written = write_extensions(declared)
    assert read_extensions([] if written is None else [written]) == declared
    advertised = {name: (ExtensionEntry(version),) for name, version in declared.items()}
    evident = [name for name, version in declared.items() if version == "2"]
    chosen = choose_extensions({name: (version,) for name, version in declared.items()}, advertised, evident)
    for name in declared:
        try:
            check_extension_declared(name, chosen)
        except ExtensionRequired:
            assert name in evident
    assert in_force(chosen, advertised) == chosen
    try:
        assert negotiate(response.headers.all(VERSION_HEADER), DIALECTS) in DIALECTS
    except VersionUnsupported as error:
        judge_refusal(error)


def say_again(code: str, attributes: Mapping[str, str]) -> None:
    """A Company's error of this code, with what was read of it, is written so that it is read alike."""
    kinds = (*STATUSES, ProofNonceNeeded)
    kind = next((kind for kind in kinds if kind.code == code), PapaverError)
    error: PapaverError = kind.__new__(kind)
    error.code, error.description = kind.code, attributes.get("error_description", "")
    for name in ("scope", "extension", "conversation_id"):
        setattr(error, name, attributes.get(name, ""))
    for name, value in (("retry_after", len(attributes)), ("nonce", "n")):
        setattr(error, name, value)
    both = Challenged(("Bearer", "DPoP"), ("ES256",), attributes.get("resource_metadata"))
    for place, challenged in product(Place, (BEARER_ONLY, both)):
        if challenged is BEARER_ONLY and kind is ProofNonceNeeded:
            continue  # a nonce is a matter of DPoP alone
        try:
            response = ERRORS.write(error, place, challenged)
        except ChallengeError:
            continue
        again = ERRORS.read(response)
        assert again is not None
        assert again.code == ("server_error" if response.status == 500 else code)


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


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch of errors and extensions, written and read."""
    assert unreached("errors", "papaver.versions.v0_4.errors", "papaver.protocol.extensions") == ""
