"""A service's own protected resource metadata, before the first signed-in call to it (4.5; readings 11, 12)."""

from __future__ import annotations

from typing import Final

from papaver.oauth.errors import InvalidMetadata
from papaver.oauth.metadata import fold_host, read_resource_metadata
from papaver.personal_agent.flows.effects import Flow, fetch, keep, load
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.personal_agent.records import SERVICE, ServiceRow, read_row, row_key, write_row
from papaver.personal_agent.services import Service, check_service_resource
from papaver.ports.system import FetchFailed, FetchFault, FetchPolicy
from papaver.protocol.company import domain_url
from papaver.protocol.errors import Misbehaved
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError, loads_object
from papaver.web.messages import Headers, Request, Response
from papaver.web.urls import protected_resource_metadata_url

__all__ = ["check_metadata_served", "resource_of"]

ABSENT: Final = frozenset({404, 410})
"""Only these say that there is no metadata (readings 12)."""


def resource_of(live: LiveSession, opened: OpenedSession, service: Service, *, again: bool = False) -> Flow[str | None]:
    """The `resource` that a token for this service has to be issued for; None for the default token.

    `again` asks past what is kept. Raises FetchFailed when it cannot be known now, and Misbehaved when what the service
    says cannot be true: then no token goes there.
    """
    key = row_key(opened.company_id, service.url)
    row = None if again else (live.services.get(service.url) or (yield from _stored(key)))
    if row is None or row.until <= live.setup.clock.now():
        fresh = row = yield from _fetched(live, opened, service)
        yield from keep(SERVICE, key, lambda _: write_row(fresh))
    live.services[service.url] = row
    return row.resource


def _stored(key: str) -> Flow[ServiceRow | None]:
    value = yield from load(SERVICE, key)
    return None if value is None else read_row(ServiceRow, value)


def _fetched(live: LiveSession, opened: OpenedSession, service: Service) -> Flow[ServiceRow]:
    limits = live.setup.limits
    request = Request("GET", protected_resource_metadata_url(service.url), Headers([("accept", "application/json")]))
    response = yield from fetch(request, FetchPolicy(0, limits.document_bytes, limits.document_seconds))
    resource = service.url if service.own_token else None
    if response.status not in ABSENT:
        resource = _named(response, request.url, service.url, domain_url(opened.found.document.organization.domain))
    return ServiceRow(service.url, live.setup.clock.now() + limits.service_fresh, resource)


def _named(response: Response, url: str, service: str, domain: str) -> str | None:
    check_metadata_served(response, url)
    try:
        metadata = read_resource_metadata(loads_object(response.body))
    except (InvalidMetadata, JsonError) as error:
        raise Misbehaved(
            "a service's metadata cannot be read, so no access token goes there",
            rule="service.metadata-served",
            detail=f"{url}: {error.description}",
        ) from None
    resource = fold_host(metadata.resource)
    check_service_resource(resource, fold_host(service), domain)
    return None if resource == domain else metadata.resource


@rule("service.metadata-served")
def check_metadata_served(response: Response, url: str) -> None:
    """4.5, readings 12: an answer that leaves open whether there is metadata is no reason to send a token.

    Raises FetchFailed.
    """
    if response.status != 200:
        raise FetchFailed(
            FetchFault.UNREACHABLE,
            "the service's metadata cannot be had at the moment",
            url=url,
            rule="service.metadata-served",
            expected="200, or 404 when there is none",
            found=str(response.status),
            remedy="try again later; without it nobody knows which access token the service takes",
        )
