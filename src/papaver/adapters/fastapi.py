"""A Company in a FastAPI app: as in Starlette, and its Sessions and accounts as dependencies."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import signature
from typing import Any

from fastapi import Depends, FastAPI, Request, Response, Security
from fastapi.security import OAuth2AuthorizationCodeBearer

from papaver.adapters.guards import check_signed_in
from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.adapters.starlette import Mounted
from papaver.company.app import Company
from papaver.ports.telemetry import Telemetry
from papaver.protocol.session import VerifiedSession
from papaver.protocol.signed_in import OAuthCaller, SignedInSession

__all__ = ["Poppy"]


class Poppy(Mounted):
    """Adds a Company to a FastAPI app.

    poppy = Poppy(app, company)

    @app.get("/cart")
    async def cart(session: Annotated[VerifiedSession, poppy.session()]) -> Cart: ...

    @app.get("/orders")
    async def orders(session: Annotated[SignedInSession, poppy.signed_in("orders:read")]) -> list[Order]: ...
    """

    def __init__(
        self,
        app: FastAPI,
        company: Company,
        *,
        network: NetworkSettings | None = None,
        turns: bool = True,
        telemetry: Telemetry | None = None,
    ) -> None:
        super().__init__(app, company, network=network, turns=turns, telemetry=telemetry)

    def session(self) -> Any:
        """A dependency: the verified Session of the request, signed out or in; refusals leave by section 7's table.

        Answers to a version that ends say so in `Deprecation` and `Sunset` (3.4).
        """

        async def verified(request: Request, response: Response) -> VerifiedSession:
            session = await self.verified(request)
            self._tell_retirement(session, response)
            return session

        return Depends(verified)

    def signed_in(self, *scopes: str) -> Any:
        """A dependency: the Session of a signed-in User whose access token has these scopes (5.4, 7).

        They appear in the app's OpenAPI description, as scopes of the Company's OAuth 2.0 scheme (4.7).
        Raises ConfigurationError without a scope, and at a Company without an issuer.
        """
        check_signed_in(self.company, scopes)

        async def verified(request: Request, response: Response) -> SignedInSession:
            session = await self.verified_signed_in(request, *scopes)
            self._tell_retirement(session, response)
            return session

        return Security(_Guard(self.company, verified), scopes=list(scopes))

    def unverified(self, *scopes: str) -> Any:
        """A dependency for a route that uses no Session: who it is from, by the access token alone (5.3).

        The Session header is not looked at, and nothing of it is there. Token, scopes and DPoP proof are checked;
        signed out is enough where no scope is named.
        """
        if not scopes:

            async def anybody(request: Request) -> OAuthCaller:
                return await self.caller(request)

            return Depends(anybody)
        check_signed_in(self.company, scopes)

        async def somebody(request: Request) -> OAuthCaller:
            return await self.caller(request, *scopes)

        return Security(_Guard(self.company, somebody), scopes=list(scopes))

    def _tell_retirement(self, session: VerifiedSession, response: Response) -> None:
        for name, value in self.company.retirement(session):
            response.headers[name] = value


class _Guard(OAuth2AuthorizationCodeBearer):
    """A dependency that is the Company's OAuth 2.0 scheme for OpenAPI as well, and reads the request in our way.

    One dependency and not two, because FastAPI resolves each of them for each request.
    """

    def __init__(self, company: Company, verify: Callable[..., Awaitable[Any]]) -> None:
        assert company.sign_in is not None
        super().__init__(
            company.sign_in.authorization_endpoint,
            company.sign_in.token_endpoint,
            refreshUrl=company.sign_in.token_endpoint,
            scopes={scope.name: scope.description for scope in company.offer.scopes},
            scheme_name=f"poppy-{company.offer.domain}",
        )
        self._verify = verify
        self.__signature__ = signature(verify, eval_str=True)

    async def __call__(self, request: Any, response: Response | None = None) -> Any:
        return await (self._verify(request) if response is None else self._verify(request, response))
