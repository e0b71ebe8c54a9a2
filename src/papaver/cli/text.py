"""What another party sent, made safe for a terminal: no escape sequence, no control character, no hidden direction."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

__all__ = ["clean", "one_line"]

_ESCAPES: Final = re.compile(
    r"(?:\x1b\]|\x9d).*?(?:\x07|\x1b\\|\x9c)"  # OSC: titles, links, the clipboard
    r"|(?:\x1b[PX^_]|[\x90\x98\x9e\x9f]).*?(?:\x1b\\|\x9c)"  # DCS, SOS, PM, APC
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: colours, the cursor
    r"|\x1b[ -/]*[0-~]",
    re.DOTALL,
)
_LINE_ENDS: Final = re.compile("\r\n?|[\v\f\x85\u2028\u2029]")
_JOINERS: Final = "\u200c\u200d"
"""The two format characters that words and emoji need."""
_UNSEEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn"})


def clean(text: str, indent: str = "") -> str:
    """`text` for people, its own line ends kept; every further line starts with `indent`, so it cannot pose as ours."""
    plain = _LINE_ENDS.sub("\n", _ESCAPES.sub("", text)).replace("\t", "    ")
    seen = "".join(one for one in plain if one == "\n" or one in _JOINERS or unicodedata.category(one) not in _UNSEEN)
    return seen.strip("\n").replace("\n", f"\n{indent}")


def one_line(text: object) -> str:
    """The same in one line, for names and values."""
    return clean(str(text)).replace("\n", " ")
