"""`papaver ask`: one message to a Company, and its events until the Company is idle."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from papaver.cli.failures import SIGN_IN_NEEDED, CliError
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.cli.text import clean, one_line
from papaver.ports.system import FetchFailed
from papaver.protocol.conversation.model import (
    Author,
    AuthorizationNeeded,
    DirectClosed,
    DirectOpened,
    Event,
    MessageAdded,
    Responder,
    Role,
    StateChanged,
    Status,
    UserRequested,
)
from papaver.protocol.dialect import Page
from papaver.protocol.errors import SignInNeeded
from papaver.protocol.terms import ConversationId
from papaver.values.strict_json import JsonError, loads, loads_object

if TYPE_CHECKING:
    from papaver.personal_agent.conversation import Conversation
    from papaver.personal_agent.live import OpenedSession
    from papaver.personal_agent.session import Session

__all__ = ["ask"]


@command("ask", example='papaver ask shop.example "Where is my order?" --context locale=en-US')
@click.argument("domain")
@click.argument("text", required=False)
@click.option("--conversation", metavar="ID", help="Continue this one; without TEXT, read on in it.")
@click.option("--as", "author", type=click.Choice(["agent", "human"]), default="agent", help="Whose words TEXT is.")
@click.option("--data", metavar="JSON", help="Structured details: a JSON object.")
@click.option("--context", "facts", multiple=True, metavar="K=V", help="A fact about the User; may be repeated.")
@click.option("--no-stream", is_flag=True, help="Poll. This version always does.")
@click.option("--user", default="me", show_default=True, help="Your name for the User; no Company sees it.")
@click.option("--agent-id", metavar="NAME", help="Which of the User's agents; no Company sees the name.")
@click.option("--anonymous", is_flag=True, help="A User ID for this Session alone.")
def ask(
    run: Run,
    domain: str,
    text: str | None,
    conversation: str | None,
    author: str,
    data: str | None,
    facts: tuple[str, ...],
    no_stream: bool,
    user: str,
    agent_id: str | None,
    anonymous: bool,
) -> None:
    """Start a conversation with the Company of DOMAIN, or continue one, and print its events until it is idle."""
    if anonymous and conversation:
        raise click.UsageError("--anonymous is another User, to whom --conversation does not belong")
    details, context = _details(data), _context(facts)
    if text is None and details is None and not context and conversation is None:
        raise click.UsageError("there is nothing to send: give TEXT, --data or --context")
    message: dict[str, Any] = {"text": text, "data": details, "context": context, "by_user": author == "human"}
    has_message = text is not None or details is not None or bool(context)
    asked = asyncio.run(_ask(run, domain, conversation, message if has_message else None, user, agent_id, anonymous))
    if asked:
        click.get_current_context().exit(asked)


async def _ask(
    run: Run,
    domain: str,
    known: str | None,
    message: dict[str, Any] | None,
    user: str,
    agent_id: str | None,
    anonymous: bool,
) -> int:
    from papaver.cli.agent import agent_of

    async with agent_of(run) as agent:
        company = await agent.discover(domain)
        session = company.session(user, agent_id=agent_id, anonymous=anonymous)
        try:
            conversation = await _begin(session, known, message)
        except FetchFailed as error:
            raise CliError(
                "the message may not have arrived; it is kept, and sent again under the same id",
                code=error.code,
                rule=error.rule,
                detail=error.detail or error.description,
                next=f"papaver ask {company.domain} TEXT sends it first; papaver status {company.domain} shows it",
            ) from None
        if not run.json:
            run.note(f"conversation {conversation.id}")
        wanted: SignInNeeded | None = None
        async for event in conversation.events():
            _print(run, event, company.name, session)
            if isinstance(event, AuthorizationNeeded):
                wanted = SignInNeeded(event.scope, rule="conversation.authorization")
        run.line(
            conversation_id=conversation.id,
            status=conversation.status.value,
            responder=conversation.responder.value,
            cursor=conversation.cursor,
        )
        if wanted is not None:
            run.fail(wanted)
            return SIGN_IN_NEEDED
    return 0


async def _begin(session: Session, known: str | None, message: dict[str, Any] | None) -> Conversation:
    if known is None:
        return await session.ask(**(message or {}))
    conversation = await session.resume(known)
    if message is not None:
        await conversation.say(**message)
    return conversation


def _print(run: Run, event: Event, company: str, session: Session) -> None:
    opened = session.live.current
    if run.json and opened is not None:
        run.line(event=_as_received(opened, event))
        return
    match event:
        case MessageAdded(message=message):
            who = _name(message.author, company) if message.role is Role.COMPANY else "you"
            text = message.text or ""
            if message.data is not None:
                text += f"\n{json.dumps(message.data, ensure_ascii=False, indent=2)}"
            click.echo(f"{who}: {clean(text, '  ')}")
        case StateChanged(status=status, responder=responder):
            run.note(f"({status.value}, {responder.value})")
        case AuthorizationNeeded(scope=scope):
            click.echo(f"(the User has to sign in first: {one_line(scope)})")
        case UserRequested(reason=reason):
            click.echo(f"(the Company asks for the User: {one_line(reason)})")
        case DirectOpened(conversation_id=other):
            run.note(f"(the User and the Company talk directly: {one_line(other)})")
        case DirectClosed(conversation_id=other):
            run.note(f"(they ended {one_line(other)})")


def _name(author: Author, company: str) -> str:
    """Who speaks for the Company. The name is the Company's word, so ours stands beside it."""
    named = one_line(author.name) if author.name else one_line(company)
    return f"{named} ({'a person' if author.type.value == 'human' else 'agent'})"


def _as_received(opened: OpenedSession, event: Event) -> object:
    """The event in its version's own form."""
    page = Page(ConversationId("-"), (event,), event.id, False, Status.IDLE, Responder.AGENT)
    written = json.loads(opened.dialect.conversations.write_page(200, page, opened.extensions).body)
    return written["events"][0]


def _details(data: str | None) -> Mapping[str, object] | None:
    if data is None:
        return None
    try:
        return loads_object(data)
    except JsonError as error:
        raise click.UsageError(f"--data is no JSON object: {error.description}") from None


def _context(facts: tuple[str, ...]) -> dict[str, object]:
    """K=V, where V may be JSON (`true`, `3`, `{"a": 1}`); anything else is a text."""
    context: dict[str, object] = {}
    for fact in facts:
        name, equals, value = fact.partition("=")
        if not (name and equals):
            raise click.UsageError(f"--context {fact!r} is not K=V")
        try:
            context[name] = loads(value)
        except JsonError:
            context[name] = value
    return context
