"""What goes on in `papaver chat`: lines are said, commands are done, what the Company says is printed as it comes.

At a terminal both go on at once, and a message that is still being written is one line that is written over. Where the
lines come from a script, each is answered before the next one is read.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import click

from papaver.cli.ask import facts_of
from papaver.cli.events import print_event
from papaver.cli.failures import CliError
from papaver.cli.run import Run
from papaver.cli.sign_in import sign_in_there
from papaver.cli.text import one_line
from papaver.cli.typed import typed_lines
from papaver.personal_agent.direct import Agreed, Declined
from papaver.protocol.conversation.model import AuthorizationNeeded, Event, Status, TextDelta, UserRequested
from papaver.values.errors import PapaverError
from papaver.values.secret import Secret

if TYPE_CHECKING:
    from papaver.adapters.httpx2.personal_agent import HttpSession, PersonalAgent
    from papaver.personal_agent.conversation import Conversation

__all__ = ["HELP", "Chat"]

HELP: Final = """\
What you type is said, line by line; //… says a line that begins with a slash.
/as human|agent     whose words follow: the User's own, or yours about them
/context K=V …      tell how the User's situation has changed; K=null takes a fact back
/handoff            ask for a person at the Company
/signin [SCOPE …]   have the User sign in; without scopes for what the Company asked for last
/direct [WORDS]     talk with the Company directly: yes to its request, or with your own first words
/decline [WORDS]    no to its request, told by your agent
/close              end the conversation; a direct one leads back to the one before
/quit               leave it open (as Ctrl-D)
/help               this"""


class Chat:
    """One chat. `current` is the conversation that is talked in; `above` the one before a direct one."""

    def __init__(
        self,
        run: Run,
        agent: PersonalAgent,
        session: HttpSession,
        company: str,
        *,
        by_user: bool,
        current: Conversation | None,
        terminal: Callable[[], bool] = lambda: sys.stdin.isatty() and sys.stdout.isatty(),
    ) -> None:
        self._run, self._agent, self._session, self._company = run, agent, session, company
        self._by_user, self._current, self._above = by_user, current, None
        self._by_user_above = by_user
        self._live = terminal() and not run.json
        self._lines: asyncio.Queue[Secret | None] = asyncio.Queue()
        self._asked: UserRequested | None = None
        self._needed: tuple[str, ...] = ()
        self._printing: asyncio.Task[None] | None = None
        self._provisional = False

    async def go_on(self) -> None:
        """Until the lines end, or /quit."""
        if not self._run.json:
            self._run.note("/help says what you can type; Ctrl-D leaves the conversation open")
        self._lines = typed_lines()
        try:
            if self._current is not None:
                await self._show()
            while (line := await self._lines.get()) is not None:
                if not await self._typed(line.reveal().rstrip("\r")):
                    break
        finally:
            await self._stop_printing()
        if self._current is not None:
            self._tell_place(self._current)

    async def _typed(self, line: str) -> bool:
        """Do it; whether to go on. What the Company refuses is told, and the chat goes on."""
        try:
            if line.startswith("/") and not line.startswith("//"):
                return await self._do(line)
            if line.strip():
                await self._say(line.removeprefix("/") if line.startswith("//") else line)
            return True
        except PapaverError as error:
            self._clear()
            self._run.fail(error)
            return True

    async def _do(self, line: str) -> bool:
        verb, _, rest = line.partition(" ")
        rest = rest.strip()
        match verb:
            case "/quit":
                return False
            case "/help":
                self._run.note(HELP)
            case "/as" if rest in ("human", "agent"):
                self._by_user = rest == "human"
            case "/context" if rest:
                facts = _facts(rest)
                await self._in().update_context(**facts)
                await self._show()
            case "/handoff":
                await self._in().hand_off()
                await self._show()
            case "/signin":
                await self._sign_in(rest.split())
            case "/direct":
                await self._direct(rest)
            case "/decline":
                await self._decline(rest)
            case "/close":
                await self._close()
            case "/as" | "/context":
                raise _usage(f"{verb} needs more")
            case _:
                raise _usage(f"there is no {one_line(verb)}; //… says a line that begins so")
        return True

    async def _say(self, text: str) -> None:
        if self._current is None:
            self._current = await self._session.ask(text, by_user=self._by_user)
            if not self._run.json:
                self._run.note(f"conversation {self._current.id}")
        else:
            await self._current.say(text, by_user=self._by_user)
        await self._show()

    def _in(self) -> Conversation:
        if self._current is None:
            raise CliError("nothing has been said yet", code="usage", next="say something first")
        return self._current

    async def _sign_in(self, scopes: list[str]) -> None:
        wanted = scopes or list(self._needed)
        if not wanted:
            raise CliError("the Company has asked for nothing", code="usage", next="/signin SCOPE")
        await sign_in_there(self._run, self._agent, self._session, wanted, lines=self._lines)
        if self._current is not None:
            await self._show()

    async def _direct(self, words: str) -> None:
        parent, asked = self._in(), self._asked
        if asked is None and not words:
            raise CliError("the Company has not asked for you", code="usage", next="/direct WORDS")
        if asked is None:
            direct: Conversation | None = await parent.open_direct(words)
        else:

            async def agreed(_: UserRequested) -> Agreed:
                return Agreed(words or None)

            direct = await parent.answer_request(asked, agreed)
        self._asked = None
        await self._stop_printing()
        self._above, self._by_user_above = parent, self._by_user
        self._current, self._by_user = direct, True
        if direct is not None and not self._run.json:
            self._run.note(f"you talk with the Company directly: {direct.id}; /close leads back")
        await self._show()

    async def _decline(self, words: str) -> None:
        asked, self._asked = self._asked, None
        if asked is None:
            raise CliError("the Company has not asked for you", code="usage", next="/help")

        async def declined(_: UserRequested) -> Declined:
            return Declined(words or None)

        await self._in().answer_request(asked, declined)
        await self._show()

    async def _close(self) -> None:
        closed = self._in()
        await closed.close()
        await self._show()
        await self._stop_printing()
        if self._above is not None:
            self._tell_place(closed)
            self._current, self._above, self._by_user = self._above, None, self._by_user_above
            await self._show(tag="[parent] ")

    # ── what comes ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _show(self, tag: str = "") -> None:
        """Print what comes: at a terminal from now on, else until the Company is idle."""
        if self._current is None:
            return
        if not self._live:
            await self._print(self._current, tag, follow=False)
        elif self._printing is None or self._printing.done():
            self._printing = asyncio.create_task(self._follow(self._current, tag))

    async def _follow(self, conversation: Conversation, tag: str) -> None:
        try:
            await self._print(conversation, tag, follow=True)
        except PapaverError as error:
            self._clear()
            self._run.fail(error)

    async def _print(self, conversation: Conversation, tag: str, *, follow: bool) -> None:
        gap = conversation.history_gap
        async for found in conversation.live(follow=follow):
            if isinstance(found, TextDelta):
                self._show_piece(found)
                continue
            self._clear()
            if conversation.history_gap and not gap:
                gap = True
                self._run.note("(the Company keeps what came before no longer)")
            await self._print_event(conversation, found, tag)

    async def _print_event(self, conversation: Conversation, event: Event, tag: str) -> None:
        session = self._session
        print_event(self._run, event, self._company, session.live.current, tag, is_ours=session.has_said)
        if isinstance(event, AuthorizationNeeded):
            need = await conversation.need_of(event)
            if need is not None:
                self._needed = tuple(need.scope.split())
                self._hint("/signin has the User sign in for it")
        elif isinstance(event, UserRequested):
            self._asked = event
            self._hint("/direct says yes, /decline says no")

    def _hint(self, text: str) -> None:
        if not self._run.json:
            self._run.note(text)

    def _show_piece(self, piece: TextDelta) -> None:
        """One line that is written over; the message itself is printed when it is whole."""
        if not self._live:
            return
        width = max(20, shutil.get_terminal_size().columns - 4)
        text = one_line(piece.so_far)
        self._clear()
        if text:
            click.echo(f"… {text[-width:]}", nl=False)
            self._provisional = True

    def _clear(self) -> None:
        if self._provisional:
            click.echo("\r\x1b[2K", nl=False)
            self._provisional = False

    async def _stop_printing(self) -> None:
        printing, self._printing = self._printing, None
        if printing is not None:
            printing.cancel()
            with suppress(asyncio.CancelledError):
                await printing
        self._clear()

    def _tell_place(self, conversation: Conversation) -> None:
        self._run.line(
            conversation_id=conversation.id,
            status=conversation.status.value,
            responder=conversation.responder.value,
            cursor=conversation.cursor,
        )
        if not self._run.json and conversation.status is not Status.CLOSED:
            self._run.note(f"it stays open: --conversation {conversation.id} continues it")


def _facts(text: str) -> dict[str, object]:
    try:
        return facts_of(text.split())
    except click.UsageError as error:
        raise _usage(error.message) from None


def _usage(text: str) -> CliError:
    return CliError(text, code="usage", next="/help")
