"""The two ways in which a Company's commands are told which Company."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

__all__ = ["company_options"]

F = TypeVar("F", bound=Callable[..., Any])


def company_options(function: F) -> F:
    """`--config FILE` or MODULE:NAME."""
    option = click.option(
        "--config",
        type=click.Path(dir_okay=False, path_type=Path),
        help="The configuration; papaver.toml here when not given.",
    )
    return option(click.argument("target", metavar="[MODULE:NAME]", required=False)(function))
