"""The pages for people, and the code blocks in them, each with the file that it is included from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

__all__ = ["GUIDES", "ROOT", "Block", "blocks"]

ROOT = Path(__file__).parents[2]
GUIDES = (
    "README.md",
    "docs/company.md",
    "docs/company-agent.md",
    "docs/people.md",
    "docs/operations.md",
    "docs/personal-agent.md",
    "examples/outfitter/README.md",
)

_BLOCK = re.compile(r"(?:<!-- (?P<file>\S+) -->\n)?```(?P<kind>\w*)\n(?P<text>.*?)```", re.DOTALL)


class Block(NamedTuple):
    """A fenced block. `file` is what the comment above it names, or ""."""

    page: str
    kind: str
    file: str
    text: str


def blocks(page: str) -> Iterator[Block]:
    """The page's fenced blocks, in order."""
    for found in _BLOCK.finditer((ROOT / page).read_text(encoding="utf-8")):
        yield Block(page, found["kind"], found["file"] or "", found["text"])
