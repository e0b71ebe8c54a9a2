"""A Company in a Starlette app: ahead of the app's own middleware and routes, its turns in the app's lifespan."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import URLPath
from starlette.middleware import Middleware
from starlette.requests import Request as StarletteRequest
from starlette.responses import Response as StarletteResponse
from starlette.routing import BaseRoute, Match, NoMatchFound

from papaver.adapters.asgi import ASGIApp, CompanyEndpoint, Receive, Scope, Send, path_of, seen_of
from papaver.adapters.guards import check_signed_in
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.adapters.running import running
from papaver.company.app import Company
from papaver.ports.telemetry import Telemetry
from papaver.protocol.errors import ConfigurationError, PoppyError
from papaver.protocol.session import VerifiedSession
from papaver.protocol.signed_in import OAuthCaller, SignedInSession
from papaver.values.rules import rule
from papaver.web.messages import Response

__all__ = ["CompanyRoute", "Mounted", "Poppy", "check_distinct"]

ASKED = "papaver.company"
"""Where a request's scope says which Company was asked to verify it."""


class CompanyRoute(BaseRoute):
    """Matches what the Company owns, on its hosts and paths only; goes in front of an app's catch-alls."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self._endpoint = CompanyEndpoint(company)

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        if scope["type"] != "http":
            return Match.NONE, {}
        host = next((value.decode("latin-1") for name, value in scope["headers"] if name == b"host"), "")
        path = path_of(scope)
        if self.company.owns(host, path):
            return Match.FULL, {}
        others = getattr(getattr(scope.get("app"), "router", None), "routes", [])
        if not any(isinstance(other, CompanyRoute) and other.company.owns(host, path) for other in others):
            self.company.note_unowned(host, path)
        return Match.NONE, {}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._endpoint(scope, receive, send)


@rule("configuration.distinct-companies")
def check_distinct(company: Company, others: list[Company]) -> None:
    """Two Companies of one app answer at different paths, and for different domains."""
    for other in others:
        shared = set(company.offer.all_domains) & set(other.offer.all_domains)
        if company.offer.path == other.offer.path or company.id == other.id or shared:
            raise ConfigurationError(
                f"{company.offer.name} and {other.offer.name} share a path ({company.offer.path or '/'}), a domain "
                f"({company.offer.domain}) or an issuer in one app; give each its own base_url, domain and issuer",
                rule="configuration.distinct-companies",
            )


class Mounted:
    """A Company in front of an app's middleware and routes, in its lifespan, and among its exception handlers.

    No middleware of the app sees a request to the Company: it could read the body before the Session is judged, or hold
    back what is held open. The app's route for it stays, for whoever serves the app's router alone.
    """

    def __init__(
        self,
        app: Starlette,
        company: Company,
        *,
        network: NetworkSettings | None = None,
        turns: bool = True,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.company = company
        check_distinct(company, [route.company for route in app.router.routes if isinstance(route, CompanyRoute)])
        app.router.routes.insert(0, CompanyRoute(company))
        build = app.build_middleware_stack

        def outermost() -> ASGIApp:
            """Built at the first request, when every middleware of the app is known: ahead of the last added, too."""
            app.user_middleware.insert(0, Middleware(lambda inner: CompanyEndpoint(company, inner)))
            return build()

        app.build_middleware_stack = outermost
        app.add_exception_handler(PoppyError, self._refused)
        around = app.router.lifespan_context

        @asynccontextmanager
        async def lifespan(inner: Any) -> AsyncGenerator[Any]:
            async with running(company, network=network, turns=turns, telemetry=telemetry), around(inner) as state:
                yield state

        app.router.lifespan_context = lifespan

    async def verified(self, request: StarletteRequest) -> VerifiedSession:
        """The verified Session of a request to the app's own API (5.3); raises a PoppyError, answered by section 7."""
        request.scope[ASKED] = self.company
        return await self.company.verify_api(seen_of(request.scope, request.receive))

    async def verified_signed_in(self, request: StarletteRequest, *scopes: str) -> SignedInSession:
        """As `verified`, with the User's account and these scopes; a refusal names them (5.4, 7)."""
        request.scope[ASKED] = self.company
        return await self.company.verify_signed_in(seen_of(request.scope, request.receive), *scopes)

    async def caller(self, request: StarletteRequest, *scopes: str) -> OAuthCaller:
        """Who a request is from, by its access token alone, where no Session is used (5.3)."""
        request.scope[ASKED] = self.company
        return await self.company.verify_without_session(seen_of(request.scope, request.receive), *scopes)

    async def _refused(self, request: StarletteRequest, error: Exception) -> StarletteResponse:
        """One handler for all Companies of an app: each writes the refusals of the requests it was asked about."""
        if not isinstance(error, PoppyError):
            raise error
        company: Company = request.scope.get(ASKED, self.company)
        return to_starlette(company.api_error(error, seen_of(request.scope, request.receive)))


class Poppy(Mounted):
    """Adds a Company to an app: discovery, conversations and errors; turns run while the app's lifespan does.

    `Poppy(app, company)` may be called for several Companies. `network` is for local work (`--resolve`, `--ca-file`).
    """

    async def session(self, request: StarletteRequest) -> VerifiedSession:
        """`await poppy.session(request)` in a route: see `Mounted.verified`."""
        return await self.verified(request)

    async def signed_in(self, request: StarletteRequest, *scopes: str) -> SignedInSession:
        """`await poppy.signed_in(request, "orders:read")`: a Session with the User's account and these scopes."""
        check_signed_in(self.company, scopes)
        return await self.verified_signed_in(request, *scopes)

    async def unverified(self, request: StarletteRequest, *scopes: str) -> OAuthCaller:
        """For a route that uses no Session: its header is not looked at, an access token is (5.3)."""
        return await self.caller(request, *scopes)


def to_starlette(response: Response) -> StarletteResponse:
    """The same response, as Starlette's."""
    answer = StarletteResponse(response.body, response.status)
    for name, value in response.headers:
        answer.headers.append(name, value)
    return answer
