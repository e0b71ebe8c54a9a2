"""Reads the manifests that are traced, and edits single rows in place without touching the rest of the text."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Case", "adopt", "link", "read_cases", "source_ids"]


@dataclass(frozen=True, slots=True)
class Case:
    """One edge case of `spec/edge-cases.toml`; some test's name has to contain its id."""

    id: str
    text: str


def read_cases(path: Path) -> tuple[Case, ...]:
    """The edge cases, in file order; none when the file is absent."""
    if not path.is_file():
        return ()
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(Case(case["id"], case["text"]) for case in document["case"])


def source_ids(path: Path) -> frozenset[str]:
    """The row ids of the requirements that ours grew from; empty when that file is not here."""
    if not path.is_file():
        return frozenset()
    document = tomllib.loads(path.read_text(encoding="utf-8"))
    return frozenset(row["id"] for row in document["requirement"])


def adopt(text: str, shown: Mapping[str, Sequence[str]]) -> tuple[str, list[str]]:
    """Turn `open` into `tested` for every row that some test carries. Returns the text and the rows changed."""
    changed: list[str] = []

    def turn(block: re.Match[str]) -> str:
        if not shown.get(block["id"]) or 'status = "open"' not in block[0]:
            return block[0]
        changed.append(block["id"])
        return block[0].replace('status = "open"', 'status = "tested"')

    return _ROW.sub(turn, text), changed


def link(text: str, rules: Mapping[str, Sequence[str]]) -> tuple[str, list[str]]:
    """Add rule ids to rows. Returns the text and the rows changed."""
    changed: list[str] = []

    def turn(block: re.Match[str]) -> str:
        held = _RULE.search(block[0])
        before = re.findall(r'"([^"]+)"', held[1]) if held else []
        after = sorted({*before, *rules.get(block["id"], ())})
        if after == sorted(before):
            return block[0]
        changed.append(block["id"])
        value = ", ".join(f'"{rule_id}"' for rule_id in after)
        line = f"rule = [{value}]\n" if len(after) > 1 else f"rule = {value}\n"
        rest = _RULE.sub("", block[0])
        return rest.replace("status = ", line + "status = ", 1)

    return _ROW.sub(turn, text), changed


_ROW = re.compile(r'^\[\[(?:requirement|capability)\]\]\nid = "(?P<id>[^"]+)"\n(?:.+\n)*', re.MULTILINE)
_RULE = re.compile(r"^rule = (.+)\n", re.MULTILINE)
