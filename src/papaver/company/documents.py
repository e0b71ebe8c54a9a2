"""The documents that a Company publishes: `poppy.json`, one for each other version, and what it has no metadata of."""

from __future__ import annotations

from papaver.company.offer import Offer
from papaver.values import strict_json
from papaver.web.messages import Headers, Response

__all__ = ["Documents"]

JSON = ("content-type", "application/json")
SHORT = ("cache-control", "public, max-age=300")
NO_STORE = ("cache-control", "no-store")
RESOURCE_METADATA = "/.well-known/oauth-protected-resource"


class Documents:
    """Built once; answers GET and HEAD on the Company's own hosts and paths only (C42)."""

    def __init__(self, offer: Offer) -> None:
        self._hosts = offer.hosts
        self._bodies = {path: strict_json.dumps(document) for path, document in offer.documents().items()}

    def owns(self, host: str, path: str) -> bool:
        return (path in self._bodies or path == RESOURCE_METADATA) and _name(host) in self._hosts

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
