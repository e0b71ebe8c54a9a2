"""Which media types a request accepts, and how gladly (RFC 9110 12.5.1)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

__all__ = ["named_quality", "quality"]

_QUALITY: Final = re.compile(r"0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?")


def quality(values: Sequence[str], media_type: str) -> float:
    """From 0, not acceptable, to 1. `values` are the lines of Accept; without any, everything is acceptable.

    The most specific range counts. Parameters of a range are not compared; one whose quality is none is left out.
    """
    if not values:
        return 1.0
    ranges = _read(values)
    for name in (media_type, media_type.partition("/")[0] + "/*", "*/*"):
        if name in ranges:
            return ranges[name]
    return 0.0


def named_quality(values: Sequence[str], media_type: str) -> float:
    """As `quality`, and 0 for a type that only a wildcard covers, which is in the Accept of every client."""
    return _read(values).get(media_type, 0.0)


def _read(values: Sequence[str]) -> dict[str, float]:
    """Media range → quality; of two for one range the greater."""
    ranges: dict[str, float] = {}
    for member in ",".join(values).split(","):
        name, *parameters = member.split(";")
        weight = "1"
        for parameter in parameters:
            key, _, value = parameter.partition("=")
            if key.strip().lower() == "q":
                weight = value.strip()
        name = name.strip().lower()
        if name and _QUALITY.fullmatch(weight) is not None:
            ranges[name] = max(ranges.get(name, 0.0), float(weight))
    return ranges
