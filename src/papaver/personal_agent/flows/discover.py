"""Discovery as a flow (section 3): the fetches between the pure steps of `papaver.protocol.discovery`, in their order.

Documents are kept while they are fresh and judged anew each time. What is known of a Company is only ever replaced by
a discovery that succeeded, so its issuer outlives every failure (3.2; readings 10).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from msgspec.structs import replace

from papaver.personal_agent.flows.effects import Flow, fetch, keep, load
from papaver.personal_agent.records import COMPANY, CompanyRow, DocumentRow, read_row, write_row
from papaver.personal_agent.settings import AgentLimits
from papaver.personal_agent.setup import Setup
from papaver.ports.system import FetchFailed, FetchFault, FetchPolicy
from papaver.protocol.company import CompanyDocument
from papaver.protocol.dialect import Version
from papaver.protocol.discovery import (
    Checks,
    Choice,
    Discovered,
    Served,
    VersionUnavailable,
    check_document,
    choose_version,
    document_unavailable,
    found,
    identifier_changed,
    issuer_metadata_request,
    poppy_json_request,
    read_issuer_answer,
    read_poppy_json,
    read_resource_answer,
    read_version_document,
    resource_metadata_request,
    version_document_request,
)
from papaver.protocol.errors import DiscoveryFailed
from papaver.protocol.terms import CompanyId
from papaver.web.fields import freshness
from papaver.web.messages import Headers, Request, Response
from papaver.web.urls import host_of

__all__ = ["Outcome", "discover"]

NOT_FOLLOWED: Final = "fetch.redirects"
"""The rule id under which a fetcher reports a redirect that its policy does not let it follow."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a discovery found. `before` is the identifier of the Company that this domain was until now, if another."""

    found: Discovered
    before: CompanyId | None = None


def discover(setup: Setup, domain: str, *, uncached: bool = False, checks: Checks | None = None) -> Flow[Outcome]:
    """Everything that section 3 asks before a Company's documents are used. `uncached` asks past every cache (3.4).

    `checks` notes what passed, also for a caller that wants it after a failure. Raises DiscoveryFailed.
    """
    made = checks or Checks()
    first = poppy_json_request(domain, uncached=uncached)
    key = host_of(first.url)
    known = yield from _known(key)
    documents = _Documents(setup.limits, setup.clock.now(), {} if known is None or uncached else _kept(known))
    discovered = yield from _judged(setup, domain, first, known, documents, made, uncached)
    row = CompanyRow(
        domain=key,
        name=discovered.document.organization.name,
        identifier=discovered.identifier,
        version=str(discovered.version),
        discovered_at=documents.now,
        issuer=discovered.issuer,
        documents=tuple(documents.used),
    )
    value = write_row(row)
    if known is None or documents.fetched:
        yield from keep(COMPANY, key, lambda _: value)
    host = host_of(discovered.url)
    if host != key and documents.fetched:
        # What was found is true of the host that served the document, whoever led there (3.2).
        there = write_row(replace(row, domain=host, documents=()))
        yield from keep(COMPANY, host, lambda _: there)
    before = None if known is None else CompanyId(known.identifier)
    return Outcome(discovered, before if identifier_changed(before, discovered.identifier) else None)


def _known(host: str) -> Flow[CompanyRow | None]:
    stored = yield from load(COMPANY, host)
    return None if stored is None else read_row(CompanyRow, stored)


def _judged(
    setup: Setup,
    domain: str,
    first: Request,
    known: CompanyRow | None,
    documents: _Documents,
    checks: Checks,
    uncached: bool,
) -> Flow[Discovered]:
    limits = setup.limits
    anywhere = FetchPolicy(limits.document_redirects, limits.document_bytes, limits.document_seconds)
    served = read_poppy_json((yield from documents.read("poppy.json", first, anywhere)), checks)
    choice, body = yield from _chosen(setup, served, documents, checks, uncached)
    document = setup.dialects[choice.spoken].documents.read(body)
    check_document(document, served, checks)
    if served.host != host_of(first.url):
        known = yield from _known(served.host)
    issuer = yield from _issuer(document, served, known, documents, checks, uncached)
    server = None
    if issuer is not None:
        answer = yield from documents.read(
            "the issuer's metadata", issuer_metadata_request(issuer, uncached=uncached), documents.here
        )
        server = read_issuer_answer(answer, issuer, document, checks)
    return found(domain, served, choice, document, issuer, server, checks)


