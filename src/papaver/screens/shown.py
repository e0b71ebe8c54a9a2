"""What another party wrote, made fit for a person's eyes on a page: one line, bounded, nothing hidden in it."""

from __future__ import annotations

import unicodedata
from datetime import UTC, datetime
from typing import Final

__all__ = ["MOST_OF_A_NAME", "block", "line", "moment", "name", "plain_date", "waited"]

MOST_OF_A_NAME: Final = 80
"""Characters of a name that are shown; a longer one is cut, so that it cannot push away what stands beside it."""
MOST: Final = 2000
MARKS: Final = 3
"""Combining marks in a row that are shown. No script needs more; a hundred of them cover the lines above."""
_BLANK: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")
"""Letters and symbols to Unicode that look like nothing."""


def line(text: str, most: int = MOST) -> str:
    """`text` on one line of at most `most` characters.

    Spaces stand for what cannot be seen: controls, direction overrides, lone surrogates, blank letters.
    """
    kept: list[str] = []
    marks = 0
    for one in text[: most * 8]:
        marks = marks + 1 if unicodedata.category(one) in ("Mn", "Me") else 0
        if marks <= MARKS:
            kept.append(one if one.isprintable() and one not in _BLANK else " ")
    found = " ".join("".join(kept).split())
    return found if len(found) <= most else f"{found[: most - 1]}…"


def block(text: str, most: int = 20_000) -> str:
    """`text` of several lines, each as `line` has it, its indentation kept; blank lines never two in a row."""
    lines: list[str] = []
    for one in text[: most * 2].splitlines():
        indent = min(len(one) - len(one.lstrip(" ")), 40)
        seen = line(one, most)
        if seen or (lines and lines[-1]):
            lines.append(" " * indent * bool(seen) + seen)
    found = "\n".join(lines).rstrip("\n")
    return found if len(found) <= most else f"{found[: most - 1]}…"


def name(text: str) -> str:
    """What somebody calls itself, short enough to stand in a sentence; empty when nothing of it can be seen."""
    return line(text, MOST_OF_A_NAME)


def plain_date(seconds: float) -> str:
    """A day as people write it, such as 3 March 2027, in UTC. `seconds` is Unix time; beyond the calendar: empty."""
    try:
        day = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{day.day} {_MONTHS[day.month - 1]} {day.year}"


def moment(seconds: float) -> str:
    """A time as people write it, such as 3 March, 14:05 UTC. `seconds` is Unix time; beyond the calendar: empty."""
    try:
        at = datetime.fromtimestamp(seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return ""
    return f"{at.day} {_MONTHS[at.month - 1]}, {at:%H:%M} UTC"


def waited(seconds: int) -> str:
    """How long, in two words at most, such as 5 min 20 s. The pages' script writes the same."""
    minutes, left = divmod(seconds, 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {left} s" if minutes else f"{left} s"


_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
