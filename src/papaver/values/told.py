"""What another party wrote, made fit for a line of a log or of an error: one line, bounded, nothing hidden in it."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["told"]

MOST: Final = 200
_SIGNED: Final = re.compile(r"[\w-]{8,}\.[\w-]{8,}\.[\w-]+")


def told(text: str, most: int = MOST) -> str:
    """`text` in at most `most` characters: what cannot be seen is a space, and whatever may be a token is hidden."""
    seen = "".join(one if one.isprintable() else " " for one in text[: most * 8])
    line = _SIGNED.sub("**********", " ".join(seen.split()))
    return line if len(line) <= most else f"{line[: most - 1]}…"
