"""Writes `docs/limits.md` from the configuration: `python -m tools.limits`; `--check` says whether it is up to date."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

from papaver.company.authserver.settings import IssuerLimits
from papaver.company.settings import CompanyLimits
from papaver.company.staff_console import actions
from papaver.company.staff_console.reading import LONGEST
from papaver.company.staff_console.visits import MOST_FORM
from papaver.company.streaming import STREAMED_BYTES
from papaver.personal_agent.settings import AgentLimits
from papaver.ports.system import FetchPolicy
from papaver.protocol import delegation
from papaver.protocol.conversation.content import MAX_CONTEXT_FIELDS
from papaver.stores.deltas import MOST_WAITING
from papaver.values import strict_json

__all__ = ["PAGE", "page"]

PAGE = Path(__file__).parents[1] / "docs" / "limits.md"

_HEAD = """\
# Limits and lifetimes

Written by `python -m tools.limits` from the settings; do not edit. Whatever arrives and exceeds a limit gets the error
that the specification names. Sizes are in bytes, times in seconds, rates a minute, unless a line says otherwise.
Each process counts for itself; with `PostgresStore(…, redis=…)` replicas add up their rates once a second.
"""
_SETTINGS = (
    ("A Company", "papaver.company.settings.CompanyLimits", CompanyLimits),
    ("An embedded issuer", "papaver.company.authserver.settings.IssuerLimits", IssuerLimits),
    ("A Personal Agent", "papaver.personal_agent.settings.AgentLimits", AgentLimits),
)


def page() -> str:
    """The whole page."""
    parts = [_HEAD]
    for title, name, settings in _SETTINGS:
        parts.append(f"\n## {title}\n\n`{name}`, all of them keyword arguments.\n\n")
        parts += _table(["setting", "limits", "default", "allowed"], _rows(settings))
    parts.append(
        "\n## Fetching\n\nOf every document that another party names (`papaver.ports.system.FetchPolicy`).\n\n"
    )
    policy = FetchPolicy()
    parts += _table(
        ["limits", "default"],
        iter(
            [
                ("redirect hops; each https and to a public address", _number(policy.redirects)),
                ("octets of the body, after decompression", _number(policy.max_bytes)),
                ("seconds for all hops together", _number(policy.seconds)),
            ]
        ),
    )
    parts.append("\n## Fixed\n\n")
    parts += _table(
        ["limits", "value"],
        iter(
            [
                ("depth of JSON", _number(strict_json.MAX_DEPTH)),
                ("fields of a conversation's merged context", _number(MAX_CONTEXT_FIELDS)),
                (
                    (
                        "octets of events read for one chunk of a stream; one event is always there. Buffers of the "
                        "server and the kernel hold some 240,000 more for each reader who takes nothing"
                    ),
                    _number(STREAMED_BYTES),
                ),
                ("characters of pieces that wait for one reader of a stream", _number(MOST_WAITING)),
                (
                    "characters of what a person says at the staff console, and of a reason",
                    f"{_number(actions.MOST_TEXT)}, {_number(actions.MOST_REASON)}",
                ),
                ("a form of the staff console", _number(MOST_FORM)),
                ("longest question of the staff console for news, held", _number(LONGEST)),
                ("a delegation accepted for", _number(delegation.LIFETIME)),
                ("a delegation's `iat` ahead of our clock", _number(delegation.DelegationProfile("").skew)),
                ("a delegation used after its `exp`", _number(delegation.LEEWAY)),
            ]
        ),
    )
    return "".join(parts)


def _rows(settings: type[Any]) -> Iterator[tuple[str, ...]]:
    for one in fields(settings):
        low, high = one.metadata["low"], one.metadata["high"]
        allowed = f"{_number(low)} or more" if high == float("inf") else f"{_number(low)} to {_number(high)}"
        yield f"`{one.name}`", one.metadata["what"], _number(one.default), allowed


def _number(value: Any) -> str:
    return f"{value:,.0f}"


def _table(titles: list[str], rows: Iterator[tuple[str, ...]]) -> list[str]:
    lines = [titles, ["---"] * len(titles), *rows]
    return [f"| {' | '.join(line)} |\n" for line in lines]


def main(arguments: list[str]) -> int:
    if arguments == ["--check"]:
        if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == page():
            return 0
        sys.stderr.write("docs/limits.md is not what the settings say: run `python -m tools.limits`\n")
        return 1
    PAGE.write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
