"""What a Company offers, as it is configured, and the documents that say so (3.1, 3.4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from papaver.protocol.company import (
    POPPY,
    Api,
    CompanyAgent,
    CompanyDocument,
    ConversationProtocol,
    Organization,
    Web,
    check_offer,
)
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
    "check_base_url",
    "check_local_path",
    "check_name",
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

    def __post_init__(self) -> None:
        check_name(self.name)
        check_base_url(self.base_url, self.domain)
        check_local_path(self.local_path, self.base_url)
        check_served_versions(self.protocols)
        check_retirements(self.retirements, self.protocols)
        check_offer(self.document(self.versions[0]), None)

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
        """The hosts on which the documents are served."""
        return frozenset((self.domain, *(host.lower() for host in self.internal_hosts)))

    @property
    def endpoint_host(self) -> str:
        return host_of(self.base_url)

    def document_url(self, version: Version) -> str:
        """Where the document of a version other than the preferred one is (3.4)."""
        return f"https://{self.domain}/.well-known/poppy-{version}.json"

    def document(self, version: Version) -> CompanyDocument:
        """`poppy.json` when `version` is the preferred one, else the document of that version (3.4)."""
        first = self.versions[0]
        others = {other: self.document_url(other) for other in self.versions[1:]} if version == first else {}
        agent = CompanyAgent((ConversationProtocol(POPPY, self.endpoint),)) if self.conversations else None
        return CompanyDocument(
            organization=Organization(self.name, self.domain, self.logo_uri),
            protocol_version=version,
            supported_versions=others,
            agent=agent,
            apis=tuple(api.listed() for api in self.apis),
            web=Web() if self.website else None,
        )

    def documents(self) -> Mapping[str, dict[str, object]]:
        """Path → JSON document, for every document that the Company publishes about itself."""
        first, *others = self.versions
        published = {"/.well-known/poppy.json": DIALECTS[first].documents.write(self.document(first))}
        for version in others:
            path = self.document_url(version).removeprefix(origin_of(self.document_url(version)))
            published[path] = DIALECTS[version].documents.write(self.document(version))
        return published

    def retiring(self) -> Mapping[Version, Retirement]:
        """The served versions that are about to end."""
        return {version: plan for text, plan in self.retirements.items() if (version := read_version(text)) is not None}


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
