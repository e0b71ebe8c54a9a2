"""A Company whose issuer is somebody else's OAuth server (3.2): its tokens verified, its metadata completed."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast
from urllib.parse import quote_plus

from papaver.company.incoming import Incoming
from papaver.company.issuer_documents import IssuerDocuments
from papaver.company.issuer_tokens import IntrospectedTokens, JwtTokens
from papaver.company.sign_in import IssuerParts, TokenVerifier
from papaver.oauth.access_tokens import AT_JWT, TokenProfile
from papaver.oauth.errors import InvalidMetadata
from papaver.oauth.metadata import check_issuer_identifier
from papaver.protocol.errors import ConfigurationError, TemporarilyUnavailable
from papaver.values import strict_json
from papaver.values.rules import rule
from papaver.values.secret import Secret
from papaver.web.messages import Headers, Response
from papaver.web.urls import UrlError, authorization_server_metadata_url, check_https, read_url

__all__ = ["ExternalIssuer", "Introspection", "check_external"]

JSON = ("content-type", "application/json")
NO_STORE = ("cache-control", "no-store")
SHORT = ("cache-control", "public, max-age=300")


@dataclass(frozen=True, slots=True)
class Introspection:
    """The issuer's introspection endpoint (RFC 7662), and what this Company authenticates there with.

    `authorization`  the whole field value, such as `Bearer …`; `Introspection.basic` makes one of a client's secret

    It is asked once for each request. An endpoint on a private address has to be named in `NetworkSettings.resolve`.
    """

    url: str
    authorization: Secret | None = field(default=None, repr=False)

    @classmethod
    def basic(cls, url: str, client_id: str, client_secret: Secret) -> Introspection:
        """With a client of the issuer that is this Company's own (RFC 6749 2.3.1)."""
        pair = f"{quote_plus(client_id)}:{quote_plus(client_secret.reveal())}".encode()
        return cls(url, Secret(f"Basic {base64.b64encode(pair).decode('ascii')}"))


@rule("configuration.external-issuer")
def check_external(issuer: str, urls: Mapping[str, str | None], ways: int) -> None:
    """3.2, RFC 8414 2: an issuer is an https URL without query and fragment; tokens are judged in one way."""
    try:
        check_issuer_identifier(issuer)
    except InvalidMetadata as error:
        raise ConfigurationError(
            f"the issuer is {issuer!r}; expected an https URL without query and fragment, exactly as its metadata says",
            rule="configuration.external-issuer",
            detail=error.description,
        ) from None
    for name, url in urls.items():
        try:
            if url is not None:
                check_https(url)
        except UrlError:
            raise ConfigurationError(
                f"{name} is {url!r}, expected an https URL", rule="configuration.external-issuer"
            ) from None
    if ways > 1:
        raise ConfigurationError(
            "give one of jwks_uri, introspection and verifier: a token is judged in one way",
            rule="configuration.external-issuer",
        )


