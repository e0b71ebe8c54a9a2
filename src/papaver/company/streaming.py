"""A read that goes on: one loop over the log that sends events, pieces and comments, and what ends it (8.6)."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Final

from papaver.company.holding import Hold, Holding
from papaver.company.sessions import OpenedSession, Sessions
from papaver.company.settings import CompanyLimits
from papaver.ports.company import ConversationLog, Slice
from papaver.ports.deltas import Delta, Deltas
from papaver.ports.system import Clock
from papaver.protocol.conversation.model import MessageAdded, Status
from papaver.protocol.dialect import Dialect, Wanted
from papaver.protocol.errors import PoppyError
from papaver.protocol.terms import ConversationId, MessageId
from papaver.values.errors import PapaverError
from papaver.web import sse
from papaver.web.messages import Headers, Stream

__all__ = ["STREAMED_BYTES", "EventStream", "Pieces", "Streaming"]

log = logging.getLogger("papaver.company")

FIELDS: Final = Headers(
    [
        ("content-type", sse.MEDIA_TYPE),
        # Whoever compresses or collects on the way holds everything back: no-transform and nginx's own word forbid it.
        ("cache-control", "no-store, no-transform"),
        ("x-accel-buffering", "no"),
    ]
)
STREAMED_BYTES: Final = 65_536
"""Octets of events, as stored, that are read for one chunk: all that waits here for a reader who takes nothing.

It does not bound what a connection holds: the buffers of the server and of the kernel take several chunks more.
"""
BEATS: Final = 10
"""Times in a second at which comments are sent: of thousands of idle streams many are woken at once, not each alone."""
PIECES_EVERY: Final = 0.05
"""Seconds from a chunk of pieces alone to the next chunk: each is checked as all are, and nobody reads faster."""
AT_THE_END: Final = 1.0
"""Seconds that a chunk on its way is given when its stream ends for another reason."""
REMEMBERED: Final = 16
"""Messages of one stream of which it is known how much was sent."""

Reading = Callable[[Wanted], Awaitable[Slice]]
"""The next page, with Session, owner and cursor checked against the same snapshot. Raises a PoppyError."""


class Pieces:
    """Which pieces of unfinished messages one reader is sent: each message's from its beginning, with no gap (8.6)."""

    __slots__ = ("_sent",)

    def __init__(self) -> None:
        self._sent: dict[MessageId, int | None] = {}

    def end(self, message_id: MessageId) -> None:
        """No piece of it follows: it is complete, or one of its pieces cannot be sent."""
        self._note(message_id, None)

    def take(self, delta: Delta) -> bool:
        """Whether it is the next piece of its message."""
        sent = self._sent.get(delta.message_id, 0)
        if sent is None or delta.at != sent:
            return False
        self._note(delta.message_id, sent + len(delta.text))
        return True

    def _note(self, message_id: MessageId, sent: int | None) -> None:
        self._sent.pop(message_id, None)
        self._sent[message_id] = sent
        if len(self._sent) > REMEMBERED:
            del self._sent[next(iter(self._sent))]


class Streaming:
    """The streams of one Company. Each has a place among the held requests, and ends with whatever ends those."""

    def __init__(
        self,
        store_log: ConversationLog,
        deltas: Deltas,
        sessions: Sessions,
        clock: Clock,
        limits: CompanyLimits,
        holding: Holding,
    ) -> None:
        self.log, self.deltas, self.sessions = store_log, deltas, sessions
        self.clock, self.limits, self.holding = clock, limits, holding

    def offers(self, found: Slice) -> bool:
        """Whether such a read is streamed. At the end of a closed conversation nothing will come, and JSON says so."""
        over = found.head.status is Status.CLOSED and not found.events
        return self.limits.stream_longest > 0 and not over

    def open(
        self,
        dialect: Dialect,
        opened: OpenedSession,
        conversation: ConversationId,
        wanted: Wanted,
        read: Reading,
        gone: Callable[[], Awaitable[None]],
        more: Sequence[tuple[str, str]] = (),
    ) -> Stream:
        """The stream that goes on after `wanted.cursor`. Raises RateLimited when no more are held of this User."""
        session, holding = opened.verified, self.holding
        if not holding.stopped:
            holding.check_place((session.client_id, session.user_id))
        stream = EventStream(self, dialect, opened, conversation, wanted, read, gone)
        return Stream(200, FIELDS.with_(*more) if more else FIELDS, stream, stream.taken)


