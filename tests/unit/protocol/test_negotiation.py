"""Versions: read strictly, compared by the one rule, and negotiated or refused."""

from __future__ import annotations

import pytest

from papaver.protocol.dialect import Version
from papaver.protocol.errors import VersionUnsupported
from papaver.protocol.negotiation import (
    Retirement,
    compatible,
    negotiate,
    newest,
    read_version,
    retirement_fields,
)

V0_3, V0_4, V1_0, V1_5, V2_0 = Version(0, 3), Version(0, 4), Version(1, 0), Version(1, 5), Version(2, 0)


def refused(values: tuple[str, ...], served: tuple[Version, ...] = (V0_4,)) -> str:
    """The rule by which a request's version is refused."""
    with pytest.raises(VersionUnsupported) as caught:
        negotiate(values, served)
    assert caught.value.code == "version_unsupported"
    return caught.value.rule


@pytest.mark.requirement("3.4-09")
@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (V0_4, V0_4, True),
        (V0_4, V0_3, False),
        (V1_0, Version(1, 7), True),
        (V1_0, V2_0, False),
        (V0_4, Version(1, 4), False),
        (Version(2, 9), V2_0, True),
    ],
)
def test_versions_are_compatible_by_major_and_before_1_0_by_minor(a: Version, b: Version, expected: bool) -> None:
    """Both ways round (3.4)."""
    assert compatible(a, b) is expected
    assert compatible(b, a) is expected


@pytest.mark.parametrize(("text", "version"), [("0.4", V0_4), ("1.0", V1_0), ("10.25", Version(10, 25))])
def test_a_version_is_read(text: str, version: Version) -> None:
    """And written back as it was."""
    assert read_version(text) == version
    assert str(version) == text


@pytest.mark.parametrize(
    "text",
    ["", "0", "0.", ".4", "0.4.0", "00.4", "0.04", "v0.4", " 0.4", "0.4 ", "0.4\n", "+0.4", "0,4", "٠.٤", "0.1234567"],
)
def test_nothing_else_is_a_version(text: str) -> None:
    """No repair of any kind."""
    assert read_version(text) is None


@pytest.mark.requirement("3.4-19")
def test_a_request_without_a_version_is_refused() -> None:
    """Never handled under a default (3.4)."""
    assert refused(()) == "version.declared-once"


def test_a_request_with_two_versions_is_refused() -> None:
    """Which of them it follows cannot be known."""
    assert refused(("0.4", "0.4")) == "version.declared-once"


@pytest.mark.requirement("3.4-20")
@pytest.mark.parametrize("text", ["abc", "", "0.4, 0.4", "0.4;x"])
def test_a_malformed_version_is_refused(text: str) -> None:
    """3.4."""
    assert refused((text,)) == "version.well-formed"


@pytest.mark.requirement("3.4-20", "3.4-21")
@pytest.mark.parametrize("text", ["0.9", "0.3", "1.4"])
def test_an_incompatible_version_is_refused(text: str) -> None:
    """And handled under no other (3.4)."""
    assert refused((text,)) == "version.served"


def test_a_served_version_is_taken_as_it_is() -> None:
    """Even beside a newer compatible one."""
    assert negotiate(("0.4",), (V0_3, V0_4)) == V0_4
    assert negotiate(("1.0",), (V1_0, V1_5)) == V1_0


@pytest.mark.requirement("3.4-26")
def test_from_1_0_the_newest_compatible_version_answers_another_minor() -> None:
    """Negotiation needs no dialect: synthetic majors find each other (3.4)."""
    assert negotiate(("1.7",), (V0_4, V1_0, V1_5, V2_0)) == V1_5
    assert negotiate(("2.3",), (V0_4, V1_0, V2_0)) == V2_0
    assert refused(("3.0",), (V0_4, V1_0, V2_0)) == "version.served"


def test_newest_picks_among_the_compatible() -> None:
    """None when there is none."""
    assert newest(V1_0, (V0_4, V1_5, V1_0, V2_0)) == V1_5
    assert newest(V0_3, (V0_4, V1_0)) is None


@pytest.mark.requirement("3.4-25")
def test_a_retired_version_says_so_and_no_other_does() -> None:
    """`Deprecation` is a structured date, `Sunset` an HTTP-date (3.4)."""
    plans = {V0_3: Retirement(deprecated=1_790_899_200, sunset=1_790_920_800), V1_0: Retirement(sunset=1_790_920_800)}
    sunset = ("sunset", "Fri, 02 Oct 2026 06:00:00 GMT")
    assert retirement_fields(V0_3, plans) == (("deprecation", "@1790899200"), sunset)
    assert retirement_fields(V1_0, plans) == (sunset,)
    assert retirement_fields(V0_4, plans) == ()
