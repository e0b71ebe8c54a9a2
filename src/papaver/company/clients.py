"""Who a Personal Agent is: its metadata, its keys, whether it is accepted; and what strangers make us fetch (4.1)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from papaver.company.client_documents import OUTWARD, DocumentCache
from papaver.company.limits import Rates, check_rate
from papaver.company.settings import CompanyLimits
from papaver.jose.keys import KeySet
from papaver.oauth.client_metadata import ClientMetadata, read_client_metadata
from papaver.ports.company import ClientStore
from papaver.ports.system import Clock, Fetcher
from papaver.protocol.errors import InvalidSession
from papaver.protocol.terms import ClientId
from papaver.values.rules import rule

__all__ = ["Client", "Clients", "check_accepted"]

T = TypeVar("T")
Verdict = Literal["allowed", "blocked"]


@dataclass(frozen=True, slots=True)
class Client:
    """A Personal Agent as its documents describe it. Nothing about a request is proven by having one."""

    metadata: ClientMetadata
    keys: KeySet


@rule("client.accepted")
def check_accepted(client_id: ClientId, verdict: Verdict | None, accept: Literal["all", "allowed"]) -> None:
    """4.1: a Company decides whom it accepts; refusal at a resource is `invalid_session`."""
    if verdict == "blocked" or (verdict is None and accept == "allowed"):
        raise InvalidSession(
            "this Company does not accept this client",
            rule="client.accepted",
            detail=f"{client_id}: {verdict or 'not allowed'}",
        )


class Clients:
    """The registry of Personal Agents of one Company."""

    def __init__(
        self,
        store: ClientStore,
        fetcher: Fetcher,
        clock: Clock,
        limits: CompanyLimits,
        accept: Literal["all", "allowed"],
    ) -> None:
        self._store, self._clock, self._limits = store, clock, limits
        self._accept: Literal["all", "allowed"] = accept
        self._rates = Rates(limits.rates_kept)
        self._known: OrderedDict[ClientId, None] = OrderedDict()
        self._metadata = self._cache("client metadata", read_client_metadata, limits.metadata_age_most, fetcher)
        self._keys = self._cache("key set", _read_keys, limits.keys_age_most, fetcher)

    def _cache(
        self, kind: str, read: Callable[[str, object], T], age_most: float, fetcher: Fetcher
    ) -> DocumentCache[T]:
        limits = self._limits
        return DocumentCache(
            kind,
            read,
            fetcher=fetcher,
            store=self._store,
            clock=self._clock,
            fresh=(limits.documents_fresh_least, limits.documents_fresh_most),
            age_most=age_most,
            failure_kept=limits.fetch_failure_kept,
            reload_every=limits.unknown_kid_refetch,
            kept=limits.clients_cached,
        )

    async def load(self, client_id: ClientId, peer: str) -> Client:
        """The client's documents (5.3 step 1).

        Raises InvalidSession when it is refused or its documents are wrong, TemporarilyUnavailable when they cannot be
        had just now, RateLimited when too many unknown clients were asked about.
        """
        check_accepted(client_id, await self._store.verdict(client_id), self._accept)
        admit = self._admit(client_id, peer)
        metadata = await self._metadata.load(client_id, admit)
        keys = await self._keys.load(metadata.value.jwks_uri, admit)
        return Client(metadata.value, keys.value)

    async def reload(self, client: Client, peer: str) -> Client | None:
        """Ask for its key set again, because of a key that it lacks; None when that brought no other set.

        At most once per interval and key set (limits.md): what a stranger sends must not make us fetch at will.
        """
        admit = self._admit(ClientId(client.metadata.client_id), peer)
        keys = await self._keys.reload(client.metadata.jwks_uri, admit)
        return None if keys is None or keys.value is client.keys else Client(client.metadata, keys.value)

    async def proven(self, client_id: ClientId) -> None:
        """Its signature verified: it is no stranger any more, and it appears in the list of clients."""
        if client_id not in self._known:
            await self._store.seen(client_id, self._clock.now())
            if len(self._known) >= self._limits.clients_cached:
                self._known.popitem(last=False)
        self._known[client_id] = None

    def _admit(self, client_id: ClientId, peer: str) -> Callable[[], None]:
        def admit() -> None:
            if client_id in self._known:
                return
            now = self._clock.now()
            check_rate(self._rates, f"fetches for {peer}", self._limits.fetches_per_address, now)
            check_rate(self._rates, "fetches", self._limits.fetches_in_all, now)

        return admit


def _read_keys(url: str, document: object) -> KeySet:
    keys = KeySet.read(document)
    if not keys.keys:
        raise InvalidSession(OUTWARD, rule="client.keys-usable", detail=f"{url} has no usable key")
    return keys
