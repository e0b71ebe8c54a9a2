"""Changes of conversations in PostgreSQL, in rounds: what waits is loaded, decided in order, and committed at once.

One transaction at a time and Company in each process. Heads are locked before they are read, so that a change decides
on what other replicas have committed; within a round each change sees those before it. A receipt or a replay key that
another replica writes at the same moment undoes the round, which is then done again and sees it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar, cast

from papaver.protocol.conversation.change import Change, Keys, Loaded
from papaver.protocol.conversation.state import Lease
from papaver.stores.crash import Step
from papaver.stores.faults import StoreFailed
from papaver.stores.notify import Topic
from papaver.stores.postgres import log_rows as rows
from papaver.stores.postgres.log_round import Job, JournalStep, Round
from papaver.stores.postgres.server import Server

__all__ = ["LogRounds"]

R = TypeVar("R")
AT_ONCE: Final = 128
"""Changes in one round, at most."""
TRIES: Final = 5
"""Times that a round is done when others write the same receipts at the same moment."""
PRUNED_EVERY: Final = 256
"""Replay keys after which those that are over are deleted."""
_AGAIN: Final = ("UniqueViolationError", "DeadlockDetectedError", "SerializationError")
_OF_ONE: Final = ("DataError", "CharacterNotInRepertoireError", "UntranslatableCharacterError")
"""What one change's values can do: the others of its round are done without it."""


class LogRounds:
    """The queue of one Company in one process. Its task lives as long as something waits."""

    def __init__(self, server: Server, company: int, wake: Callable[[set[Topic]], None]) -> None:
        self._server, self._company, self._wake = server, company, wake
        self._waiting: list[Job | JournalStep] = []
        self._task: asyncio.Task[None] | None = None
        self._since_pruned = 0

    async def apply(self, keys: Keys, decide: Callable[[Loaded], Change[R]], step: Step | None) -> R:
        """See `ConversationLog.apply`. A caller that is cancelled undoes nothing."""
        job = Job(keys, decide, step, asyncio.get_running_loop().create_future())
        self._add(job)
        return cast(R, await job.future)

    async def journal(self, lease: Lease, key: bytes, value: bytes) -> bool:
        """See `ConversationLog.journal`."""
        step = JournalStep(lease, key, value, asyncio.get_running_loop().create_future())
        self._add(step)
        return await step.future

    def _add(self, one: Job | JournalStep) -> None:
        self._waiting.append(one)
        if self._task is None:
            self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        try:
            while self._waiting:
                jobs, self._waiting = self._waiting[:AT_ONCE], self._waiting[AT_ONCE:]
                self._waiting[:0] = await self._round(jobs)
        finally:
            self._task = None
            # Not empty when the loop ends under it: nobody waits for ever.
            for job in self._waiting:
                job.future.cancel()
            self._waiting.clear()

    async def _round(self, jobs: list[Job | JournalStep]) -> list[Job | JournalStep]:
        """Those that have to be done in another one, in their order."""
        round, is_over = Round(self._company, jobs), False
        try:
            fault = await self._try(round)
            is_over = True
            if fault is not None and len(jobs) > 1 and fault.detail.startswith(_OF_ONE):
                for job in jobs:
                    await self._round([job])
                return []
            if fault is not None:
                round.topics.clear()
                for job in round.done:
                    job.fault = StoreFailed(fault.detail)
        finally:
            self._wake(round.topics)
            for job in round.done:
                if not is_over:
                    job.future.cancel()
                elif not job.future.done():
                    _tell(job)
        if fault is None and round.replays:
            await self._prune(round)
        return round.put_off

    async def _try(self, round: Round) -> StoreFailed | None:
        """Why it is not known to be committed."""
        tries = 0
        while True:
            tries += 1
            try:
                # Once COMMIT was sent, a lost connection leaves open whether it was done: never done twice.
                await self._server.run(round.run, repeat=lambda: not round.committing)
            except StoreFailed as fault:
                if round.committing:
                    return StoreFailed(f"the connection was lost in COMMIT, which may be done or not: {fault.detail}")
                if tries == TRIES or not fault.detail.startswith(_AGAIN):
                    return fault
            else:
                return None

    async def _prune(self, round: Round) -> None:
        """Now and then forget what is over, by the clock of those who write."""
        self._since_pruned += round.replays
        if self._since_pruned < PRUNED_EVERY or not round.now:
            return
        self._since_pruned = 0
        try:
            await self._server.run(
                lambda connection: connection.execute(rows.PRUNE_REPLAYS, self._company, round.now, 4 * PRUNED_EVERY)
            )
        except StoreFailed:
            return  # they are forgotten the next time


def _tell(job: Job | JournalStep) -> None:
    if isinstance(job.fault, StopIteration):
        job.future.set_exception(RuntimeError(f"a change raised {job.fault!r}"))  # a future cannot carry this one
    elif job.fault is not None:
        job.future.set_exception(job.fault)
    elif isinstance(job, JournalStep):
        job.future.set_result(job.held)
    else:
        job.future.set_result(job.result)
