"""The outbox: a message is stored before it is sent and cleared once it is accepted, so a crash never sends two (8.3).

Whatever happens between the two, the same ID with the same content goes out again, and the Company takes it once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from papaver.personal_agent.flows.effects import Flow, keep, load, load_all
from papaver.personal_agent.live import LiveSession, OpenedSession
from papaver.personal_agent.records import OUTBOX, OutboxRow, read_row, row_key, write_row
from papaver.protocol.conversation.model import Author, AuthorType, Message
from papaver.protocol.terms import ConversationId, EventId, MessageId

__all__ = ["START", "Target", "clear", "is_waiting", "message_of", "pending", "put", "says", "target_of"]


@dataclass(frozen=True, slots=True)
class Target:
    """Where a message goes: into a conversation, or it starts one; with `parent` a Direct Conversation (8.10).

    `user_requested`  the event that is accepted with it
    """

    conversation: ConversationId | None = None
    parent: ConversationId | None = None
    user_requested: EventId | None = None


START: Final = Target()


def put(live: LiveSession, opened: OpenedSession, message: Message, target: Target) -> Flow[OutboxRow]:
    """Store a message that is about to be sent."""
    row = OutboxRow(
        company=opened.company_id,
        domain=opened.found.domain,
        user=live.whose.user,
        message_id=message.id,
        written_at=live.setup.clock.now(),
        author=message.author.type.value,
        conversation_id=target.conversation,
        text=message.text,
        data=_dict(message.data),
        context=_dict(message.context),
        extensions=_dict(message.extensions),
        parent=target.parent,
        user_requested=target.user_requested,
    )
    yield from keep(OUTBOX, _key(row), lambda _: write_row(row))
    return row


def clear(row: OutboxRow) -> Flow[None]:
    """The message was accepted, or never will be."""
    yield from keep(OUTBOX, _key(row), lambda _: None)


def is_waiting(row: OutboxRow) -> Flow[bool]:
    """Whether the message is still in the outbox."""
    return (yield from load(OUTBOX, _key(row))) is not None


def pending(live: LiveSession, opened: OpenedSession) -> Flow[tuple[OutboxRow, ...]]:
    """What this User still has to send to this Company, oldest first. What is too old to be sent is dropped."""
    oldest = live.setup.clock.now() - live.setup.limits.outbox_kept
    waiting: list[OutboxRow] = []
    for _, value in (yield from load_all(OUTBOX)):
        row = read_row(OutboxRow, value)
        if row.written_at < oldest:
            yield from clear(row)
        elif (row.company, row.user) == (opened.company_id, live.whose.user):
            waiting.append(row)
    return tuple(sorted(waiting, key=lambda row: row.written_at))


def target_of(row: OutboxRow) -> Target:
    """Where it goes."""
    return Target(
        None if row.conversation_id is None else ConversationId(row.conversation_id),
        None if row.parent is None else ConversationId(row.parent),
        None if row.user_requested is None else EventId(row.user_requested),
    )


def says(row: OutboxRow) -> bool:
    """Whether there is a message: an acceptance may have none, so that the Company speaks first (8.10)."""
    return any(one is not None for one in (row.text, row.data, row.context, row.extensions))


def message_of(row: OutboxRow) -> Message:
    """The message, as it was composed."""
    return Message(
        MessageId(row.message_id),
        Author(AuthorType(row.author)),
        text=row.text,
        data=row.data,
        context=row.context,
        extensions=row.extensions,
    )


def _key(row: OutboxRow) -> str:
    return row_key(row.company, row.user, row.message_id)


def _dict(value: Mapping[str, object] | None) -> dict[str, object] | None:
    return None if value is None else dict(value)
