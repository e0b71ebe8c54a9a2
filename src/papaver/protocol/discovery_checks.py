"""The checks of discovery, one function per clause of section 3, in the order in which a Personal Agent makes them.

Each raises `DiscoveryFailed` with the value it expected, the one it found, and what to do about it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Never

from papaver.protocol.company import MEDIATED_SIGN_IN, CompanyDocument
from papaver.protocol.dialect import Version
from papaver.protocol.errors import DiscoveryFailed
from papaver.protocol.negotiation import read_version
from papaver.values import strict_json
from papaver.values.rules import rule
from papaver.web.messages import Response
from papaver.web.urls import UrlError, check_https, host_of, read_domain, read_url

__all__ = [
    "WELL_KNOWN_PATH",
    "VersionUnavailable",
    "check_document_served",
    "check_domain_is_host",
    "check_final_no_query",
    "check_final_path",
    "check_hop_https",
    "check_issuer_is_listed",
    "check_issuer_is_named",
    "check_issuer_served",
    "check_known_issuer_survives",
    "check_no_issuer_no_sign_in",
    "check_resource_status",
    "check_same_domain",
    "check_same_issuer",
    "check_serving_host",
    "check_version_as_listed",
    "check_version_available",
    "check_version_is_leaf",
    "check_version_not_redirected",
    "check_version_url",
    "offers_mediated",
    "shown",
]

WELL_KNOWN_PATH: Final = "/.well-known/poppy.json"


class VersionUnavailable(DiscoveryFailed):
    """A version's own document cannot be had. The others may be: choose again without this version (3.4)."""


def shown(value: object) -> str:
    """A found value for people: as JSON, in at most 80 characters."""
    text = "nothing" if value is None else strict_json.dumps(value).decode()
    return text if len(text) <= 80 else f"{text[:79]}…"


def offers_mediated(document: CompanyDocument) -> bool:
    """Whether the Mediated Sign-In extension is listed (3.2)."""
    return MEDIATED_SIGN_IN in document.extensions


def _fail(
    description: str,
    rule_id: str,
    *,
    expected: str,
    found: str,
    remedy: str,
    kind: type[DiscoveryFailed] = DiscoveryFailed,
) -> Never:
    raise kind(description, rule=rule_id, expected=expected, found=found, remedy=remedy)


# poppy.json: where it came from (section 3)


@rule("discovery.hops-https")
def check_hop_https(url: str) -> None:
    """Section 3: every URL on the way to `poppy.json` is https: each hop before it is followed, and the last."""
    try:
        check_https(url)
    except UrlError:
        _fail(
            "a hop on the way to poppy.json is not https",
            "discovery.hops-https",
            expected="an https URL",
            found=url,
            remedy="the Company has to redirect to https only",
        )


@rule("discovery.final-path")
def check_final_path(url: str) -> None:
    """Section 3: the last URL's path is exactly the well-known one; whoever may upload a file speaks for nobody."""
    path = read_url(url).path
    if path != WELL_KNOWN_PATH:
        _fail(
            "poppy.json was not served at its well-known path",
            "discovery.final-path",
            expected=WELL_KNOWN_PATH,
            found=path or "/",
            remedy="the Company may redirect to the well-known path of another host, and to no other path",
        )


@rule("discovery.final-no-query")
def check_final_no_query(url: str) -> None:
    """Section 3: the last URL has no query; a question mark alone is an empty one."""
    query = read_url(url).query
    if query is not None:
        _fail(
            "poppy.json was served at a URL with a query",
            "discovery.final-no-query",
            expected="no query",
            found=f"?{query}",
            remedy="the Company has to redirect to the well-known path without a query",
        )


