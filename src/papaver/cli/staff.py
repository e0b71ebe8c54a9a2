"""`papaver staff`: the group of what people do who take conversations over, and the queue."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from pathlib import Path
from typing import Final

import click

from papaver.cli.company_options import company_options
from papaver.cli.config import find, the_company
from papaver.cli.lazy import Entry, LazyGroup
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.table import show_table
from papaver.company.app import Company
from papaver.company.staff import Attended, Queue
from papaver.protocol.conversation.model import Author

__all__ = ["queue", "staff"]

ENTRIES: Final = {
    "queue": Entry("papaver.cli.staff:queue", "Who waits for a person, the longest first."),
    "join": Entry("papaver.cli.staff_join:join", "Take a conversation over and answer in it."),
}


@click.command("staff", cls=LazyGroup, entries=ENTRIES, epilog="\b\nExample:\n  $ papaver staff queue")
def staff() -> None:
    """Take conversations over from the Company Agent; a page of the running Company does the same.

    Each takes --config FILE (else papaver.toml here), or MODULE:NAME, and works on the store of the running Company.
    """


@command("queue", network=False, example="papaver staff queue --config papaver.toml")
@company_options
def queue(run: Run, config: Path | None, target: str | None) -> None:
    """List the conversations in which a person is waited for, the longest first, and those that somebody has."""
    company = the_company(find(config, target))
    found, now = asyncio.run(_queue(company)), time.time()
    rows = found.rows
    for row in rows:
        run.line(
            conversation_id=row.conversation_id,
            client_id=row.client_id,
            user_id=row.user_id,
            account_id=row.account_id,
            status=row.status.value,
            responder=row.responder.value,
            person=None if row.person is None else {"id": row.person.id, "name": row.person.name},
            since=row.since.isoformat(timespec="seconds"),
            direct=row.direct,
            parent=row.parent,
        )
    show_table(
        run,
        ("conversation", "client", "person", "since"),
        [(row.conversation_id, row.client_id, _who(row.person), _ago(row, now)) for row in rows],
    )
    if not rows:
        run.say("Nobody waits.")
    if found.more:
        run.note(f"{len(rows)} shown, there are more: each Personal Agent has its turn, and each of its Users.")


async def _queue(company: Company) -> Queue:
    from papaver.adapters.running import running

    async with running(company, turns=False):
        return await company.staff.queue_shown()


def _who(person: Author | None) -> str:
    return "-" if person is None else person.name or person.id or "-"


def _ago(row: Attended, now: float) -> str:
    return str(timedelta(seconds=max(0, int(now - row.since.timestamp()))))
