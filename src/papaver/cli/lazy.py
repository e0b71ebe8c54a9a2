"""Command groups that import a command when it is run, so that `papaver --help` stays fast."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import click

from papaver.cli.failures import USAGE

__all__ = ["Entry", "LazyGroup"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Where a command is (`module:name`), what `--help` says of it, and under which heading."""

    where: str
    summary: str
    heading: str = "Commands"


class LazyGroup(click.Group):
    """A group of `entries`, in their order."""

    def __init__(self, *args: Any, entries: Mapping[str, Entry], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.entries = entries

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.entries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = self.entries.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.where.partition(":")
        command: click.Command = getattr(import_module(module), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for heading in dict.fromkeys(entry.heading for entry in self.entries.values()):
            rows = [(name, entry.summary) for name, entry in self.entries.items() if entry.heading == heading]
            with formatter.section(heading):
                formatter.write_dl(rows)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """As click's, but for scripts (`--json`) a usage error is a JSON line, too."""
        arguments = sys.argv[1:] if args is None else list(args)
        if standalone_mode and "--json" in arguments:
            try:
                status = super().main(
                    arguments, prog_name, complete_var, False, windows_expand_args=windows_expand_args, **extra
                )
            except click.UsageError as error:
                path = error.ctx.command_path if error.ctx else self.name
                told = {"error": "usage", "rule": "", "detail": error.format_message(), "next": f"{path} --help"}
                click.echo(json.dumps(told))
                sys.exit(USAGE)
            except click.Abort:
                sys.exit(130)
            sys.exit(status if isinstance(status, int) else 0)
        return super().main(
            arguments, prog_name, complete_var, standalone_mode, windows_expand_args=windows_expand_args, **extra
        )
