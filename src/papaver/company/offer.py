"""What a Company offers, as it is configured, and the documents that say so (3.1, 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from papaver.company.scopes import Scope, check_scopes, hints
from papaver.company.services import check_own_tokens
from papaver.protocol.company import (
    POPPY,
    Access,
    Api,
    Auth,
    CompanyAgent,
    CompanyDocument,
    ConversationProtocol,
    Organization,
    Web,
    check_offer,
    domain_url,
)
from papaver.protocol.company_group import Domain, group_faults
from papaver.protocol.dialect import Dialect, Version
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.negotiation import Retirement, newest, read_version
from papaver.values.rules import rule
from papaver.versions import DIALECTS
from papaver.web.urls import UrlError, host_of, origin_of, read_url

__all__ = [
    "CONVERSATIONS",
    "DEFAULT_PROTOCOLS",
    "Mcp",
    "Offer",
    "OpenApi",
    "check_access",
    "check_conversation_scopes",
    "check_authorization_servers",
    "check_base_url",
    "check_domains",
    "check_group",
    "check_local_path",
    "check_name",
    "check_needs_issuer",
    "check_retirements",
    "check_served_versions",
]

DEFAULT_PROTOCOLS = ("0.4",)
CONVERSATIONS = "/conversations"


@dataclass(frozen=True, slots=True)
class OpenApi:
    """An API that an OpenAPI description at `url` describes (section 7)."""

    url: str
    description: str

    def listed(self) -> Api:
        return Api("openapi", self.url, self.description)


@dataclass(frozen=True, slots=True)
class Mcp:
    """A remote MCP server at `url` (section 7)."""

    url: str
    description: str

    def listed(self) -> Api:
        return Api("mcp", self.url, self.description)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """A Company's configuration, checked when it is built; raises ConfigurationError.

    `domain`      the Company's own, in lowercase; `poppy.json` is served on it
    `base_url`    where the protocol's endpoints are, as the world sees them: behind TLS, with the prefix that a proxy
                  strips. Every `htu` is compared with it; the `Host` header decides nothing
    `local_path`  the path of `base_url` as the app sees it, when a proxy strips a part of it
    `protocols`   the versions served, the preferred one first
    `internal_hosts`  further `Host` names under which the documents are served, for a proxy that does not pass it on
    `retirements` when a version is or will be deprecated, and when it stops being served (3.4)

    With an issuer (3.2):

    `issuer`      its identifier, or None
    `domains`     further domains of the same Company
    `scopes`      what Personal Agents may ask for
    `access`      "signed_in" where conversations are of no use without the account
    `conversation_scopes`    what every conversation needs of an account, as far as it uses one; a challenge names them
    `sign_in_disabled`       the issuer serves others; Personal Agents get no sign-in
    `authorization_servers`  what the resource metadata lists, if that is more than the issuer
    `issuer_removed`         there was an issuer, and the resource metadata says that there is none now (readings 10)
    `own_tokens`  URLs of services that take only tokens issued for them (4.5)
    """

    domain: str
    name: str
    base_url: str
    logo_uri: str | None = None
    apis: Sequence[OpenApi | Mcp] = ()
    website: bool = False
    conversations: bool = True
    protocols: Sequence[str] = DEFAULT_PROTOCOLS
    retirements: Mapping[str, Retirement] = field(default_factory=dict[str, Retirement])
    local_path: str | None = None
    internal_hosts: Sequence[str] = ()
    issuer: str | None = None
    domains: Sequence[str] = ()
    scopes: Sequence[Scope] = ()
    access: Literal["session", "signed_in"] = "session"
    conversation_scopes: Sequence[str] = ()
    sign_in_disabled: bool = False
    authorization_servers: Sequence[str] = ()
    issuer_removed: bool = False
    own_tokens: Sequence[str] = ()

    def __post_init__(self) -> None:
        check_name(self.name)
        check_base_url(self.base_url, self.domain)
        check_local_path(self.local_path, self.base_url)
        check_served_versions(self.protocols)
        check_retirements(self.retirements, self.protocols)
        check_access(self.access, self.conversations)
        check_scopes(self.scopes)
        check_conversation_scopes(self.conversation_scopes, self.scopes)
        check_needs_issuer(self)
        check_authorization_servers(self.issuer, self.authorization_servers)
        check_domains(self.all_domains)
        for domain in self.all_domains:
            check_offer(self.document(self.versions[0], domain), self.issuer)
        check_group(self)
        check_own_tokens(self.own_tokens, self.resources)

    @property
    def versions(self) -> tuple[Version, ...]:
        """The served versions, the preferred one first."""
        return tuple(version for text in self.protocols if (version := read_version(text)) is not None)

    @property
    def dialects(self) -> Mapping[Version, Dialect]:
        return {version: DIALECTS[version] for version in self.versions}

    @property
    def endpoint(self) -> str:
        """The conversation endpoint (8.1)."""
        return self.base_url + CONVERSATIONS

    @property
    def path(self) -> str:
        """The path of `base_url` as the app sees it."""
        return read_url(self.base_url).path if self.local_path is None else self.local_path

    @property
    def app_url(self) -> str:
        """Where the world sees the root of the app."""
        return self.base_url.removesuffix(self.path) if self.path else self.base_url

    @property
    def hosts(self) -> frozenset[str]:
        """The hosts on which the documents of its domains are served."""
        return frozenset((*self.all_domains, *(host.lower() for host in self.internal_hosts)))

    @property
    def all_domains(self) -> tuple[str, ...]:
        return (self.domain, *self.domains)

    @property
    def resources(self) -> tuple[str, ...]:
        """Each domain's URL, which is its `resource` and what the issuer has to list (3.2)."""
        return tuple(domain_url(domain) for domain in self.all_domains)

    @property
    def protected_resources(self) -> tuple[str, ...]:
        """What the issuer's metadata lists (3.2): the domains, and the services that have tokens of their own."""
        return (*self.resources, *self.own_tokens)

    @property
    def listed_issuers(self) -> tuple[str, ...]:
        """`authorization_servers` of the resource metadata (RFC 9728 2)."""
        return tuple(self.authorization_servers) or (() if self.issuer is None else (self.issuer,))

    @property
    def endpoint_host(self) -> str:
        return host_of(self.base_url)

    @property
    def all_hosts(self) -> frozenset[str]:
        """Every host that the world reaches it on: of its domains, endpoints and services, and of its issuer."""
        urls = (self.base_url, *self.own_tokens, *(() if self.issuer is None else (self.issuer,)))
        return frozenset((*self.all_domains, *(host_of(url) for url in urls)))

    def document_url(self, version: Version, domain: str | None = None) -> str:
        """Where the document of a version other than the preferred one is (3.4)."""
        return f"https://{domain or self.domain}/.well-known/poppy-{version}.json"

    def document(self, version: Version, domain: str | None = None) -> CompanyDocument:
        """`poppy.json` when `version` is the preferred one, else the document of that version (3.4).

        `domain`: one of `all_domains`; the first when None.
        """
        first = self.versions[0]
        others = {other: self.document_url(other, domain) for other in self.versions[1:]} if version == first else {}
        entry = ConversationProtocol(POPPY, self.endpoint, Access(self.access))
        agent = CompanyAgent((entry,)) if self.conversations else None
        return CompanyDocument(
            organization=Organization(self.name, domain or self.domain, self.logo_uri),
            protocol_version=version,
            supported_versions=others,
            auth=self._auth(),
            agent=agent,
            apis=tuple(api.listed() for api in self.apis),
            web=Web() if self.website else None,
        )

    def documents(self, domain: str | None = None) -> Mapping[str, dict[str, object]]:
        """Path → JSON document, for every document that the Company publishes about itself on a domain."""
        first, *others = self.versions
        published = {"/.well-known/poppy.json": DIALECTS[first].documents.write(self.document(first, domain))}
        for version in others:
            url = self.document_url(version, domain)
            document = DIALECTS[version].documents.write(self.document(version, domain))
            published[url.removeprefix(origin_of(url))] = document
        return published

    def _auth(self) -> Auth:
        """The sign-in details (3.1). One listed issuer needs no naming; of several, `auth.issuer` is the one."""
        return Auth(
            issuer=self.issuer if len(self.authorization_servers) > 1 else None,
            disabled=self.sign_in_disabled,
            scopes={scope.name: scope.description for scope in self.scopes},
            scope_hints=hints(self.scopes),
        )

    def retiring(self) -> Mapping[Version, Retirement]:
        """The served versions that are about to end."""
        return {version: plan for text, plan in self.retirements.items() if (version := read_version(text)) is not None}


