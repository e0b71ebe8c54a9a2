"""The few rules about heads and turns that every store follows, as pure functions over heads (architecture 3.6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from papaver.protocol.conversation.change import Change, Keys, Loaded
from papaver.protocol.conversation.model import Status
from papaver.protocol.conversation.state import Head, Lease
from papaver.protocol.terms import ConversationId
from papaver.stores.faults import StoreMisused

__all__ = [
    "NOTES",
    "attends",
    "begun",
    "check_change",
    "continues",
    "due_since",
    "given_back",
    "makes_due",
    "prunable",
    "seconds",
]

NOTES: Final = "*"
"""The topic of a Company's outbox, as "" is that of its turns; no conversation has such an id."""


def seconds(head: Head) -> float:
    """When the head last changed, seconds since the epoch."""
    return head.changed_at.timestamp()


def due_since(head: Head, earlier: float | None, *, ended: bool) -> float | None:
    """Since when a turn is due, seconds since the epoch; None when none is.

    `earlier` is the stored value. A turn that ends and leaves another one due starts waiting afresh: nobody's
    conversation may keep the others from their turn.
    """
    if not head.turn_due:
        return None
    return seconds(head) if earlier is None or ended else earlier


def continues(head: Head, until_seq: int) -> bool:
    """Whether an unfinished turn that answers up to `until_seq` goes on, or a new one takes its place.

    It is a new one when a person has meanwhile answered all that the old one was for.
    """
    return head.handoff_pending or until_seq > head.answered_seq


def begun(head: Head) -> Head:
    """The head once a turn of it is leased; `changed_at` stays, for nobody said anything."""
    return replace(head, failures=head.failures + 1)


def given_back(head: Head) -> Head:
    return replace(head, failures=max(0, head.failures - 1))


def attends(head: Head) -> tuple[int | None, float | None]:
    """1 while a person is waited for, 2 while one has joined, None else; and since when, seconds since the epoch."""
    if head.status is Status.CLOSED:
        return None, None
    if head.queued_at is not None:
        return 1, head.queued_at.timestamp()
    return (2, 0.0) if head.person is not None else (None, None)


def prunable(head: Head) -> float | None:
    """Since when there is an event that may go one day, seconds since the epoch."""
    return None if head.prunable_from is None else head.prunable_from.timestamp()


def makes_due(change: Change[object], lease: Lease | None) -> bool:
    """Whether a turn may have become due by this change, so that a runner is to be woken."""
    return (lease is None or change.ended) and any(head.turn_due for head in change.heads)


def check_change(
    change: Change[object], keys: Keys, loaded: Loaded, last_seq: Callable[[ConversationId], int | None]
) -> None:
    """All that can be wrong with a change, before its first write. `last_seq` is None for what was not loaded.

    Raises StoreMisused: for the writes of a turn that lost its lease, a gap in the events, a receipt's second writing,
    and for events that are pruned without its being said, or brought back.
    """
    if loaded.lease_lost and (
        change.heads or change.events or change.receipt or change.ended or change.acceptance or change.notes
    ):
        raise StoreMisused("a turn that lost its lease must not write")
    if change.ended and keys.lease is None:
        raise StoreMisused("only a turn ends")
    if change.receipt is not None and (keys.receipt is None or loaded.receipt is not None):
        raise StoreMisused("a receipt is written once, under the key that was loaded")
    if change.acceptance is not None and (keys.acceptance is None or loaded.acceptance is not None):
        raise StoreMisused("an acceptance is written once, under the key that was loaded")
    first = {head.id: head.first_seq for head in _found(loaded)}
    for head in change.heads:
        before = first.get(head.id, 1)
        if head.first_seq < before or (head.first_seq > before and not change.prune):
            raise StoreMisused("first_seq grows, and only with a change that prunes", detail=head.id)
        if head.first_seq > max(head.last_seq, before):
            raise StoreMisused("the newest event is never pruned", detail=head.id)
    newest = {head.id: last_seq(head.id) or 0 for head in change.heads}
    for conversation, seq, _ in change.events:
        if newest.get(conversation) != seq - 1:
            raise StoreMisused("an event does not follow the one before", detail=f"{seq} of {conversation}")
        newest[conversation] = seq
    for head in change.heads:
        if newest[head.id] != head.last_seq:
            raise StoreMisused("a head's last_seq is not its newest event's", detail=f"{head.last_seq} of {head.id}")


def _found(loaded: Loaded) -> list[Head]:
    heads = (loaded.head, loaded.parent, loaded.direct, loaded.accepted)
    return [head for head in heads if head is not None]
