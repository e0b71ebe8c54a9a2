"""Discovery, the Personal Agent's side: which requests to make, and what their answers prove (section 3, 3.2, 3.4).

Pure steps; a flow with effects calls them in this order and makes the fetches between them:

    poppy_json_request ─► read_poppy_json ─► choose_version ┬► the body as served
                                                            └► version_document_request ─► read_version_document
    dialect.documents.read ─► check_document
    resource_metadata_request ─► read_resource_answer ─► an issuer, or none
    issuer_metadata_request ─► read_issuer_answer ─► found

What decides who a Company is fails: nothing is skipped, and nothing falls back (3.2). Every failure shows the expected
value, the found one and a remedy. `Checks` notes what passed, so that a failure can be shown after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, ParamSpec, TypeVar, cast

from papaver.oauth.errors import InvalidMetadata
from papaver.oauth.metadata import (
    ServerMetadata,
    check_issuer_identifier,
    check_resource,
    check_server_issuer,
    check_server_lists_resource,
    read_resource_metadata,
    read_server_metadata,
)
from papaver.protocol import discovery_checks as check
from papaver.protocol.company import CompanyDocument, company_identifier, domain_url
from papaver.protocol.dialect import Version
from papaver.protocol.discovery_checks import WELL_KNOWN_PATH, VersionUnavailable, shown
from papaver.protocol.discovery_values import CheckResult, Checks, Choice, Discovered, Served
from papaver.protocol.errors import DiscoveryFailed
from papaver.protocol.negotiation import compatible, read_version
from papaver.protocol.terms import CompanyId
from papaver.values import strict_json
from papaver.values.strict_json import JsonError
from papaver.web.messages import Headers, Request, Response
from papaver.web.urls import (
    UrlError,
    authorization_server_metadata_url,
    host_of,
    poppy_json_url,
    protected_resource_metadata_url,
    read_domain,
)

__all__ = [
    "WELL_KNOWN_PATH",
    "CheckResult",
    "Checks",
    "Choice",
    "Discovered",
    "Served",
    "VersionUnavailable",
    "check_document",
    "choose_version",
    "document_unavailable",
    "found",
    "identifier_changed",
    "issuer_metadata_request",
    "poppy_json_request",
    "read_issuer_answer",
    "read_poppy_json",
    "read_resource_answer",
    "read_version_document",
    "resource_metadata_request",
    "version_document_request",
]

P = ParamSpec("P")
T = TypeVar("T")

CORRECT_IT: Final = "the Company has to correct the document"


def poppy_json_request(domain: str, *, uncached: bool = False) -> Request:
    """The first request. Redirects are followed, to https only. `uncached` asks past every cache (3.4).

    Raises `DiscoveryFailed` when `domain` is not a bare host name (readings 13).
    """
    try:
        return _get(poppy_json_url(domain), uncached)
    except UrlError:
        raise DiscoveryFailed(
            "this is not a domain",
            rule="discovery.domain-name",
            expected="a host name such as example.com, without scheme, port and path",
            found=domain,
            remedy="give the bare domain of the Company",
        ) from None


def read_poppy_json(response: Response, checks: Checks) -> Served:
    """The answer to `poppy_json_request`; `response.url` is the last URL. Raises `DiscoveryFailed`."""
    url = response.url
    check.check_hop_https(url)
    checks.passed("discovery.hops-https", f"the last URL is {url}")
    check.check_serving_host(url)
    checks.passed("discovery.host-is-a-name", f"{host_of(url)} serves it")
    check.check_final_path(url)
    check.check_final_no_query(url)
    checks.passed("discovery.final-path", f"at {WELL_KNOWN_PATH}, without a query")
    check.check_document_served(response)
    members = _decoded(response, "poppy.json", "discovery.document-json")
    version = read_version(_text(members.get("protocol_version")) or "")
    if version is None:
        raise DiscoveryFailed(
            "poppy.json does not say which version it follows",
            rule="document.protocol-version",
            expected="protocol_version as a string, major.minor",
            found=shown(members.get("protocol_version")),
            remedy="the Company has to publish protocol_version",
        )
    checks.passed("discovery.document-served", f"poppy.json follows version {version}")
    host = host_of(url)
    return Served(
        url=url,
        host=host,
        body=members,
        version=version,
        supported_versions=tuple(_other_versions(members, host, checks)),
        domain=_text(_members(members.get("organization")).get("domain")),
        issuer=_text(_members(members.get("auth")).get("issuer")),
    )


def choose_version(
    served: Served, implemented: Iterable[Version], checks: Checks, *, unavailable: Iterable[Version] = ()
) -> Choice:
    """The newest listed version that is compatible with one of ours (3.4). `unavailable` could not be had before.

    Raises `DiscoveryFailed` when there is none: then no document of this Company may be used.
    """
    ours = sorted(implemented, reverse=True)
    listed: dict[Version, str | None] = {**dict(served.supported_versions), served.version: None}
    for version in sorted(listed.keys() - frozenset(unavailable), reverse=True):
        spoken = next((one for one in ours if compatible(one, version)), None)
        if spoken is not None:
            checks.passed("version.newest-compatible", f"using the document of {version}, speaking {spoken}")
            return Choice(version, spoken, listed[version])
    raise DiscoveryFailed(
        "the Company serves no version that is implemented here",
        rule="version.newest-compatible",
        expected=", ".join(map(str, ours)),
        found=", ".join(map(str, sorted(listed, reverse=True))),
        remedy="use a Personal Agent that implements one of the Company's versions",
    )


def version_document_request(url: str, *, uncached: bool = False) -> Request:
    """The request for `Choice.url`. A redirect is not followed (3.4)."""
    return _get(url, uncached)


def read_version_document(response: Response, version: Version, checks: Checks) -> object:
    """The decoded document listed under `version`, for its dialect to read.

    Raises `VersionUnavailable` for a redirect or an error status, after which one chooses again without it, and
    `DiscoveryFailed` for anything else.
    """
    check.check_version_not_redirected(response, version)
    check.check_version_available(response, version)
    checks.passed("version.available", f"the document of version {version} is there")
    members = _decoded(response, f"the document of version {version}", "version.document-json")
    check.check_version_as_listed(members, version)
    check.check_version_is_leaf(members, version)
    checks.passed("version.as-listed", f"it has protocol_version {version}, and lists no other")
    return members


def check_document(document: CompanyDocument, served: Served, checks: Checks) -> None:
    """The document in use, read by its dialect, speaks for the host that served it. Raises `DiscoveryFailed`."""
    domain = document.organization.domain
    check.check_domain_is_host(domain, served.host)
    checks.passed("discovery.domain-is-host", f"organization.domain is {domain}, and {served.host} served it")
    check.check_same_domain(domain, served.domain)
    for finding in document.findings:
        checks.noted(finding.rule, f"{finding.where}: {finding.detail}")
    if document.auth.disabled and (document.asks_for_account or check.offers_mediated(document)):
        # Readings 62: the Company contradicts itself, and the more careful half holds.
        checks.noted("discovery.disabled-offers-nothing", "auth.disabled is true, yet the document offers sign-in")


def resource_metadata_request(document: CompanyDocument, *, uncached: bool = False) -> Request:
    """The request for the domain's protected resource metadata (RFC 9728). No redirect is followed (readings 51)."""
    return _get(protected_resource_metadata_url(domain_url(document.organization.domain)), uncached)


