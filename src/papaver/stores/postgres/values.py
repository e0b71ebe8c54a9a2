"""Small things that every table in PostgreSQL needs: how many rows a statement touched, digests, what it stores."""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2b

__all__ = ["count_of", "digest", "from_column", "is_storable", "to_column"]

_ESCAPED = re.compile(r"\\(.)", re.DOTALL)


def count_of(status: str) -> int:
    """Of a statement's status as PostgreSQL words it: `UPDATE 3`."""
    return int(status.rpartition(" ")[2])


def digest(*parts: str) -> bytes:
    """16 bytes that stand for these strings; some 2**64 rows before two of them may meet."""
    framed = "".join([f"{len(part)}:{part}" for part in parts])
    return blake2b(framed.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def is_storable(texts: Iterable[str | None]) -> bool:
    """Whether PostgreSQL takes them: it knows no U+0000, and UTF-8 no half of a pair."""
    text = "".join([text for text in texts if text])
    try:
        return b"\0" not in text.encode()
    except UnicodeEncodeError:
        return False


def to_column(text: str) -> str:
    """A text that others choose, as it lies in a column: U+0000 is escaped, and so is the backslash."""
    return text.replace("\\", "\\\\").replace("\0", "\\0")


def from_column(text: str) -> str:
    """What `to_column` was given."""
    return _ESCAPED.sub(lambda found: "\0" if found[1] == "0" else found[1], text) if "\\" in text else text
