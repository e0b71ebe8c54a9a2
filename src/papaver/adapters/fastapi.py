"""A Company in a FastAPI app: as in Starlette, and its Sessions as dependencies."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI, Request, Response

from papaver.adapters.httpx2.resolve_map import NetworkSettings
from papaver.adapters.starlette import Mounted
from papaver.company.app import Company
from papaver.protocol.session import VerifiedSession

__all__ = ["Poppy"]


class Poppy(Mounted):
    """Adds a Company to a FastAPI app.

    poppy = Poppy(app, company)

    @app.get("/cart")
    async def cart(session: Annotated[VerifiedSession, poppy.session()]) -> Cart: ...
    """

    def __init__(
        self, app: FastAPI, company: Company, *, network: NetworkSettings | None = None, turns: bool = True
    ) -> None:
        super().__init__(app, company, network=network, turns=turns)

    def session(self) -> Any:
        """A dependency: the verified Session of the request, signed out or in; refusals leave by section 7's table.

        Answers to a version that ends say so in `Deprecation` and `Sunset` (3.4).
        """

        async def verified(request: Request, response: Response) -> VerifiedSession:
            session = await self.verified(request)
            for name, value in self.company.retirement(session):
                response.headers[name] = value
            return session

        return Depends(verified)
