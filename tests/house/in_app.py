"""Requests to an app in this process, with no socket between."""

from __future__ import annotations

from typing import Any

import httpx2

from papaver.adapters.asgi import ASGIApp
from papaver.testing.company import CompanyBench

__all__ = ["ask", "session_header"]


async def ask(
    app: ASGIApp, method: str, url: str, body: object = None, *, peer: str = "192.0.2.7", **headers: str
) -> httpx2.Response:
    """One request to an app in this process; `_` in a header's name is a hyphen."""
    transport = httpx2.ASGITransport(app, client=(peer, 4711))
    async with httpx2.AsyncClient(transport=transport) as client:
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        return await client.request(method, url, headers=sent, json=body)


def session_header(bench: CompanyBench, method: str, url: str, **claims: Any) -> str:
    """The value of the header that this agent would send."""
    return bench.agent.header(method, url, bench.company.id, now=bench.clock.now(), **claims)
