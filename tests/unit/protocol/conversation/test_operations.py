"""The commands name what has to be loaded to decide them."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from papaver.protocol.conversation.change import Keys, ReplayKey, SessionRow
from papaver.protocol.conversation.operations import (
    Answer,
    Caller,
    Close,
    Command,
    End,
    Expire,
    Fail,
    HandOff,
    Leave,
    Post,
    Queued,
    Read,
    Say,
    Start,
    Unavailable,
    keys,
)
from papaver.protocol.terms import ClientId, ConversationId, EventId, MessageId, SessionId, UserId
from tests.unit.protocol.conversation.world import lease, said

CLIENT, USER, HERE = ClientId("https://agent.example/a.json"), UserId("dana"), ConversationId("cnv_1")
THERE, EVENT = ConversationId("cnv_0"), EventId("evt_1")
REPLAY = ReplayKey(CLIENT, "jti", 1.0)
ROW = SessionRow("key", CLIENT, SessionId("sid"), USER, None, 0.0)
FULL = Caller(CLIENT, USER, None, ROW, REPLAY)
BARE = Caller(CLIENT, USER)
RECEIPT = (CLIENT, USER, MessageId("m"))
SESSION = (CLIENT, SessionId("sid"))


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (Start(FULL, HERE, said("m")), Keys(None, None, RECEIPT, REPLAY, SESSION)),
        (Start(BARE, HERE, None), Keys()),
        (Say(FULL, HERE, said("m")), Keys(HERE, None, RECEIPT, REPLAY, SESSION)),
        (Say(BARE, HERE, said("m")), Keys(HERE, None, RECEIPT)),
        (Read(FULL, HERE), Keys(HERE, None, None, REPLAY, SESSION)),
        (HandOff(FULL, HERE), Keys(HERE, None, None, REPLAY, SESSION)),
        (Close(BARE, HERE), Keys(HERE, relatives=True)),
        (Answer(lease(HERE), 1), Keys(HERE, lease=lease(HERE))),
        (Fail(lease(HERE), 1, said("m")), Keys(HERE, lease=lease(HERE))),
        (Unavailable(lease(HERE), said("m")), Keys(HERE, lease=lease(HERE))),
        (Expire(HERE, datetime(2026, 1, 1, tzinfo=UTC)), Keys(HERE, relatives=True)),
        (End(HERE), Keys(HERE, relatives=True)),
        (Answer(lease(HERE), 1, close=True), Keys(HERE, lease=lease(HERE), relatives=True)),
        (Queued(lease(HERE)), Keys(HERE, lease=lease(HERE))),
        (Leave(HERE), Keys(HERE)),
        (Post(HERE, said("m"), key=RECEIPT), Keys(HERE, None, RECEIPT)),
        (
            Start(BARE, HERE, said("m"), parent=THERE, user_requested=EVENT),
            Keys(None, THERE, RECEIPT, acceptance=(THERE, EVENT)),
        ),
        (Start(BARE, HERE, said("m"), parent=THERE), Keys(None, THERE, RECEIPT)),
    ],
)
def test_each_command_names_its_keys(command: Command, expected: Keys) -> None:
    """A start looks for no conversation but its retry's; only requests have a receipt, a replay key and a Session."""
    assert keys(command) == expected