@rule("discovery.host-is-a-name")
def check_serving_host(url: str) -> None:
    """Readings 13: a document speaks for a host name at the port of https, not for an address or another port."""
    parts = read_url(url)
    try:
        read_domain(parts.host)
        name = parts.port is None
    except UrlError:
        name = False
    if not name:
        _fail(
            "poppy.json was not served by a domain",
            "discovery.host-is-a-name",
            expected="a host name, at the default port",
            found=parts.origin,
            remedy="the Company has to serve it on its domain, at port 443",
        )


@rule("discovery.document-served")
def check_document_served(response: Response) -> None:
    """Section 3: the document is there."""
    if response.status != 200:
        _fail(
            "there is no poppy.json here",
            "discovery.document-served",
            expected=f"HTTP 200 from {response.url}",
            found=f"HTTP {response.status}",
            remedy="check the domain; a Company that takes part publishes the document there",
        )


@rule("discovery.domain-is-host")
def check_domain_is_host(domain: str, host: str) -> None:
    """Section 3, 3.1: `organization.domain` is the host that served the document, ignoring ASCII case only."""
    if not domain.isascii() or domain.lower() != host:
        _fail(
            "the document is about another domain",
            "discovery.domain-is-host",
            expected=f"organization.domain {host}, the host that served it",
            found=domain,
            remedy="the Company has to name the serving host as organization.domain, or redirect to that domain",
        )


# Versions (3.4)


@rule("version.url-on-host")
def check_version_url(url: object, host: str) -> None:
    """3.4: a URL of `supported_versions` is https, on the host that served `poppy.json`."""
    try:
        check_https(url if isinstance(url, str) else "")
        good = isinstance(url, str) and host_of(url) == host
    except UrlError:
        good = False
    if not good:
        _fail(
            "a version's document is not on the host that serves poppy.json",
            "version.url-on-host",
            expected=f"an https URL on {host}",
            found=shown(url),
            remedy=f"the Company has to serve every version's document on {host}",
        )


@rule("version.no-redirect")
def check_version_not_redirected(response: Response, version: Version) -> None:
    """3.4: a redirect from a version's URL is not followed."""
    if 300 <= response.status < 400:
        _fail(
            f"the document of version {version} redirects",
            "version.no-redirect",
            expected="the document itself",
            found=f"HTTP {response.status}",
            remedy="the Company has to list the URL that answers",
            kind=VersionUnavailable,
        )


@rule("version.available")
def check_version_available(response: Response, version: Version) -> None:
    """3.4: the document is where it is listed."""
    if response.status != 200 and not 300 <= response.status < 400:
        _fail(
            f"the document of version {version} is not there",
            "version.available",
            expected="HTTP 200",
            found=f"HTTP {response.status}",
            remedy="the Company has to serve the document, or to stop listing the version",
            kind=VersionUnavailable,
        )


@rule("version.as-listed")
def check_version_as_listed(members: Mapping[str, object], version: Version) -> None:
    """3.4: the document has the `protocol_version` it is listed under."""
    found = members.get("protocol_version")
    if not isinstance(found, str) or read_version(found) != version:
        _fail(
            "a version's document is of another version",
            "version.as-listed",
            expected=f"protocol_version {version}",
            found=shown(found),
            remedy="the Company has to list each document under its own version",
        )


@rule("version.no-further-versions")
def check_version_is_leaf(members: Mapping[str, object], version: Version) -> None:
    """3.4: only `poppy.json` lists versions."""
    if "supported_versions" in members:
        _fail(
            f"the document of version {version} lists versions itself",
            "version.no-further-versions",
            expected="no supported_versions",
            found=shown(members["supported_versions"]),
            remedy="the Company has to list versions in poppy.json only",
        )


@rule("version.same-domain")
def check_same_domain(domain: str, listing: str | None) -> None:
    """3.4: every document of a Company has one `organization.domain`. `listing` is that of `poppy.json`."""
    if listing is not None and listing.lower() != domain.lower():
        _fail(
            "two versions' documents are about different domains",
            "version.same-domain",
            expected=f"organization.domain {listing}, as in poppy.json",
            found=domain,
            remedy="the Company has to use one domain in all its documents",
        )


