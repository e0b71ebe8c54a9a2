"""The documents that a Company publishes: `poppy.json`, one for each other version, and what it has no metadata of."""

from __future__ import annotations

import logging
from typing import Final

from papaver.company.offer import Offer
from papaver.values import strict_json
from papaver.values.told import told
from papaver.web.messages import Headers, Response

__all__ = ["Documents"]

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
        self._bodies = {path: strict_json.dumps(document) for path, document in offer.documents().items()}
        self._told: set[str] = set()

    def owns(self, host: str, path: str) -> bool:
        return (path in self._bodies or path == RESOURCE_METADATA) and _name(host) in self._hosts

    def note_foreign(self, host: str, path: str) -> None:
        """A document was asked for on a host that is nobody's here: likely a proxy that does not pass the name on."""
        name = _name(host)
        if path in self._bodies and name not in self._hosts and name not in self._told and len(self._told) < HOSTS_TOLD:
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

    def answer(self, method: str, path: str) -> Response:
        """The document, whole for HEAD too. Without an issuer there is no resource metadata: 404 (3.2)."""
        if method not in ("GET", "HEAD"):
            return Response(
                405, Headers([("allow", "GET, HEAD"), JSON]), strict_json.dumps({"error": "method_not_allowed"})
            )
        if path == RESOURCE_METADATA:
            return Response(404, Headers([JSON, NO_STORE]), strict_json.dumps({"error": "not_found"}))
        body = self._bodies[path]
        headers = Headers([JSON, SHORT, ("access-control-allow-origin", "*"), ("x-content-type-options", "nosniff")])
        return Response(200, headers, body)


def _name(host: str) -> str:
    """A `Host` without its port, in lowercase."""
    name, _, port = host.rpartition(":")
    return (name if port.isdecimal() else host).lower()
