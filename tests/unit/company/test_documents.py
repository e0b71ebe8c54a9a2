"""The documents that a Company publishes, and who asked for them elsewhere."""

from __future__ import annotations

import pytest

from papaver.company.app import Company
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
