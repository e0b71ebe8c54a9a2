"""The options that every command has, and the decorator that gives them to it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import click

from papaver.cli.failures import exit_status
from papaver.cli.run import Run
from papaver.values.errors import PapaverError

__all__ = ["command", "shared_options"]

F = TypeVar("F", bound=Callable[..., Any])


def shared_options(function: F, *, network: bool = True) -> F:
    """`--json`, `--trace`, `--home`, `--resolve`, `--ca-file`, below the command's own in its help.

    Without `network` the last two are taken, for scripts that give them everywhere, and not shown.
    """
    own: list[click.Parameter] = getattr(function, "__click_params__", [])
    given = list(own)
    own.clear()
    for option in reversed(
        (
            click.option("--json", "as_json", is_flag=True, help="One JSON object per line on stdout."),
            click.option("--trace", is_flag=True, help="Show each exchange on stderr, secrets hidden."),
            click.option(
                "--home",
                type=click.Path(file_okay=False, path_type=Path),
                envvar="PAPAVER_HOME",
                show_envvar=True,
                help="Folder of keys, vault and state.",
            ),
            click.option(
                "--resolve",
                multiple=True,
                metavar="HOST:PORT=ADDR:PORT",
                hidden=not network,
                help="Local work: connect there instead; SNI and Host stay the name. [env var: PAPAVER_RESOLVE]",
            ),
            click.option(
                "--ca-file",
                type=click.Path(dir_okay=False, path_type=Path),
                hidden=not network,
                help="Local work: trust these certificate authorities too. [env var: PAPAVER_CA_FILE]",
            ),
        )
    ):
        function = option(function)
    # click reverses what decorators collected.
    collected: list[click.Parameter] = getattr(function, "__click_params__", [])
    collected += given
    return function


def command(
    name: str, *, example: str, network: bool = True, **settings: Any
) -> Callable[[Callable[..., Any]], click.Command]:
    """A command with the shared options, whose function gets a Run first. `example` is its one worked example.

    `network` is False for one that asks nobody.

    A PapaverError that leaves the function is told, and becomes the exit status.
    """

    def decorate(function: Callable[..., Any]) -> click.Command:
        @wraps(function)
        @click.pass_context
        def invoked(context: click.Context, /, **given: Any) -> None:
            run = _run_of(context, given)
            with run.closing:
                run.watch()
                try:
                    function(run, **given)
                except PapaverError as error:
                    run.fail(error)
                    context.exit(exit_status(error))

        shown = "\b\nExample:\n" + "\n".join(f"  $ {line}" for line in example.strip().splitlines())
        return cast(
            click.Command,
            click.command(name, epilog=shown, **settings)(shared_options(invoked, network=network)),
        )

    return decorate


def _run_of(context: click.Context, given: dict[str, Any]) -> Run:
    """The Run of the shared options, taken out of `given`."""
    return Run(
        command=context.command_path,
        json=given.pop("as_json"),
        trace=given.pop("trace"),
        home_folder=given.pop("home"),
        resolve=tuple(given.pop("resolve")),
        ca_file=given.pop("ca_file"),
    )
