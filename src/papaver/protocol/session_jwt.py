"""A Session JWT as values (5.2): its claims, the JWT as received, and what a request's JWT is compared with."""

from __future__ import annotations

from typing import Final, NamedTuple, Never

import msgspec
from msgspec import UNSET, UnsetType

from papaver.jose.claims import ClaimsReader
from papaver.jose.jws import CompactJws
from papaver.web.urls import htu

__all__ = ["CLAIMS", "IAT_WINDOW", "MAX_IAT_WINDOW", "Expected", "SessionClaims", "SessionJwt", "expect"]


IAT_WINDOW: Final = 60
"""Default acceptance window for `iat`, in seconds to either side (readings 18)."""
MAX_IAT_WINDOW: Final = 300
"""The widest window that may be configured."""


class SessionClaims(msgspec.Struct, frozen=True, gc=False):
    """A Session JWT's payload (5.2). `` and 0 stand for absent required claims, which a check refuses."""

    iss: str = ""
    aud: str = ""
    sid: str = ""
    sub: str = ""
    htm: str = ""
    htu: str = ""
    iat: int = 0
    jti: str = ""
    ath: str | UnsetType = UNSET
    agent_id: str | UnsetType = UNSET


class SessionJwt(msgspec.Struct, frozen=True, gc=False):
    """A Session JWT as received: parsed, not believed. It hides itself, because it can be replayed."""

    claims: SessionClaims
    compact: CompactJws

    @property
    def iss(self) -> str:
        """Who it says has signed it: good for finding the key set to check it with, and for nothing else."""
        return self.claims.iss

    def __repr__(self) -> str:
        return "SessionJwt(…)"

    def __reduce__(self) -> Never:
        raise TypeError("a Session JWT is never pickled")


class Expected(NamedTuple):
    """What one request's Session JWT is checked against; `expect` makes it.

    `company_id` the Company's identifier      `method` as received, in its letter case
    `url`        in the form of `htu`          `now`    Unix seconds
    `iat_window` seconds, to either side
    """

    company_id: str
    method: str
    url: str
    now: float
    iat_window: int


def expect(*, company_id: str, method: str, url: str, now: float, iat_window: int = IAT_WINDOW) -> Expected:
    """`url` is the request's public URL, never built from `Host` (readings 28). Raises UrlError when it is none."""
    return Expected(company_id, method, htu(url), now, iat_window)


def _quotes(claims: SessionClaims) -> int:
    """The quotation marks of a payload with all eight required claims, seven of them strings, and the optional two."""
    return 30 + 4 * ((claims.ath is not UNSET) + (claims.agent_id is not UNSET))


CLAIMS: Final = ClaimsReader(SessionClaims, quotes=_quotes)