def read_resource_answer(
    response: Response, document: CompanyDocument, served: Served, checks: Checks, *, known_issuer: str | None = None
) -> str | None:
    """The Company's issuer, still to be confirmed from its side, or None when it has none (3.2).

    `known_issuer` is what an earlier discovery of this domain found. Only 404, or valid metadata that names no server,
    means "none"; with a known issuer only the latter does (readings 10). Raises `DiscoveryFailed`.
    """
    check.check_resource_status(response)
    servers: tuple[str, ...] = ()
    if response.status == 404:
        check.check_known_issuer_survives(known_issuer)
        checks.passed("discovery.resource-status", "404: the domain names no issuer")
    else:
        body = _decoded(response, "the protected resource metadata", "oauth.resource-metadata-shape")
        metadata = _judged(CORRECT_IT, read_resource_metadata, body)
        resource = domain_url(document.organization.domain)
        _judged(f"the Company has to publish resource {resource}", check_resource, metadata, resource)
        checks.passed("oauth.resource-is-requested", f"resource is {metadata.resource}")
        servers = tuple(dict.fromkeys(metadata.authorization_servers))
    if not servers:
        check.check_no_issuer_no_sign_in(document)
        check.check_same_issuer(None, served.issuer)
        checks.passed("discovery.no-issuer-no-sign-in", "no issuer, and no sign-in is offered")
        return None
    named = document.auth.issuer
    check.check_issuer_is_named(named, servers)
    check.check_issuer_is_listed(named, servers)
    issuer = named or servers[0]
    check.check_same_issuer(issuer, served.issuer)
    _judged("the Company has to choose another issuer", check_issuer_identifier, issuer)
    checks.passed("discovery.issuer-is-listed", f"the domain names the issuer {issuer}")
    return issuer


