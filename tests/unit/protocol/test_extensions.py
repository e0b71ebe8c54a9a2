"""Extensions: read from a header, chosen for one, and in force only where both sides have them."""

from __future__ import annotations

import pytest

from papaver.protocol.company import ExtensionEntry
from papaver.protocol.errors import ExtensionRequired
from papaver.protocol.extensions import (
    check_extension_declared,
    choose_extensions,
    in_force,
    read_extensions,
    write_extensions,
)
from papaver.web.fields import FieldError

WRAP = "example.com/gift-wrap"
ADVERTISED = {WRAP: (ExtensionEntry("2"), ExtensionEntry("1")), "operations": (ExtensionEntry("2"),)}


def test_a_declaration_is_read() -> None:
    """Names with their versions, over several lines too (3.4)."""
    assert read_extensions(['"operations";v="2", "links";v="1"']) == {"operations": "2", "links": "1"}
    assert read_extensions(['"operations";v="2"', '"links";v="1"']) == {"operations": "2", "links": "1"}


@pytest.mark.requirement("3.4-14")
@pytest.mark.parametrize(
    "values",
    [(), ("",), ("operations;v=2,,",), ('"operations";v="2",',), ('"a";v="1"', '"b'), ("ü",), ('"a";v="1"; =',)],
)
def test_no_field_or_one_that_does_not_parse_declares_nothing(values: tuple[str, ...]) -> None:
    """The whole field is void; the request is no worse for it (3.4)."""
    assert read_extensions(values) == {}


@pytest.mark.parametrize("item", ["operations", "1", '"x"', '"x";v=1', '"x";v', '("x");v="1"', '"x";w="1"'])
def test_an_item_of_another_shape_is_left_out(item: str) -> None:
    """And the others count (readings 46)."""
    assert read_extensions([f'{item}, "links";v="1"']) == {"links": "1"}


def test_of_two_items_with_one_name_the_first_counts() -> None:
    """Readings 46."""
    assert read_extensions(['"links";v="1", "links";v="2"']) == {"links": "1"}


@pytest.mark.requirement("3.4-13")
def test_a_declaration_is_written_as_a_list_of_strings() -> None:
    """And reads back; without extensions there is no field (3.4)."""
    declared = {"operations": "2", WRAP: "1"}
    written = write_extensions(declared)
    assert written == '"operations";v="2", "example.com/gift-wrap";v="1"'
    assert read_extensions([written]) == declared
    assert write_extensions({}) is None


def test_a_name_that_a_header_cannot_say_is_refused() -> None:
    """Instead of sending something else."""
    with pytest.raises(FieldError) as caught:
        write_extensions({"ü": "1"})
    assert caught.value.code == "invalid_field"


@pytest.mark.requirement("3.3-08")
def test_only_what_both_have_in_one_version_is_in_force() -> None:
    """Unsupported extensions and versions count for nothing (3.3)."""
    declared = {WRAP: "1", "operations": "9", "x.example/y": "9"}
    assert in_force(declared, ADVERTISED) == {WRAP: "1"}
    assert in_force({}, ADVERTISED) == {}


@pytest.mark.requirement("3.3-05")
@pytest.mark.parametrize("other", ["2", "1.0", "01", "1 ", "v1", "", "0", "１"])
def test_versions_of_an_extension_are_equal_or_strangers(other: str) -> None:
    """A new version is an incompatible one, so none is newer than another or as good: no order, and no nearest."""
    listed = {WRAP: (ExtensionEntry("1"),)}
    assert in_force({WRAP: "1"}, listed) == choose_extensions({WRAP: ("1",)}, listed) == {WRAP: "1"}
    assert in_force({WRAP: other}, listed) == {}
    assert choose_extensions({WRAP: (other,)}, listed) == {}
    assert choose_extensions({WRAP: (other, "1")}, listed) == {WRAP: "1"}


@pytest.mark.requirement("3.3-06")
def test_one_version_of_each_extension_is_chosen_in_our_order() -> None:
    """From those that the Company lists (3.3)."""
    assert choose_extensions({WRAP: ("3", "1", "2"), "links": ("1",), "operations": ("1",)}, ADVERTISED) == {WRAP: "1"}


@pytest.mark.requirement("3.3-07")
def test_an_extension_that_shows_in_the_request_is_not_declared() -> None:
    """Such as one with its own grant type (3.3)."""
    assert choose_extensions({WRAP: ("1",), "operations": ("2",)}, ADVERTISED, evident=("operations",)) == {WRAP: "1"}


@pytest.mark.requirement("3.3-12")
def test_a_required_extension_that_is_not_in_force_is_named() -> None:
    """`extension_required` with its name (3.3)."""
    check_extension_declared(WRAP, {WRAP: "1"})
    with pytest.raises(ExtensionRequired) as caught:
        check_extension_declared(WRAP, {"links": "1"})
    assert (caught.value.code, caught.value.rule, caught.value.extension) == (
        "extension_required",
        "extension.declared",
        WRAP,
    )