@rule("offer.access")
def check_access(access: object, conversations: bool) -> None:
    """3.2: one of two words, said of a conversation endpoint."""
    if access not in ("session", "signed_in") or (access == "signed_in" and not conversations):
        raise ConfigurationError(
            f"access is {access!r}, expected 'session', or 'signed_in' where there are conversations",
            rule="offer.access",
        )


@rule("offer.conversation-scopes")
def check_conversation_scopes(needed: Sequence[str], scopes: Sequence[Scope]) -> None:
    """A challenge names scopes that the User can allow (readings 32)."""
    known = {scope.name for scope in scopes}
    for name in needed:
        if name not in known:
            raise ConfigurationError(
                f"conversation_scopes has {name!r}, expected some of the names in scopes",
                rule="offer.conversation-scopes",
            )


@rule("offer.needs-issuer")
def check_needs_issuer(offer: Offer) -> None:
    """3.2: without an issuer there is no sign-in, so nothing can be said about it; and each domain is a Company."""
    said = {
        "scopes": offer.scopes,
        "domains": offer.domains,
        "sign_in_disabled": offer.sign_in_disabled,
        "authorization_servers": offer.authorization_servers,
        "own_tokens": offer.own_tokens,
    }
    named = ", ".join(name for name, value in said.items() if value)
    if offer.issuer is None and named:
        raise ConfigurationError(
            f"{named} is given, but the Company has no issuer; give it one with sign_in=", rule="offer.needs-issuer"
        )
    if offer.issuer is not None and offer.issuer_removed:
        raise ConfigurationError(
            f"issuer_removed says that there is no issuer, sign_in that it is {offer.issuer!r}; leave out one of them",
            rule="offer.needs-issuer",
        )


