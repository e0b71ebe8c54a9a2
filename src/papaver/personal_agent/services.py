"""Which service of a Company a request is for: the conversation endpoint, an MCP server, a server of an OpenAPI (4.5).

A service may take only tokens that were issued for it, so a request's token depends on its service.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from papaver.protocol.company import POPPY, CompanyDocument
from papaver.protocol.destinations import Destination
from papaver.protocol.errors import Misbehaved
from papaver.values.rules import rule
from papaver.web.urls import htu

__all__ = ["Service", "check_service_resource", "service_at"]


@dataclass(frozen=True, slots=True)
class Service:
    """One service. `url` is what its protected resource metadata is found from (RFC 9728 3.1).

    `destinations`  the requests that it takes
    `described_at`  the URL of the OpenAPI description that names it
    `own_token`     an MCP server's tokens are always its own (section 7)
    """

    url: str
    destinations: tuple[Destination, ...]
    described_at: str | None = None
    own_token: bool = False

    def accepts(self, url: str, method: str) -> bool:
        """Whether a request is this service's."""
        return any(one.accepts(url, method) for one in self.destinations)


def service_at(document: CompanyDocument, described: Sequence[Service], url: str, method: str) -> Service | None:
    """The service that a Session destination belongs to; None for the others, where the default token works (4.5)."""
    found = [one for one in (*_listed(document, url), *described) if one.accepts(url, method)]
    return max(found, key=lambda one: len(one.url), default=None)


def _listed(document: CompanyDocument, url: str) -> Iterator[Service]:
    """The services that the document itself names. Of a conversation endpoint every destination is below it (8.2)."""
    for entry in () if document.agent is None else document.agent.protocols:
        below = entry.type == POPPY and f"{htu(url)}/".startswith(f"{htu(entry.endpoint).removesuffix('/')}/")
        if below:
            yield Service(entry.endpoint, (Destination(url),))
    for api in document.apis:
        if api.type == "mcp":
            yield Service(api.url, (Destination(api.url),), own_token=True)


@rule("service.resource-is-its-own")
def check_service_resource(resource: str, service: str, domain: str) -> None:
    """4.5, RFC 9728 3.3, readings 11: a service's metadata names the service itself, or the Company's domain.

    `service` and `domain` are URLs. Otherwise one service could ask for another's tokens. Raises Misbehaved.
    """
    if resource not in (service, domain):
        raise Misbehaved(
            "a service's metadata names another resource, so no access token goes there",
            rule="service.resource-is-its-own",
            detail=f"{resource} at {service}",
        )
