"""`papaver company`: the group of a Company's commands."""

from __future__ import annotations

from typing import Final

import click

from papaver.cli.lazy import Entry, LazyGroup

__all__ = ["company"]

ENTRIES: Final = {
    "init": Entry("papaver.cli.company_init:init", "Write a commented papaver.toml and a starter app."),
    "check": Entry("papaver.cli.company_check:check", "Validate the configuration; show what is published."),
    "serve": Entry("papaver.cli.company_serve:serve", "Run the Company."),
    "clients": Entry("papaver.cli.company_clients:clients", "Personal Agents that were here, and your verdicts."),
    "allow": Entry("papaver.cli.company_clients:allow", "Accept a Personal Agent from its next request on."),
    "block": Entry("papaver.cli.company_clients:block", "Refuse a Personal Agent from its next request on."),
    "conversations": Entry("papaver.cli.company_conversations:conversations", "What is stored about whom."),
    "erase-user": Entry("papaver.cli.company_conversations:erase_user", "Delete all that is stored about a User."),
}


@click.command(
    "company", cls=LazyGroup, entries=ENTRIES, epilog="\b\nExample:\n  $ papaver company init shop && cd shop"
)
def company() -> None:
    """Set up, check and run a Company.

    Each takes --config FILE (else papaver.toml here), or MODULE:NAME: a Company, an app that has one, or a function
    without arguments that makes one.
    """
