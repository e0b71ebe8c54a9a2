"""How an embedded issuer is set up, checked when it is built; and what it publishes about itself (3.2, RFC 8414)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from papaver.company.authserver.settings import IssuerLimits
from papaver.company.authserver.terms import SignInType, Terms
from papaver.company.offer import Mcp, Offer
from papaver.oauth.dpop import ALGS as PROOF_ALGS
from papaver.oauth.drafts import CIMD_DRAFT, acknowledge_draft
from papaver.oauth.errors import InvalidMetadata
from papaver.oauth.metadata import check_issuer_identifier, fold_host
from papaver.oauth.pkce import METHOD
from papaver.protocol.errors import ConfigurationError
from papaver.values.rules import rule
from papaver.web.urls import UrlError, host_of, origin_of, read_url

__all__ = [
    "ASSERTION_ALGS",
    "DEVICE_GRANT",
    "Configuration",
    "check_bearer_only",
    "check_client_documents",
    "check_issuer",
    "check_sign_in_page",
    "check_some_sign_in",
    "issuer_terms",
    "server_document",
]

ASSERTION_ALGS: Final = ("ES256", "PS384")
DEVICE_GRANT: Final = "urn:ietf:params:oauth:grant-type:device_code"


def _everybody(client_id: str, sign_in_type: SignInType) -> bool:
    return True


def _every_scope(client_id: str, scope: str) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings of an `EmbeddedIssuer`, described there. Raises ConfigurationError."""

    issuer: str
    sign_in_page: str
    direct: bool = True
    device: bool = True
    dpop: bool = True
    dpop_nonce: bool = False
    bearer_only: Sequence[str] = ()
    unlisted_scopes: Sequence[str] = ()
    sign_in_allowed: Callable[[str, SignInType], bool] = _everybody
    scope_allowed: Callable[[str, str], bool] = _every_scope
    local_path: str | None = None
    client_documents: str = CIMD_DRAFT
    limits: IssuerLimits = field(default_factory=IssuerLimits)

    def __post_init__(self) -> None:
        check_client_documents(self.client_documents)
        check_issuer(self.issuer)
        check_sign_in_page(self.sign_in_page)
        check_some_sign_in(self.direct, self.device)

    @property
    def root(self) -> str:
        """What the endpoints' paths are appended to: the issuer without a slash at its end."""
        return self.issuer.rstrip("/")

    @property
    def origin(self) -> str:
        return origin_of(self.issuer)

    @property
    def host(self) -> str:
        return host_of(self.issuer)

    @property
    def path(self) -> str:
        """The path below which the endpoints are, as browsers see it."""
        return read_url(self.root).path

    @property
    def app_path(self) -> str:
        """The same as the app sees it."""
        return self.path if self.local_path is None else self.local_path

    @property
    def token_endpoint(self) -> str:
        return f"{self.root}/token"


@rule("issuer.identifier")
def check_issuer(issuer: str) -> None:
    """3.2, RFC 8414 2: an https URL, compared character for character, so it is written as browsers write it."""
    try:
        check_issuer_identifier(issuer)
        written = fold_host(issuer) == issuer and "//" not in read_url(issuer).path and "%" not in issuer
    except (InvalidMetadata, UrlError):
        written = False
    if not written:
        raise ConfigurationError(
            f"issuer is {issuer!r}, expected an https URL such as https://auth.example.com, its host in lowercase, "
            "without query, fragment and escapes",
            rule="issuer.identifier",
        )


@rule("issuer.sign-in-page")
def check_sign_in_page(page: str) -> None:
    """The User's browser is sent there: an https URL, or a path on the issuer's host."""
    try:
        good = (page.startswith("/") and not page.startswith("//")) or read_url(page).scheme == "https"
        good = good and "#" not in page
    except UrlError:
        good = False
    if not good:
        raise ConfigurationError(
            f"sign_in_page is {page!r}, expected an https URL or a path such as /sign-in", rule="issuer.sign-in-page"
        )


