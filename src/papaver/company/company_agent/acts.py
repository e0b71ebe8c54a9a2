"""What one turn has done so far: its actions as they are and were journaled, and what it asked."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, cast

from papaver.company.account import Account
from papaver.company.company_agent.actions import (
    ActionOutcome,
    format_action,
    read_action,
    told,
    write_action,
    written,
)
from papaver.company.company_agent.actors import Actor, Principal, actor_of
from papaver.company.company_agent.agent import CompanyAgent
from papaver.company.company_agent.questions import Question, worded
from papaver.company.journal import Steps
from papaver.company.texts import Texts
from papaver.protocol.conversation.model import Message, Role
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.terms import CompanyId
from papaver.values import strict_json
from papaver.values.strict_json import JsonError

__all__ = ["ACTION", "Acts", "done_in"]

log = logging.getLogger("papaver.company.agent")

ACTION: Final = "action:"
"""What the journaled steps of actions begin with."""


@dataclass(slots=True)
class Acts:
    """The actions of one turn, also those of a run that a crash ended: a reply tells of all of them.

    `seconds`  until what was proposed is carried out    `said`  reads what was said since the oldest unanswered message
    """

    agent: CompanyAgent
    company: CompanyId
    texts: Texts
    journal: Steps
    account: Account
    seconds: float
    said: Callable[[], Awaitable[Iterable[Message]]]
    actor: Actor | None = None
    principal: Principal | None = None
    actions: dict[str, ActionOutcome] = field(default_factory=dict[str, ActionOutcome])
    earlier: Mapping[str, list[ActionOutcome]] | None = None
    calls: Counter[str] = field(default_factory=Counter[str])
    questions: list[Question] = field(default_factory=list[Question])
    _running: set[asyncio.Task[object]] = field(default_factory=set[asyncio.Task[object]])

    def __post_init__(self) -> None:
        for name, record in self.journal.done(ACTION).items():
            try:
                self.actions[name] = read_action(record)
            except JsonError as error:
                log.error("a journaled action cannot be read", exc_info=error)

    async def begin(self, principal: Principal) -> None:
        """Find out whom the turn acts as. Raises what the app's choice raises."""
        self.principal = principal
        self.actor = await actor_of(self.company, principal, self.agent.actor_for)

    async def recheck(self) -> None:
        """Act as somebody signed out from now on, if the account was lost meanwhile (8.11; readings 26).

        Raises TemporarilyUnavailable, and as `begin`.
        """
        if await self.account.lost() and self.principal is not None:
            await self.begin(replace(self.principal, account_id=None, scopes=frozenset()))

    @property
    def acting(self) -> Actor:
        if self.actor is None:
            raise ConfigurationError("a turn has an actor once its handler runs", rule="turn.actor")
        return self.actor

    async def done_before(self) -> Mapping[str, list[ActionOutcome]]:
        """What was done for the messages that are still unanswered, by the run that was parked (8.11)."""
        if self.earlier is None:
            self.earlier = done_in(await self.said())
        return self.earlier

    async def act(self, name: str, unfinished: ActionOutcome, run: Callable[[], Awaitable[ActionOutcome]]) -> None:
        """Run an action once for the turn, whatever crashes, and to its end, whatever becomes of who called it."""

        async def journaled() -> object:
            return write_action(await run())

        self.actions[name] = unfinished
        task: asyncio.Task[object] = asyncio.create_task(self.journal.once(name, journaled))
        self._running.add(task)
        task.add_done_callback(lambda done: self._ended(name, done))
        await asyncio.shield(task)

    def _ended(self, name: str, task: asyncio.Task[object]) -> None:
        self._running.discard(task)
        if task.cancelled():
            return
        if task.exception() is None:
            self.actions[name] = read_action(task.result())
        else:  # it asked for the account, or its journal is gone: it is another run's to tell of
            self.actions.pop(name, None)

    async def settled(self) -> None:
        """Return once no action runs any more."""
        while self._running:
            await asyncio.wait(set(self._running))

    def stop(self) -> None:
        """The turn is over: what still runs is left, as not certain."""
        for task in self._running:
            task.cancel()

    def told(self, text: str | None) -> str | None:
        """The text of the reply: what the handler said, every action, and the questions."""
        said = told(text, list(self.actions.values()), self.texts, self.agent.format_action)
        asked = worded(self.questions)
        return "\n\n".join(filter(None, (said, asked))) or None

    def told_after(self, sentence: str) -> tuple[str, Mapping[str, object] | None]:
        """Text and data of a turn that ends in a sentence of ours: the actions are told all the same."""
        actions = list(self.actions.values())
        text = "\n\n".join([sentence, *(format_action(action, self.texts) for action in actions)])
        return text, self.data(0)

    def data(self, most: int | None = None) -> Mapping[str, object] | None:
        """`data.actions`; None without any. Results are left out where there are more than `most` octets of them."""
        if not self.actions:
            return None
        shown = written(self.actions.values())
        if most is not None and len(strict_json.dumps(shown)) > most:
            shown = written(replace(action, result=None) for action in self.actions.values())
        return {"actions": shown}


def done_in(messages: Iterable[Message]) -> dict[str, list[ActionOutcome]]:
    """What succeeded, or may have, by key, as the Company's own messages tell of it in `data.actions`."""
    found: dict[str, list[ActionOutcome]] = {}
    for message in messages:
        told = (message.data or {}).get("actions") if message.role is Role.COMPANY else None
        for record in cast("list[object]", told) if isinstance(told, list) else []:
            try:
                action = read_action(record)
            except JsonError:
                continue  # an application's own
            if action.key and (action.status == "succeeded" or not action.certain):
                found.setdefault(action.key, []).append(action)
    return found