class ExternalIssuer:
    """`Company(sign_in=ExternalIssuer("https://auth.example.com"))`: tokens are RFC 9068's, unless said otherwise.

    `issuer`         exactly as its metadata says it, with or without a trailing slash
    `jwks_uri`       of its keys; None: the one that its metadata names
    `introspection`  the issuer is asked about each token instead
    `verifier`       judges tokens instead
    `audience`       `aud` of tokens that are good at all of the Company's services; the domains' URLs always are
    `profile`        how it writes its tokens, where that is not RFC 9068's way
    `dpop`           whether it may bind tokens to DPoP keys
    `publish_metadata`  the Company serves the issuer's metadata at its RFC 8414 URL, completed with
                     `protected_resources` and `metadata`; a proxy hands that path on. It is read from `upstream`,
                     usually the issuer's OpenID configuration
    `authorization_endpoint`, `token_endpoint`  for the OpenAPI description of the app
    """

    shows_pages = False

    def __init__(
        self,
        issuer: str,
        *,
        jwks_uri: str | None = None,
        introspection: Introspection | None = None,
        verifier: TokenVerifier | None = None,
        audience: Sequence[str] = (),
        profile: TokenProfile = AT_JWT,
        dpop: bool = True,
        publish_metadata: bool = False,
        upstream: str | None = None,
        metadata: Mapping[str, object] | None = None,
        authorization_endpoint: str | None = None,
        token_endpoint: str | None = None,
    ) -> None:
        urls = {
            "jwks_uri": jwks_uri,
            "introspection": None if introspection is None else introspection.url,
            "upstream": upstream,
            "authorization_endpoint": authorization_endpoint,
            "token_endpoint": token_endpoint,
        }
        check_external(issuer, urls, sum(one is not None for one in (jwks_uri, introspection, verifier)))
        self.issuer, self.jwks_uri, self.introspection, self.audience = issuer, jwks_uri, introspection, tuple(audience)
        self.profile, self.dpop, self.publish_metadata = profile, dpop, publish_metadata
        self.upstream, self.metadata, self._verifier = upstream, dict(metadata or {}), verifier
        base = issuer.rstrip("/")
        self.authorization_endpoint = authorization_endpoint or f"{base}/authorize"
        self.token_endpoint = token_endpoint or f"{base}/token"

    @property
    def sources(self) -> tuple[str, ...]:
        """Where its own metadata is looked for, in this order (RFC 8414 3.1; OpenID Connect Discovery 4)."""
        openid = f"{self.issuer.rstrip('/')}/.well-known/openid-configuration"
        if self.upstream is not None:
            return (self.upstream,)
        if self.publish_metadata:
            return (openid,)
        return (authorization_server_metadata_url(self.issuer), openid)

    def completed(self, document: Mapping[str, object], resources: Sequence[str]) -> dict[str, object]:
        """Upstream metadata with what the Company adds: `resources`, and what the operator said."""
        listed = document.get("protected_resources")
        before = cast("list[object]", listed) if isinstance(listed, list) else []
        added = [*before, *(one for one in resources if one not in before)]
        return {**document, **self.metadata, "issuer": self.issuer, "protected_resources": added}

    def run(self, parts: IssuerParts) -> RunningExternal:
        """See `SignIn`."""
        documents = IssuerDocuments(self.issuer, self.sources, self.jwks_uri, parts)
        return RunningExternal(self, documents, self._verifier or self._made(documents, parts), parts)

    def _made(self, documents: IssuerDocuments, parts: IssuerParts) -> TokenVerifier:
        usual = parts.offer.resources[0]
        if self.introspection is None:
            return JwtTokens(self.issuer, documents, self.audience, usual, self.profile, parts.clock, parts.limits)
        asked = self.introspection
        if parts.poster is None:
            raise ConfigurationError(
                "introspection needs a way to the issuer; run the Company with an adapter",
                rule="configuration.external-issuer",
            )
        return IntrospectedTokens(
            self.issuer,
            asked.url,
            asked.authorization,
            self.audience,
            usual,
            self.profile,
            parts.poster,
            parts.clock,
            parts.limits,
        )


class RunningExternal:
    """An external issuer while its Company runs: see `RunningIssuer`."""

    def __init__(
        self, issuer: ExternalIssuer, documents: IssuerDocuments, verifier: TokenVerifier, parts: IssuerParts
    ) -> None:
        self._issuer, self._documents, self._verifier, self._parts = issuer, documents, verifier, parts
        place = read_url(authorization_server_metadata_url(issuer.issuer))
        self._place = (place.host, place.path) if issuer.publish_metadata else None

    @property
    def verifier(self) -> TokenVerifier:
        return self._verifier

    def owns(self, host: str, path: str) -> bool:
        name, _, port = host.rpartition(":")
        return ((name if port.isdecimal() else host).lower(), path) == self._place

    async def answer(self, incoming: Incoming) -> Response:
        """The issuer's metadata with what it lacks (3.2); 503 while it cannot be read."""
        if incoming.method not in ("GET", "HEAD"):
            headers = Headers([("allow", "GET, HEAD"), JSON, NO_STORE])
            return Response(405, headers, strict_json.dumps({"error": "method_not_allowed"}))
        try:
            document = await self._documents.metadata()
        except TemporarilyUnavailable as error:
            headers = Headers([JSON, NO_STORE, ("retry-after", str(error.retry_after))])
            return Response(503, headers, strict_json.dumps({"error": error.code}))
        completed = self._issuer.completed(document, self._parts.offer.protected_resources)
        return Response(200, Headers([JSON, SHORT]), strict_json.dumps(completed))

    async def sweep(self) -> None:
        """Forget DPoP proofs that were used, and which account an old Session used."""
        now = self._parts.clock.now()
        await self._parts.tables.grants.sweep(now, forget_before=now)
