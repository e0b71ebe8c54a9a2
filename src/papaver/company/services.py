"""Services that take only access tokens issued for them: which one a request is to, and their metadata (4.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from urllib.parse import unquote

from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule
from papaver.web.urls import UrlError, htu, origin_of, protected_resource_metadata_url, read_url

__all__ = ["Services", "check_own_tokens"]


@rule("offer.own-tokens")
def check_own_tokens(own_tokens: Sequence[str], resources: Sequence[str]) -> None:
    """4.5: a service's `resource` is its https URL, without query and fragment, and is no domain's.

    Two services never share the URL of their metadata (RFC 9728 3.1), nor does one with a domain.
    """
    taken = {protected_resource_metadata_url(resource): resource for resource in resources}
    for url in own_tokens:
        try:
            parts = read_url(url)
            metadata = protected_resource_metadata_url(url).rstrip("/")
        except UrlError as error:
            raise ConfigurationError(
                f"own_tokens has {url!r}, expected the https URL of a service",
                rule="offer.own-tokens",
                detail=error.description,
            ) from None
        if parts.scheme != "https" or parts.query is not None or parts.fragment is not None or "%" in parts.path:
            raise ConfigurationError(
                f"own_tokens has {url!r}; expected https, without query, fragment and escapes", rule="offer.own-tokens"
            )
        if metadata in taken:
            raise ConfigurationError(
                f"own_tokens has {url!r}, whose metadata would be where that of {taken[metadata]!r} is",
                rule="offer.own-tokens",
            )
        taken[metadata] = url


class Services:
    """The services with tokens of their own, found by the URL of a request."""

    def __init__(self, own_tokens: Sequence[str]) -> None:
        found = [(origin_of(url), read_url(url).path.rstrip("/"), url) for url in own_tokens]
        self._longest_first: Final = sorted(found, key=lambda service: -len(service[1]))

    def find(self, url: str) -> str | None:
        """The `resource` of the service that `url` belongs to: the longest path of whole segments; None for no such.

        Escapes are decoded, as whoever routes the request does: `/%6Frders` is no way around `/orders`.
        """
        if not self._longest_first:
            return None
        origin = origin_of(url)
        path = unquote(read_url(htu(url)).path)
        for host, prefix, resource in self._longest_first:
            if host == origin and (path == prefix or path.startswith(prefix + "/")):
                return resource
        return None
