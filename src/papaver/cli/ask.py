"""`papaver ask`: one message to a Company, and its events until the Company is idle."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from papaver.cli.events import print_event
from papaver.cli.failures import SIGN_IN_NEEDED, CliError
from papaver.cli.needs import as_user, told_to_sign_in
from papaver.cli.options import command
from papaver.cli.run import Run
from papaver.ports.system import FetchFailed
from papaver.protocol.conversation.model import AuthorizationNeeded
from papaver.protocol.errors import SignInNeeded
from papaver.values.strict_json import JsonError, loads, loads_object

if TYPE_CHECKING:
    from papaver.adapters.httpx2.personal_agent import PersonalAgent
    from papaver.personal_agent.conversation import Conversation
    from papaver.personal_agent.session import Session

__all__ = ["ask", "facts_of"]


@command("ask", example='papaver ask shop.example "Where is my order?" --context locale=en-US')
@click.argument("domain")
@click.argument("text", required=False)
@click.option("--conversation", metavar="ID", help="Continue this one; without TEXT, read on in it.")
@click.option("--as", "author", type=click.Choice(["agent", "human"]), default="agent", help="Whose words TEXT is.")
@click.option("--data", metavar="JSON", help="Structured details: a JSON object.")
@click.option("--context", "facts", multiple=True, metavar="K=V", help="A fact about the User; may be repeated.")
@click.option("--no-stream", is_flag=True, help="Read in pages, not as a stream.")
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
    """Start a conversation with the Company of DOMAIN, or continue one, and print its events until it is idle.

    Without TEXT, --data and --context it sends what an earlier run could not deliver, and reads on.
    """
    if anonymous and conversation:
        raise click.UsageError("--anonymous is another User, to whom --conversation does not belong")
    details, context = _details(data), facts_of(facts)
    message: dict[str, Any] = {"text": text, "data": details, "context": context, "by_user": author == "human"}
    has_message = text is not None or details is not None or bool(context)
    said = message if has_message else None
    asked = asyncio.run(_ask(run, domain, conversation, said, user, agent_id, anonymous, no_stream))
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
    no_stream: bool,
) -> int:
    from papaver.cli.agent import agent_of

    async with agent_of(run) as agent:
        if message is None and known is None:
            await _check_waiting(agent, domain, user, anonymous)
        company = await agent.discover(domain)
        session = company.session(user, agent_id=agent_id, anonymous=anonymous)
        session.streams = not no_stream
        again = f"papaver ask {company.domain}{as_user(user)}"
        try:
            conversations = await _begin(session, known, message)
        except SignInNeeded as error:
            raise told_to_sign_in(error, company.domain, user) from None
        except FetchFailed as error:
            if anonymous:  # nobody will be this User again
                raise _unanswered(error, "the message may not have arrived", "run the same command again") from None
            raise _unanswered(
                error,
                "the message may not have arrived; it is kept, and will be sent again under the same id",
                f"do not type it again: {again} sends it and reads on; papaver status {company.domain} shows it",
            ) from None
        for message_id, conversation_id in session.sent_before:
            run.note(f"sent before: {message_id} in {conversation_id}")
        if not conversations:
            run.note("the Company did not accept what was waiting for it; it is dropped")
        each = {one.id: one for one in conversations}.values()
        needs = [await _read(run, conversation, company.name, session, again) for conversation in each]
    for need in (one for one in needs if one is not None):
        run.fail(told_to_sign_in(need, company.domain, user))
        return SIGN_IN_NEEDED
    return 0


async def _check_waiting(agent: PersonalAgent, domain: str, user: str, anonymous: bool) -> None:
    """Without a message of its own, a run has something to do only if an earlier one left something."""
    waiting = () if anonymous else await agent.pending()
    if not any((one.domain, one.user) == (domain.lower(), user) for one in waiting):
        raise CliError(
            "there is nothing to send: no message is waiting for this Company",
            code="usage",
            next=f"papaver ask {domain} TEXT, or give --data or --context; --conversation ID reads on in one",
        )


async def _begin(session: Session, known: str | None, message: dict[str, Any] | None) -> tuple[Conversation, ...]:
    if known is None:
        return await session.send_pending() if message is None else (await session.ask(**message),)
    conversation = await session.resume(known)
    if message is not None:
        await conversation.say(**message)
    return (conversation,)


async def _read(
    run: Run, conversation: Conversation, company: str, session: Session, again: str
) -> SignInNeeded | None:
    """Print its events until the Company is idle → what the User has to be asked for."""
    if not run.json:
        run.note(f"conversation {conversation.id}")
    wanted: SignInNeeded | None = None
    try:
        async for event in conversation.events():
            print_event(run, event, company, session.live.current, is_ours=session.has_said)
            if isinstance(event, AuthorizationNeeded):
                wanted = await conversation.need_of(event)
    except FetchFailed as error:
        reads_on = f"{again} --conversation {conversation.id} reads on"
        raise _unanswered(error, "what the Company said cannot be read at the moment", reads_on) from None
    run.line(
        conversation_id=conversation.id,
        status=conversation.status.value,
        responder=conversation.responder.value,
        cursor=conversation.cursor,
    )
    return wanted


def _unanswered(error: FetchFailed, said: str, next_step: str) -> CliError:
    """The failure of a request, told as what it means here."""
    detail = "" if error.found else error.detail or error.description
    told = CliError(said, code=error.code, rule=error.rule, detail=detail, next=next_step)
    told.compare(error.expected, error.found, "")
    return told


def _details(data: str | None) -> Mapping[str, object] | None:
    if data is None:
        return None
    try:
        return loads_object(data)
    except JsonError as error:
        raise click.UsageError(f"--data is no JSON object: {error.description}") from None


def facts_of(facts: Sequence[str]) -> dict[str, object]:
    """K=V, where V may be JSON (`true`, `3`, `{"a": 1}`, `null` to take it back); anything else is a text."""
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
