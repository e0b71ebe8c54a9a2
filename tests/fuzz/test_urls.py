"""Fuzzing URLs: what is accepted is normal once normalised, and no error but its own."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given

from papaver.web import urls
from tests.fuzz.seeds import files, grown, unreached

READERS = (
    urls.check_https,
    urls.host_of,
    urls.origin_of,
    urls.authorization_server_metadata_url,
    urls.protected_resource_metadata_url,
    urls.poppy_json_url,
)


def drive(data: bytes) -> None:
    """The first line is a URL or a domain, the second a reference or another one."""
    first, _, second = data.decode("utf-8", "surrogateescape").partition("\n")
    for read in READERS:
        try:
            read(first)
        except urls.UrlError:
            continue
    urls.host_within(first, second)
    try:
        normal = urls.htu(first)
        assert urls.htu(normal) == normal
        assert urls.same_host(first, normal)
        assert urls.read_url(normal).query is None
        target = urls.resolve(first, second)
        assert urls.read_url(target)
        assert urls.resolve(target, target) == target
        urls.htu(urls.join(first, second))
    except urls.UrlError:
        return


@pytest.mark.parametrize("path", files("urls"), ids=lambda path: path.name)
def test_the_corpus(path: Path) -> None:
    """Each seed holds what the grown inputs have to hold."""
    drive(path.read_bytes())


@given(grown("urls"))
def test_grown_inputs(data: bytes) -> None:
    """Nothing but `UrlError` comes out."""
    drive(data)


def test_the_corpus_alone_covers_the_parser() -> None:
    """Every line and branch."""
    assert unreached("urls", "papaver.web.urls") == ""
