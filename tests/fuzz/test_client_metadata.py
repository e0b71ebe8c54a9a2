"""Fuzzing client metadata documents: they are accepted, or refused by an error of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given

from papaver.oauth.client_metadata import ClientMetadata, read_client_metadata, write_client_metadata
from papaver.oauth.errors import InvalidClientMetadata
from papaver.values import strict_json
from papaver.values.strict_json import JsonError
from papaver.web.urls import same_host
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import files, grown, unreached

VALID: dict[str, Any] = json.loads(
    (Path(__file__).parent / "corpus" / "client_metadata" / "example").read_text("utf-8")
)


def outcome(url: str, document: object) -> ClientMetadata | InvalidClientMetadata:
    """The metadata, or why it is refused. Any other error fails the test."""
    try:
        return read_client_metadata(url, document)
    except InvalidClientMetadata as error:
        return error


def judge(document: object) -> None:
    """Fetched from where it says, or from `x_url`: what is accepted keeps to the client's host."""
    members: dict[str, Any] = cast("dict[str, Any]", document) if isinstance(document, dict) else {}
    url = members.get("x_url", members.get("client_id"))
    metadata = outcome(url if isinstance(url, str) else VALID["client_id"], cast("object", document))
    if isinstance(metadata, InvalidClientMetadata):
        assert metadata.rule.startswith("client.")
        assert metadata.description
        return
    assert metadata.client_id == url
    assert same_host(metadata.jwks_uri, metadata.client_id)
    assert read_client_metadata(metadata.client_id, write_client_metadata(metadata)) == metadata


def drive(data: bytes) -> None:
    """A document as it comes from the network."""
    try:
        document = strict_json.loads(data)
    except JsonError:
        return
    judge(document)


@pytest.mark.parametrize("path", files("client_metadata"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("client_metadata"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `InvalidClientMetadata` comes out."""
    drive(data)


@given(mutated((VALID,)))
def test_spoiled_documents_are_accepted_or_refused(document: object) -> None:
    """Valid documents, changed in a few places."""
    judge(document)


def test_the_corpus_alone_covers_the_reader() -> None:
    """Every line and branch."""
    assert unreached("client_metadata", "papaver.oauth.client_metadata") == ""
