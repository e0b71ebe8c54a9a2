"""The metadata and the keys of an issuer that is not ours, cached as the documents of clients are (readings 14, 15)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, TypeVar, cast

from papaver.company.client_documents import Admission, Cached, CachePolicy, DocumentCache
from papaver.jose.issuer_keys import IssuerKeySet
from papaver.oauth.errors import InvalidMetadata
from papaver.protocol.errors import InvalidSession, TemporarilyUnavailable
from papaver.web.urls import UrlError, check_https

if TYPE_CHECKING:
    from papaver.company.sign_in import IssuerParts

__all__ = ["IssuerDocuments"]

T = TypeVar("T")
KEPT = 16
KEPT_BYTES = 2**20
RETRY_AFTER = 30


class IssuerDocuments:
    """What one issuer publishes. That it cannot be read is never said to be a fault of the caller's token."""

    def __init__(self, issuer: str, sources: tuple[str, ...], jwks_uri: str | None, parts: IssuerParts) -> None:
        limits = parts.limits
        policy = CachePolicy(
            fresh=(limits.documents_fresh_least, limits.documents_fresh_most),
            age_most=limits.keys_age_most,
            failure_kept=limits.fetch_failure_kept,
            reload_every=limits.unknown_kid_refetch,
            kept=KEPT,
            kept_bytes=KEPT_BYTES,
        )
        self._issuer, self._sources, self._jwks_uri = issuer, sources, jwks_uri
        self._metadata = DocumentCache(
            "issuer metadata", self._read, policy, fetcher=parts.fetcher, store=parts.tables.clients, clock=parts.clock
        )
        self._keys = DocumentCache(
            "issuer keys", _read_keys, policy, fetcher=parts.fetcher, store=parts.tables.clients, clock=parts.clock
        )

    async def metadata(self) -> Mapping[str, object]:
        """The metadata as the first of its places has it. Raises TemporarilyUnavailable."""
        for source in self._sources:
            fresh = self._metadata.fresh(source)
            if fresh is not None:
                return fresh.value
        failed: InvalidSession | None = None
        for source in self._sources:
            try:
                return (await self._metadata.load(source, _ADMITTED)).value
            except InvalidSession as error:
                failed = failed or error
        raise _unreadable(failed)

    async def keys(self) -> IssuerKeySet:
        """The key set. Raises TemporarilyUnavailable."""
        uri = await self._keys_at()
        fresh = self._keys.fresh(uri)
        if fresh is not None:
            return fresh.value
        try:
            return (await self._keys.load(uri, _ADMITTED)).value
        except InvalidSession as error:
            raise _unreadable(error) from None

    async def newer_keys(self) -> IssuerKeySet | None:
        """As published now, for a key that is not known; asked at most once per interval (limits.md)."""
        try:
            found: Cached[IssuerKeySet] | None = await self._keys.reload(await self._keys_at(), _ADMITTED)
        except InvalidSession as error:
            raise _unreadable(error) from None
        return None if found is None else found.value

    async def _keys_at(self) -> str:
        if self._jwks_uri is not None:
            return self._jwks_uri
        named = (await self.metadata()).get("jwks_uri")
        try:
            check_https(named if isinstance(named, str) else "")
        except UrlError:
            raise TemporarilyUnavailable(
                RETRY_AFTER, rule="issuer.jwks-uri", detail=f"its metadata has jwks_uri {named!r:.200}"
            ) from None
        return str(named)

    def _read(self, url: str, document: object) -> Mapping[str, object]:
        if not isinstance(document, dict):
            raise InvalidMetadata("the metadata is no object", rule="oauth.server-metadata-shape")
        members = cast("dict[str, object]", document)
        if members.get("issuer") != self._issuer:
            raise InvalidMetadata(
                "the metadata is of another issuer",
                rule="oauth.issuer-is-requested",
                detail=f"expected {self._issuer}, found {members.get('issuer')!r:.300}",
            )
        return members


def _admitted() -> None:
    """The operator named this issuer; no stranger makes us ask it."""


_ADMITTED = Admission(known=True, check=_admitted)


def _read_keys(url: str, document: object) -> IssuerKeySet:
    return IssuerKeySet.read(document)


def _unreadable(error: InvalidSession | None) -> TemporarilyUnavailable:
    rule, detail = ("", "") if error is None else (error.rule, error.detail)
    return TemporarilyUnavailable(RETRY_AFTER, rule=rule or "issuer.documents", detail=detail)
