"""JSON is read one way or not at all, and written in one form."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.values.strict_json import JsonError, canonical, dumps, loads, loads_object

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**60), 10**60)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner)
    ),
    max_leaves=12,
)


@given(VALUES)
def test_round_trip(value: object) -> None:
    """What is written is read back equal, in both forms."""
    assert loads(dumps(value), max_depth=64) == value
    assert loads(canonical(value).decode(), max_depth=64) == value


@given(VALUES)
def test_the_standard_library_reads_the_same(value: object) -> None:
    """For a text without faults, ours is an ordinary reader."""
    text = json.dumps(value, indent=1)
    assert loads(text, max_depth=64) == json.loads(text)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b'{"a":1,"a":2}', "two members"),
        (b'{"a" :1,"a" :2}', "two members"),
        (b'{"x":[{"b":{"a":1,"\\u0061":1}}]}', "two members"),
        (b"\xef\xbb\xbf{}", "byte order mark"),
        ("\ufeff{}", "byte order mark"),
        (b'"\xff"', "not UTF-8"),
        (b'"\xed\xa0\x80"', "not UTF-8"),
        (b'"\xc0\xaf"', "not UTF-8"),
        ("{}".encode("utf-16"), "not UTF-8"),
        ("{}".encode("utf-16-le"), "not JSON"),
        (b'"\\ud800"', "lone surrogate"),
        (b'{"\\uDfFf":1}', "lone surrogate"),
        (b'["\\udc00\\ud800"]', "lone surrogate"),
        ('"\ud800"', "lone surrogate"),
        (b"NaN", "not finite"),
        (b"[-Infinity]", "not finite"),
        (b'{"a":Infinity}', "not finite"),
        (b"1e999", "out of range"),
        (b"-1E+400", "out of range"),
        (b"1" * 101, "too long"),
        (b"-" + b"9" * 5000, "too long"),
        (b"0." + b"1" * 100, "too long"),
        (b"1e" + b"0" * 100, "too long"),
        (b"", "not JSON"),
        (b" ", "not JSON"),
        (b"{'a':1}", "not JSON"),
        (b"[1,]", "not JSON"),
        (b"01", "not JSON"),
        (b"+1", "not JSON"),
        (b"1 2", "not JSON"),
        (b'"\x01"', "not JSON"),
        (b'"\\x"', "not JSON"),
        (b'"\\u12_4"', "not JSON"),
        (b"// c\n1", "not JSON"),
        ("\u00a01", "not JSON"),
        ("\u0661", "not JSON"),
    ],
)
def test_leniency_is_refused(data: bytes | str, reason: str) -> None:
    """Each freedom that a common reader takes has its own refusal."""
    with pytest.raises(JsonError, match=reason) as caught:
        loads(data)
    assert caught.value.code == "invalid_json"


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b"1" * 100, int("1" * 100)),
        (b"-0", 0),
        (b"1e308", 1e308),
        (b"1e-999", 0.0),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (b' {"a" : [ ] } \r\n\t', {"a": []}),
        ('"é"', "é"),
        (b'{"a":{"a":1},"b":{"a":1}}', {"a": {"a": 1}, "b": {"a": 1}}),
    ],
)
def test_what_is_legal_is_read(data: bytes | str, value: object) -> None:
    """Strict is not narrow."""
    assert loads(data) == value


def test_size_counts_octets() -> None:
    """The limit is the size on the wire, for text too, and is checked before anything else."""
    assert loads(b'"1234"', max_bytes=6) == "1234"
    assert loads('"éé"', max_bytes=6) == "éé"
    for data in (b'"12345"', '"12345"', '"ééé"', b'"\xff\xff\xff\xff\xff"'):
        with pytest.raises(JsonError, match="too large"):
            loads(data, max_bytes=6)


def test_depth_is_checked_before_a_reader_recurses() -> None:
    """Arrays and objects count alike; brackets in strings do not; 100,000 levels are no danger."""
    assert loads(b"[" * 32 + b"]" * 32) is not None
    assert loads(b'{"a":' * 32 + b"1" + b"}" * 32) is not None
    wide = b"[" + b",".join([b'{"a[{":"\\"[[[{"}'] * 40) + b"]"
    assert loads(wide, max_depth=2) == json.loads(wide)
    for data in (b"[" * 33 + b"]" * 33, b"[" * 100_000, b'[{"a":' * 17, b'["\\\\",' * 33):
        with pytest.raises(JsonError, match="too deeply"):
            loads(data)


def test_an_unterminated_string_with_brackets_is_not_json() -> None:
    """The look at the depth leaves judging to the reader."""
    with pytest.raises(JsonError, match="not JSON"):
        loads(b'[{"a":"' + b"[" * 50)


def test_an_object_is_asked_for() -> None:
    """`loads_object` refuses every other value."""
    assert loads_object(b'{"a":null}') == {"a": None}
    for data in (b"[]", b"null", b'"{}"', b"1"):
        with pytest.raises(JsonError, match="not an object"):
            loads_object(data)


def test_the_public_sentence_names_no_content() -> None:
    """What the other party sent is not reflected to it."""
    with pytest.raises(JsonError) as caught:
        loads(b'{"secret":1,"secret":2}')
    assert "secret" not in str(caught.value)


def test_writing_is_compact_utf8() -> None:
    """No spaces, no escapes that are not needed; the canonical form sorts at every depth."""
    value = {"b": ["é", {"z": 1, "y": None}], "a": True}
    assert dumps(value) == '{"b":["é",{"z":1,"y":null}],"a":true}'.encode()
    assert canonical(value) == '{"a":true,"b":["é",{"y":null,"z":1}]}'.encode()
    assert canonical(1) != canonical(1.0)
    assert canonical(True) != canonical(1)


CIRCLE: list[object] = []
CIRCLE.append(CIRCLE)


@pytest.mark.parametrize("value", [math.nan, [math.inf], "\ud800", {"a": object()}, b"x", CIRCLE, {1: 2, "a": 3}])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    """A number that is not finite, half a character, an object of our own, a circle, keys of two kinds."""
    with pytest.raises(JsonError, match="cannot be written"):
        canonical(value)
