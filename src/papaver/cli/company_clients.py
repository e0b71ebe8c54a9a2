"""`papaver company clients|allow|block`: which Personal Agents are accepted, also while the Company runs."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from papaver.cli.company_options import company_options
from papaver.cli.config import find, the_company
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.table import show_table
from papaver.company.app import Company
from papaver.oauth.client_metadata import check_client_id
from papaver.ports.company import ClientRow
from papaver.protocol.terms import ClientId

__all__ = ["allow", "block", "clients"]

Verdict = Literal["allowed", "blocked"]


@command("clients", network=False, example="papaver company clients --config papaver.toml")
@company_options
def clients(run: Run, config: Path | None, target: str | None) -> None:
    """List the Personal Agents whose signature verified here, and those you allowed or blocked."""
    rows = asyncio.run(_rows(the_company(find(config, target))))
    for row in rows:
        run.line(client_id=row.client_id, verdict=row.verdict, seen_at=_seen(row))
    show_table(
        run,
        ("client_id", "verdict", "last seen"),
        [(row.client_id, row.verdict or "-", _seen(row) or "never") for row in rows],
    )
    if not rows:
        run.say("No Personal Agent has been here yet.")


@command("allow", network=False, example="papaver company allow https://agent.example/agent.json")
@click.argument("client_id", metavar="URL")
@company_options
def allow(run: Run, client_id: str, config: Path | None, target: str | None) -> None:
    """Accept the Personal Agent whose client_id is URL, from its next request on."""
    _judge(run, the_company(find(config, target)), client_id, "allowed")


@command("block", network=False, example="papaver company block https://agent.example/agent.json")
@click.argument("client_id", metavar="URL")
@company_options
def block(run: Run, client_id: str, config: Path | None, target: str | None) -> None:
    """Refuse the Personal Agent whose client_id is URL, from its next request on."""
    _judge(run, the_company(find(config, target)), client_id, "blocked")


def _judge(run: Run, company: Company, client_id: str, verdict: Verdict) -> None:
    check_client_id(client_id)
    seen = asyncio.run(_note(company, ClientId(client_id), verdict))
    run.line(client_id=client_id, verdict=verdict)
    run.say(f"{{client}} is {verdict} at {{company}} from its next request on.", client=client_id, company=company.id)
    if not seen:
        run.note("not seen here yet: compare it with the client_id of the Personal Agent, character for character")


async def _rows(company: Company) -> tuple[ClientRow, ...]:
    await company.store.open()
    try:
        return await (await company.store.tables(company.id)).clients.clients()
    finally:
        await company.store.close()


async def _note(company: Company, client_id: ClientId, verdict: Verdict) -> bool:
    """Note the verdict → whether the client was seen here before."""
    await company.store.open()
    try:
        clients = (await company.store.tables(company.id)).clients
        seen = any(row.client_id == client_id and row.seen_at is not None for row in await clients.clients())
        await clients.judge(client_id, verdict)
    finally:
        await company.store.close()
    return seen


def _seen(row: ClientRow) -> str | None:
    return None if row.seen_at is None else datetime.fromtimestamp(row.seen_at, UTC).isoformat(timespec="seconds")
