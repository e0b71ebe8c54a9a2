"""Versions: which are compatible, which one a request names, and how one is retired (3.4).

This is what 1.0 freezes for all later versions, so it knows no dialect: a Company and a Personal Agent of different
major versions find one they share here, or learn that there is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from papaver.protocol.dialect import Version
from papaver.protocol.errors import VersionUnsupported
from papaver.values.rules import rule
from papaver.web.fields import write_deprecation, write_sunset

__all__ = [
    "VERSION_HEADER",
    "Retirement",
    "check_version_declared",
    "check_version_served",
    "check_version_well_formed",
    "compatible",
    "negotiate",
    "newest",
    "read_version",
    "retirement_fields",
]

VERSION_HEADER: Final = "poppy-version"

_VERSION: Final = re.compile(r"(0|[1-9][0-9]{0,5})\.(0|[1-9][0-9]{0,5})", re.ASCII)


@dataclass(frozen=True, slots=True)
class Retirement:
    """When a version was or will be deprecated, and when it stops being served; Unix seconds, None when not said."""

    deprecated: float | None = None
    sunset: float | None = None


def compatible(a: Version, b: Version) -> bool:
    """3.4: the same major version and, before 1.0, the same minor version."""
    return a.major == b.major and (a.major > 0 or a.minor == b.minor)


def read_version(text: str) -> Version | None:
    """`major.minor` in decimal digits without leading zeros, nothing around it; None for anything else."""
    match = _VERSION.fullmatch(text)
    return None if match is None else Version(int(match[1]), int(match[2]))


def newest(wanted: Version, among: Iterable[Version]) -> Version | None:
    """The newest of `among` that is compatible with `wanted`; None when there is none."""
    return max((version for version in among if compatible(version, wanted)), default=None)


def negotiate(values: Sequence[str], served: Iterable[Version]) -> Version:
    """Under which served version a request is handled. `values` are its `Poppy-Version` fields.

    The version itself where it is served, else the newest compatible one. Raises `VersionUnsupported` (3.4); the
    request is then handled under no version at all.
    """
    offered = frozenset(served)
    check_version_declared(values)
    check_version_well_formed(values[0])
    major, minor = values[0].split(".")
    version = Version(int(major), int(minor))
    check_version_served(version, offered)
    return version if version in offered else max(one for one in offered if compatible(one, version))


@rule("version.declared-once")
def check_version_declared(values: Sequence[str]) -> None:
    """3.4: the request names its version, in one field."""
    if len(values) != 1:
        raise VersionUnsupported(rule="version.declared-once", detail=f"{len(values)} Poppy-Version fields")


@rule("version.well-formed")
def check_version_well_formed(text: str) -> None:
    """3.4: `major.minor`."""
    if read_version(text) is None:
        raise VersionUnsupported(rule="version.well-formed", detail=f"Poppy-Version is {text[:40]!r}")


@rule("version.served")
def check_version_served(version: Version, served: frozenset[Version]) -> None:
    """3.4: a compatible version is served here."""
    if newest(version, served) is None:
        raise VersionUnsupported(
            rule="version.served", detail=f"asked for {version}, served {', '.join(map(str, sorted(served)))}"
        )


def retirement_fields(version: Version, retirements: Mapping[Version, Retirement]) -> tuple[tuple[str, str], ...]:
    """The `Deprecation` (RFC 9745) and `Sunset` (RFC 8594) fields of an answer in this version; most have none."""
    plan = retirements.get(version, Retirement())
    fields: list[tuple[str, str]] = []
    if plan.deprecated is not None:
        fields.append(("deprecation", write_deprecation(plan.deprecated)))
    if plan.sunset is not None:
        fields.append(("sunset", write_sunset(plan.sunset)))
    return tuple(fields)
