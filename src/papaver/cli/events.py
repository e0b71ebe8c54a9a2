"""The events of a conversation, as `papaver ask` prints them: for people made safe, for scripts as received."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from papaver.cli.run import Run
from papaver.cli.text import clean, one_line
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
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
from papaver.protocol.dialect import Page
from papaver.protocol.terms import ConversationId

if TYPE_CHECKING:
    from papaver.personal_agent.live import OpenedSession

__all__ = ["name_of", "print_event"]


def print_event(
    run: Run,
    event: Event,
    company: str,
    opened: OpenedSession | None,
    tag: str = "",
    *,
    is_ours: Callable[[Message], bool] = lambda _: False,
) -> None:
    """What the Company, called `company`, or the User's side did. States and their like go to stderr.

    `tag`      stands before it, such as for an event of another conversation
    `is_ours`  whether this run sent it. Other messages of the User's side may be an earlier run's, or made up: they are
               told as the Company's word
    """
    if run.json and opened is not None:
        run.line(event=_as_received(opened, event))
        return
    match event:
        case MessageAdded(message=message):
            if message.role is Role.COMPANY:
                who = name_of(message.author, company)
            else:
                who = "you" if is_ours(message) else "you (as the Company has it)"
            text = message.text or ""
            if message.data is not None:
                text += f"\n{json.dumps(message.data, ensure_ascii=False, indent=2)}"
            click.echo(f"{tag}{who}: {clean(text, '  ')}")
        case StateChanged(status=status, responder=responder):
            run.note(f"{tag}({status.value}, {responder.value})")
        case AuthorizationNeeded(scope=scope):
            click.echo(f"{tag}(the User has to sign in first: {one_line(scope)})")
        case UserRequested(reason=reason):
            click.echo(f"{tag}(the Company asks for the User: {one_line(reason)})")
        case DirectOpened(conversation_id=other):
            run.note(f"{tag}(the User and the Company talk directly: {one_line(other)})")
        case DirectClosed(conversation_id=other):
            run.note(f"{tag}(they ended {one_line(other)})")


def name_of(author: Author, company: str) -> str:
    """Who speaks for the Company. The name is the Company's word, so ours stands beside it."""
    named = one_line(author.name) if author.name else one_line(company)
    return f"{named} ({'a person' if author.type.value == 'human' else 'agent'})"


def _as_received(opened: OpenedSession, event: Event) -> object:
    """The event in its version's own form."""
    page = Page(ConversationId("-"), (event,), event.id, False, Status.IDLE, Responder.AGENT)
    written = json.loads(opened.dialect.conversations.write_page(200, page, opened.extensions).body)
    return written["events"][0]
