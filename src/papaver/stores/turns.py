"""The few rules about turns that every store follows, as pure functions over heads (architecture 3.6)."""

from __future__ import annotations

from dataclasses import replace

from papaver.protocol.conversation.change import Change
from papaver.protocol.conversation.state import Head
from papaver.stores.faults import StoreMisused

__all__ = ["begun", "check_fenced", "continues", "due_since", "given_back", "seconds"]


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


def check_fenced(change: Change[object], *, lease_lost: bool) -> None:
    """A holder that lost its lease writes nothing, whatever `decide` made of it."""
    if lease_lost and (change.heads or change.events or change.receipt or change.ended):
        raise StoreMisused("a turn that lost its lease must not write")