@rule("offer.lists-issuer")
def check_authorization_servers(issuer: str | None, listed: Sequence[str]) -> None:
    """3.1: what the resource metadata lists has the issuer in it, character for character, and nothing twice."""
    if listed and (issuer not in listed or len(set(listed)) != len(listed)):
        raise ConfigurationError(
            f"authorization_servers is {list(listed)!r}; expected {issuer!r} among them, exactly so, and each once",
            rule="offer.lists-issuer",
        )


@rule("offer.domains-distinct")
def check_domains(domains: Sequence[str]) -> None:
    """3.2: each domain has one document."""
    if len(set(domains)) != len(domains):
        raise ConfigurationError(
            f"domain and domains name {', '.join(domains)}; name each once", rule="offer.domains-distinct"
        )


def check_group(offer: Offer) -> None:
    """3.2: the documents of all domains say alike what has to be alike. Raises ConfigurationError."""
    first = offer.versions[0]
    faults = group_faults([Domain(offer.document(first, domain), offer.issuer) for domain in offer.all_domains])
    if faults:
        raise faults[0]


@rule("offer.name")
def check_name(name: str) -> None:
    """3.1: people are shown whom they talk to."""
    if not name.strip():
        raise ConfigurationError(f"name is {name!r}, expected what people call the Company", rule="offer.name")


@rule("offer.base-url")
def check_base_url(base_url: str, domain: str) -> None:
    """Section 3, readings 28 and 44: an https URL to which paths are appended as they are, and which `htu` names."""
    try:
        parts = read_url(base_url)
    except UrlError as error:
        raise ConfigurationError(
            f"base_url is {base_url!r}, expected an https URL such as https://{domain}/poppy",
            rule="offer.base-url",
            detail=error.description,
        ) from None
    bare = parts.query is None and parts.fragment is None and not base_url.endswith("/")
    if parts.scheme != "https" or not bare:
        raise ConfigurationError(
            f"base_url is {base_url!r}; expected https, without query, fragment or trailing slash",
            rule="offer.base-url",
        )


@rule("offer.local-path")
def check_local_path(local_path: str | None, base_url: str) -> None:
    """What the app sees of `base_url` is whole segments at its end; a proxy strips what comes before (B21)."""
    path = read_url(base_url).path
    if local_path is None or (path.endswith(local_path) and (not local_path or local_path.startswith("/"))):
        return
    raise ConfigurationError(
        f"local_path is {local_path!r}, expected the end of base_url's path {path!r}, from a slash on",
        rule="offer.local-path",
    )


@rule("offer.served-versions")
def check_served_versions(protocols: Sequence[str]) -> None:
    """3.4: the versions named are implemented here, each once; drafts are named exactly."""
    known = ", ".join(map(str, DIALECTS))
    for text in protocols:
        version = read_version(text)
        if version is None or version not in DIALECTS:
            raise ConfigurationError(f"protocols has {text!r}, expected some of: {known}", rule="offer.served-versions")
        if newest(version, [other for one in protocols if one != text and (other := read_version(one))]) is not None:
            raise ConfigurationError(
                f"protocols has {text!r} and a version compatible with it", rule="offer.served-versions"
            )
    if not protocols or len(set(protocols)) != len(protocols):
        raise ConfigurationError(f"protocols needs each version once, some of: {known}", rule="offer.served-versions")


@rule("offer.retirements")
def check_retirements(retirements: Mapping[str, Retirement], protocols: Sequence[str]) -> None:
    """3.4: what is said to end is served, and it does not end before it is deprecated (RFC 9745 4)."""
    for text, plan in retirements.items():
        if text not in protocols:
            raise ConfigurationError(
                f"retirements has {text!r}, expected some of: {', '.join(protocols)}", rule="offer.retirements"
            )
        if plan.deprecated is not None and plan.sunset is not None and plan.sunset < plan.deprecated:
            raise ConfigurationError(
                f"version {text} ends at {plan.sunset:.0f}, before it is deprecated at {plan.deprecated:.0f}",
                rule="offer.retirements",
            )
