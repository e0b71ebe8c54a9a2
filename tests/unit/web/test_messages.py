"""Headers, requests and responses are values: ordered, unjoined, and quiet about what they carry."""

from __future__ import annotations

import dataclasses
import pickle
from collections.abc import AsyncGenerator

import pytest

from papaver.web.messages import Headers, Request, Response, Stream


def test_names_ignore_case_and_fields_are_never_joined() -> None:
    """C89 and C4 rest on this: two lines of one name stay two."""
    headers = Headers([("Poppy-Session", "a"), ("X", "1"), ("POPPY-session", "b")])
    assert headers.first("poppy-Session") == "a"
    assert headers.all("Poppy-Session") == ("a", "b")
    assert headers.first("y") is None
    assert headers.all("y") == ()
    assert list(headers) == [("poppy-session", "a"), ("x", "1"), ("poppy-session", "b")]
    assert len(headers) == 3
    assert "x" in headers
    assert "y" not in headers
    assert 1 not in headers


def test_a_mapping_or_pairs_make_equal_headers() -> None:
    """Both are ways to write them down; equal ones have one hash."""
    assert Headers({"A": "1"}) == Headers([("a", "1")])
    assert hash(Headers({"A": "1"})) == hash(Headers([("a", "1")]))
    assert Headers() != Headers({"A": "1"})
    assert Headers() != ()


def test_with_replaces_every_field_of_the_name() -> None:
    """And leaves the original alone."""
    before = Headers([("a", "1"), ("b", "2"), ("A", "3")])
    assert list(before.with_(("A", "4"), ("c", "5"))) == [("b", "2"), ("a", "4"), ("c", "5")]
    assert len(before) == 3


def test_values_and_bodies_do_not_show_in_repr() -> None:
    """A logged message shows no token."""
    headers = Headers({"Authorization": "Bearer Rosebud"})
    shown = repr(Request("POST", "https://a.example/", headers, b"Rosebud")) + repr(Response(200, headers, b"Rosebud"))
    assert "Rosebud" not in shown
    assert "authorization" in shown


@pytest.mark.parametrize("name", ["method", "url"])
def test_messages_are_frozen_with_empty_defaults(name: str) -> None:
    """Nobody changes a request on its way."""
    request = Request("GET", "https://a.example/")
    assert (len(request.headers), request.body, Response(204).url) == (0, b"", "")
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(request, name, "POST")


def test_headers_are_sent_as_latin_1() -> None:
    """Once made, the octets are kept."""
    headers = Headers([("Content-Type", "text/plain"), ("X-Name", "é")])
    assert headers.octets() == ((b"content-type", b"text/plain"), (b"x-name", b"\xe9"))
    assert headers.octets() is headers.octets()
    with pytest.raises(UnicodeEncodeError):
        Headers([("x", "€")]).octets()


def test_headers_are_never_pickled() -> None:
    """They carry what signs a request."""
    with pytest.raises(TypeError):
        pickle.dumps(Headers([("authorization", "Bearer x")]))


@pytest.mark.anyio
async def test_a_stream_hurries_nobody_unless_it_says_so() -> None:
    """`taken` waits for as long as sending takes; chunks are not shown."""

    async def chunks() -> AsyncGenerator[bytes]:
        yield b"Rosebud"

    sent: list[str] = []

    async def send() -> None:
        sent.append("sent")

    stream = Stream(200, Headers(), chunks())
    await stream.taken(send())
    assert sent == ["sent"]
    assert "chunks" not in repr(stream)
    assert [chunk async for chunk in stream.chunks] == [b"Rosebud"]
