"""Tells the Company's own code what has happened: once it is durable, at least once, in each conversation's order."""

from __future__ import annotations

import asyncio
import logging
from typing import Final

from papaver.company.hooks import Cancelled, DirectClosed, DirectOpened, HandoffMessage, Hooks
from papaver.company.observed import Silent
from papaver.company.settings import CompanyLimits
from papaver.company.turn import messages_of
from papaver.ports.company import ConversationLog, LeasedNote, Watch
from papaver.ports.system import Clock
from papaver.ports.telemetry import Telemetry
from papaver.protocol.conversation.change import NoteKind
from papaver.protocol.conversation.model import Message, Role
from papaver.protocol.terms import ConversationId

__all__ = ["Outbox", "said_between"]

log = logging.getLogger("papaver.company.hooks")

AT_ONCE: Final = 16
"""Notes told side by side in one process."""
LOOK_EVERY: Final = 1.0
"""Seconds between two looks for notes that nothing announces, such as those put off."""
FIRST_DELAY: Final = 1.0
LONGEST_DELAY: Final = 60.0
"""Seconds until a hook that failed is told again: doubled each time."""
MOST_MESSAGES: Final = 200
"""Messages that one call is given; the newest of more."""


class Outbox:
    """The notes of one Company in this process; several processes share one store."""

    def __init__(
        self,
        store_log: ConversationLog,
        hooks: Hooks,
        clock: Clock,
        limits: CompanyLimits,
        holder: str,
        telemetry: Telemetry | None = None,
    ) -> None:
        self._log, self._hooks, self._clock, self._limits, self._holder = store_log, hooks, clock, limits, holder
        self._telemetry = telemetry or Silent()
        self._stopped = asyncio.Event()
        self._telling: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        """Take no more; what is being told is told to its end, or again by the next process."""
        self._stopped.set()

    async def run(self) -> None:
        """Until `stop`. A round that fails, such as of a store that is away, is logged and tried again."""
        stopped = asyncio.create_task(self._stopped.wait())
        try:
            with self._log.watch_notes() as watch:
                while not self._stopped.is_set():
                    try:
                        await self._take(watch)
                    except Exception as error:
                        log.error("what is to be told cannot be read", exc_info=error)
                    woken = asyncio.create_task(watch.wait(LOOK_EVERY))
                    await asyncio.wait({woken, stopped}, return_when=asyncio.FIRST_COMPLETED)
                    woken.cancel()
        finally:
            stopped.cancel()
            for task in self._telling:
                task.cancel()
            if self._telling:
                await asyncio.wait(self._telling)

    async def _take(self, watch: Watch) -> None:
        """Begin to tell what may be told. One that is over makes room, and may be what another one waited for."""

        def over(task: asyncio.Task[None]) -> None:
            self._telling.discard(task)
            watch.wake()

        while len(self._telling) < AT_ONCE and not self._stopped.is_set():
            now = self._clock.now()
            found = await self._log.take_note(
                self._holder, now=now, until=now + self._limits.turn_timeout + self._limits.lease
            )
            if found is None:
                return
            task = asyncio.create_task(self._guarded(found))
            self._telling.add(task)
            task.add_done_callback(over)

    async def _guarded(self, note: LeasedNote) -> None:
        """Tell it once; whatever fails, the outbox goes on."""
        try:
            await self._told(note)
        except Exception as error:
            log.error("note %d is told again when its hold is over", note.n, exc_info=error)

    async def _told(self, note: LeasedNote) -> None:
        try:
            async with asyncio.timeout(self._limits.turn_timeout):
                await self._tell(note)
            self._count(note, "done")
        except (Exception, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and self._stopped.is_set():
                raise
            if note.attempts >= self._limits.hook_attempts:
                log.error(
                    "a hook failed %d times on %s and is not told again", note.attempts, note.note, exc_info=error
                )
            else:
                self._count(note, "failed")
                delay = min(LONGEST_DELAY, FIRST_DELAY * 2 ** (note.attempts - 1))
                log.warning("a hook failed on %s; it is told again in %d s", note.note, delay, exc_info=error)
                await self._log.later_note(note, self._clock.now() + delay)
                return
        await self._log.done_note(note)

    def _count(self, note: LeasedNote, outcome: str) -> None:
        self._telemetry.count("papaver.hooks", kind=note.note.kind.value, outcome=outcome)

    async def _tell(self, leased: LeasedNote) -> None:
        note, hooks = leased.note, self._hooks
        match note.kind:
            case NoteKind.MESSAGE if hooks.on_message is not None:
                messages = await said_between(self._log, note.conversation, note.first_seq, note.seq)
                if messages:
                    await hooks.on_message(HandoffMessage(note.conversation, messages))
            case NoteKind.CANCELLED if hooks.on_cancelled is not None:
                await hooks.on_cancelled(Cancelled(note.conversation))
            case NoteKind.DIRECT_OPENED if hooks.on_direct_opened is not None:
                parent = await self._parent(note.conversation)
                if parent is not None:
                    await hooks.on_direct_opened(DirectOpened(note.conversation, parent))
            case NoteKind.DIRECT_CLOSED if hooks.on_direct_closed is not None:
                parent = await self._parent(note.conversation)
                if parent is not None:
                    await hooks.on_direct_closed(DirectClosed(note.conversation, parent))
            case _:
                return

    async def _parent(self, conversation: ConversationId) -> ConversationId | None:
        found = await self._log.read(conversation, 0, 0)
        return None if found is None else found.head.parent


async def said_between(
    store_log: ConversationLog, conversation: ConversationId, first_seq: int, seq: int
) -> tuple[Message, ...]:
    """The messages of the User's side from `first_seq` to `seq`, oldest first; the newest 200 of more."""
    first = max(first_seq, seq + 1 - MOST_MESSAGES)
    events = await store_log.read_back(conversation, seq + 1, seq + 1 - first, at_least=seq + 1 - first)
    return tuple(message for message in messages_of(events) if message.role is Role.USER)
