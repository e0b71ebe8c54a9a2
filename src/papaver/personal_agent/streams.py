"""One event stream as it is read: octets become events and pieces of messages, and its end is no fault (8.6)."""

from __future__ import annotations

import logging
from collections import deque
from typing import Final

from papaver.personal_agent.flows.effects import StreamedResponse
from papaver.ports.system import FetchFailed
from papaver.protocol.conversation.model import Event, MessageAdded, TextDelta
from papaver.protocol.dialect import ConversationCodec
from papaver.protocol.errors import Misbehaved
from papaver.protocol.terms import MessageId
from papaver.web.sse import Decoder, ServerEvent, SseError

__all__ = ["EventStream", "Pieces"]

logger = logging.getLogger("papaver.personal_agent")

MOST_TEXT: Final = 65_536
"""Characters of one unfinished message; of a longer one nothing more is shown before it is whole."""
MOST_UNFINISHED: Final = 8
"""Unfinished messages at once."""


class Pieces:
    """The text so far of messages that are being written."""

    def __init__(self) -> None:
        self._texts: dict[MessageId, str] = {}

    def add(self, delta: TextDelta) -> TextDelta | None:
        """The piece with all before it; None for one that is not shown."""
        known = self._texts.get(delta.message_id)
        if known is None and len(self._texts) >= MOST_UNFINISHED:
            return None
        so_far = (known or "") + delta.text
        if len(so_far) > MOST_TEXT:
            return None
        self._texts[delta.message_id] = so_far
        return TextDelta(delta.message_id, delta.text, so_far)

    def complete(self, event: Event) -> None:
        """The whole message is there."""
        if isinstance(event, MessageAdded):
            self._texts.pop(event.message.id, None)

    def drop(self) -> tuple[TextDelta, ...]:
        """What is shown of messages that will not be finished in this stream: told as taken back (8.6)."""
        dropped = tuple(TextDelta(message_id, "") for message_id in self._texts)
        self._texts.clear()
        return dropped


class EventStream:
    """An open stream. Close it in the end.

    `retry`     seconds that the Company asks to wait before the next connection, or None
    `fruitful`  whether an event that was not known came of it, as its reader notes
    """

    def __init__(self, response: StreamedResponse, codec: ConversationCodec) -> None:
        self._chunks, self._codec = response.chunks, codec
        self._decoder = Decoder()
        self._read: deque[ServerEvent] = deque()
        self.fruitful = False

    @property
    def retry(self) -> float | None:
        return None if self._decoder.retry is None else self._decoder.retry / 1000

    async def next(self) -> Event | TextDelta | None:
        """What comes next of what is known; None once the stream is over, however it ended.

        Raises Misbehaved for what is no event.
        """
        while True:
            while self._read:
                found = self._codec.read_stream_event(self._read.popleft())
                if found is not None:
                    return found
            chunk = await self._chunk()
            if chunk is None:
                return None
            try:
                self._read.extend(self._decoder.feed(chunk))
            except SseError as error:
                raise Misbehaved(
                    "the event stream cannot be read", rule="stream.events", detail=error.description
                ) from None

    async def _chunk(self) -> bytes | None:
        if self._chunks is None:
            return None
        try:
            return await anext(self._chunks)
        except StopAsyncIteration:
            return None
        except FetchFailed as error:
            logger.info("the event stream broke off: %s", error)
            return None

    async def aclose(self) -> None:
        if self._chunks is not None:
            await self._chunks.aclose()
