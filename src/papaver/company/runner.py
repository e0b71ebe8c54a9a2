"""The durable turn runner: leases what is due and has it answered, whatever fails, until the Company stops.

A turn never runs inside the POST that caused it, and a failed one ends neither the runner nor the app.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from typing import Final

from papaver.company.settings import CompanyLimits
from papaver.company.turns import Turns
from papaver.ports.company import ConversationLog, LeasedTurn, Share, Watch
from papaver.ports.system import Clock, Ids
from papaver.protocol.conversation.operations import LeaseLost
from papaver.protocol.terms import TurnId
from papaver.values.errors import PapaverError

__all__ = ["Runner"]

log = logging.getLogger("papaver.company.turns")

LOOK_EVERY: Final = 1.0
"""Seconds between two looks for turns that nothing announces, such as those of a lease that is over."""


class Runner:
    """Runs the turns of one Company in this process; several processes share one store."""

    def __init__(
        self, store_log: ConversationLog, turns: Turns, clock: Clock, ids: Ids, limits: CompanyLimits, holder: str
    ) -> None:
        self._log, self._turns, self._clock, self._ids = store_log, turns, clock, ids
        self._limits, self._holder = limits, holder
        self._share = Share(limits.turns_per_user, limits.turns_per_client)
        self._stopped = asyncio.Event()
        # As many turns as came the last time are asked for at once, so that their leases share a commit.
        self._together = 1
        self._running: dict[asyncio.Task[None], LeasedTurn] = {}
        # Of each client and each User of one; those that end while the store is asked count until it has answered.
        self._places: Counter[tuple[str, ...]] = Counter()
        self._asking = False
        self._leaving: list[LeasedTurn] = []
        self._watch: Watch | None = None
        self._began = False
        self._moved_at = float("-inf")

    def stop(self) -> None:
        """Lease nothing more; turns that run are given back, due at once for another process."""
        self._stopped.set()

    def __len__(self) -> int:
        """How many turns run now, in this process."""
        return len(self._running)

    async def run(self) -> None:
        """Until `stop`. A round that fails, such as of a store that is away, is logged and tried again."""
        stopped = asyncio.create_task(self._stopped.wait())
        self._began = True
        try:
            with self._log.watch_turns() as watch:
                self._watch = watch
                while not self._stopped.is_set():
                    await self._round(watch, stopped)
        finally:
            stopped.cancel()
            await self._give_back()

    async def stuck_for(self) -> float:
        """Seconds for which a turn has been due that nobody runs, although somebody could; 0 when there is none.

        One that waits because all places are taken, or all of its User's or client's, waits for no fault of ours: as
        long as turns begin and end within their time, and, when others run them, as long as one is run.
        """
        count, since = await self._log.turns_pending(self._clock.now())
        waited = max(0.0, self._clock.now() - since) if count else 0.0
        if waited and (len(self._running) >= self._limits.turns_at_once or self._shared_out()):
            return min(waited, max(0.0, self._clock.monotonic() - self._moved_at - self._limits.turn_timeout))
        if waited and not self._began and await self._log.turns_held(self._clock.now()):
            return 0.0
        return waited

    def _shared_out(self) -> bool:
        """Whether somebody has as many turns as one may have, so that others of theirs may be due."""
        return any(self._has_share(leased) for leased in self._running.values())

    def _has_share(self, leased: LeasedTurn) -> bool:
        client, user = leased.head.client_id, leased.head.user_id
        return self._places[client, user] >= self._share.user or self._places[client,] >= self._share.client

    async def _round(self, watch: Watch, stopped: asyncio.Task[bool]) -> None:
        full = False
        try:
            full = await self._lease_due()
        except Exception as error:
            # Whatever it is: one bad row must not leave every other conversation unanswered.
            log.error("turns cannot be leased", exc_info=error)
        if self._stopped.is_set():
            return
        if full:
            await asyncio.wait({*self._running, stopped}, return_when=asyncio.FIRST_COMPLETED)
            return
        woken = asyncio.create_task(watch.wait(LOOK_EVERY))
        await asyncio.wait({woken, stopped}, return_when=asyncio.FIRST_COMPLETED)
        woken.cancel()

    async def _lease_due(self) -> bool:
        """Begin what is due; True when there may be more than may run side by side."""
        while not self._stopped.is_set():
            room = self._limits.turns_at_once - len(self._running)
            if room <= 0:
                return True
            asked, self._asking = min(room, self._together), True
            found = await asyncio.gather(*(self._lease() for _ in range(asked)), return_exceptions=True)
            self._asking = False
            leased = [one for one in found if isinstance(one, LeasedTurn)]
            for one in leased:
                task = asyncio.create_task(self._guarded(one))
                self._running[task] = one
                self._places.update(((one.head.client_id,), (one.head.client_id, one.head.user_id)))
                task.add_done_callback(self._ended)
            while self._leaving:
                self._leave(self._leaving.pop())
            if leased:
                self._moved_at = self._clock.monotonic()
            for one in found:
                if isinstance(one, BaseException):
                    raise one
            self._together = max(1, 2 * asked if len(leased) == asked else len(leased))
            if len(leased) < asked:
                return False
        return False

    async def _lease(self) -> LeasedTurn | None:
        now = self._clock.now()
        turn_id = TurnId("trn_" + self._ids.token())
        until = now + self._limits.lease
        return await self._log.lease(self._holder, turn_id, now=now, until=until, share=self._share)

    def _ended(self, task: asyncio.Task[None]) -> None:
        leased = self._running.pop(task)
        self._moved_at = self._clock.monotonic()
        if self._asking:
            self._leaving.append(leased)
        else:
            self._leave(leased)

    def _leave(self, leased: LeasedTurn) -> None:
        """Give its place back; whoever had all that one may have may have another one due."""
        if self._watch is not None and self._has_share(leased):
            self._watch.wake()
        for place in (leased.head.client_id,), (leased.head.client_id, leased.head.user_id):
            self._places[place] -= 1
            if not self._places[place]:
                del self._places[place]

    async def _guarded(self, leased: LeasedTurn) -> None:
        """One turn, and nothing that leaves it: the runner goes on. What fails is due again when its lease is over."""
        try:
            await self._turns.run(leased)
        except LeaseLost:
            log.warning("turn %s was taken over by another process", leased.lease.turn_id)
        except Exception as error:
            log.error("turn %s stays due", leased.lease.turn_id, exc_info=error)

    async def _give_back(self) -> None:
        """End what runs, and leave its turns to the next runner at once."""
        running = dict(self._running)
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
        for task, leased in running.items():
            if task.cancelled():
                try:
                    await self._log.release(leased.lease)
                except PapaverError as error:
                    log.error("turn %s is due when its lease is over: %s", leased.lease.turn_id, error)
