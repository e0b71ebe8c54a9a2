"""Who a Personal Agent is: its metadata, its keys, whether it is accepted; and what strangers make us fetch (4.1)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeVar

from papaver.company.bounded import Bounded
from papaver.company.client_documents import OUTWARD, Admission, CachePolicy, DocumentCache
from papaver.company.counters import Counters
from papaver.company.limits import check_rate, network_of
from papaver.company.settings import CompanyLimits
from papaver.jose.keys import KeySet
from papaver.oauth.client_metadata import ClientMetadata, check_client_id, read_client_metadata
from papaver.oauth.errors import OAuthError
from papaver.ports.company import ClientStore
from papaver.ports.system import Clock, Fetcher
from papaver.protocol.errors import InvalidSession
from papaver.protocol.terms import ClientId
from papaver.values.rules import rule

__all__ = ["Client", "Clients", "check_accepted", "check_keys_usable"]

T = TypeVar("T")
Verdict = Literal["allowed", "blocked"]
Policy = Literal["all", "allowed"]
SEEN_EVERY: Final = 3600.0


@dataclass(frozen=True, slots=True)
class Client:
    """A Personal Agent as its documents describe it. Nothing about a request is proven by having one."""

    metadata: ClientMetadata
    keys: KeySet


@rule("client.accepted")
def check_accepted(client_id: ClientId, verdict: Verdict | None, accept: Policy) -> None:
    """4.1: a Company decides whom it accepts; refusal at a resource is `invalid_session`."""
    if verdict == "blocked" or (verdict is None and accept == "allowed"):
        raise InvalidSession(
            "this Company does not accept this client",
            rule="client.accepted",
            detail=f"{client_id}: {verdict or 'not allowed'}",
        )


@rule("client.keys-usable")
def check_keys_usable(keys: KeySet) -> None:
    """4.1, 5.2: a key set with no key that may sign a delegation proves nothing."""
    if not keys.keys:
        raise InvalidSession(OUTWARD, rule="client.keys-usable", detail="no usable key")


class Clients:
    """The registry of Personal Agents of one Company."""

    def __init__(
        self,
        store: ClientStore,
        fetcher: Fetcher,
        clock: Clock,
        limits: CompanyLimits,
        accept: Policy,
        counters: Counters | None = None,
    ) -> None:
        self.counters = counters or Counters()
        self._store, self._clock, self._limits = store, clock, limits
        self._accept: Policy = accept
        self._rates = self.counters.rates("clients", limits.rates_kept)
        self._seen: Bounded[ClientId, float] = Bounded(limits.clients_cached)
        self._metadata = self._cache("client metadata", read_client_metadata, limits.metadata_age_most, fetcher)
        self._keys = self._cache("key set", _read_keys, limits.keys_age_most, fetcher)

    def _cache(
        self, kind: str, read: Callable[[str, object], T], age_most: float, fetcher: Fetcher
    ) -> DocumentCache[T]:
        limits = self._limits
        policy = CachePolicy(
            fresh=(limits.documents_fresh_least, limits.documents_fresh_most),
            age_most=age_most,
            failure_kept=limits.fetch_failure_kept,
            reload_every=limits.unknown_kid_refetch,
            kept=limits.clients_cached,
            kept_bytes=limits.documents_kept_bytes,
        )
        return DocumentCache(kind, read, policy, fetcher=fetcher, store=self._store, clock=self._clock)

    async def load(self, client_id: ClientId, peer: str) -> Client:
        """The client's documents (5.3 step 1).

        Raises InvalidSession when it is refused or its documents are wrong, TemporarilyUnavailable when they cannot be
        had just now, RateLimited when too many unknown clients were asked about.
        """
        verdict = await self._store.verdict(client_id)
        check_accepted(client_id, verdict, self._accept)
        metadata = self._metadata.fresh(client_id)
        if metadata is None:
            _check_form(client_id)
            metadata = await self._metadata.load(client_id, self._admission(client_id, peer, verdict))
        jwks_uri = metadata.value.jwks_uri
        keys = self._keys.fresh(jwks_uri)
        if keys is None:
            keys = await self._keys.load(jwks_uri, self._admission(client_id, peer, verdict))
        return Client(metadata.value, keys.value)

    async def check(self, client_id: ClientId) -> None:
        """Whether it is accepted, without asking it for anything. Raises InvalidSession."""
        check_accepted(client_id, await self._store.verdict(client_id), self._accept)

    async def reload(self, client: Client, peer: str) -> Client | None:
        """Ask for its key set again, because of a key that it lacks; None when that brought no other set.

        At most once per interval and key set (limits.md): what a stranger sends must not make us fetch at will.
        """
        admission = self._admission(ClientId(client.metadata.client_id), peer, None)
        keys = await self._keys.reload(client.metadata.jwks_uri, admission)
        return None if keys is None or keys.value is client.keys else Client(client.metadata, keys.value)

    def is_known(self, client_id: ClientId) -> bool:
        """Whether its signature verified lately, so that `proven` has nothing to do."""
        seen = self._seen.find(client_id)
        return seen is not None and self._clock.now() < seen + SEEN_EVERY

    async def proven(self, client: Client) -> None:
        """Its signature verified: it is no stranger any more; it appears in the list of clients, its documents stay."""
        client_id = ClientId(client.metadata.client_id)
        now = self._clock.now()
        known = self._seen.find(client_id) is not None
        self._seen.put(client_id, now)
        if not known:
            await self._metadata.keep(client_id)
            await self._keys.keep(client.metadata.jwks_uri)
        await self._store.seen(client_id, now)

    async def sweep(self) -> int:
        """Forget documents that are too old to be used, and clients that did not come for long; how many rows."""
        now, limits = self._clock.now(), self._limits
        return await self._store.sweep(
            fetched_before=now - max(limits.metadata_age_most, limits.keys_age_most),
            seen_before=now - limits.session_remembered,
        )

    def _admission(self, client_id: ClientId, peer: str, verdict: Verdict | None) -> Admission:
        known = verdict == "allowed" or self._seen.find(client_id) is not None

        def check() -> None:
            if not known:
                now = self._clock.now()
                check_rate(self._rates, ("fetches", network_of(peer)), self._limits.fetches_per_address, now)
                check_rate(self._rates, ("fetches",), self._limits.fetches_in_all, now)

        return Admission(known, check)


def _check_form(client_id: ClientId) -> None:
    """What cannot be a `client_id` is never fetched (C62); what is wrong with it is its sender's to know (B19)."""
    try:
        check_client_id(client_id)
    except OAuthError as error:
        raise InvalidSession(error.description, rule=error.rule, detail=error.detail) from None


def _read_keys(url: str, document: object) -> KeySet:
    keys = KeySet.read(document)
    check_keys_usable(keys)
    return keys
