"""What anybody could see of a program, kept to look for secrets in it: values, errors, and every log record."""

from __future__ import annotations

import logging
import pickle
import traceback
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field

__all__ = ["Everything", "Seen", "logged"]


@dataclass(repr=False)
class Seen:
    """Everything that anybody could see, in pieces with a name."""

    pieces: dict[str, bytes] = field(default_factory=dict[str, bytes])

    def note(self, name: str, what: object) -> None:
        """A value: its text, repr and pickle."""
        self.pieces[f"{name}, text"] = str(what).encode()
        self.pieces[f"{name}, repr"] = repr(what).encode()
        try:
            self.pieces[f"{name}, pickle"] = pickle.dumps(what)
        except (TypeError, pickle.PicklingError, AttributeError) as refusal:
            self.pieces[f"{name}, refused pickle"] = str(refusal).encode()

    def failed(self, name: str, failure: BaseException) -> None:
        """An error: as a value, and its traceback with the local variables of every frame."""
        self.note(name, failure)
        self.pieces[f"{name}, attributes"] = repr(vars(failure)).encode()
        self.traced(name, failure)

    def traced(self, name: str, failure: BaseException) -> None:
        """The traceback alone."""
        lines = traceback.TracebackException.from_exception(failure, capture_locals=True).format()
        self.pieces[f"{name}, traceback"] = "".join(lines).encode("utf-8", "backslashreplace")

    def leaks(self, secrets: Iterable[bytes]) -> list[str]:
        """Where a secret is seen."""
        return [name for secret in secrets for name, piece in self.pieces.items() if secret in piece]


class Everything(logging.Handler):
    """Keeps every record as it is logged, with its arguments and its traceback."""

    def __init__(self, seen: Seen) -> None:
        super().__init__(level=0)
        self._seen = seen
        self.names: set[str] = set()

    def emit(self, record: logging.LogRecord) -> None:
        self.names.add(record.name.partition(".")[0])
        number = len(self._seen.pieces)
        text = f"{record.getMessage()} {record.args!r} {record.__dict__!r}"
        self._seen.pieces[f"log {number} {record.name}"] = text.encode("utf-8", "backslashreplace")
        if record.exc_info and record.exc_info[1] is not None:
            self._seen.traced(f"log {number} {record.name}", record.exc_info[1])


@contextmanager
def logged() -> Generator[tuple[Seen, Everything]]:
    """All loggers at their lowest level."""
    seen = Seen()
    handler = Everything(seen)
    root = logging.getLogger()
    before = root.level
    root.addHandler(handler)
    root.setLevel(1)
    try:
        yield seen, handler
    finally:
        root.removeHandler(handler)
        root.setLevel(before)
