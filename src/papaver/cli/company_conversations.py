"""`papaver company conversations|erase-user`: what is stored about whom, and its erasure, while the Company runs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

import click

from papaver.cli.company_options import company_options
from papaver.cli.config import find, the_company
from papaver.cli.failures import CliError
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.table import show_table
from papaver.company.app import Company
from papaver.oauth.client_metadata import check_client_id
from papaver.ports.company import CompanyTables, Erased
from papaver.protocol.conversation.model import Responder
from papaver.protocol.conversation.state import Head
from papaver.protocol.terms import ClientId, UserId

__all__ = ["conversations", "erase_user"]

R = TypeVar("R")
AT_ONCE = 500


@command("conversations", network=False, example="papaver company conversations --config papaver.toml")
@click.option("--client", metavar="URL", help="Only those of the Personal Agent with this client_id.")
@click.option("--user", metavar="ID", help="Only those of this User ID; needs --client.")
@click.option("--limit", type=click.IntRange(min=1), default=100, show_default=True, help="How many at most.")
@company_options
def conversations(
    run: Run, client: str | None, user: str | None, limit: int, config: Path | None, target: str | None
) -> None:
    """List conversations: whose they are, how they stand, how much is kept of them. No message is shown."""
    if user is not None and client is None:
        raise CliError("--user without --client", code="usage", next="a User ID means something at one client only")
    company = the_company(find(config, target))
    heads = asyncio.run(_with(company, lambda tables: _heads(tables, client, user, limit + 1)))
    for head in heads[:limit]:
        run.line(
            conversation_id=head.id,
            client_id=head.client_id,
            user_id=head.user_id,
            account_id=head.account_id,
            status=head.status.value,
            responder=head.responder.value,
            person=_person(head),
            parent=head.parent,
            events=head.last_seq - head.first_seq + 1,
            created_at=_time(head.created_at),
            changed_at=_time(head.changed_at),
        )
    show_table(
        run,
        ("conversation", "client", "user", "account", "status", "events", "changed"),
        [
            (
                head.id,
                head.client_id,
                head.user_id,
                head.account_id or "-",
                head.status.value if head.responder is Responder.AGENT else f"{head.status.value}, {_person(head)}",
                str(head.last_seq - head.first_seq + 1),
                _time(head.changed_at),
            )
            for head in heads[:limit]
        ],
    )
    if not heads:
        run.say("There are no conversations.")
    if len(heads) > limit:
        run.note(f"there are more than {limit}; --limit shows more of them, --client and --user fewer")


@command("erase-user", network=False, example="papaver company erase-user https://agent.example/agent.json u_7f3a")
@click.argument("client_id", metavar="CLIENT_ID")
@click.argument("user_id", metavar="USER_ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@company_options
def erase_user(run: Run, client_id: str, user_id: str, yes: bool, config: Path | None, target: str | None) -> None:
    """Delete every conversation of a User, with all that belongs to it, and their Sessions. It cannot be undone.

    What the User did in the app itself, their grants and your backups are not touched.
    """
    check_client_id(client_id)
    company = the_company(find(config, target))
    found = asyncio.run(_with(company, lambda tables: _heads(tables, client_id, user_id, AT_ONCE)))
    if not yes and not _confirmed(len(found)):
        raise CliError("nothing was erased", code="not_confirmed", next="--yes erases without asking")
    erased: Erased = asyncio.run(_with(company, lambda tables: tables.erase(ClientId(client_id), UserId(user_id))))
    run.line(
        client_id=client_id,
        user_id=user_id,
        conversations=erased.conversations,
        events=erased.events,
        sessions=erased.sessions,
    )
    run.say(
        f"Erased: {erased.conversations} conversations with {erased.events} events, {erased.sessions} Sessions, "
        "of {user} at {client}.",
        user=user_id,
        client=client_id,
    )
    if not (erased.conversations or erased.sessions):
        run.note("nothing was there: compare both ids with `papaver company conversations`, character for character")


def _confirmed(count: int) -> bool:
    """Without a terminal the answer is no."""
    if not sys.stdin.isatty():
        return False
    more = "at least " if count == AT_ONCE else ""
    return click.confirm(f"Erase {more}{count} conversations for ever?", default=False, err=True)


async def _with(company: Company, work: Callable[[CompanyTables], Awaitable[R]]) -> R:
    await company.store.open()
    try:
        return await work(await company.store.tables(company.id))
    finally:
        await company.store.close()


async def _heads(tables: CompanyTables, client: str | None, user: str | None, limit: int) -> list[Head]:
    found: list[Head] = []
    while len(found) < limit:
        some = await tables.log.listed(
            client_id=None if client is None else ClientId(client),
            user_id=None if user is None else UserId(user),
            after=found[-1].id if found else None,
            limit=min(AT_ONCE, limit - len(found)),
        )
        if not some:
            break
        found += some
    return found


def _person(head: Head) -> str | None:
    return None if head.person is None or head.responder is Responder.AGENT else head.person.name or head.person.id


def _time(at: datetime) -> str:
    return at.astimezone(UTC).isoformat(timespec="seconds")
