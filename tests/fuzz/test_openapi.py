"""Fuzzing OpenAPI descriptions: they are read, or refused by an error of our own; what is read can be called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given

from papaver.protocol.openapi import InvalidDescription, Need, read_document, read_openapi
from papaver.protocol.openapi_requests import BadCall, described_destinations, needed, operation_request
from papaver.values import strict_json
from papaver.values.strict_json import JsonError
from tests.fuzz.mutations import mutated
from tests.fuzz.seeds import files, grown

AT = "https://api.example.com/v1/openapi.json"
VALID: tuple[dict[str, Any], ...] = tuple(json.loads(path.read_text("utf-8")) for path in files("openapi"))


def drive(data: bytes) -> None:
    """A description as it comes from the network."""
    try:
        document = strict_json.loads_object(data)
    except JsonError:
        with pytest.raises(InvalidDescription):
            read_openapi(data, AT)
        return
    judge(document)


def judge(document: Any) -> None:
    """Each operation that is read is written as a request, and that request is a destination."""
    try:
        api = read_document(document, AT)
    except InvalidDescription:
        return
    destinations = described_destinations(api)
    for operation in api.operations:
        assert needed(operation) in (operation.needs or (Need(),))
        given_values = {one.name: "v" for one in operation.parameters}
        try:
            request = operation_request(operation, given_values, {} if operation.body_required else None)
        except BadCall:
            continue
        assert any(one.accepts(request.url, request.method) for all_of in destinations.values() for one in all_of)


@pytest.mark.parametrize("path", files("openapi"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("openapi"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `InvalidDescription` comes out."""
    drive(data)


@given(mutated(VALID))
def test_spoiled_descriptions_are_read_or_refused(document: object) -> None:
    """Valid descriptions, changed in a few places."""
    if isinstance(document, dict):
        judge(document)
