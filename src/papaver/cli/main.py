"""The program `papaver`: which commands there are, and under which role."""

from __future__ import annotations

from typing import Final

import click

import papaver
from papaver.cli.lazy import Entry, LazyGroup

__all__ = ["cli", "main"]

AGENT: Final = "As a Personal Agent"
COMPANY: Final = "As a Company"
BOTH: Final = "For both"

ENTRIES: Final = {
    "init": Entry("papaver.cli.identity:init", "Make a Personal Agent's keys and documents.", AGENT),
    "identity": Entry("papaver.cli.identity:identity", "Show or serve what it publishes.", AGENT),
    "discover": Entry("papaver.cli.discover:discover", "What a Company offers, every check shown.", AGENT),
    "ask": Entry("papaver.cli.ask:ask", "Talk to a Company until it is idle.", AGENT),
    "chat": Entry("papaver.cli.chat:chat", "Talk to it line by line.", AGENT),
    "sign-in": Entry("papaver.cli.sign_in:sign_in", "Have the User sign in at a Company.", AGENT),
    "sign-out": Entry("papaver.cli.sign_in:sign_out", "Sign the User out there again.", AGENT),
    "status": Entry("papaver.cli.status:status", "Companies, accounts, conversations and keys; no secret.", AGENT),
    "api": Entry("papaver.cli.api:api", "List or call what a Company's APIs offer.", AGENT),
    "company": Entry("papaver.cli.company:company", "Set up, check and run a Company.", COMPANY),
    "staff": Entry("papaver.cli.staff:staff", "People who take conversations over.", COMPANY),
    "demo": Entry("papaver.cli.demo:demo", "The main job, end to end, on this machine.", BOTH),
    "dev-certs": Entry("papaver.cli.dev_certs:dev_certs", "Certificates for work on this machine.", BOTH),
    "inspect": Entry("papaver.cli.inspect:inspect", "Decode a JWT, and say what was not verified.", BOTH),
    "requirements": Entry("papaver.cli.requirements:requirements", "What the protocol requires, row by row.", BOTH),
}


@click.command(
    "papaver",
    cls=LazyGroup,
    entries=ENTRIES,
    epilog="\b\nExample:\n  $ papaver discover shop.example",
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(papaver.__version__, prog_name="papaver")
def cli() -> None:
    """The Personal Agent Protocol (Poppy), draft 0.4: a Company's side and a Personal Agent's side."""


def main() -> None:
    """Run the command line of this process and end it."""
    cli.main(prog_name="papaver")
