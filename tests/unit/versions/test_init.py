"""The registry of versions: looked up at the door, by exact name."""

from __future__ import annotations

import pytest

from papaver.protocol.dialect import Version
from papaver.protocol.errors import ConfigurationError, VersionUnsupported
from papaver.versions import DIALECTS, choose, dialect_of


def test_each_dialect_is_registered_under_its_own_version() -> None:
    """Draft 0.4 is the one that there is."""
    assert {version: dialect.version for version, dialect in DIALECTS.items()} == {Version(0, 4): Version(0, 4)}


def test_a_request_gets_the_dialect_of_its_version() -> None:
    """Among those that are served."""
    assert choose(("0.4",)) is DIALECTS[Version(0, 4)]
    assert choose(("0.4",), {Version(0, 4): DIALECTS[Version(0, 4)]}) is DIALECTS[Version(0, 4)]


@pytest.mark.requirement("3.4-20")
@pytest.mark.parametrize("values", [(), ("0.3",), ("1.0",), ("0.4", "0.4"), ("latest",)])
def test_a_request_without_a_served_version_gets_none(values: tuple[str, ...]) -> None:
    """No default, no nearest (3.4)."""
    with pytest.raises(VersionUnsupported) as caught:
        choose(values)
    assert caught.value.code == "version_unsupported"


def test_a_chosen_version_has_its_dialect() -> None:
    """And one that is not implemented is a mistake of the caller."""
    assert dialect_of(Version(0, 4)) is DIALECTS[Version(0, 4)]
    with pytest.raises(ConfigurationError) as caught:
        dialect_of(Version(0, 3))
    assert caught.value.rule == "version.implemented"
