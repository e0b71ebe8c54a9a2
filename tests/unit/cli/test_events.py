"""Events as they are printed."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from papaver.cli.events import print_event
from papaver.cli.run import Run
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    AuthorType,
    DirectClosed,
    DirectOpened,
    Event,
    Message,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
    UserRequested,
)
from papaver.protocol.terms import ConversationId, EventId, MessageId

AT, ID = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC), EventId("evt_1")


def _said(author: Author, role: Role, text: str | None, data: dict[str, object] | None = None) -> Event:
    return MessageAdded(ID, AT, Message(MessageId("msg_1"), author, role, text, data))


@pytest.mark.parametrize(
    ("event", "out", "errors"),
    [
        (_said(Author(AuthorType.HUMAN), Role.USER, "Yes"), "you (as the Company has it): Yes\n", ""),
        (_said(Author(AuthorType.AGENT), Role.COMPANY, "Hello"), "Shop (agent): Hello\n", ""),
        (_said(Author(AuthorType.HUMAN, name="Alex\x1b[1m"), Role.COMPANY, "a\nb"), "Alex (a person): a\n  b\n", ""),
        (_said(Author(AuthorType.AGENT), Role.COMPANY, None, {"x": 1}), 'Shop (agent): {\n    "x": 1\n  }\n', ""),
        (StateChanged(ID, AT, Status.QUEUED, Responder.AGENT), "", "(queued, agent)\n"),
        (AuthorizationNeeded(ID, AT, "orders:read"), "(the User has to sign in first: orders:read)\n", ""),
        (UserRequested(ID, AT, "age\x07"), "(the Company asks for the User: age)\n", ""),
        (DirectOpened(ID, AT, ConversationId("cnv_2")), "", "(the User and the Company talk directly: cnv_2)\n"),
        (DirectClosed(ID, AT, ConversationId("cnv_2")), "", "(they ended cnv_2)\n"),
    ],
)
def test_an_event_is_a_line_for_people(event: Event, out: str, errors: str, capsys: pytest.CaptureFixture[str]) -> None:
    """What was said on stdout, what happened on stderr."""
    print_event(Run(), event, "Shop", None)
    printed = capsys.readouterr()
    assert (printed.out, printed.err) == (out, errors)


def test_what_this_run_said_is_told_so(capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing else is."""
    for text in ("Hi", "Buy it"):
        event = _said(Author(AuthorType.HUMAN), Role.USER, text)
        print_event(Run(), event, "Shop", None, is_ours=lambda message: message.text == "Hi")
    assert capsys.readouterr().out == "you: Hi\nyou (as the Company has it): Buy it\n"
