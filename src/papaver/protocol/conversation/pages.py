"""Cursors, and what a reader sees of the log: event ids that prove their place, a page, when a held read ends (8.5)."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final

from papaver.protocol.conversation.change import Slice
from papaver.protocol.conversation.model import (
    AuthorizationNeeded,
    Event,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
)
from papaver.protocol.conversation.state import Head
from papaver.protocol.dialect import Page, Wanted
from papaver.protocol.errors import CursorExpired, InvalidCursor
from papaver.protocol.terms import ConversationId, EventId, MessageId
from papaver.values import base64url
from papaver.values.rules import rule

__all__ = ["EventIds", "check_cursor_kept", "check_cursor_recorded", "need", "page", "read_cursor", "should_hold"]

_PREFIX: Final = "evt_"
_SEQ_BYTES: Final = 6
_PROOF_BYTES: Final = 12


class EventIds:
    """Event ids that carry their sequence number and prove that this Company made them (readings 42).

    `secret` is the Company's, the same on every replica; ids made with another are unknown cursors.
    """

    __slots__ = ("_keyed",)

    def __init__(self, secret: bytes) -> None:
        key = hashlib.blake2b(secret, digest_size=32, person=b"papaver.events").digest()
        self._keyed = hashlib.blake2b(key=key, digest_size=_PROOF_BYTES)

    def write(self, conversation_id: ConversationId, seq: int) -> EventId:
        """The id of event number `seq`, from 1; the same each time. Opaque to the other side."""
        number = seq.to_bytes(_SEQ_BYTES, "big")
        return EventId(_PREFIX + base64url.encode(number + self._proof(conversation_id, number)))

    def read(self, conversation_id: ConversationId, event_id: EventId) -> int:
        """The sequence number. Raises InvalidCursor for an id of another conversation, another Company, or nobody's."""
        try:
            octets = base64url.decode(event_id.removeprefix(_PREFIX))
        except base64url.Base64Error as error:
            raise _unknown(error.detail) from None
        number, proof = octets[:_SEQ_BYTES], octets[_SEQ_BYTES:]
        if not event_id.startswith(_PREFIX) or not hmac.compare_digest(proof, self._proof(conversation_id, number)):
            raise _unknown("its proof is wrong")
        return int.from_bytes(number, "big")

    def _proof(self, conversation_id: ConversationId, number: bytes) -> bytes:
        keyed = self._keyed.copy()
        keyed.update(number + conversation_id.encode())
        return keyed.digest()


def _unknown(detail: str) -> InvalidCursor:
    return InvalidCursor(rule="cursor.of-this-conversation", detail=detail)


@rule("cursor.recorded")
def check_cursor_recorded(head: Head, seq: int) -> None:
    """No cursor is ahead of the log, as after a restored backup (8.13). Raises InvalidCursor."""
    if seq > head.last_seq:
        raise InvalidCursor(rule="cursor.recorded", detail=f"{seq} of {head.last_seq}")


@rule("cursor.kept")
def check_cursor_kept(head: Head, seq: int) -> None:
    """The event after the cursor is still kept (8.5; readings 42). Raises CursorExpired."""
    if seq + 1 < head.first_seq:
        raise CursorExpired(rule="cursor.kept", detail=f"{seq}, and the log begins at {head.first_seq}")


def read_cursor(events: EventIds, head: Head, cursor: EventId | None) -> int:
    """The sequence number to read after: the cursor's, or the one before the oldest kept event without a cursor.

    Raises InvalidCursor or CursorExpired.
    """
    if cursor is None:
        return head.first_seq - 1
    seq = events.read(head.id, cursor)
    check_cursor_recorded(head, seq)
    check_cursor_kept(head, seq)
    return seq


def page(found: Slice, wanted: Wanted) -> Page:
    """What the reader is answered: an empty page echoes the request's cursor (8.5)."""
    head, events = found.head, found.events
    return Page(
        conversation_id=head.id,
        events=events,
        cursor=events[-1].id if events else wanted.cursor,
        has_more=found.more,
        status=head.status,
        responder=head.responder,
    )


def need(found: Slice) -> str:
    """The scopes that these events say are needed and that are still waited for; "" when there are none (8.11)."""
    if not found.head.parked:
        return ""
    return next((event.scope for event in reversed(found.events) if isinstance(event, AuthorizationNeeded)), "")


def should_hold(found: Slice, own: MessageId | None = None, *, posted: bool = False) -> bool:
    """Whether a request with `wait` left goes on waiting (8.3, 8.5; readings 1).

    A read waits for any event. What was `posted` waits for what comes after its `own` message and is not of the User's
    side, or for the status to be `idle` or `closed`; one that has no message waits for the Company's first (8.10).
    """
    if found.more or found.head.status is Status.CLOSED:
        return False
    if own is None and not posted:
        return not found.events
    if found.head.status is Status.IDLE:
        return False
    for event in reversed(found.events):
        if own is not None and _says(event, own):
            return True
        if _ends_hold(event):
            return False
    return True


def _says(event: Event, own: MessageId) -> bool:
    return isinstance(event, MessageAdded) and event.message.id == own and event.message.role is Role.USER


def _ends_hold(event: Event) -> bool:
    match event:
        case MessageAdded(message=message):
            return message.role is Role.COMPANY
        case StateChanged(status=Status.WORKING, responder=Responder.AGENT):
            return False
        case _:
            return True
