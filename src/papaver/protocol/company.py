"""A Company as its `poppy.json` describes it, free of any version, and the rules for what a Company may publish (3.1).

The document is the same value on both sides: a Company builds and checks one (`check_offer`), a Personal Agent reads
one (`papaver.versions`) and judges it (`papaver.protocol.discovery`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import CompanyId
from papaver.values.rules import rule
from papaver.web.urls import UrlError, check_https, host_of, read_domain, read_url

if TYPE_CHECKING:
    from papaver.protocol.dialect import Version

__all__ = [
    "MEDIATED_SIGN_IN",
    "POPPY",
    "RESERVED_EXTENSIONS",
    "Access",
    "Api",
    "Auth",
    "Changes",
    "CompanyAgent",
    "CompanyDocument",
    "ConversationProtocol",
    "ExtensionEntry",
    "Finding",
    "Organization",
    "ScopeHint",
    "Web",
    "check_offer",
    "company_identifier",
    "company_urls",
    "domain_url",
]

POPPY: Final = "poppy"
"""The type of the conversation protocol of section 8 (8.1)."""

MEDIATED_SIGN_IN: Final = "mediated-sign-in"

RESERVED_EXTENSIONS: Final = frozenset({"links", MEDIATED_SIGN_IN, "operations"})
"""The plain extension names that are defined with the protocol (3.3)."""


class Access(Enum):
    """When account access is needed at a conversation endpoint; a hint (3.2)."""

    SESSION = "session"
    SIGNED_IN = "signed_in"


class Changes(Enum):
    """What the most consequential action of a scope changes (4.7)."""

    NONE = "none"
    REVERSIBLE = "reversible"
    IRREVERSIBLE = "irreversible"


@dataclass(frozen=True, slots=True)
class Organization:
    """`name` for people, `domain` the host that serves the document, `logo_uri` https (3.1)."""

    name: str
    domain: str
    logo_uri: str | None = None


@dataclass(frozen=True, slots=True)
class ScopeHint:
    """How consequential a scope is (4.7): the Company's claim, not the User's approval."""

    changes: Changes
    personal_data: bool


@dataclass(frozen=True, slots=True)
class Auth:
    """The sign-in details (3.1). `issuer` is what the document says; the one in use is discovery's to find (3.2)."""

    issuer: str | None = None
    disabled: bool = False
    scopes: Mapping[str, str] = field(default_factory=dict[str, str])
    scope_hints: Mapping[str, ScopeHint] = field(default_factory=dict[str, ScopeHint])


@dataclass(frozen=True, slots=True)
class ConversationProtocol:
    """One entry of `agent.protocols` (8.1)."""

    type: str
    endpoint: str
    access: Access = Access.SESSION


@dataclass(frozen=True, slots=True)
class CompanyAgent:
    """The Company Agent, reached through any of these."""

    protocols: tuple[ConversationProtocol, ...]


@dataclass(frozen=True, slots=True)
class Api:
    """One entry of `apis` (section 7). `url` is an OpenAPI API's description, or an MCP server's endpoint."""

    type: str
    url: str
    description: str


@dataclass(frozen=True, slots=True)
class Web:
    """The website. Without `browser_session_endpoint` it is browsed as an ordinary visitor (section 6)."""

    browser_session_endpoint: str | None = None


@dataclass(frozen=True, slots=True)
class ExtensionEntry:
    """One major version of an extension (3.3). `members` are the other fields, for whoever knows the extension."""

    version: str
    members: Mapping[str, object] = field(default_factory=dict[str, object])


@dataclass(frozen=True, slots=True)
class Finding:
    """Something of a document that was left out, because it breaks a rule and nothing else depends on it.

    `where` is a JSON pointer into the document (RFC 6901), `detail` says what is wrong.
    """

    rule: str
    where: str
    detail: str


