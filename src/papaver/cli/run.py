"""What every command is given: where to print, the home folder and the network, from flags and environment."""

from __future__ import annotations

import json
import logging
import sys
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import click

from papaver.cli.failures import describe
from papaver.cli.text import clean, one_line
from papaver.values.errors import PapaverError

if TYPE_CHECKING:
    from papaver.adapters.httpx2.resolve_map import NetworkSettings
    from papaver.cli.home import Home

__all__ = ["Run"]


@dataclass(frozen=True)
class Run:
    """One run of one command. `json`: JSON lines on stdout instead of text for people. `command`: as it was typed."""

    command: str = "papaver"
    json: bool = False
    trace: bool = False
    home_folder: Path | None = None
    resolve: tuple[str, ...] = ()
    ca_file: Path | None = None
    closing: ExitStack = field(default_factory=ExitStack)

    def line(self, /, **members: object) -> None:
        """One JSON object on stdout, when JSON is asked for. Only ASCII, so nothing in it can steer a terminal."""
        if self.json:
            click.echo(json.dumps(members))

    def say(self, form: str = "", /, **values: object) -> None:
        """A line for people on stdout, unless JSON is asked for. `{values}` are another party's words, made safe."""
        if not self.json:
            click.echo(form.format(**{name: one_line(value) for name, value in values.items()}) if values else form)

    def note(self, text: str) -> None:
        """Progress or a warning, on stderr."""
        click.echo(clean(text, "  "), err=True)

    def fail(self, error: PapaverError) -> None:
        """Tell a failure: to scripts on stdout, to people on stderr."""
        told = describe(error, self.command)
        if self.json:
            self.line(**told)
            return
        rule = f" [{one_line(told['rule'])}]" if told["rule"] else ""
        first, *more = clean(str(told["detail"] or told["error"])).split("\n")
        click.echo("\n  ".join((f"papaver: {first}{rule}", *more)), err=True)
        for name in ("expected", "found", "next"):
            if told.get(name):
                click.echo(f"  {name:<9} {clean(str(told[name]), ' ' * 12)}", err=True)

    @cached_property
    def network(self) -> NetworkSettings:
        """Raises ConfigurationError."""
        from papaver.adapters.httpx2.resolve_map import NetworkSettings

        return NetworkSettings.read(self.resolve, self.ca_file)

    @cached_property
    def home(self) -> Home:
        """The Personal Agent's folder; nothing is made yet."""
        from papaver.cli.home import Home, home_folder

        return Home(self.home_folder or home_folder())

    def watch(self) -> None:
        """Warnings go to stderr, and with `--trace` every exchange."""
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(_Plain())
        root = logging.getLogger("papaver")
        root.addHandler(handler)
        exchanges = logging.getLogger("papaver.exchange")
        before = exchanges.level
        self.closing.callback(root.removeHandler, handler)
        self.closing.callback(exchanges.setLevel, before)
        if self.trace:
            exchanges.setLevel(logging.DEBUG)


class _Plain(logging.Formatter):
    """A record in one paragraph, its traceback included, made safe, with our name in front of warnings."""

    def format(self, record: logging.LogRecord) -> str:
        said = record.getMessage()
        if record.exc_info:
            said = f"{said}\n{self.formatException(record.exc_info)}"
        text = clean(said, "  ")
        return text if record.name == "papaver.exchange" else f"papaver: {text}"
