"""`papaver ask`: one message to a Company, and its events until the Company is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import click

from papaver.cli.events import print_event
from papaver.cli.failures import SIGN_IN_NEEDED, CliError
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.ports.system import FetchFailed
from papaver.protocol.conversation.model import AuthorizationNeeded
from papaver.protocol.errors import SignInNeeded
from papaver.values.strict_json import JsonError, loads, loads_object

if TYPE_CHECKING:
    from papaver.personal_agent.conversation import Conversation
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
            print_event(run, event, company.name, session.live.current)
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
