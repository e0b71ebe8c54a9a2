"""Documents that Personal Agents publish, cached: fresh, stale while their host is down, never fetched too often.

What holds (readings 14, 15, 50; limits.md): a fresh copy is used as it is; one fetch at a time per URL; a failure is
remembered; while the host cannot be reached a stale copy is used up to its longest age; a definite fault (404, a
redirect, no JSON, a wrong member) is the answer at once; a forced reload keeps to its interval, whatever it brought.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from papaver.ports.company import ClientStore, DocumentRow
from papaver.ports.system import Clock, Fetcher, FetchFailed, FetchFault, FetchPolicy
from papaver.protocol.errors import InvalidSession, PoppyError, RateLimited, TemporarilyUnavailable
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.web.fields import freshness
from papaver.web.messages import Headers, Response

__all__ = ["Cached", "DocumentCache"]

T = TypeVar("T")
K = TypeVar("K")
POLICY = FetchPolicy(redirects=0)
ACCEPT = Headers([("accept", "application/json")])
OUTWARD = "the client's published documents do not verify"


@dataclass(frozen=True, slots=True)
class Cached(Generic[T]):
    """A document that was read. Times are seconds since the epoch."""

    value: T
    fetched_at: float
    fresh_until: float


@dataclass(frozen=True, slots=True)
class _Failure:
    error: PoppyError
    until: float


class DocumentCache(Generic[T]):
    """Documents of one kind by URL. `read` makes a value of the decoded JSON and raises PapaverError."""

    def __init__(
        self,
        kind: str,
        read: Callable[[str, object], T],
        *,
        fetcher: Fetcher,
        store: ClientStore,
        clock: Clock,
        fresh: tuple[float, float],
        age_most: float,
        failure_kept: float,
        reload_every: float,
        kept: int,
    ) -> None:
        self._kind, self._read, self._fetcher, self._store, self._clock = kind, read, fetcher, store, clock
        self._fresh, self._age_most, self._failure_kept = fresh, age_most, failure_kept
        self._reload_every, self._kept = reload_every, kept
        self._good: OrderedDict[str, Cached[T]] = OrderedDict()
        self._bad: OrderedDict[str, _Failure] = OrderedDict()
        self._asked: OrderedDict[str, float] = OrderedDict()
        self._locks: dict[str, asyncio.Lock] = {}

    def fresh(self, url: str) -> Cached[T] | None:
        """The copy that may be used without asking anybody; None when there is none."""
        found = self._good.get(url)
        return found if found is not None and self._clock.now() < found.fresh_until else None

    async def load(self, url: str, admit: Callable[[], None]) -> Cached[T]:
        """The document at `url`. `admit` is asked before a fetch and raises when it may not be made.

        Raises InvalidSession for a definite fault, TemporarilyUnavailable when it cannot be had just now.
        """
        found = self.fresh(url)
        if found is not None:
            return found
        async with self._lock(url):
            found = self.fresh(url) or await self._stored(url)
            if found is not None:
                return found
            return await self._refetch(url, admit)

    async def reload(self, url: str, admit: Callable[[], None]) -> Cached[T] | None:
        """Ask again although the copy is fresh, at most once per interval; None when there is still none.

        A failure leaves the copy that is there.
        """
        async with self._lock(url):
            if self._clock.now() < self._asked.get(url, float("-inf")) + self._reload_every:
                return self._good.get(url)
            try:
                admit()
                return await self._fetch(url)
            except PoppyError:
                return self._good.get(url)

    def _lock(self, url: str) -> asyncio.Lock:
        lock = self._locks.get(url)
        if lock is None:
            if len(self._locks) >= self._kept:
                self._locks = {key: held for key, held in self._locks.items() if held.locked()}
            lock = self._locks[url] = asyncio.Lock()
        return lock

    async def _stored(self, url: str) -> Cached[T] | None:
        if url in self._good or url in self._bad:
            return None
        row = await self._store.load_document(url)
        now = self._clock.now()
        if row is None or now >= row.fetched_at + self._age_most:
            return None
        try:
            value = self._read(url, strict_json.loads(row.body))
        except PapaverError:
            return None
        found = Cached(value, row.fetched_at, row.fresh_until)
        self._keep(self._good, url, found)
        return found if now < found.fresh_until else None

    async def _refetch(self, url: str, admit: Callable[[], None]) -> Cached[T]:
        now = self._clock.now()
        stale = self._good.get(url)
        usable = stale is not None and now < stale.fetched_at + self._age_most
        failure = self._bad.get(url)
        try:
            if failure is not None and now < failure.until:
                raise failure.error
            admit()
            return await self._fetch(url)
        except (TemporarilyUnavailable, RateLimited):
            if stale is not None and usable:
                return stale
            raise

    async def _fetch(self, url: str) -> Cached[T]:
        self._keep(self._asked, url, self._clock.now())
        try:
            response = await self._fetcher.fetch(url, POLICY, ACCEPT)
            value = self._judge(url, response)
        except FetchFailed as failed:
            raise self._failed(url, self._meaning(url, failed)) from failed
        except PoppyError as error:
            raise self._failed(url, error) from None
        now = self._clock.now()
        least, most = self._fresh
        asked = freshness(response.headers, now)
        found = Cached(value, now, now + min(max(least if asked is None else asked, least), most))
        self._keep(self._good, url, found)
        self._bad.pop(url, None)
        await self._store.keep_document(DocumentRow(url, response.body, now, found.fresh_until))
        return found

    def _judge(self, url: str, response: Response) -> T:
        if response.status >= 500 or response.status == 429:
            raise TemporarilyUnavailable(
                self._retry(),
                rule="client.documents-reachable",
                detail=f"{self._kind} {url} answered {response.status}",
            )
        if response.status != 200:
            raise InvalidSession(
                OUTWARD,
                rule="client.document-status",
                detail=f"{self._kind} {url}: expected 200, got {response.status}",
            )
        try:
            return self._read(url, strict_json.loads(response.body))
        except PoppyError:
            raise
        except PapaverError as error:
            raise InvalidSession(
                OUTWARD,
                rule=error.rule or "client.document-reads",
                detail=f"{self._kind} {url}: {error.detail or error}",
            ) from None

    def _meaning(self, url: str, failed: FetchFailed) -> PoppyError:
        detail = f"{self._kind} {url}: {failed.detail or failed.description}"
        if failed.fault is FetchFault.UNREACHABLE:
            return TemporarilyUnavailable(self._retry(), rule="client.documents-reachable", detail=detail)
        return InvalidSession(OUTWARD, rule=failed.rule or "client.document-fetch", detail=detail)

    def _failed(self, url: str, error: PoppyError) -> PoppyError:
        self._keep(self._bad, url, _Failure(error, self._clock.now() + self._failure_kept))
        if not isinstance(error, TemporarilyUnavailable):
            self._good.pop(url, None)
        return error

    def _retry(self) -> int:
        return max(1, int(self._failure_kept))

    def _keep(self, table: OrderedDict[str, K], url: str, value: K) -> None:
        table[url] = value
        table.move_to_end(url)
        if len(table) > self._kept:
            table.popitem(last=False)
