"""Every limit and lifetime of the Personal Agent's side, as typed settings with their defaults (`docs/limits.md`)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from papaver.protocol.errors import ConfigurationError

__all__ = ["AgentLimits"]


def _limit(default: float | int, what: str, *, low: float = 0, high: float = float("inf")) -> int:
    return field(default=default, metadata={"what": what, "low": low, "high": high})  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLimits:
    """Sizes in bytes, times in seconds."""

    delegation_lifetime: int = _limit(6 * 3600, "delegation made for", low=120, high=86_400)
    delegation_renewed: int = _limit(600, "delegated key replaced this long before its delegation's `exp`", low=30)
    document_bytes: int = _limit(100 * 1024, "a document of a Company, after decompression", low=1024)
    document_seconds: int = _limit(5, "fetch of a document, all hops included", low=1)
    document_redirects: int = _limit(5, "redirect hops of `poppy.json` and of OpenAPI descriptions", low=0, high=20)
    description_bytes: int = _limit(
        5 * 1024 * 1024, "an OpenAPI description, after decompression", low=1024, high=5 * 1024 * 1024
    )
    description_retry: int = _limit(30, "OpenAPI description that could not be had asked for again, after", low=1)
    document_fresh: int = _limit(300, "a Company's documents kept without a word from it", low=0)
    document_fresh_most: int = _limit(3600, "a Company's documents kept at most", low=0)
    retry_after_most: int = _limit(60, "longest `Retry-After` that is waited for; above it the caller is told", low=0)
    clock_difference_least: int = _limit(60, "difference to the Company's clock that is corrected, above", low=5)
    clock_difference_most: int = _limit(86_400, "difference to the Company's clock that is corrected, at most", low=60)
    attempts: int = _limit(6, "tries of a request that does not arrive", low=1, high=20)
    backoff: int = _limit(1, "pause after the first failed try, doubled each time", low=1)
    backoff_most: int = _limit(15, "pause between tries, at most", low=1)
    wait: int = _limit(25, "`wait` of a held read", low=0, high=300)
    poll_pause: int = _limit(1, "pause after a held read that came back empty at once", low=1)
    outbox_kept: int = _limit(24 * 3600, "unconfirmed message sent again after a restart, not older than", low=60)
    assertion_lifetime: int = _limit(60, "client assertion made for", low=10, high=300)
    sign_in_kept: int = _limit(600, "Direct Sign-In: its callback is taken, after its beginning", low=60, high=3600)
    token_renewed: int = _limit(30, "access token refreshed this long before it expires", low=0)
    token_attempts: int = _limit(3, "tries of a refresh or a revocation that gets no answer", low=1, high=10)
    token_seconds: int = _limit(10, "request to a token, revocation or device endpoint", low=1)
    token_bytes: int = _limit(64 * 1024, "answer of a token, revocation or device endpoint", low=1024)
    device_wait_most: int = _limit(1800, "Device Sign-In waited for, whatever the Company allows", low=60)
    service_fresh: int = _limit(4 * 3600, "what a service's own metadata says is kept", low=0)
    events_remembered: int = _limit(100, "handled event ids kept per conversation, beside the cursor", low=1)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            low, high = one.metadata["low"], one.metadata["high"]
            if not low <= value <= high:
                raise ConfigurationError(
                    f"{one.name} is {value}, expected {low} to {high}", rule="configuration.limits"
                )
        if self.delegation_renewed * 2 > self.delegation_lifetime:
            raise ConfigurationError(
                f"a delegation of {self.delegation_lifetime} s cannot be renewed {self.delegation_renewed} s before "
                "its end; make it at least twice as long",
                rule="configuration.limits",
            )
