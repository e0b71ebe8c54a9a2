"""`papaver staff join`: one person in one conversation; what is typed is said, what comes is printed."""

from __future__ import annotations

import asyncio
import getpass
import json
from contextlib import suppress
from pathlib import Path
from typing import Final

import click

from papaver.cli.company_options import company_options
from papaver.cli.config import find, the_company
from papaver.cli.failures import CliError
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.text import clean, one_line
from papaver.cli.typed import typed_lines
from papaver.company.app import Company
from papaver.company.people import Person
from papaver.company.staff import Seat
from papaver.company.staff_console.shown import Shown
from papaver.oauth.errors import InvalidScope
from papaver.protocol.conversation.model import Author, Event, Responder, Status
from papaver.protocol.conversation.people_decide import DirectRefused
from papaver.protocol.dialect import Page
from papaver.protocol.errors import ConversationNotFound
from papaver.protocol.terms import ConversationId

__all__ = ["join"]

HELP: Final = """\
What you type is said, line by line; //… says a line that begins with a slash.
/user REASON         ask to talk with the User; they see the reason
/scopes SCOPE…       ask for the User's account with these scopes
/back                hand it back to the Company Agent and end (as Ctrl-D)
/unavailable REASON  let the Company Agent say that, then as /back
/close               close the conversation for good
/help                this"""


@command("join", network=False, example="papaver staff join cnv_8f3Kd2 --name Alex")
@click.argument("conversation", metavar="ID")
@click.option("--name", required=True, help="Your name, shown to the User.")
@click.option("--id", "person_id", help="Your stable id; aut_ and your name on this machine when not given.")
@company_options
def join(
    run: Run, conversation: str, name: str, person_id: str | None, config: Path | None, target: str | None
) -> None:
    """Take the conversation ID over and answer in it, line by line; /help says what else can be typed.

    Ctrl-D and Ctrl-C hand it back. If this program is killed you still have it: join again with the same --id.
    """
    company = the_company(find(config, target))
    person = Person(person_id or f"aut_{getpass.getuser()}", name)
    asyncio.run(_run(run, company, ConversationId(conversation), person))


async def _run(run: Run, company: Company, conversation: ConversationId, person: Author) -> None:
    from papaver.adapters.running import running

    async with running(company, turns=False):
        try:
            async with company.staff.join(conversation, person) as seat:
                if not run.json:
                    run.note(f"you have {conversation}; /help says what you can type, Ctrl-D hands it back")
                await _Joined(run, company, seat).go_on()
        except ConversationNotFound:
            raise CliError(
                f"there is no conversation {conversation}",
                code="conversation_not_found",
                next="papaver staff queue lists those that wait",
            ) from None
        head = (await company.staff.look(conversation, limit=0)).head
    run.line(conversation_id=head.id, status=head.status.value, responder=head.responder.value)
    if not run.json:
        run.note("it is closed" if head.status is Status.CLOSED else "handed back to the Company Agent")


class _Joined:
    """While somebody is in the conversation."""

    def __init__(self, run: Run, company: Company, seat: Seat) -> None:
        self._run, self._company, self._seat = run, company, seat
        self._shown = Shown(company.offer, "", seat.person)

    async def go_on(self) -> None:
        """Until it is closed, handed back, or there is nothing more to read."""
        lines = typed_lines()
        printing = asyncio.create_task(self._print())
        try:
            while True:
                next_line = asyncio.create_task(lines.get())
                await asyncio.wait({next_line, printing}, return_when=asyncio.FIRST_COMPLETED)
                if printing.done() and not next_line.done():
                    next_line.cancel()
                    printing.result()
                    return
                line = next_line.result()
                if line is None or not await self._typed(line.reveal().strip()):
                    return
        finally:
            printing.cancel()
            with suppress(asyncio.CancelledError):
                await printing

    async def _typed(self, line: str) -> bool:
        """Do it; whether to go on."""
        try:
            return await self._do(line)
        except (DirectRefused, InvalidScope) as error:
            self._run.fail(error)
            return True

    async def _do(self, line: str) -> bool:
        if not line.startswith("/") or line.startswith("//"):
            if line:
                await self._seat.say(line.removeprefix("/") if line.startswith("//") else line)
            return True
        verb, _, rest = line.partition(" ")
        rest = rest.strip()
        match verb:
            case "/user" if rest:
                await self._seat.ask_for_user(rest)
            case "/scopes" if rest:
                await self._seat.require(*rest.split())
            case "/unavailable" if rest:
                # Said by the Company Agent, and only by who has the conversation.
                await self._company.people.post(self._seat.conversation_id, rest, person_id=self._seat.person.id)
                return False
            case "/back":
                return False
            case "/close":
                await self._seat.close()
                return False
            case "/help":
                self._run.note(HELP)
            case "/user" | "/scopes" | "/unavailable":
                self._told(f"{verb} needs more: see /help")
            case _:
                self._told(f"there is no {verb}; /help lists what there is, //… says a line that begins so")
        return True

    def _told(self, text: str) -> None:
        self._run.fail(CliError(text, code="usage", next="/help"))

    async def _print(self) -> None:
        async for event in self._seat.events():
            self._show(event)

    def _show(self, event: Event) -> None:
        if self._run.json:
            self._run.line(event=_written(self._company, event))
            return
        [one] = self._shown.events([event])
        told = one.text or ""
        if one.details is not None:
            told += f"\n{one.details}"
        if one.side is None:
            more = [told, " ".join(scope.name for scope in one.scopes), (one.link or "").rpartition("/")[2]]
            self._run.note(f"({' '.join((one.who, *filter(None, more)))})")
        elif told:
            click.echo(f"{one_line(one.who)}: {clean(told, '  ')}")
        for name, value in one.facts:
            self._run.note(f"({one_line(name)}: {one_line(value)})")


def _written(company: Company, event: Event) -> object:
    """The event in the form of the Company's first version, without what only extensions define."""
    dialect = company.offer.dialects[company.offer.versions[0]]
    page = Page(ConversationId("-"), (event,), event.id, False, Status.IDLE, Responder.AGENT)
    return json.loads(dialect.conversations.write_page(200, page, {}).body)["events"][0]
