"""Bodies decoded piece by piece and never past a limit."""

from __future__ import annotations

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.adapters.httpx2.body import PIECE, SLACK, BodyReader
from papaver.ports.system import FetchFailed, FetchFault

URL = "https://shop.example/"


def read(coding: str, chunks: list[bytes], most: int | None) -> bytes:
    """A whole body through a reader; no piece is larger than what one decompression may give."""
    reader = BodyReader(coding, most, URL)
    pieces = [piece for chunk in chunks for piece in reader.feed(chunk)]
    reader.finish()
    assert coding != "gzip" or all(len(piece) <= PIECE for piece in pieces)
    return b"".join(pieces)


def failure(coding: str, chunks: list[bytes], most: int | None = 100) -> FetchFailed:
    with pytest.raises(FetchFailed) as caught:
        read(coding, chunks, most)
    assert (caught.value.fault, caught.value.url) == (FetchFault.REFUSED, URL)
    return caught.value


@given(st.lists(st.binary(max_size=500), max_size=4), st.integers(1, 50))
def test_every_gzip_body_comes_back_whatever_the_pieces(members: list[bytes], size: int) -> None:
    """Several members, cut anywhere; the limit is the exact size."""
    body = b"".join(members)
    sent = b"".join(gzip.compress(member) for member in members)
    chunks = [sent[at : at + size] for at in range(0, len(sent), size)]
    assert read("gzip", chunks, len(body)) == body
    assert read("identity", chunks, len(sent)) == sent
    assert read("", chunks, None) == sent


def test_a_large_body_unfolds_in_pieces() -> None:
    """Far more than one piece, with and without a limit."""
    body = bytes(10 * PIECE + 1)
    for most in (len(body), None):
        assert read(" GZip ", [gzip.compress(body)], most) == body


@pytest.mark.requirement("papaver-03")
def test_one_octet_too_many_is_too_many() -> None:
    """After decompression for gzip, as sent for the rest."""
    assert read("gzip", [gzip.compress(bytes(100))], 100) == bytes(100)
    assert failure("gzip", [gzip.compress(bytes(101))]).rule == "fetch.size"
    assert read("", [bytes(60), bytes(40)], 100) == bytes(100)
    assert failure("", [bytes(60), bytes(41)]).rule == "fetch.size"


def test_members_that_hold_nothing_are_bounded_too() -> None:
    """A body of empty members never reaches the limit of what comes out, so what goes in has one."""
    empty = gzip.compress(b"")
    assert failure("gzip", [empty * (SLACK // len(empty) + 10)]).rule == "fetch.size"


@pytest.mark.parametrize(
    "chunks", [[gzip.compress(b"{}")[:-1]], [b"\x1f\x8b"], [b"plain"], [gzip.compress(b"{}"), b"x"]]
)
def test_a_broken_gzip_stream_is_refused(chunks: list[bytes]) -> None:
    """Cut, not gzip, or followed by something else."""
    assert failure("gzip", chunks).rule == "fetch.decodable"


@pytest.mark.requirement("papaver-04")
@pytest.mark.parametrize("coding", ["br", "zstd", "deflate", "compress", "gzip, gzip", "gzip,identity"])
def test_only_what_was_asked_for_is_decoded(coding: str) -> None:
    """One coding, and that is gzip."""
    assert failure(coding, []).rule == "fetch.decodable"


def test_a_body_of_nothing_has_no_coding_to_complain_about() -> None:
    """A 304 or the answer to HEAD names a coding and has no body."""
    assert read("gzip", [], 0) == b""
