"""Fuzzing `poppy.json`: valid documents spoiled in places are read, or refused by an error of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from papaver.protocol.company import CompanyDocument, company_urls
from papaver.protocol.destinations import session_destinations
from papaver.protocol.dialect import Version
from papaver.protocol.discovery import Checks, choose_version, read_poppy_json
from papaver.protocol.errors import DiscoveryFailed
from papaver.values import strict_json
from papaver.values.strict_json import JsonError
from papaver.versions import DIALECTS
from papaver.web.messages import Response
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import files, grown, unreached

URL = "https://example.com/.well-known/poppy.json"
DOCUMENTS = DIALECTS[Version(0, 4)].documents
VALID: tuple[dict[str, Any], ...] = tuple(
    json.loads((Path(__file__).parent / "corpus" / "documents" / name).read_text("utf-8"))
    for name in ("example", "full", "web-only", "left-out")
)


def outcome(body: object) -> CompanyDocument | DiscoveryFailed:
    """The document, or why it is refused. Any other error fails the test."""
    try:
        return DOCUMENTS.read(body)
    except DiscoveryFailed as error:
        return error


def judge(body: object) -> None:
    """What is read is whole: only https URLs, and the same again when it is written and read."""
    document = outcome(body)
    if isinstance(document, DiscoveryFailed):
        assert document.rule.startswith("document.")
        assert all((document.expected, document.found, document.remedy))
        return
    assert document.has_channel
    assert all(url.startswith(("https://", "HTTPS://")) for _, url in company_urls(document))
    session_destinations(document)
    again = DOCUMENTS.read(json.loads(strict_json.dumps(DOCUMENTS.write(document))))
    assert again == document
    assert again.findings == ()


def drive(data: bytes) -> None:
    """A document as it comes from the network."""
    try:
        body = strict_json.loads(data)
    except JsonError:
        return
    judge(body)


@pytest.mark.parametrize("path", files("documents"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("documents"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `DiscoveryFailed` comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("documents", "papaver.versions.v0_4.documents") == ""


@given(mutated(VALID))
def test_spoiled_documents_are_read_or_refused(body: object) -> None:
    """Nothing but `DiscoveryFailed` comes out, and nothing that is not https is left in."""
    judge(body)


@given(mutated(VALID))
def test_spoiled_documents_pass_the_first_step_or_are_refused(body: object) -> None:
    """What every version reads, and the choice of a version (3.4)."""
    response = Response(200, body=json.dumps(body).encode(), url=URL)
    try:
        served = read_poppy_json(response, Checks())
        choice = choose_version(served, DIALECTS, Checks())
    except DiscoveryFailed:
        return
    assert choice.spoken in DIALECTS
    assert all(url.startswith("https://") for _, url in served.supported_versions)
