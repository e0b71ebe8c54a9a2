"""What another party sent, made safe for a terminal: no escape sequence, no control character, no hidden direction."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["clean", "one_line"]

LONGEST: Final = 1_000_000
"""Characters of a text that are shown, far more than a message or a page of details has."""
LONGEST_LINE: Final = 4_000
"""Characters of a name or a value that are shown."""

START: Final = re.compile(
    r"(?P<osc>\x1b\]|\x9d)"  # titles, links, the clipboard
    r"|(?P<string>\x1b[PX^_]|[\x90\x98\x9e\x9f])"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*+[ -/]*+[@-~]"  # CSI: colours, the cursor
    r"|\x1b[ -/]*+[0-~]"
)
ENDS: Final = {"osc": re.compile(r"\x07|\x1b\\|\x9c"), "string": re.compile(r"\x1b\\|\x9c")}
_LINE_ENDS: Final = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_JOINERS: Final = "\u200c\u200d"
"""The two format characters that words and emoji need."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def clean(text: str, indent: str = "", longest: int = LONGEST) -> str:
    """`text` for people, its own line ends kept; every further line starts with `indent`, so it cannot pose as ours.

    It is cut off, with an ellipsis, after `longest` characters.
    """
    kept = text if len(text) <= longest else f"{text[: longest - 1]}\u2026"
    plain = _LINE_ENDS.sub("\n", without_escapes(kept)).replace("\t", "    ")
    seen = "".join(one for one in plain if one == "\n" or one in _JOINERS or unicodedata.category(one) not in _UNSEEN)
    return seen.strip("\n").replace("\n", f"\n{indent}")


def one_line(text: object) -> str:
    """The same in one line, for names and values."""
    return clean(str(text), longest=LONGEST_LINE).replace("\n", " ")


def without_escapes(text: str) -> str:
    """`text` without its escape sequences, in one pass: what has an end is looked for once, and never again in vain.

    A sequence without an end loses its start, and the rest stays text.
    """
    kept: list[str] = []
    endless: set[str] = set()
    at = 0
    while (start := START.search(text, at)) is not None:
        kept.append(text[at : start.start()])
        at = start.end()
        kind = start.lastgroup
        if kind is None or kind in endless:
            continue
        end = ENDS[kind].search(text, at)
        if end is None:
            endless.add(kind)
        else:
            at = end.end()
    return "".join((*kept, text[at:]))