# The issuer (3.1, 3.2)


@rule("discovery.resource-status")
def check_resource_status(response: Response) -> None:
    """3.2, readings 51: 200 or 404. Any other status, a redirect included, says nothing about an issuer."""
    if response.status not in (200, 404):
        _fail(
            "whether the Company has an issuer cannot be found out",
            "discovery.resource-status",
            expected="HTTP 200 with metadata, or HTTP 404 where there is no issuer",
            found=f"HTTP {response.status}",
            remedy="try again later; the Company has to answer /.well-known/oauth-protected-resource with 200 or 404",
        )


@rule("discovery.known-issuer-survives")
def check_known_issuer_survives(known_issuer: str | None) -> None:
    """3.2, readings 10: a missing document does not remove an issuer that is known."""
    if known_issuer is not None:
        _fail(
            "the Company's issuer is known, and its metadata is gone",
            "discovery.known-issuer-survives",
            expected=f"metadata that names {known_issuer}, or that lists no authorization server",
            found="HTTP 404",
            remedy="try again later; a Company that gives up its issuer publishes metadata without one",
        )


@rule("discovery.no-issuer-no-sign-in")
def check_no_issuer_no_sign_in(document: CompanyDocument) -> None:
    """3.2: without an issuer, `auth.issuer` is absent and no sign-in is offered."""
    offers: list[str] = []
    if document.auth.issuer is not None:
        offers.append(f"auth.issuer {document.auth.issuer}")
    if document.asks_for_account:
        offers.append("access signed_in")
    if offers_mediated(document):
        offers.append(f"the extension {MEDIATED_SIGN_IN}")
    if offers:
        _fail(
            "the document offers sign-in, but the domain names no issuer",
            "discovery.no-issuer-no-sign-in",
            expected="authorization_servers with the issuer, or no sign-in in the document",
            found=", ".join(offers),
            remedy="the Company has to publish its issuer at /.well-known/oauth-protected-resource",
        )


@rule("discovery.issuer-is-named")
def check_issuer_is_named(named: str | None, servers: Sequence[str]) -> None:
    """3.1, 3.2: with several authorization servers, `auth.issuer` says which one Personal Agents use."""
    if named is None and len(servers) > 1:
        _fail(
            "the domain has several authorization servers, and the document names none",
            "discovery.issuer-is-named",
            expected=f"auth.issuer, one of {', '.join(servers)}",
            found="nothing",
            remedy="the Company has to set auth.issuer",
        )


@rule("discovery.issuer-is-listed")
def check_issuer_is_listed(named: str | None, servers: Sequence[str]) -> None:
    """3.1, 3.2: `auth.issuer` is one of the domain's authorization servers, character for character."""
    if named is not None and named not in servers:
        _fail(
            "auth.issuer is none of the domain's authorization servers",
            "discovery.issuer-is-listed",
            expected=", ".join(servers),
            found=named,
            remedy="the Company has to name one of them, spelled as it is listed",
        )


@rule("version.same-issuer")
def check_same_issuer(issuer: str | None, listing: str | None) -> None:
    """3.4: every document of a Company selects one issuer. `listing` is what `poppy.json` names, if it names one."""
    if listing is not None and listing != issuer:
        _fail(
            "two versions' documents select different issuers",
            "version.same-issuer",
            expected=f"{listing}, as in poppy.json",
            found=issuer or "no issuer",
            remedy="the Company has to select one issuer in all its documents",
        )


@rule("discovery.issuer-metadata-served")
def check_issuer_served(response: Response) -> None:
    """3.2: the issuer publishes its metadata; a redirect is not followed (readings 51)."""
    if response.status != 200:
        _fail(
            "the issuer's metadata is not there",
            "discovery.issuer-metadata-served",
            expected="HTTP 200",
            found=f"HTTP {response.status}",
            remedy="try again later; the issuer has to publish its metadata where RFC 8414 says",
        )
