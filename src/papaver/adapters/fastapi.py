"""A Company in a FastAPI app: as in Starlette, and its Sessions as dependencies."""

from __future__ import annotations

from typing import Any

from fastapi import Depends, FastAPI, Request

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
        """A dependency: the verified Session of the request, signed out or in; refusals leave by section 7's table."""

        async def verified(request: Request) -> VerifiedSession:
            return await self.verified(request)

        return Depends(verified)