@dataclass(frozen=True, slots=True)
class CompanyDocument:
    """`poppy.json` (3.1): only what is defined. An absent channel is None or empty.

    `supported_versions`  the other versions, each with its document's URL; empty in a version's own document
    `feedback`            the endpoint for reports (9.3)
    `excluded_tasks`      the URL of the list of excluded tasks (9.1)
    `extensions`          name → entries, in the document's order (3.3)
    `skill_index`         as published; judged by whoever uses skills (9.4)
    `findings`            what a reader left out; a document that one builds has none
    """

    organization: Organization
    protocol_version: Version
    supported_versions: Mapping[Version, str] = field(default_factory=dict["Version", str])
    auth: Auth = field(default_factory=Auth)
    agent: CompanyAgent | None = None
    apis: tuple[Api, ...] = ()
    web: Web | None = None
    feedback: str | None = None
    excluded_tasks: str | None = None
    extensions: Mapping[str, tuple[ExtensionEntry, ...]] = field(default_factory=dict[str, tuple[ExtensionEntry, ...]])
    skill_index: Mapping[str, object] | None = None
    findings: tuple[Finding, ...] = field(default=(), compare=False)

    def conversations(self) -> ConversationProtocol | None:
        """The first `poppy` entry of the Company Agent (8.1); None without one."""
        protocols = () if self.agent is None else self.agent.protocols
        return next((entry for entry in protocols if entry.type == POPPY), None)

    @property
    def has_channel(self) -> bool:
        """At least one of `agent`, `apis` and `web` (3.1); an agent without a protocol cannot be reached."""
        return bool((self.agent is not None and self.agent.protocols) or self.apis or self.web is not None)

    @property
    def asks_for_account(self) -> bool:
        """A conversation endpoint says `signed_in`, which needs sign-in to be offered (3.2)."""
        protocols = () if self.agent is None else self.agent.protocols
        return any(entry.access is Access.SIGNED_IN for entry in protocols)


def domain_url(domain: str) -> str:
    """`https://{domain}`, the host in lowercase and without a trailing slash (3.2)."""
    return f"https://{domain.lower()}"


def company_identifier(document: CompanyDocument, issuer: str | None) -> CompanyId:
    """The Company's identifier: its issuer as it is, else its domain's URL (3.2)."""
    return CompanyId(domain_url(document.organization.domain) if issuer is None else issuer)


def company_urls(document: CompanyDocument) -> Iterator[tuple[str, str]]:
    """Every URL that the document defines, each with its JSON pointer. Members of extensions are their own matter."""
    if document.organization.logo_uri is not None:
        yield "/organization/logo_uri", document.organization.logo_uri
    if document.auth.issuer is not None:
        yield "/auth/issuer", document.auth.issuer
    for version, url in document.supported_versions.items():
        yield f"/supported_versions/{version}", url
    for index, api in enumerate(document.apis):
        yield f"/apis/{index}/url", api.url
    if document.excluded_tasks is not None:
        yield "/excluded_tasks/url", document.excluded_tasks
    yield from _endpoints(document)


def _endpoints(document: CompanyDocument) -> Iterator[tuple[str, str]]:
    """The URLs to which a request is sent as they are or with a route appended (8.2, 6, 9.3)."""
    if document.agent is not None:
        for index, entry in enumerate(document.agent.protocols):
            yield f"/agent/protocols/{index}/endpoint", entry.endpoint
    if document.web is not None and document.web.browser_session_endpoint is not None:
        yield "/web/browser_session_endpoint", document.web.browser_session_endpoint
    if document.feedback is not None:
        yield "/feedback/endpoint", document.feedback


def check_offer(document: CompanyDocument, issuer: str | None) -> None:
    """Everything a Company must get right in what it publishes. `issuer` is the one it has, or None.

    Raises `ConfigurationError`, with the rule and the member.
    """
    check_offer_domain(document)
    check_offer_channel(document)
    check_offer_https(document)
    check_offer_endpoints(document)
    check_offer_issuer(document, issuer)
    check_offer_access(document, issuer)
    check_offer_disabled(document)
    check_offer_extension_names(document)
    check_offer_extension_versions(document)
    check_offer_versions(document)


@rule("offer.domain-is-a-name")
def check_offer_domain(document: CompanyDocument) -> None:
    """3.1, readings 13 and 53: a bare ASCII host name, in the lowercase form that every side compares."""
    domain = document.organization.domain
    try:
        plain = read_domain(domain)
    except UrlError:
        plain = None
    if plain != domain:
        raise ConfigurationError(
            f"domain is {domain!r}; it has to be a bare host name in lowercase, without scheme, port and trailing dot",
            rule="offer.domain-is-a-name",
        )


@rule("offer.one-channel")
def check_offer_channel(document: CompanyDocument) -> None:
    """3.1: at least one of `agent`, `apis` and `web`, and no agent without a protocol."""
    if not document.has_channel or (document.agent is not None and not document.agent.protocols):
        raise ConfigurationError(
            "the Company offers no channel; give it a conversation handler, an API or its website",
            rule="offer.one-channel",
        )


