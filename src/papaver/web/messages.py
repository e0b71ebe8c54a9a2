"""HTTP requests and responses as frozen values. Knows HTTP and nothing above it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Never, Protocol, cast

__all__ = ["Chunks", "Headers", "Request", "Response", "Stream"]


class Headers:
    """Header fields in order, names compared ignoring case, repeated fields never joined.

    Values are `str`, decoded as latin-1. Build from pairs or a mapping. Any of them may be a secret: they show their
    names only, and are never pickled.
    """

    __slots__ = ("_index", "_items", "_octets")

    def __init__(self, items: Iterable[tuple[str, str]] | Mapping[str, str] = ()) -> None:
        pairs = cast("Mapping[str, str]", items).items() if isinstance(items, Mapping) else items
        self._items: tuple[tuple[str, str], ...] = tuple([(name.lower(), value) for name, value in pairs])
        self._index: dict[str, tuple[str, ...]] | None = None
        self._octets: tuple[tuple[bytes, bytes], ...] | None = None

    def first(self, name: str) -> str | None:
        """The first field of this name, or None."""
        found = self.all(name)
        return found[0] if found else None

    def all(self, name: str) -> tuple[str, ...]:
        """Every field of this name, in order."""
        index = self._index
        if index is None:
            index = self._index = {}
            for key, value in self._items:
                index[key] = (*index[key], value) if key in index else (value,)
        return index.get(name) or index.get(name.lower(), ())

    def octets(self) -> tuple[tuple[bytes, bytes], ...]:
        """The fields as they are sent. Raises UnicodeEncodeError for what latin-1 cannot say."""
        if self._octets is None:
            self._octets = tuple([(name.encode("latin-1"), value.encode("latin-1")) for name, value in self._items])
        return self._octets

    def with_(self, *pairs: tuple[str, str]) -> Headers:
        """A copy with these fields in place of any of the same name."""
        replaced = {name.lower() for name, _ in pairs}
        return Headers([*(pair for pair in self._items if pair[0] not in replaced), *pairs])

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self.first(name) is not None

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._items)

    def __len__(self) -> int:
        return len(self._items)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Headers) and self._items == other._items

    def __hash__(self) -> int:
        return hash(self._items)

    def __repr__(self) -> str:
        return f"Headers({[name for name, _ in self._items]})"

    def __reduce__(self) -> Never:
        raise TypeError("header fields are never pickled")


@dataclass(frozen=True, slots=True)
class Request:
    """A request. `url` is absolute; a received one is the public URL that the peer was told to use, with its query."""

    method: str
    url: str
    headers: Headers = field(default_factory=Headers)
    body: bytes = field(default=b"", repr=False)


@dataclass(frozen=True, slots=True)
class Response:
    """A response, body complete and already decompressed. `url` is the URL that answered, after redirects."""

    status: int
    headers: Headers = field(default_factory=Headers)
    body: bytes = field(default=b"", repr=False)
    url: str = ""


class Chunks(Protocol):
    """The body of a Stream, chunk by chunk."""

    def __aiter__(self) -> AsyncIterator[bytes]: ...

    def __anext__(self) -> Awaitable[bytes]: ...

    def aclose(self) -> Awaitable[None]:
        """Give back what it holds. Whoever got a Stream calls it in the end, also when nothing was asked for."""
        ...


async def _unhurried(sending: Awaitable[None]) -> None:
    await sending


@dataclass(frozen=True, slots=True)
class Stream:
    """A response whose body goes on: each chunk is asked for once the one before it was taken, and sent at once.

    `taken` waits for the sending of a chunk that is not over at once; raises TimeoutError when the connection is to be
    closed instead.
    """

    status: int
    headers: Headers
    chunks: Chunks = field(repr=False)
    taken: Callable[[Awaitable[None]], Awaitable[None]] = field(default=_unhurried, repr=False)
