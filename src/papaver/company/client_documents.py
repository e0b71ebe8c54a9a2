"""Documents that Personal Agents publish, cached: fresh, stale while their host is down, never fetched too often.

What holds (readings 14, 15, 50; limits.md): a fresh copy is used as it is; one fetch at a time per URL; a failure is
remembered; while the host cannot be reached a stale copy is used up to its longest age; a definite fault (404, a
redirect, no JSON, a wrong member) is the answer at once; a forced reload keeps to its interval, whatever it brought.
Only what a known client publishes is written to the store, where other processes and the next start find it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from papaver.company.bounded import Bounded, OneAtATime
from papaver.ports.company import ClientStore, DocumentRow
from papaver.ports.system import Clock, Fetcher, FetchFailed, FetchFault, FetchPolicy
from papaver.protocol.errors import InvalidSession, PoppyError, RateLimited, TemporarilyUnavailable
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.web.fields import freshness
from papaver.web.messages import Headers, Response

__all__ = ["Admission", "Cached", "CachePolicy", "DocumentCache"]

T = TypeVar("T")
POLICY = FetchPolicy(redirects=0)
ACCEPT = Headers([("accept", "application/json")])
OUTWARD = "the client's published documents do not verify"
"""What is said of every fault of a fetched document: who made us fetch learns nothing of what is there (B13)."""


@dataclass(frozen=True, slots=True)
class Admission:
    """Whether a fetch may be made. `check` raises RateLimited when it may not; a `known` client's are stored too."""

    known: bool
    check: Callable[[], None]


@dataclass(frozen=True, slots=True)
class CachePolicy:
    """How long documents of one kind are used, in seconds, and how many are kept.

    `fresh`         at least and at most, whatever `Cache-Control` says
    `age_most`      stale use included
    `failure_kept`  a fetch that failed is not tried again for so long
    `reload_every`  least time between two forced reloads of one URL
    `kept`, `kept_bytes`  documents in memory
    """

    fresh: tuple[float, float]
    age_most: float
    failure_kept: float
    reload_every: float
    kept: int
    kept_bytes: int


@dataclass(frozen=True, slots=True)
class Cached(Generic[T]):
    """A document that was read, and as it was fetched."""

    value: T
    row: DocumentRow


@dataclass(frozen=True, slots=True)
class _Failure:
    """A fetch that failed. Each request that meets it gets an error of its own."""

    until: float
    passing: bool
    rule: str
    detail: str

    def error(self, now: float) -> PoppyError:
        if self.passing:
            return TemporarilyUnavailable(max(1, int(self.until - now) + 1), rule=self.rule, detail=self.detail)
        return InvalidSession(OUTWARD, rule=self.rule, detail=self.detail)


