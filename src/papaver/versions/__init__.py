"""The protocol versions that are implemented here: the registry, and the one place where a version is looked up.

A version is looked up at the door (per request, per discovered Company, per published document) and then handed on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from papaver.protocol.dialect import Dialect, Version
from papaver.protocol.errors import ConfigurationError
from papaver.protocol.negotiation import negotiate
from papaver.versions.v0_4 import DIALECT as V0_4

__all__ = ["DIALECTS", "choose", "dialect_of"]

DIALECTS: Final[Mapping[Version, Dialect]] = MappingProxyType({dialect.version: dialect for dialect in (V0_4,)})
"""Version → dialect. A later version is one more folder and one more entry."""


def choose(values: Sequence[str], served: Mapping[Version, Dialect] = DIALECTS) -> Dialect:
    """The dialect of a request; `values` are its `Poppy-Version` fields. Raises `VersionUnsupported` (3.4)."""
    return served[negotiate(values, served)]


def dialect_of(version: Version) -> Dialect:
    """The dialect of a version that was chosen. Raises `ConfigurationError` for one that is not implemented."""
    try:
        return DIALECTS[version]
    except KeyError:
        known = ", ".join(map(str, DIALECTS))
        raise ConfigurationError(
            f"version {version} is not implemented here, only {known}", rule="version.implemented"
        ) from None
