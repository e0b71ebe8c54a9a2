"""What a Company publishes: `poppy.json`, one document for each other version, and its resource metadata (3.2, 4.5)."""

from __future__ import annotations

import logging
from typing import Final

from papaver.company.offer import Offer
from papaver.oauth.metadata import ResourceMetadata, write_resource_metadata
from papaver.protocol.company import domain_url
from papaver.values import strict_json
from papaver.values.told import told
from papaver.web.messages import Headers, Response
from papaver.web.urls import protected_resource_metadata_url, read_url

__all__ = ["RESOURCE_METADATA", "Documents", "resource_metadata"]

log = logging.getLogger("papaver.company")

JSON = ("content-type", "application/json")
SHORT = ("cache-control", "public, max-age=300")
NO_STORE = ("cache-control", "no-store")
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"


HOSTS_TOLD: Final = 10
"""Foreign hosts that the log names, in all: whoever asks chooses the name."""


class Documents:
    """Built once; answers GET and HEAD on the Company's own hosts and paths only (C42)."""

    def __init__(self, offer: Offer) -> None:
        self._hosts = offer.hosts
        self._bodies: dict[tuple[str, str], bytes | None] = {
            (domain, path): strict_json.dumps(document)
            for domain in offer.all_domains
            for path, document in offer.documents(domain).items()
        }
        for domain in offer.all_domains:
            metadata = resource_metadata(offer, domain)
            self._bodies[domain, RESOURCE_METADATA] = None if metadata is None else strict_json.dumps(metadata)
        self._paths = {path for _, path in self._bodies} - {RESOURCE_METADATA}
        for host in offer.internal_hosts:
            own = [(path, body) for (domain, path), body in self._bodies.items() if domain == offer.domain]
            self._bodies |= {(host.lower(), path): body for path, body in own}
        for service in offer.own_tokens:
            self._bodies[_place(service)] = strict_json.dumps(_metadata(service, offer.listed_issuers))
        self._told: set[str] = set()
        self._absent = _place(offer.endpoint) if offer.conversations else ("", "")

    def owns(self, host: str, path: str) -> bool:
        if (_name(host), path) in self._bodies:
            return True
        absent_host, absent = self._absent
        return bool(absent) and path.startswith(absent) and absent_host == _name(host)

    def note_foreign(self, host: str, path: str) -> None:
        """A document was asked for on a host that is nobody's here: likely a proxy that does not pass the name on."""
        name = _name(host)
        if path in self._paths and name not in self._hosts and name not in self._told and len(self._told) < HOSTS_TOLD:
            self._told.add(name)
            log.warning(
                "%s was asked for on %s, and is served on %s only: let the proxy pass Host on, or name it in "
                "internal_hosts",
                path,
                told(name) or "no host",
                ", ".join(sorted(self._hosts)),
            )

    def served_on(self, host: str, also: str) -> bool:
        """Whether a `Host` is one of ours: one that the documents are served on, or the endpoints' own, `also`."""
        return _name(host) in self._hosts or _name(host) == _name(also)

    def answer(self, method: str, host: str, path: str) -> Response:
        """The document, whole for HEAD too; 404 where it is known that there is none."""
        if method not in ("GET", "HEAD"):
            return Response(
                405, Headers([("allow", "GET, HEAD"), JSON]), strict_json.dumps({"error": "method_not_allowed"})
            )
        body = self._bodies.get((_name(host), path))
        if body is None:
            return Response(404, Headers([JSON, NO_STORE]), strict_json.dumps({"error": "not_found"}))
        headers = Headers([JSON, SHORT, ("access-control-allow-origin", "*"), ("x-content-type-options", "nosniff")])
        return Response(200, headers, body)


def resource_metadata(offer: Offer, domain: str) -> dict[str, object] | None:
    """A domain's own (3.2): without an issuer there is none, unless there was one (readings 10)."""
    if offer.issuer is None and not offer.issuer_removed:
        return None
    return _metadata(domain_url(domain), offer.listed_issuers)


def _metadata(resource: str, issuers: tuple[str, ...]) -> dict[str, object]:
    """RFC 9728 2. `authorization_servers` is there when it is empty, too: that is the news (readings 10)."""
    document = write_resource_metadata(ResourceMetadata(resource, issuers))
    return {**document, "authorization_servers": list(issuers)}


def _place(service: str) -> tuple[str, str]:
    """Host and path of a service's metadata (RFC 9728 3.1)."""
    url = read_url(protected_resource_metadata_url(service))
    return url.host, url.path


def _name(host: str) -> str:
    """A `Host` without its port, in lowercase."""
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).lower()