def issuer_metadata_request(issuer: str, *, uncached: bool = False) -> Request:
    """The request for the issuer's metadata (RFC 8414 3.1). No redirect is followed (readings 51)."""
    return _get(authorization_server_metadata_url(issuer), uncached)


def read_issuer_answer(response: Response, issuer: str, document: CompanyDocument, checks: Checks) -> ServerMetadata:
    """The issuer's metadata, once it confirms the link from its side (3.2). Raises `DiscoveryFailed`."""
    check.check_issuer_served(response)
    body = _decoded(response, "the issuer's metadata", "oauth.server-metadata-shape")
    metadata = _judged(CORRECT_IT, read_server_metadata, body)
    _judged("both places have to spell the issuer alike", check_server_issuer, metadata, issuer)
    checks.passed("oauth.issuer-is-requested", f"the metadata's issuer is {issuer}")
    resource = domain_url(document.organization.domain)
    remedy = f"the issuer has to list {resource} in protected_resources; until then the domain may be claiming it"
    _judged(remedy, check_server_lists_resource, metadata, resource)
    checks.passed("oauth.issuer-lists-resource", f"its protected_resources has {resource}")
    return metadata


def found(
    domain: str,
    served: Served,
    choice: Choice,
    document: CompanyDocument,
    issuer: str | None,
    server: ServerMetadata | None,
    checks: Checks,
) -> Discovered:
    """What discovery of `domain` came to, after every step passed."""
    return Discovered(
        domain=read_domain(domain),
        identifier=company_identifier(document, issuer),
        issuer=issuer,
        document=document,
        version=choice.spoken,
        url=served.url,
        server=server,
        checks=checks.made,
    )


def identifier_changed(known: CompanyId | None, now: CompanyId) -> bool:
    """3.2: whether this Company is another one now, so that it needs new User IDs, Agent IDs and Sessions."""
    return known is not None and known != now


def document_unavailable(what: str, url: str, reason: str, *, expected: str = "", remedy: str = "") -> DiscoveryFailed:
    """The failure to raise when no answer could be had at all: a timeout, no such name, a refused address or hop.

    It is never a reason to fall back (3.2). `what` names the document for people.
    """
    return DiscoveryFailed(
        f"{what} could not be fetched",
        rule="discovery.fetched",
        expected=expected or f"an answer from {url}",
        found=reason,
        remedy=remedy or "try again later; it has to be served over https, at a public address",
    )


def _get(url: str, uncached: bool) -> Request:
    headers = [("accept", "application/json")]
    if uncached:
        headers.append(("cache-control", "no-cache"))
    return Request("GET", url, Headers(headers))


def _decoded(response: Response, what: str, rule_id: str) -> dict[str, object]:
    try:
        return strict_json.loads_object(response.body)
    except JsonError as error:
        raise DiscoveryFailed(
            f"{what} cannot be read",
            rule=rule_id,
            expected="a JSON object",
            found=error.description,
            remedy="the Company has to serve the document itself, not a page",
            detail=error.detail,
        ) from None


def _judged(remedy: str, judge: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a reader or a check of OAuth's metadata, whose refusal is a failure of discovery."""
    try:
        return judge(*args, **kwargs)
    except InvalidMetadata as error:
        raise DiscoveryFailed(
            error.description,
            rule=error.rule,
            expected=error.expected,
            found=error.found or error.detail,
            remedy=remedy,
            detail=error.detail,
        ) from None


def _other_versions(members: dict[str, object], host: str, checks: Checks) -> Iterator[tuple[Version, str]]:
    """The versions of `supported_versions` that may be used; a URL that may not is noted (3.4)."""
    for name, url in _members(members.get("supported_versions")).items():
        version = read_version(name)
        try:
            check.check_version_url(url, host)
        except DiscoveryFailed as error:
            checks.noted(error.rule, f"/supported_versions/{name}: {error.found}")
        else:
            if version is not None:
                yield version, str(url)


def _members(value: object) -> dict[str, object]:
    return cast("dict[str, object]", value) if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
