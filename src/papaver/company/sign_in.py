"""How a Company offers account access: the seam between it and its issuer, its own or somebody else's (3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from papaver.company.clients import Clients
from papaver.company.incoming import Incoming
from papaver.company.offer import Offer
from papaver.company.scopes import Scope
from papaver.company.settings import CompanyLimits
from papaver.oauth.access_tokens import AccessToken
from papaver.ports.company import CompanyTables
from papaver.ports.pages import Pages
from papaver.ports.personal_agent import Poster
from papaver.ports.system import Clock, Fetcher, Ids
from papaver.protocol.errors import InvalidToken
from papaver.web.messages import Response

__all__ = ["IssuerParts", "RunningIssuer", "Scope", "SignIn", "TokenForgotten", "TokenVerifier"]


class TokenForgotten(InvalidToken):
    """A token was good once, and its issuer cannot be asked again: this process does not have it any more."""


class TokenVerifier(Protocol):
    """Judges access tokens. What it returns was valid a moment ago."""

    async def verify(self, token: str) -> AccessToken:
        """Raises InvalidToken for a token that is none, expired or revoked; TemporarilyUnavailable."""
        ...

    async def recheck(self, ath: str, token: AccessToken) -> None:
        """Whether a token that was verified before is still good; `ath` is its hash (readings 3).

        Raises InvalidToken, of which TokenForgotten, and TemporarilyUnavailable.
        """
        ...


@dataclass(frozen=True, slots=True)
class IssuerParts:
    """What an issuer takes from the Company that runs it.

    `pages`   None where no adapter brings web pages      `poster`  the way to an introspection endpoint, where asked
    """

    offer: Offer
    tables: CompanyTables
    clients: Clients
    clock: Clock
    ids: Ids
    fetcher: Fetcher
    limits: CompanyLimits
    pages: Pages | None
    poster: Poster | None = None


class RunningIssuer(Protocol):
    """An issuer while its Company runs."""

    @property
    def verifier(self) -> TokenVerifier: ...

    def owns(self, host: str, path: str) -> bool:
        """Whether a request is this issuer's: on its own host, one of its paths."""
        ...

    async def answer(self, incoming: Incoming) -> Response:
        """Answer a request that it owns."""
        ...

    async def sweep(self) -> None:
        """Delete what is over."""
        ...


class SignIn(Protocol):
    """What `Company(sign_in=…)` takes: an `EmbeddedIssuer` or an `ExternalIssuer`."""

    @property
    def issuer(self) -> str:
        """The issuer identifier, exactly as its metadata says it."""
        ...

    @property
    def authorization_endpoint(self) -> str:
        """For the app's own OpenAPI description."""
        ...

    @property
    def token_endpoint(self) -> str:
        """For the app's own OpenAPI description."""
        ...

    @property
    def dpop(self) -> bool:
        """Whether it may bind access tokens to DPoP keys, so that the Company's services take that scheme, too."""
        ...

    @property
    def shows_pages(self) -> bool:
        """Whether it shows pages of its own to Users, so that an adapter has to bring them."""
        ...

    def run(self, parts: IssuerParts) -> RunningIssuer: ...
