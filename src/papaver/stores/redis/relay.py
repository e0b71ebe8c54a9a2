"""Messages between replicas through Redis, which may be lost: nobody waits for it, and nothing depends on it.

What is published is queued and sent by one task, all that waits at once. Another task holds the subscriptions, connects
again for as long as it takes, and subscribes to everything again.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from papaver.stores.redis.server import Link, RedisServer
from papaver.values.secret import Secret

__all__ = ["Piece", "RedisRelay", "Subscription"]

log = logging.getLogger("papaver.stores.redis")

Piece = Sequence[str | int] | None
"""What one message says, as JSON can; None is a wake-up, of which one is as good as many."""
Deliver = Callable[[Sequence[Piece]], None]
MOST_TOPICS: Final = 10_000
"""Topics with something to send, at most; and characters of all of it."""
MOST_CHARACTERS: Final = 1_000_000
MOST_OCTETS: Final = 16 * MOST_CHARACTERS
"""Octets of one message that is read; no message of ours is as long, with every character escaped."""
FIRST_PAUSE, LAST_PAUSE = 0.1, 5.0
"""Seconds before it is tried again; doubled each time."""
AT_ONCE: Final = 1000
"""Channels in one command."""


class Subscription:
    """Ended by `end`, or with the relay."""

    __slots__ = ("_relay", "deliver", "topic")

    def __init__(self, relay: RedisRelay, topic: str, deliver: Deliver) -> None:
        self._relay, self.topic, self.deliver = relay, topic, deliver

    def end(self) -> None:
        self._relay.end(self)


class RedisRelay:
    """One for each store of each process. Delivers what other processes publish, never one's own.

    Everything runs on the event loop that opened it.
    """

    def __init__(
        self,
        url: str | Secret,
        *,
        prefix: str = "papaver",
        returned: Callable[[], None] | None = None,
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
        timeout: float = 5.0,
        heartbeat: float = 15.0,
    ) -> None:
        """`url`: redis://user:password@host:6379/0. Nothing connects before `open`.

        `prefix`     of every key and channel
        `returned`   called when the subscriptions hold, at first and after each outage: something may have been missed
        `heartbeat`  seconds without any message after which the server is asked whether it lives
        """
        self.server = RedisServer(url, timeout=timeout)
        self.prefix = prefix
        self._returned, self._sleep, self._heartbeat = returned, sleep, heartbeat
        self._origin = secrets.token_hex(8)
        self._topics: dict[str, list[Subscription]] = {}
        self._waiting: dict[str, list[Piece]] = {}
        self._characters = 0
        self._asked, self._in_force = set[str](), set[str]()
        self._is_connected = False
        self._tasks: tuple[asyncio.Task[None], ...] = ()
        self._changed = self._to_send = self._settled = asyncio.Event()

    def __repr__(self) -> str:
        return f"<RedisRelay through {self.server!r}>"

    @property
    def is_connected(self) -> bool:
        return self._is_connected

    @property
    def topics(self) -> tuple[str, ...]:
        """What somebody here subscribes to."""
        return tuple(self._topics)

    async def open(self) -> None:
        """Raises StoreUnusable when it could never work; a server that is away is tried again in the background."""
        self.server.open()
        self._changed, self._to_send, self._settled = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._tasks = asyncio.create_task(self._listen()), asyncio.create_task(self._send())

    async def close(self) -> None:
        """What waits is dropped."""
        tasks, self._tasks = self._tasks, ()
        running = set(tasks)
        while running:
            # The driver may swallow a cancellation in the middle of a command.
            for task in running:
                task.cancel()
            _, running = await asyncio.wait(running, timeout=0.05)
        self._drop()
        await self.server.close()

    async def settled(self) -> None:
        """Returns when every subscription made so far is in force."""
        while not (self._is_connected and self._in_force >= {self._channel(topic) for topic in self._topics}):
            self._settled.clear()
            await self._settled.wait()

    def publish(self, topic: str, piece: Piece = None) -> None:
        """To whoever subscribes in another process. Never blocks or raises; dropped while Redis is away."""
        if not self._is_connected:
            return
        pieces = self._waiting.get(topic)
        if pieces is None:
            if len(self._waiting) >= MOST_TOPICS:
                return
            pieces = self._waiting[topic] = []
        if piece is None:
            if None not in pieces:
                pieces.append(None)
        else:
            size = sum(len(part) for part in piece if isinstance(part, str))
            if self._characters + size > MOST_CHARACTERS:
                return
            self._characters += size
            pieces.append(piece)
        self._to_send.set()

    def subscribe(self, topic: str, deliver: Callable[[Sequence[Piece]], None]) -> Subscription:
        """`deliver` is called on the event loop with what one message brought. In force a moment later."""
        subscription = Subscription(self, topic, deliver)
        self._topics.setdefault(topic, []).append(subscription)
        self._changed.set()
        return subscription

    def end(self, subscription: Subscription) -> None:
        """The last one of a topic ends it at the server, too."""
        subscriptions = self._topics.get(subscription.topic, [])
        if subscription in subscriptions:
            subscriptions.remove(subscription)
            if not subscriptions:
                del self._topics[subscription.topic]
                self._changed.set()

    def _channel(self, topic: str) -> str:
        return f"{self.prefix}:{topic}"

    def _drop(self) -> None:
        self._waiting, self._characters = {}, 0

    async def _send(self) -> None:
        while True:
            await self._to_send.wait()
            self._to_send.clear()
            waiting = self._waiting
            self._drop()
            commands = self.server.pipeline()
            for topic, pieces in waiting.items():
                commands.publish(self._channel(topic), json.dumps([self._origin, pieces]))
            try:
                await commands.execute()
            except self.server.faults as fault:
                # Dropped. Whoever subscribes notices that Redis is away, and tries again.
                self.server.away(fault)
            except Exception:
                log.exception("some of the replicas' hints could not be sent")

    async def _listen(self) -> None:
        """Ended by `close` alone: whatever else goes wrong, it connects again."""
        pause = FIRST_PAUSE
        while True:
            link = self.server.link()
            try:
                self._asked = {self._channel(topic) for topic in self._topics}
                # One channel that is always there: a link without any does not wait.
                await self._ask(link.subscribe, [self._channel(""), *self._asked])
                pause = FIRST_PAUSE
                await self._hold(link)
            except self.server.faults as fault:
                self.server.away(fault)
            except Exception:
                log.exception("the replicas' hints could not be received; it is tried again")
            finally:
                self._is_connected = False
                self._in_force.clear()
                self._drop()
                await _closed(link, self.server.faults)
            await self._sleep(pause)
            pause = min(pause * 2, LAST_PAUSE)

    async def _hold(self, link: Link) -> None:
        receiving = asyncio.create_task(self._receive(link))
        receiving.add_done_callback(lambda _: self._changed.set())
        try:
            while not receiving.done():
                self._changed.clear()
                await self._follow(link)
                await self._changed.wait()
            receiving.result()
        finally:
            receiving.cancel()
            await asyncio.gather(receiving, return_exceptions=True)

    async def _follow(self, link: Link) -> None:
        """Subscribe to what is wanted now, and to nothing else."""
        wanted = {self._channel(topic) for topic in self._topics}
        fresh, over = wanted - self._asked, self._asked - wanted
        self._asked = wanted
        self._in_force -= over
        if over:
            await self._ask(link.unsubscribe, list(over))
        if fresh:
            await self._ask(link.subscribe, list(fresh))

    async def _ask(self, command: Callable[..., Awaitable[None]], channels: list[str]) -> None:
        for start in range(0, len(channels), AT_ONCE):
            await command(*channels[start : start + AT_ONCE])

    async def _receive(self, link: Link) -> None:
        was_asked = False
        while True:
            message = await self.server.heard(link, self._heartbeat)
            if message is None:
                if was_asked:
                    raise TimeoutError("it does not answer")
                await link.ping()
                was_asked = True
                continue
            was_asked = False
            if message["type"] == "message":
                self._deliver(message["channel"].decode(), message["data"])
            elif message["type"] == "subscribe":
                self._confirm(message["channel"].decode())

    def _confirm(self, channel: str) -> None:
        if channel == self._channel("") and not self._is_connected:
            self._is_connected = True
            self.server.back()
            if self._returned is not None:
                self._returned()
        elif channel in self._asked:
            self._in_force.add(channel)
        self._settled.set()

    def _deliver(self, channel: str, data: bytes) -> None:
        subscriptions = self._topics.get(channel.removeprefix(self._channel("")))
        if not subscriptions or len(data) > MOST_OCTETS:
            return
        try:
            said = json.loads(data)
        except (ValueError, RecursionError):
            return  # whoever may publish there can write anything
        match said:
            case [str(origin), [*pieces]] if origin != self._origin:
                for subscription in tuple(subscriptions):
                    subscription.deliver(pieces)
            case _:
                pass  # our own, or nobody's of ours


async def _closed(link: Link, faults: tuple[type[BaseException], ...]) -> None:
    try:
        await link.aclose()
    except faults:
        pass  # it was broken, and is gone now
