"""Response bodies, decoded piece by piece and never past a limit: the sum after decompression is what counts."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterable, AsyncIterator, Iterator
from functools import partial
from typing import Final

import httpx2

from papaver.adapters.httpx2.network import refused
from papaver.values.rules import rule

__all__ = ["BodyReader", "BoundedBody"]

PIECE: Final = 64 * 1024
"""Octets that are decompressed at a time, so that a bomb never unfolds in memory."""

SLACK: Final = 4096
"""Octets by which an honest compressed body may be longer than its content: headers and stored blocks."""

_gzip = partial(zlib.decompressobj, zlib.MAX_WBITS | 16)


class BodyReader:
    """Takes a body as it comes off the wire and gives it back decoded: no coding, or gzip.

    `coding`     the value of Content-Encoding, or ""
    `max_bytes`  the most that may come out, None for no limit
    `url`        for the errors
    """

    def __init__(self, coding: str, max_bytes: int | None, url: str) -> None:
        self._max = max_bytes
        self._url = url
        self._in = self._out = 0
        check_coding(coding, url)
        self.plain = coding.strip().lower() in ("", "identity")
        """Whether octets pass as they are."""
        self._unzip = None if self.plain else _gzip()

    def feed(self, octets: bytes) -> Iterator[bytes]:
        """What these octets unfold to, in pieces. Raises FetchFailed."""
        self._in += len(octets)
        if self._max is not None:
            check_size(self._in, self._max + SLACK, self._url)
        pieces = iter((octets,)) if self._unzip is None else self._unfold(octets)
        for piece in pieces:
            self._out += len(piece)
            if self._max is not None:
                check_size(self._out, self._max, self._url)
            yield piece

    def finish(self) -> None:
        """The body has ended. Raises FetchFailed when it ended in the middle."""
        if self._unzip is not None and self._in and not self._unzip.eof:
            raise refused(self._url, "fetch.decodable", "the gzip stream has no end")

    def _unfold(self, octets: bytes) -> Iterator[bytes]:
        unzip = self._unzip
        assert unzip is not None
        while octets:
            if unzip.eof:
                self._unzip = unzip = _gzip()  # another member follows (RFC 1952 2.2)
            try:
                piece = unzip.decompress(octets, PIECE)
            except zlib.error as error:
                raise refused(self._url, "fetch.decodable", f"the body is not gzip: {error}") from None
            if piece:
                yield piece
            octets = unzip.unused_data if unzip.eof else unzip.unconsumed_tail


class BoundedBody(httpx2.AsyncByteStream):
    """A response's stream, read through a BodyReader."""

    def __init__(self, raw: AsyncIterable[bytes], reader: BodyReader) -> None:
        self._raw = raw
        self._reader = reader

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for octets in self._raw:
            for piece in self._reader.feed(octets):
                yield piece
        self._reader.finish()

    async def aclose(self) -> None:
        """Give the connection back, or close it when the body was not read to its end."""
        if isinstance(self._raw, httpx2.AsyncByteStream):
            await self._raw.aclose()


@rule("fetch.decodable")
def check_coding(coding: str, url: str) -> None:
    """Only what was asked for comes back: no coding, or gzip once. Raises FetchFailed."""
    if coding.strip().lower() not in ("", "identity", "gzip", "x-gzip"):
        raise refused(url, "fetch.decodable", f"Content-Encoding {coding!r:.100}")


@rule("fetch.size")
def check_size(octets: int, most: int, url: str) -> None:
    """A body ends at its limit (limits.md). Raises FetchFailed."""
    if octets > most:
        raise refused(url, "fetch.size", f"the body has more than {most} octets")
