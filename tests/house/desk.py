"""A Company whose people are a test: it records what its hooks are told, and answers handoffs as it is told to."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, cast

from papaver.company.app import Company
from papaver.company.hooks import Cancelled, DirectClosed, DirectOpened, Handoff, HandoffAnswer, HandoffMessage
from papaver.company.turn import Turn
from papaver.ports.company import CompanyStore
from papaver.protocol.terms import ConversationId
from papaver.stores.memory import MemoryStore
from papaver.testing.company import CompanyBench

__all__ = ["Desk", "events_of", "handed_off", "settled", "within"]


@dataclass
class Desk:
    """`told` is everything in the order of the calls: handoffs, messages by their text, what else by its kind.

    `answer` is what a handoff gets. `failures` more calls of a hook raise. `turns` are the texts that the Company Agent
    was asked about.
    """

    answer: Any = "queued"
    failures: int = 0
    told: list[str] = field(default_factory=list[str])
    calls: list[Any] = field(default_factory=list[Any])
    turns: list[str] = field(default_factory=list[str])
    news: asyncio.Condition = field(default_factory=asyncio.Condition)

    def company(self, store: CompanyStore | None = None, **options: Any) -> Company:
        """A Company with all of its hooks and a handler that repeats what it is told."""
        company = Company(
            domain="example.com",
            name="Example",
            base_url="https://api.example.com/poppy",
            store=store or MemoryStore(),
            **options,
        )

        @company.conversation
        async def answer(turn: Turn) -> str:
            self.turns.append(turn.text)
            if "a person" in turn.text:
                turn.hand_off()
            return f"You said: {turn.text}"

        @company.hooks.handoff
        async def handoff(asked: Handoff) -> HandoffAnswer:
            self.calls.append(asked)
            if isinstance(self.answer, Exception):
                raise self.answer
            if not callable(self.answer):
                return self.answer
            hook = cast("Callable[[Handoff], Awaitable[HandoffAnswer]]", self.answer)
            return await hook(asked)

        @company.hooks.message
        async def message(said: HandoffMessage) -> None:
            await self._take(said, *(one.text or "" for one in said.messages))

        @company.hooks.cancelled
        async def cancelled(over: Cancelled) -> None:
            await self._take(over, "cancelled")

        @company.hooks.direct_opened
        async def opened(direct: DirectOpened) -> None:
            await self._take(direct, "opened")

        @company.hooks.direct_closed
        async def closed(direct: DirectClosed) -> None:
            await self._take(direct, "closed")

        return company

    async def _take(self, call: Any, *words: str) -> None:
        async with self.news:
            self.calls.append(call)
            self.news.notify_all()
            if self.failures:
                self.failures -= 1
                raise RuntimeError("the desk is out of order")
            self.told.extend(words)

    async def until(self, *told: str) -> None:
        """Return once it was told exactly this."""
        async with self.news, asyncio.timeout(20):
            await self.news.wait_for(lambda: self.told == [*told] or len(self.told) > len(told))
        assert self.told == [*told]

    async def called(self, count: int) -> None:
        """Return once hooks were called so often."""
        async with self.news, asyncio.timeout(20):
            await self.news.wait_for(lambda: len(self.calls) >= count)


async def handed_off(bench: CompanyBench, text: str = "Hello") -> ConversationId:
    """A conversation whose first message is answered, and in which a person was asked for; the desk has answered."""
    conversation: str = (await bench.start(text)).json["conversation_id"]
    await bench.idle(conversation)
    assert (await bench.send("POST", f"/{conversation}/handoff", {})).status == 202
    await settled(bench, conversation)
    return ConversationId(conversation)


async def settled(bench: CompanyBench, conversation: str) -> None:
    """Return once the desk has answered."""
    while (await bench.company.staff.look(ConversationId(conversation), limit=0)).head.handoff_pending:
        await bench.tick()


async def events_of(bench: CompanyBench, conversation: str) -> list[str]:
    """Each event in a few words: `author: text`, `status/responder`, or its type."""
    told: list[str] = []
    for event in (await bench.read(conversation)).json["events"]:
        if event["type"] == "message":
            message = event["message"]
            told.append(f"{message['role']} {message['author']['type']}: {message.get('text')}")
        elif event["type"] == "state":
            told.append(f"{event['status']}/{event['responder']}")
        else:
            told.append(event["type"])
    return told


async def within(bench: CompanyBench, conversation: str, last: str) -> list[str]:
    """The events, once `last` is the newest of them."""
    async with asyncio.timeout(20):
        while (told := await events_of(bench, conversation))[-1] != last:
            cursor = (await bench.read(conversation)).json["cursor"]
            await bench.read(conversation, f"cursor={cursor}&wait=1")
    return told
