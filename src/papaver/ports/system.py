"""What both parties take from the outside world: time, randomness, the network."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum, auto
from typing import Protocol

from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Response

__all__ = ["Clock", "FetchFailed", "FetchFault", "FetchPolicy", "Fetcher", "Ids"]


class Clock(Protocol):
    """Time, as an argument."""

    def now(self) -> float:
        """Seconds since the epoch, UTC, with fractions."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back; for waiting only."""
        ...

    async def sleep(self, seconds: float) -> None: ...


class Ids(Protocol):
    """Randomness, as an argument."""

    def token(self, size: int = 16) -> str:
        """`size` random bytes, base64url without padding: at least 128 bits by default, unguessable."""
        ...

    def secret(self, size: int = 32) -> bytes: ...


class FetchFault(Enum):
    """Why a document could not be had."""

    REFUSED = auto()
    """Not https, a private address, a redirect that the policy forbids, no such name, a certificate that does not
    verify, too large, not decodable: asking again gives the same answer."""
    UNREACHABLE = auto()
    """Connection refused or reset, timeout: asking later may help."""


class FetchFailed(PapaverError):
    """No response could be had. `fault` says whether trying later can help; `detail` is never sent on.

    `expected`, `found` and `remedy` are for the people on this side, as `detail` is; empty where nobody knows more.
    """

    code = "fetch_failed"

    def __init__(
        self,
        fault: FetchFault,
        description: str,
        *,
        url: str,
        rule: str = "",
        detail: str = "",
        expected: str = "",
        found: str = "",
        remedy: str = "",
    ) -> None:
        self.fault = fault
        self.url = url
        super().__init__(description, rule=rule, detail=detail)
        self.compare(expected, found, remedy)


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """How one kind of document is fetched (limits.md; readings 51).

    `redirects`    hops followed; each must be https, to a public address
    `max_bytes`    of the body after decompression
    `seconds`      for the whole fetch, all hops included
    `exact_path`   for `poppy.json`: the last URL's path must be exactly this, without a query (section 3)
    """

    redirects: int = 0
    max_bytes: int = 100 * 1024
    seconds: float = 5.0
    exact_path: str | None = None


class Fetcher(Protocol):
    """The guarded fetcher: the only way to read a URL that another party gave us."""

    async def fetch(self, url: str, policy: FetchPolicy, headers: Headers = Headers()) -> Response:
        """GET `url`. Any status is a Response, whose `url` is the last one; no response is FetchFailed."""
        ...
