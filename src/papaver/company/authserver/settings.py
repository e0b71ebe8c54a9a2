"""Every limit and lifetime of the embedded issuer, as typed settings with their defaults (`docs/limits.md`)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from papaver.protocol.errors import ConfigurationError

__all__ = ["IssuerLimits"]


def _limit(default: int, what: str, *, low: float = 0, high: float = float("inf")) -> Any:
    return field(default=default, metadata={"what": what, "low": low, "high": high})


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuerLimits:
    """Sizes in bytes, times in seconds, rates per minute."""

    access_token: int = _limit(3600, "access token", low=60, high=86_400)
    refresh_token: int = _limit(90 * 86_400, "refresh token, counted from the sign-in", low=3600)
    rotation_grace: int = _limit(
        60, "a replaced refresh token gives the same successor again, until the successor is used", low=0, high=600
    )
    authorization_request: int = _limit(600, "a sign-in that has begun, until the User has decided", low=60, high=3600)
    code: int = _limit(60, "authorization code", low=10, high=600)
    code_reuse_noticed: int = _limit(3600, "a used code is known: used again, it revokes its grant", low=60)
    device_code: int = _limit(600, "device code and user code", low=60, high=1800)
    poll_interval: int = _limit(5, "device polls: one every", low=1, high=60)
    poll_slower: int = _limit(5, "added to that interval by each `slow_down`", low=1, high=60)
    poll_tolerance: int = _limit(2, "a device poll may be this much early", low=0, high=5)
    user_codes_per_address: int = _limit(10, "user codes tried a minute, per address", low=1)
    tries_per_user_code: int = _limit(10, "entries of one user code, then it is void", low=1)
    unknown_device_codes: int = _limit(30, "polls a minute with unknown device codes, per client", low=1)
    requests_per_address: int = _limit(
        120, "sign-ins begun, pages, and requests whose client is not proven, a minute, per address", low=1
    )
    assertion: int = _limit(300, "client assertion accepted after its `iat`", low=30, high=3600)
    skew: int = _limit(30, "difference of the clocks allowed in a client assertion", low=0, high=300)
    dpop_window: int = _limit(60, "DPoP proof: `iat` accepted this far from now, both ways", low=5, high=300)
    dpop_nonce_lifetime: int = _limit(300, "DPoP nonce", low=30, high=3600)
    page_session: int = _limit(900, "a User is known to the page of connected agents", low=60, high=3600)
    form_bytes: int = _limit(32 * 1024, "form or query of a request, above: 413", low=4096, high=256 * 1024)
    ended_grants: int = _limit(30 * 86_400, "a grant that is over is remembered", low=0)
    rates_kept: int = _limit(100_000, "counters of rates kept in memory", low=100)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            low, high = one.metadata["low"], one.metadata["high"]
            if not low <= value <= high:
                raise ConfigurationError(
                    f"{one.name} is {value}, expected {low} to {high}", rule="configuration.issuer-limits"
                )