class DocumentCache(Generic[T]):
    """Documents of one kind by URL. `read` makes a value of the decoded JSON and raises PapaverError."""

    def __init__(
        self,
        kind: str,
        read: Callable[[str, object], T],
        policy: CachePolicy,
        *,
        fetcher: Fetcher,
        store: ClientStore,
        clock: Clock,
    ) -> None:
        self._kind, self._read, self._policy = kind, read, policy
        self._fetcher, self._store, self._clock = fetcher, store, clock
        self._good: Bounded[str, Cached[T]] = Bounded(policy.kept, policy.kept_bytes)
        self._bad: Bounded[str, _Failure] = Bounded(policy.kept)
        self._reloaded: Bounded[str, float] = Bounded(policy.kept)
        self._alone: OneAtATime[str] = OneAtATime()

    def fresh(self, url: str) -> Cached[T] | None:
        """The copy that may be used without asking anybody; None when there is none."""
        found = self._good.find(url)
        return found if found is not None and self._clock.now() < found.row.fresh_until else None

    async def load(self, url: str, admission: Admission) -> Cached[T]:
        """The document at `url`.

        Raises InvalidSession for a definite fault, TemporarilyUnavailable when it cannot be had just now, RateLimited.
        """
        stale = self._usable(url)
        if stale is not None and url in self._alone:
            # Somebody asks already. A host that is slow holds up one request of its client, and not all of them.
            return stale
        async with self._alone.of(url):
            now = self._clock.now()
            failure = self._failure(url, now)
            if failure is None:
                found = self.fresh(url) or await self._stored(url)
                if found is not None and now < found.row.fresh_until:
                    return found
            try:
                if failure is not None:
                    raise failure.error(now)
                admission.check()
                return await self._fetch(url, admission)
            except (TemporarilyUnavailable, RateLimited):
                stale = self._usable(url)
                if stale is None:
                    raise
                return stale

    async def reload(self, url: str, admission: Admission) -> Cached[T] | None:
        """A newer copy although the one at hand is fresh, at most once per interval; None when there is none to have.

        Raises TemporarilyUnavailable when the host cannot be asked just now.
        """
        async with self._alone.of(url):
            now = self._clock.now()
            before = self._good.find(url)
            found = await self._stored(url)
            if found is not None and found is not before:
                return found
            failure = self._failure(url, now)
            if failure is not None and failure.passing:
                raise failure.error(now)
            asked = self._reloaded.find(url)
            if failure is not None or (asked is not None and now < asked + self._policy.reload_every):
                return None
            try:
                admission.check()
            except RateLimited:
                return None
            self._reloaded.put(url, now)
            return await self._fetch(url, admission)

    async def keep(self, url: str) -> None:
        """Write the copy at hand to the store: its publisher is a known client now."""
        found = self._good.find(url)
        if found is not None:
            await self._store.keep_document(found.row)

    def _usable(self, url: str) -> Cached[T] | None:
        """The copy at hand, fresh or stale, up to its longest age."""
        found = self._good.find(url)
        if found is None or self._clock.now() >= found.row.fetched_at + self._policy.age_most:
            return None
        return found

    def _failure(self, url: str, now: float) -> _Failure | None:
        failure = self._bad.find(url)
        return failure if failure is not None and now < failure.until else None

    async def _stored(self, url: str) -> Cached[T] | None:
        """The newest copy of memory and store that is not too old; one that the store has anew is taken over."""
        row = await self._store.load_document(url)
        at_hand = self._good.find(url)
        if (
            row is None
            or self._clock.now() >= row.fetched_at + self._policy.age_most
            or (at_hand is not None and row.fetched_at <= at_hand.row.fetched_at)
        ):
            return at_hand
        try:
            found = Cached(self._read(url, strict_json.loads(row.body)), row)
        except PapaverError:
            return at_hand
        self._good.put(url, found, len(row.body))
        return found

    async def _fetch(self, url: str, admission: Admission) -> Cached[T]:
        try:
            response = await self._fetcher.fetch(url, POLICY, ACCEPT)
        except FetchFailed as failed:
            passing = failed.fault is FetchFault.UNREACHABLE
            rule = "client.documents-reachable" if passing else failed.rule or "client.document-fetch"
            raise await self._failed(url, passing, rule, failed.detail or failed.description) from failed
        if response.status >= 500 or response.status == 429:
            raise await self._failed(url, True, "client.documents-reachable", f"answered {response.status}")
        if response.status != 200:
            raise await self._failed(url, False, "client.document-status", f"expected 200, got {response.status}")
        try:
            value = self._read(url, strict_json.loads(response.body))
        except PapaverError as error:
            rule = error.rule or "client.document-reads"
            detail = f"{error.description}; {error.detail}" if error.detail else error.description
            raise await self._failed(url, False, rule, detail) from None
        return await self._succeeded(url, response, value, admission)

    async def _succeeded(self, url: str, response: Response, value: T, admission: Admission) -> Cached[T]:
        now = self._clock.now()
        least, most = self._policy.fresh
        asked = freshness(response.headers, now)
        lasts = min(max(least if asked is None else asked, least), most, self._policy.age_most)
        found = Cached(value, DocumentRow(url, response.body, now, now + lasts))
        self._good.put(url, found, len(response.body))
        self._bad.drop(url)
        if admission.known:
            await self._store.keep_document(found.row)
        return found

    async def _failed(self, url: str, passing: bool, rule: str, detail: str) -> PoppyError:
        """Remember it. What is definitely not there any more is used no more, here and after a restart."""
        now = self._clock.now()
        failure = _Failure(now + self._policy.failure_kept, passing, rule, f"{self._kind} {url}: {detail}")
        self._bad.put(url, failure)
        if not passing and self._good.find(url) is not None:
            self._good.drop(url)
            await self._store.drop_document(url)
        return failure.error(now)
