"""What went wrong in somebody's own module: the frames of their code, without ours and those of installed packages."""

from __future__ import annotations

import sysconfig
import traceback
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final

import papaver
from papaver.values.errors import PapaverError

__all__ = ["Theirs", "frames_of", "shown"]

_NOT_THEIRS: Final = (
    str(Path(papaver.__file__).parent),
    *(sysconfig.get_path(name) for name in ("stdlib", "purelib", "platlib")),
    "<frozen ",
)


def frames_of(error: BaseException) -> traceback.StackSummary:
    """The frames that led to the error, as far as they are the user's."""
    every = traceback.extract_tb(error.__traceback__)
    return traceback.StackSummary.from_list([one for one in every if not one.filename.startswith(_NOT_THEIRS)])


def shown(error: BaseException) -> str:
    """The error as Python shows it, short."""
    frames = frames_of(error)
    head = ["Traceback, your frames only:\n", *frames.format()] if frames else []
    return "".join([*head, *traceback.format_exception_only(error)]).rstrip("\n")


class Theirs:
    """A block that runs somebody's own code. Whatever it raises leaves as `error_of` says, and not through our frames.

    Errors of papaver pass as they are; so does what ends a program.
    """

    def __init__(self, error_of: Callable[[Exception], PapaverError]) -> None:
        self._error_of = error_of

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, Exception) and not isinstance(error, PapaverError):
            raise self._error_of(error) from None