class EventStream:
    """One stream, as the chunks of its body. Nothing is read before the reader has taken what was read before.

    It ends without a word: at the end of a closed conversation, after the longest time, with its token, when the
    Company stops; and as soon as its Session, token or conversation is not the reader's any more, so that the next
    request is told why (readings 3).
    """

    __slots__ = (
        "_begin",
        "_dialect",
        "_ended",
        "_feed",
        "_hold",
        "_opened",
        "_paused_until",
        "_pieces",
        "_quiet_until",
        "_read",
        "_sending",
        "_streaming",
        "_unread",
        "_until",
        "_wanted",
        "_watch",
    )

    def __init__(
        self,
        streaming: Streaming,
        dialect: Dialect,
        opened: OpenedSession,
        conversation: ConversationId,
        wanted: Wanted,
        read: Reading,
        gone: Callable[[], Awaitable[None]],
    ) -> None:
        self._streaming, self._dialect, self._opened, self._wanted = streaming, dialect, opened, wanted
        self._read, self._pieces = read, Pieces()
        session, access, limits = opened.verified, opened.verified.access, streaming.limits
        now = streaming.clock.monotonic()
        self._paused_until, self._quiet_until, self._until = now, now, now + limits.stream_longest
        if access is not None and access.expires_at is not None:
            self._until = min(self._until, now + access.expires_at - streaming.clock.now())
        self._begin = sse.retry(limits.stream_retry * 1000)
        self._unread, self._ended = True, False
        self._sending: asyncio.Timeout | None = None
        self._watch = streaming.log.watch(conversation)
        self._feed = streaming.deltas.listen(conversation)
        self._hold: Hold | None = Hold(streaming.holding, (session.client_id, session.user_id), self, gone)
        self._watch.__enter__()
        self._feed.__enter__()
        self._hold.__enter__()

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self

    async def __anext__(self) -> bytes:
        chunk = await self._next()
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        hold, self._hold = self._hold, None
        if hold is not None:
            hold.__exit__()
            self._feed.__exit__()
            self._watch.__exit__()

    async def taken(self, sending: Awaitable[None]) -> None:
        """Wait until the reader takes what was sent. Raises TimeoutError for one that takes nothing (C86)."""
        seconds = AT_THE_END if self._is_over() else self._streaming.limits.stream_stalled
        try:
            async with asyncio.timeout(seconds) as self._sending:
                await sending
        finally:
            self._sending = None

    def wake(self) -> None:
        """Its caller has left, or the Company stops."""
        self._watch.wake()
        soon = asyncio.get_running_loop().time() + AT_THE_END
        if self._sending is not None and (self._sending.when() or soon) > soon:
            self._sending.reschedule(soon)

    def _is_over(self) -> bool:
        return self._ended or self._hold is None or self._hold.over or self._time() >= self._until

    def _time(self) -> float:
        return self._streaming.clock.monotonic()

    async def _next(self) -> bytes:
        """What is to be sent next; empty at the end. The first time at once: with it the reader gets the head."""
        begin, self._begin = self._begin, b""
        while not self._is_over():
            woken = self._unread or await self._watch.wait(min(self._quiet_until, self._until) - self._time())
            if (pause := self._paused_until - self._time()) > 0:
                await asyncio.sleep(pause)
            if self._is_over() or not (woken or self._quiet_until < self._until):
                break
            try:
                chunk = await (self._news() if woken else self._nothing())
            except PapaverError as error:
                told = isinstance(error, PoppyError)
                log.log(logging.INFO if told else logging.ERROR, "a stream ends: %s", error.rule or error.code)
                break
            if chunk or begin or not woken:
                quiet = self._time() + self._streaming.limits.stream_keep_alive
                self._quiet_until = math.floor(quiet * BEATS) / BEATS
                return begin + chunk or sse.KEEP_ALIVE
        self._ended = True
        return begin

    async def _nothing(self) -> bytes:
        """No change woke it. What changes elsewhere, the Session and the token, is looked at all the same."""
        await self._streaming.sessions.check_open(self._opened)
        await self._streaming.sessions.recheck(self._opened)
        return b""

    async def _news(self) -> bytes:
        """The next page, and the pieces of what is not complete, if this may still be told to this reader.

        The pieces are taken first: what they belong to is then complete in this page, or comes after it.
        """
        pieces = self._feed.take()
        found = await self._read(self._wanted)
        await self._streaming.sessions.recheck(self._opened)
        self._unread = found.more
        self._ended = found.head.status is Status.CLOSED and not found.more
        if found.events:
            self._wanted = replace(self._wanted, cursor=found.events[-1].id)
        elif pieces:
            self._paused_until = self._time() + PIECES_EVERY
        codec, extensions = self._dialect.conversations, self._opened.verified.extensions
        chunks: list[bytes] = []
        for event in found.events:
            if isinstance(event, MessageAdded):
                chunks += self._written(one for one in pieces if one.message_id == event.message.id)
                self._pieces.end(event.message.id)
            chunks.append(codec.write_stream_event(event, extensions))
        chunks += self._written(pieces)
        return b"".join(chunks)

    def _written(self, pieces: Iterable[Delta]) -> Iterator[bytes]:
        """Those that are the next ones of their messages. After one that cannot be sent none follows."""
        for piece in pieces:
            if self._pieces.take(piece):
                chunk = self._dialect.conversations.write_delta(piece.message_id, piece.text)
                if not chunk:
                    self._pieces.end(piece.message_id)
                yield chunk