@rule("issuer.client-documents")
def check_client_documents(draft: str) -> None:
    """4.1: whoever names a draft of client metadata documents is not moved to another one by an update."""
    try:
        acknowledge_draft(draft)
    except ValueError as error:
        raise ConfigurationError(f"client_documents: {error}", rule="issuer.client-documents") from None


@rule("issuer.some-sign-in")
def check_some_sign_in(direct: bool, device: bool) -> None:
    """4: an issuer that offers no sign-in type serves nobody."""
    if not direct and not device:
        raise ConfigurationError(
            "direct and device are both False; offer one of them, or build the Company without sign_in",
            rule="issuer.some-sign-in",
        )


@rule("issuer.bearer-only")
def check_bearer_only(bearer_only: Sequence[str], resources: Sequence[str]) -> None:
    """4.5: what is said about a service's tokens is said about a service that has tokens of its own."""
    for url in bearer_only:
        if url not in resources:
            raise ConfigurationError(
                f"bearer_only has {url!r}, expected some of the services with tokens of their own: {list(resources)}",
                rule="issuer.bearer-only",
            )


def issuer_terms(configuration: Configuration, offer: Offer) -> Terms:
    """What this issuer offers for this Company. Raises ConfigurationError."""
    services = _services(offer)
    check_bearer_only(configuration.bearer_only, services)
    resources: dict[str, str | None] = {fold_host(url): url for url in services}
    resources.update((fold_host(url), None) for url in offer.resources)
    return Terms(
        sign_in=frozenset(_types(configuration)),
        disabled=offer.sign_in_disabled,
        scopes=frozenset((*(scope.name for scope in offer.scopes), *configuration.unlisted_scopes)),
        resources=resources,
        bearer_only=frozenset(configuration.bearer_only),
        sign_in_allowed=configuration.sign_in_allowed,
        scope_allowed=configuration.scope_allowed,
    )


def server_document(configuration: Configuration, offer: Offer) -> dict[str, object]:
    """The authorization server metadata (RFC 8414 2): what Personal Agents read of it (3.2), and what others do."""
    root, types = configuration.root, _types(configuration)
    grants = {"direct": "authorization_code", "device": DEVICE_GRANT}
    document: dict[str, object] = {
        "issuer": configuration.issuer,
        "token_endpoint": configuration.token_endpoint,
        "token_endpoint_auth_methods_supported": ["private_key_jwt"],
        "token_endpoint_auth_signing_alg_values_supported": list(ASSERTION_ALGS),
        "revocation_endpoint": f"{root}/revoke",
        "revocation_endpoint_auth_methods_supported": ["private_key_jwt"],
        "revocation_endpoint_auth_signing_alg_values_supported": list(ASSERTION_ALGS),
        "grant_types_supported": ["refresh_token", *(grants[one] for one in types)],
        "response_types_supported": ["code"],
        "protected_resources": [*offer.resources, *_services(offer)],
        "client_id_metadata_document_supported": True,
    }
    if offer.scopes:
        document["scopes_supported"] = [scope.name for scope in offer.scopes]
    if configuration.direct:
        document |= {
            "authorization_endpoint": f"{root}/authorize",
            "response_modes_supported": ["query"],
            "code_challenge_methods_supported": [METHOD],
            "authorization_response_iss_parameter_supported": True,
        }
    if configuration.device:
        document["device_authorization_endpoint"] = f"{root}/device_authorization"
    if configuration.dpop:
        document["dpop_signing_alg_values_supported"] = list(PROOF_ALGS)
    return document


def _types(configuration: Configuration) -> tuple[SignInType, ...]:
    types: tuple[SignInType, ...] = ("direct", "device")
    return tuple(one for one in types if (configuration.direct if one == "direct" else configuration.device))


def _services(offer: Offer) -> tuple[str, ...]:
    """The services with tokens of their own; each MCP server is one (section 7)."""
    servers = (api.url for api in offer.apis if isinstance(api, Mcp))
    return tuple(dict.fromkeys((*offer.own_tokens, *servers)))
