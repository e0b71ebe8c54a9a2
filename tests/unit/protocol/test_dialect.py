"""What a protocol version is to everyone: a name, and a set of codecs that the version's folder supplies."""

from __future__ import annotations

import pytest

from papaver.protocol.dialect import Dialect, Version
from papaver.versions import DIALECTS


@pytest.mark.parametrize(
    ("version", "text"), [(Version(0, 4), "0.4"), (Version(1, 0), "1.0"), (Version(10, 25), "10.25")]
)
def test_a_version_is_written_as_major_and_minor(version: Version, text: str) -> None:
    """As `protocol_version` and `Poppy-Version` have it (3.4)."""
    assert str(version) == f"{version}" == text


def test_every_dialect_is_found_under_its_own_version() -> None:
    """The key is the gate: there is no default."""
    assert DIALECTS
    for version, dialect in DIALECTS.items():
        assert isinstance(dialect, Dialect)
        assert dialect.version == version
    with pytest.raises(KeyError):
        DIALECTS[Version(0, 3)]
