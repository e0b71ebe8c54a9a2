"""Stored events that are decoded when they are looked at."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from papaver.protocol.conversation import record
from papaver.protocol.conversation.model import Responder, StateChanged, Status
from papaver.protocol.terms import EventId
from papaver.stores.records import Records

EVENTS = [
    StateChanged(EventId(f"evt_{n}"), datetime(2026, 10, 2, tzinfo=UTC), Status.IDLE, Responder.AGENT) for n in range(3)
]


def test_they_are_the_events_in_their_order() -> None:
    """Counted, indexed and sliced as any sequence."""
    found = Records([record.write(event) for event in EVENTS])
    assert list(found) == EVENTS
    assert len(found) == 3
    assert found[-1] == EVENTS[-1]
    assert list(found[1:]) == EVENTS[1:]


def test_one_that_cannot_be_read_harms_no_other() -> None:
    """Only who looks at it learns of it."""
    found = Records([b"no event", record.write(EVENTS[1])])
    assert found[1] == EVENTS[1]
    with pytest.raises(record.RecordError):
        found[0]
