"""`papaver chat`: a conversation with a Company, typed line by line."""

from __future__ import annotations

import asyncio

import click

from papaver.cli.options import command
from papaver.cli.run import Run

__all__ = ["chat"]


@command("chat", example="papaver chat shop.example")
@click.argument("domain")
@click.option("--conversation", metavar="ID", help="Continue this one.")
@click.option(
    "--as",
    "author",
    type=click.Choice(["agent", "human"]),
    default="human",
    show_default=True,
    help="Whose words are typed: the User's own, or yours about them.",
)
@click.option("--no-stream", is_flag=True, help="Read in pages; no text is shown before it is whole.")
@click.option("--user", default="me", show_default=True, help="Your name for the User; no Company sees it.")
@click.option("--agent-id", metavar="NAME", help="Which of the User's agents; no Company sees the name.")
@click.option("--anonymous", is_flag=True, help="A User ID for this Session alone.")
def chat(
    run: Run,
    domain: str,
    conversation: str | None,
    author: str,
    no_stream: bool,
    user: str,
    agent_id: str | None,
    anonymous: bool,
) -> None:
    """Talk with the Company of DOMAIN, line by line; /help says what else can be typed.

    Ctrl-D and /quit leave the conversation open, to be continued with --conversation.
    """
    if anonymous and conversation:
        raise click.UsageError("--anonymous is another User, to whom --conversation does not belong")
    asyncio.run(_chat(run, domain, conversation, author == "human", no_stream, user, agent_id, anonymous))


async def _chat(
    run: Run,
    domain: str,
    known: str | None,
    by_user: bool,
    no_stream: bool,
    user: str,
    agent_id: str | None,
    anonymous: bool,
) -> None:
    from papaver.cli.agent import agent_of
    from papaver.cli.chatting import Chat

    async with agent_of(run) as agent:
        company = await agent.discover(domain)
        session = company.session(user, agent_id=agent_id, anonymous=anonymous)
        session.streams = not no_stream
        current = None if known is None else await session.resume(known)
        await Chat(run, agent, session, company.name, by_user=by_user, current=current).go_on()
