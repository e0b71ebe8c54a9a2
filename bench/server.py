"""The server process of the server figures: a trivial JSON POST, and on request a Company in front of it.

Both arms are uvicorn with uvloop and httptools. The Company is mounted as an ASGI app, `running(company)`.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route

from bench.accounts import ISSUER, JWKS_URI, SCOPE
from bench.agent import DOMAIN
from bench.in_postgres import dsn
from papaver.adapters.asgi import CompanyEndpoint
from papaver.adapters.fastapi import Poppy
from papaver.adapters.running import running
from papaver.company import (
    Company,
    CompanyLimits,
    EmbeddedIssuer,
    ExternalIssuer,
    IssuerLimits,
    Scope,
    SignedInSession,
    Turn,
    VerifiedSession,
)
from papaver.ports.company import CompanyStore
from papaver.stores.postgres import PostgresStore
from papaver.stores.sqlite import SqliteStore
from papaver.testing.company import Documents

__all__: list[str] = []

HIGH = 10**9
# Every check is on and every rate is counted; the limits are too high to bite.
LIMITS = CompanyLimits(requests_per_client=HIGH, requests_per_user=HIGH, requests_per_address=HIGH, held_per_user=HIGH)


async def trivial(request: Request) -> JSONResponse:
    body = await request.json()
    return JSONResponse({"conversation_id": body["message"]["id"], "status": "working", "responder": "agent"}, 202)


def issuer_of(kind: str | None) -> EmbeddedIssuer | ExternalIssuer | None:
    if kind == "embedded":
        limits = IssuerLimits(requests_per_address=HIGH)
        return EmbeddedIssuer(ISSUER, sign_in_page=f"https://{DOMAIN}/sign-in", limits=limits)
    return ExternalIssuer(ISSUER, jwks_uri=JWKS_URI) if kind == "external" else None


def company_of(store: CompanyStore, victim: Path | None, issuer: str | None = None) -> Company:
    """An echoing Company. A turn that reads `die` kills this process, once: when the file `victim` is there."""
    sign_in = issuer_of(issuer)
    company = Company(
        domain=DOMAIN,
        name="Bench",
        base_url=f"https://{DOMAIN}/poppy",
        store=store,
        limits=LIMITS,
        sign_in=sign_in,
        scopes=() if sign_in is None else (Scope(SCOPE, "See your orders", "none", True),),
    )

    @company.conversation
    async def echo(turn: Turn) -> str:
        if turn.text == "die":
            die_once(victim)
        return f"You said: {turn.text}"

    return company


def die_once(victim: Path | None) -> None:
    if victim is not None and victim.exists():
        victim.unlink()
        os.kill(os.getpid(), signal.SIGKILL)


def in_fastapi(company: Company) -> FastAPI:
    """One JSON route three times: plain, behind `session()`, and behind `signed_in(…)`."""
    app = FastAPI()
    poppy = Poppy(app, company)
    verified, accounted = poppy.session(), poppy.signed_in(SCOPE)

    @app.get("/plain")
    async def plain() -> dict[str, str]:
        return {"account": "acct_0001"}

    @app.get("/session")
    async def with_session(session: VerifiedSession = verified) -> dict[str, str]:
        return {"account": session.user_id}

    @app.get("/signed-in")
    async def with_account(session: SignedInSession = accounted) -> dict[str, str]:
        return {"account": session.account_id}

    return app


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--core", type=int, required=True)
    parser.add_argument("--store", type=Path, help="run a Company on this file")
    parser.add_argument("--postgres", metavar="SCHEMA", help="run it on this schema instead")
    parser.add_argument("--documents", type=Path, help="JSON: what its client publishes")
    parser.add_argument("--no-turns", action="store_true")
    parser.add_argument("--victim", type=Path)
    parser.add_argument("--issuer", choices=("embedded", "external"), help="give the Company an issuer")
    parser.add_argument("--fastapi", action="store_true", help="in a FastAPI app; its client is in the store already")
    options = parser.parse_args()
    os.sched_setaffinity(0, {options.core})
    routes = [Route("/trivial", trivial, methods=["POST"])]
    if options.store is None and options.postgres is None:
        serve(uvicorn.Config(Starlette(routes=routes)))
        return
    in_postgres: str | None = options.postgres
    store = SqliteStore(str(options.store)) if in_postgres is None else PostgresStore(dsn(), schema=in_postgres)
    company = company_of(store, options.victim, options.issuer)
    if options.fastapi:
        serve(uvicorn.Config(in_fastapi(company)))
        return
    published = Documents()
    published.bodies = {url: body.encode() for url, body in json.loads(options.documents.read_text()).items()}

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncGenerator[None]:
        async with running(company, fetcher=published, turns=not options.no_turns):
            yield

    serve(uvicorn.Config(CompanyEndpoint(company, otherwise=Starlette(routes=routes, lifespan=lifespan))))


class Announcing(uvicorn.Server):
    """Says on standard output where it listens."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        if self.started:
            print("port", self.servers[0].sockets[0].getsockname()[1], flush=True)


def serve(config: uvicorn.Config) -> None:
    config.port, config.access_log, config.backlog = 0, False, 4096
    config.log_level = "warning"
    config.configure_logging()
    Announcing(config).run()


if __name__ == "__main__":
    main()
