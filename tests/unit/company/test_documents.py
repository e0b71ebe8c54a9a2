"""The documents that a Company publishes, and who asked for them elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest

from papaver.company.app import Company
from papaver.company.documents import Documents
from papaver.company.offer import Offer
from papaver.stores.memory import MemoryStore

DOCUMENT = "/.well-known/poppy.json"


def _company() -> Company:
    return Company(
        domain="shop.example", name="S", base_url="https://shop.example/p", store=MemoryStore(), website=True
    )


def test_a_document_that_is_asked_for_on_another_host_is_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A proxy that hands on its own name looks to the world as if there were no Company."""
    company = _company()
    for host in ("127.0.0.1:8443", "127.0.0.1", "127.0.0.1:9"):
        company.note_unowned(host, DOCUMENT)
    (line,) = caplog.messages
    assert line.startswith(f"{DOCUMENT} was asked for on 127.0.0.1, and is served on shop.example only")
    assert "internal_hosts" in line


def test_what_was_not_meant_for_it_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    """Another path, and its own host."""
    company = _company()
    company.note_unowned("other.example", "/favicon.ico")
    company.note_unowned("Shop.Example:443", DOCUMENT)
    assert caplog.messages == []


def test_whoever_asks_cannot_fill_or_forge_the_log(caplog: pytest.LogCaptureFixture) -> None:
    """Ten hosts in all, each in one short line."""
    company = _company()
    for number in range(30):
        company.note_unowned(f"{number}\r\nforged.example" + "x" * 500, DOCUMENT)
    company.note_unowned("", DOCUMENT)
    assert len(caplog.messages) == 10
    assert all("\n" not in line and len(line) < 500 for line in caplog.messages)


# ── resource metadata ─────────────────────────────────────────────────────────────────────────────────────────────

PRM = "/.well-known/oauth-protected-resource"
ORDERS = "https://api.example.com/orders"
ENDPOINT = "https://api.example.com/poppy/conversations"
ISSUING: dict[str, Any] = {"domain": "example.com", "name": "Example", "base_url": "https://api.example.com/poppy"}


def documents(**options: Any) -> Documents:
    """Of a Company with an issuer, unless `options` say otherwise."""
    settings: dict[str, Any] = {**ISSUING, "issuer": "https://auth.example.com", **options}
    return Documents(Offer(**settings))


def read(published: Documents, host: str, path: str, method: str = "GET") -> tuple[int, Any]:
    assert published.owns(host, path)
    response = published.answer(method, host, path)
    return response.status, json.loads(response.body)


@pytest.mark.requirement("3.2-07", "3.2-08")
@pytest.mark.parametrize("host", ["example.com", "Example.Com:443"])
def test_with_an_issuer_the_domain_has_resource_metadata(host: str) -> None:
    """`resource` is exactly the domain's URL."""
    assert read(documents(), host, PRM) == (
        200,
        {"resource": "https://example.com", "authorization_servers": ["https://auth.example.com"]},
    )


def test_without_an_issuer_there_is_none() -> None:
    """404 (3.2), which may not be kept: there may be one tomorrow."""
    published = documents(issuer=None)
    assert read(published, "example.com", PRM) == (404, {"error": "not_found"})
    assert published.answer("GET", "example.com", PRM).headers.first("cache-control") == "no-store"


def test_a_removed_issuer_is_said_to_be_removed() -> None:
    """200 with an empty list: that alone tells who knew it that there is none (readings 10)."""
    said = read(documents(issuer=None, issuer_removed=True), "example.com", PRM)
    assert said == (200, {"resource": "https://example.com", "authorization_servers": []})


@pytest.mark.requirement("3.1-10")
def test_several_servers_are_listed_as_they_are() -> None:
    """In the operator's order, each as its own metadata says it."""
    servers = ["https://staff.example/", "https://auth.example.com"]
    assert read(documents(authorization_servers=servers), "example.com", PRM)[1]["authorization_servers"] == servers


def test_each_domain_has_its_own_metadata_and_document() -> None:
    """Each says its own name, and all lead to one issuer."""
    published = documents(domains=["example.no", "example.se"], internal_hosts=["Shop.internal"])
    for domain in ("example.com", "example.no", "example.se"):
        assert read(published, domain, PRM)[1]["resource"] == f"https://{domain}"
        assert read(published, domain, DOCUMENT)[1]["organization"]["domain"] == domain
    assert read(published, "shop.internal", DOCUMENT)[1]["organization"]["domain"] == "example.com"
    assert not published.owns("example.dk", DOCUMENT)


@pytest.mark.requirement("4.5-07", "4.5-16")
@pytest.mark.parametrize("service", [ORDERS, ENDPOINT, "https://poppy.provider.example/shop-a"])
def test_b35_a_service_with_tokens_of_its_own_has_metadata_at_its_rfc_9728_url(service: str) -> None:
    """Its `resource` is its URL, whichever host it is on; the well-known path goes before its own."""
    published = documents(own_tokens=[service])
    host, _, path = service.removeprefix("https://").partition("/")
    assert read(published, host, f"{PRM}/{path}") == (
        200,
        {"resource": service, "authorization_servers": ["https://auth.example.com"]},
    )


@pytest.mark.parametrize("path", [PRM, f"{PRM}/order", f"{PRM}/orders/1", f"{PRM}/", "/orders" + PRM, f"{PRM}/poppy"])
def test_b33_no_other_path_of_its_host_answers(path: str) -> None:
    """It is left to the app, which may have services of its own there."""
    assert not documents(own_tokens=[ORDERS]).owns("api.example.com", path)


def test_b32_the_conversation_endpoint_says_that_it_has_none() -> None:
    """404 whatever the app's catch-all would say: anything else would stop a Personal Agent (readings 12)."""
    path = f"{PRM}/poppy/conversations"
    assert read(documents(), "api.example.com", path) == (404, {"error": "not_found"})
    assert not documents(conversations=False, website=True).owns("api.example.com", path)


def test_a_document_is_only_read() -> None:
    """405 for another method, with the two that there are."""
    published = documents()
    assert read(published, "example.com", PRM, "POST")[0] == 405
    assert published.answer("POST", "example.com", PRM).headers.first("allow") == "GET, HEAD"
    assert published.answer("HEAD", "example.com", PRM).body
