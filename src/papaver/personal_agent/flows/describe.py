"""The OpenAPI descriptions that a Company lists, loaded as a flow: what they describe may then be called (5.2, 7)."""

from __future__ import annotations

from papaver.personal_agent.described import OPENAPI, DescribedApi, Descriptions
from papaver.personal_agent.flows.effects import Flow, fetch, keep, load
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.personal_agent.records import DESCRIPTION, DocumentRow, read_row, write_row
from papaver.personal_agent.services import Service
from papaver.ports.system import FetchFailed, FetchFault, FetchPolicy
from papaver.protocol.company import Api
from papaver.protocol.errors import NotADestination
from papaver.protocol.openapi import InvalidDescription, read_openapi
from papaver.protocol.openapi_requests import described_destinations
from papaver.web.fields import freshness
from papaver.web.messages import Headers, Request, Response

__all__ = ["describe", "describe_if_unlisted"]


def describe(live: LiveSession) -> Flow[tuple[DescribedApi, ...]]:
    """Load every description that the Company's document lists, and take what they describe for destinations.

    One that cannot be had or read is told in its `failure`; the others stay good. Raises nothing of its own.
    """
    found = live.found
    apis: list[DescribedApi] = []
    for api in found.document.apis:
        if api.type == OPENAPI:
            apis.append((yield from _described(live, api)))
    live.descriptions = Descriptions(found.document, live.setup.clock.monotonic(), tuple(apis))
    for one in apis:
        if one.description is not None:
            for server, destinations in described_destinations(one.description).items():
                live.describe(Service(server, destinations, one.api.url))
    return tuple(apis)


def describe_if_unlisted(live: LiveSession, opened: OpenedSession, request: Request) -> Flow[None]:
    """Before a request is refused: descriptions that were not loaded yet may describe it.

    They are loaded once for a document; after a failure, again when `description_retry` is over. Raises
    NotADestination, with the reason, when the one that may describe the request could not be had.
    """
    if live.destinations(opened).accept(request.url, request.method):
        return
    known = live.descriptions
    if known is None or known.document is not live.found.document or _due(live, known):
        yield from describe(live)
        known = live.descriptions
    if known is None or known.complete or live.destinations(opened).accept(request.url, request.method):
        return
    failed = [one for one in known.apis if one.failure is not None]
    error = NotADestination(rule="destination.listed", detail=f"{request.method} {request.url}")
    error.compare(
        "a URL that the Company's document or one of its OpenAPI descriptions names",
        "; ".join(f"{one.api.url}: {one.failure}" for one in failed),
        "try again later: these descriptions could not be read",
    )
    raise error


def _due(live: LiveSession, known: Descriptions) -> bool:
    waited = live.setup.clock.monotonic() - known.loaded_at
    return not known.complete and waited >= live.setup.limits.description_retry


def _described(live: LiveSession, api: Api) -> Flow[DescribedApi]:
    try:
        answer = yield from _document(live, api.url)
        return DescribedApi(api, read_openapi(answer.body, answer.url or api.url))
    except (FetchFailed, InvalidDescription) as error:
        return DescribedApi(api, failure=error)


def _document(live: LiveSession, url: str) -> Flow[Response]:
    """The document as kept, or fetched without any credential (5.2; readings 51)."""
    limits, now = live.setup.limits, live.setup.clock.now()
    stored = yield from load(DESCRIPTION, url)
    row = None if stored is None else read_row(DocumentRow, stored)
    if row is not None and row.until > now:
        return Response(200, Headers(), row.body.encode(), row.answered)
    policy = FetchPolicy(limits.document_redirects, limits.description_bytes, limits.document_seconds)
    answer = yield from fetch(Request("GET", url, Headers([("accept", "application/json")])), policy)
    if answer.status != 200:
        raise FetchFailed(
            FetchFault.UNREACHABLE,
            "an OpenAPI description cannot be had",
            url=url,
            rule="description.served",
            expected="200",
            found=str(answer.status),
        )
    fresh = freshness(answer.headers, now)
    seconds = limits.document_fresh if fresh is None else min(fresh, limits.document_fresh_most)
    kept = DocumentRow(url, answer.url, answer.body.decode(errors="replace"), now + seconds)
    yield from keep(DESCRIPTION, url, lambda _: write_row(kept) if seconds > 0 else None)
    return answer
