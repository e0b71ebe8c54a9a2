"""Every limit and lifetime of the Company's side, as typed settings with their defaults (`docs/limits.md`)."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from papaver.protocol.errors import ConfigurationError

__all__ = ["CompanyLimits"]


def _limit(default: float | int, what: str, *, low: float = 0, high: float = float("inf")) -> int:
    return field(default=default, metadata={"what": what, "low": low, "high": high})  # type: ignore[return-value]


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyLimits:
    """Sizes in bytes, times in seconds, rates per minute."""

    iat_window: int = _limit(60, "Session JWT: `iat` accepted this far from now, both ways", low=1, high=300)
    dpop_window: int = _limit(60, "DPoP proof at a service: `iat` this far from now, both ways", low=1, high=300)
    tokens_cached: int = _limit(10_000, "verified access tokens of an external issuer, kept in memory", low=1)
    introspection_seconds: int = _limit(5, "until an issuer has said whether a token is good; later: 503", low=1)
    header_bytes: int = _limit(8 * 1024, "Session header, above: `invalid_session`", low=1024, high=64 * 1024)
    body_bytes: int = _limit(256 * 1024, "request body, above: 413; a reply of the handler", low=1024, high=256 * 1024)
    text_bytes: int = _limit(64 * 1024, "message text, above: 413", low=1, high=64 * 1024)
    context_bytes: int = _limit(
        16 * 1024, "a conversation's merged context, above: the message gets 413", low=256, high=64 * 1024
    )
    delegations: int = _limit(10_000, "verified delegations cached, in all", low=1)
    delegations_per_client: int = _limit(1_000, "verified delegations cached, per client", low=1)
    wait_cap: int = _limit(25, "longest `wait`, in seconds; a larger one is held only as long", low=0, high=300)
    stream_keep_alive: int = _limit(15, "a stream with no news: a comment every", low=1, high=60)
    stream_longest: int = _limit(900, "longest stream; 0: no streams, every read is answered in JSON", low=0)
    stream_retry: int = _limit(1, "a reader whose stream has ended is told to connect again after", low=0, high=3600)
    stream_stalled: int = _limit(30, "a reader of a stream takes nothing, then its connection is closed", low=1)
    page: int = _limit(100, "events in one page", low=1, high=1000)
    page_bytes: int = _limit(2**20, "events in one page, as they are stored; one is always there", low=1, high=2**22)
    transcript: int = _limit(200, "messages in a turn's transcript", low=1)
    transcript_bytes: int = _limit(
        2**20, "a turn's transcript, as it is stored; unanswered messages are always there", low=1
    )
    session_idle: int = _limit(24 * 3600, "Session idle, then forgotten", low=60)
    session_remembered: int = _limit(
        30 * 86400, "ended Session remembered, and a client that came no more and has no verdict", low=60
    )
    turn_timeout: int = _limit(120, "the handler's turn", low=1)
    proposal: int = _limit(60, "until an approved proposal is carried out; later: told as not certain", low=0)
    turn_attempts: int = _limit(
        3, "begun and not ended turns of one message, then it is answered with a failure text", low=1
    )
    lease: int = _limit(30, "a turn's lease", low=3)
    lease_renewed: int = _limit(10, "a turn's lease is renewed every", low=1)
    turns_at_once: int = _limit(64, "turns run side by side in one process", low=1)
    turns_per_user: int = _limit(4, "of them for one User; what waits lets others go first", low=1)
    turns_per_client: int = _limit(32, "of them for one client", low=1)
    hook_attempts: int = _limit(10, "a hook is told of one thing; after that it is logged and left", low=1)
    inactivity: int = _limit(30 * 86400, "conversation closed after inactivity", low=60)
    events_kept: int = _limit(0, "events are kept, then `cursor_expired`; 0: for ever", low=0)
    documents_fresh_least: int = _limit(60, "client metadata and key sets: fresh at least", low=0)
    documents_fresh_most: int = _limit(3600, "client metadata and key sets: fresh at most", low=1)
    keys_age_most: int = _limit(3600, "key set: longest age, stale use included", low=1)
    metadata_age_most: int = _limit(86400, "client metadata: longest age, stale use included", low=1)
    fetch_failure_kept: int = _limit(30, "a failed fetch of a client's document is remembered", low=1)
    unknown_kid_refetch: int = _limit(30, "refetch for an unknown `kid`, per URL: at most once every", low=1)
    fetches_per_address: int = _limit(10, "fetches for unknown clients a minute, per source address", low=1)
    fetches_in_all: int = _limit(60, "fetches for unknown clients a minute, in all", low=1)
    clients_cached: int = _limit(10_000, "clients whose documents are kept in memory", low=1)
    documents_kept_bytes: int = _limit(
        32 * 2**20, "their documents kept in memory, for each of the two kinds", low=2**20
    )
    requests_per_client: int = _limit(60_000, "requests a minute, per client", low=1)
    requests_per_user: int = _limit(120, "requests a minute, per User", low=1)
    requests_per_address: int = _limit(
        120,
        "unverified requests a minute, per address; from ten times as many on, all of a public one's get 429",
        low=1,
    )
    body_seconds: int = _limit(30, "until a request's body is there, whole; later: 400", low=0)
    held_per_user: int = _limit(
        20, "held polls and streams at once, and as many requests whose body is to come, per User", low=1
    )
    held_per_client: int = _limit(5_000, "the same, per client", low=1)
    held_in_all: int = _limit(10_000, "the same, in all", low=1)
    rates_kept: int = _limit(100_000, "counters of rates, and live Sessions, kept in memory", low=100)

    def __post_init__(self) -> None:
        for one in fields(self):
            value = getattr(self, one.name)
            low, high = one.metadata["low"], one.metadata["high"]
            if not low <= value <= high:
                raise ConfigurationError(
                    f"{one.name} is {value}, expected {low} to {high}", rule="configuration.limits"
                )
        if self.lease_renewed * 2 > self.lease:
            raise ConfigurationError(
                f"lease is {self.lease} s and renewed every {self.lease_renewed} s; make it at least twice as long",
                rule="configuration.limits",
            )
