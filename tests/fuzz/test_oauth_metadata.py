"""Fuzzing metadata of servers and resources: they are read, or refused by an error of our own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from papaver.oauth import metadata
from papaver.oauth.errors import InvalidMetadata
from papaver.values import strict_json
from papaver.values.strict_json import JsonError
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import files, grown, unreached

VALID: tuple[dict[str, Any], ...] = tuple(
    json.loads((Path(__file__).parent / "corpus" / "oauth_metadata" / name).read_text("utf-8"))
    for name in ("server", "resource", "resource-none")
)


def judge_resource(document: object) -> None:
    """A resource's metadata, to its last check."""
    resource = metadata.read_resource_metadata(document)
    assert metadata.read_resource_metadata(metadata.write_resource_metadata(resource)) == resource
    metadata.check_resource(resource, "https://example.com")
    assert metadata.fold_host(resource.resource) == "https://example.com"


def judge_server(document: object) -> None:
    """A server's metadata, to its last check."""
    server = metadata.read_server_metadata(document)
    assert metadata.read_server_metadata(metadata.write_server_metadata(server)) == server
    metadata.check_server_lists_resource(server, "https://example.com")
    metadata.check_issuer_identifier(server.issuer)
    metadata.check_server_issuer(server, "https://auth.example.com")


def judge_issuer(document: object) -> None:
    """A Company's own issuer's metadata, and what it lacks."""
    lacks = metadata.missing_members(document)
    issuer = metadata.read_issuer_metadata(document)
    assert metadata.read_issuer_metadata(metadata.write_server_metadata(issuer)) == issuer
    assert "issuer" not in [lack.member for lack in lacks]


def judge(document: object) -> None:
    """As all three kinds; what is read is the same again when it is written and read."""
    for read_and_check in (judge_resource, judge_server, judge_issuer):
        refusal: InvalidMetadata | None = None
        try:
            read_and_check(document)
        except InvalidMetadata as error:
            refusal = error
        assert refusal is None or refusal.rule.startswith("oauth.")


def drive(data: bytes) -> None:
    """A document as it comes from the network."""
    try:
        document = strict_json.loads(data)
    except JsonError:
        return
    judge(document)


@pytest.mark.parametrize("path", files("oauth_metadata"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("oauth_metadata"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `InvalidMetadata` comes out."""
    drive(data)


@given(mutated(VALID))
def test_spoiled_documents_are_read_or_refused(document: object) -> None:
    """Valid documents, changed in a few places."""
    judge(document)


def test_the_corpus_alone_covers_the_readers() -> None:
    """Every line and branch."""
    assert unreached("oauth_metadata", "papaver.oauth.metadata") == ""
