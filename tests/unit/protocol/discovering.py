"""Discovery over answers that are only values: a Company as a mapping of URLs, and the steps in their order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest

from papaver.protocol.dialect import Version
from papaver.protocol.discovery import (
    Checks,
    Discovered,
    VersionUnavailable,
    check_document,
    choose_version,
    found,
    issuer_metadata_request,
    poppy_json_request,
    read_issuer_answer,
    read_poppy_json,
    read_resource_answer,
    read_version_document,
    resource_metadata_request,
    version_document_request,
)
from papaver.protocol.errors import DiscoveryFailed
from papaver.versions import DIALECTS
from papaver.web.messages import Response

Answers = dict[str, Response]

DOMAIN = "example.com"
POPPY = "https://example.com/.well-known/poppy.json"
RESOURCE = "https://example.com/.well-known/oauth-protected-resource"
ISSUER = "https://auth.example.com"
ISSUER_AT = "https://auth.example.com/.well-known/oauth-authorization-server"
V0_3_AT = "https://example.com/poppy/0.3.json"
DOCUMENT: dict[str, Any] = {
    "protocol_version": "0.4",
    "organization": {"name": "Example Company", "domain": DOMAIN},
    "web": {},
}
METADATA: dict[str, Any] = {
    "issuer": ISSUER,
    "token_endpoint": f"{ISSUER}/token",
    "protected_resources": ["https://example.com", "https://mcp.example.com/mcp"],
}


def answer(body: object, url: str = "", status: int = 200) -> Response:
    """A response with a JSON body; `url` is the last one, after redirects."""
    return Response(status, body=json.dumps(body).encode(), url=url)


def answers(document: Mapping[str, Any] = DOCUMENT, resource: object = None, metadata: object = METADATA) -> Answers:
    """A Company's answers; without `resource` its domain has no metadata."""
    return {
        POPPY: answer(document, POPPY),
        RESOURCE: Response(404) if resource is None else answer(resource),
        ISSUER_AT: answer(metadata),
    }


def with_issuer(document: Mapping[str, Any] = DOCUMENT, **metadata: object) -> Answers:
    """A Company with one authorization server."""
    resource = {"resource": "https://example.com", "authorization_servers": [ISSUER]}
    return answers(document, resource, {**METADATA, **metadata})


def discover(
    web: Answers, implemented: tuple[Version, ...] = (Version(0, 4),), known_issuer: str | None = None
) -> Discovered:
    """The steps in their order, as a flow takes them. Draft 0.4's codec reads every version here."""
    checks = Checks()
    served = read_poppy_json(web[poppy_json_request(DOMAIN).url], checks)
    unavailable: list[Version] = []
    while True:
        choice = choose_version(served, implemented, checks, unavailable=unavailable)
        if choice.url is None:
            body = served.body
            break
        try:
            body = read_version_document(web[version_document_request(choice.url).url], choice.listed, checks)
            break
        except VersionUnavailable:
            unavailable.append(choice.listed)
    document = DIALECTS[Version(0, 4)].documents.read(body)
    check_document(document, served, checks)
    response = web[resource_metadata_request(document).url]
    issuer = read_resource_answer(response, document, served, checks, known_issuer=known_issuer)
    server = None
    if issuer is not None:
        server = read_issuer_answer(web[issuer_metadata_request(issuer).url], issuer, document, checks)
    return found(DOMAIN, served, choice, document, issuer, server, checks)


def refused(web: Answers, **options: Any) -> DiscoveryFailed:
    """Why discovery fails; every failure shows what was found and what to do."""
    with pytest.raises(DiscoveryFailed) as caught:
        discover(web, **options)
    error = caught.value
    assert error.found
    assert error.remedy
    return error


def at(url: str, document: Mapping[str, Any] = DOCUMENT) -> Answers:
    """A Company whose `poppy.json` was redirected, and ended at `url`."""
    return {**answers(document), POPPY: answer(document, url)}