@rule("offer.https")
def check_offer_https(document: CompanyDocument) -> None:
    """Section 3: every URL of the document is https."""
    for where, url in company_urls(document):
        try:
            check_https(url)
        except UrlError as error:
            raise ConfigurationError(
                f"{where} is {url!r}, which is not an https URL", rule="offer.https", detail=error.description
            ) from None


@rule("offer.endpoint-bare")
def check_offer_endpoints(document: CompanyDocument) -> None:
    """Readings 44: routes are appended to an endpoint as it is, so it has no query, fragment and trailing slash."""
    for where, url in _endpoints(document):
        if url.endswith("/") or "?" in url or "#" in url:
            raise ConfigurationError(
                f"{where} is {url!r}; an endpoint has no query, no fragment and no trailing slash",
                rule="offer.endpoint-bare",
            )


@rule("offer.issuer")
def check_offer_issuer(document: CompanyDocument, issuer: str | None) -> None:
    """3.1, 3.2: the issuer is an https URL without query and fragment, and `auth.issuer` names no other."""
    named = document.auth.issuer
    if issuer is not None and _is_no_issuer(issuer):
        raise ConfigurationError(
            f"the issuer is {issuer!r}; it has to be an https URL without query and fragment", rule="offer.issuer"
        )
    if named is not None and named != issuer:
        raise ConfigurationError(
            f"auth.issuer is {named!r}, but the Company's issuer is {issuer or 'none'!r}", rule="offer.issuer"
        )


@rule("offer.signed-in-needs-issuer")
def check_offer_access(document: CompanyDocument, issuer: str | None) -> None:
    """3.2: who lists `signed_in` access has an issuer and does not turn sign-in off."""
    if document.asks_for_account and (issuer is None or document.auth.disabled):
        raise ConfigurationError(
            "signed_in access needs an issuer, and sign-in that is not disabled", rule="offer.signed-in-needs-issuer"
        )


@rule("offer.disabled-without-mediated")
def check_offer_disabled(document: CompanyDocument) -> None:
    """3.2: who turns sign-in off does not list the Mediated Sign-In extension (readings 62)."""
    if document.auth.disabled and MEDIATED_SIGN_IN in document.extensions:
        raise ConfigurationError(
            f"auth.disabled is true, so the extension {MEDIATED_SIGN_IN} cannot be offered",
            rule="offer.disabled-without-mediated",
        )


@rule("offer.extension-names")
def check_offer_extension_names(document: CompanyDocument) -> None:
    """3.3: a plain name is the protocol's own; every other name begins with a domain, as `example.com/gift-wrap`."""
    for name in document.extensions:
        domain, slash, rest = name.partition("/")
        if name in RESERVED_EXTENSIONS or (slash and rest and _is_domain(domain) and name.isascii()):
            continue
        raise ConfigurationError(
            f"the extension {name!r} has to begin with a domain that you control, such as example.com/gift-wrap",
            rule="offer.extension-names",
        )


@rule("offer.extension-versions")
def check_offer_extension_versions(document: CompanyDocument) -> None:
    """3.3: an extension has at least one entry, and each version one."""
    for name, entries in document.extensions.items():
        versions = [entry.version for entry in entries]
        if not versions or "" in versions or len(set(versions)) < len(versions):
            raise ConfigurationError(
                f"the extension {name!r} needs one entry for each of its versions, found {versions}",
                rule="offer.extension-versions",
            )


@rule("offer.versions")
def check_offer_versions(document: CompanyDocument) -> None:
    """3.4: each other version's document is on the domain that serves `poppy.json`, and is not this version's."""
    for version, url in document.supported_versions.items():
        if version == document.protocol_version or _host(url) != document.organization.domain.lower():
            raise ConfigurationError(
                f"supported_versions maps {version} to {url!r}; it takes other versions only, each at a URL on "
                f"{document.organization.domain}",
                rule="offer.versions",
            )


def _is_no_issuer(issuer: str) -> bool:
    try:
        parts = read_url(issuer)
    except UrlError:
        return True
    return parts.scheme != "https" or parts.query is not None or parts.fragment is not None


def _is_domain(text: str) -> bool:
    try:
        return "." in read_domain(text)
    except UrlError:
        return False


def _host(url: str) -> str | None:
    try:
        return host_of(url)
    except UrlError:
        return None