def _chosen(
    setup: Setup, served: Served, documents: _Documents, checks: Checks, uncached: bool
) -> Flow[tuple[Choice, object]]:
    """The newest version that we speak and whose document can be had, and that document, decoded (3.4)."""
    unavailable: set[Version] = set()
    while True:
        choice = choose_version(served, setup.dialects, checks, unavailable=unavailable)
        if choice.url is None:
            return choice, served.body
        request = version_document_request(choice.url, uncached=uncached)
        name = f"the document of version {choice.listed}"
        try:
            answer = yield from documents.read(name, request, documents.here, or_redirect=True)
            return choice, read_version_document(answer, choice.listed, checks)
        except VersionUnavailable as error:
            checks.noted(error.rule, error.description)
            unavailable.add(choice.listed)


def _issuer(
    document: CompanyDocument,
    served: Served,
    known: CompanyRow | None,
    documents: _Documents,
    checks: Checks,
    uncached: bool,
) -> Flow[str | None]:
    request = resource_metadata_request(document, uncached=uncached)
    answer = yield from documents.read("the protected resource metadata", request, documents.here)
    known_issuer = None if known is None else known.issuer
    return read_resource_answer(answer, document, served, checks, known_issuer=known_issuer)


@dataclass(slots=True)
class _Documents:
    """The documents of one discovery, from the network or as kept. `now` in Unix seconds."""

    limits: AgentLimits
    now: float
    kept: dict[str, DocumentRow]
    used: list[DocumentRow] = field(default_factory=list[DocumentRow])
    fetched: bool = False

    @property
    def here(self) -> FetchPolicy:
        """For what decides who a Company is: no redirect (3.4; readings 51)."""
        return FetchPolicy(0, self.limits.document_bytes, self.limits.document_seconds)

    def read(self, what: str, request: Request, policy: FetchPolicy, *, or_redirect: bool = False) -> Flow[Response]:
        """The answer for a document. Raises DiscoveryFailed when there is none: never a reason to fall back (3.2).

        With `or_redirect` a redirect that was not followed is an answer, too.
        """
        row = self.kept.get(request.url)
        if row is not None and row.until > self.now:
            self.used.append(row)
            return Response(200, Headers(), row.body.encode(), row.answered)
        self.fetched = True
        try:
            answer = yield from fetch(request, policy)
        except FetchFailed as error:
            if or_redirect and error.rule == NOT_FOLLOWED:
                return Response(302, url=request.url)
            raise _unavailable(what, request.url, error) from None
        fresh = freshness(answer.headers, self.now)
        seconds = self.limits.document_fresh if fresh is None else min(fresh, self.limits.document_fresh_most)
        if answer.status == 200 and seconds > 0:
            body = answer.body.decode(errors="replace")  # what is not UTF-8 is no JSON, and is refused below
            self.used.append(DocumentRow(request.url, answer.url, body, self.now + seconds))
        return answer


def _kept(known: CompanyRow) -> dict[str, DocumentRow]:
    return {row.url: row for row in known.documents}


def _unavailable(what: str, url: str, error: FetchFailed) -> DiscoveryFailed:
    """What the fetcher found out, as a failure of discovery; `found` names the fetcher's rule."""
    reason = error.found
    if not reason:
        reason = "no answer" if error.fault is FetchFault.UNREACHABLE else "an answer or a place that is refused here"
    found = f"{reason} [{error.rule}]" if error.rule else reason
    failed = document_unavailable(what, url, found, expected=error.expected, remedy=error.remedy)
    failed.detail = error.detail
    return failed
