"""Header fields mean one thing: structured lists, dates, waits and freshness (3.4, 5.6; RFC 9110, 9111, 9651, 9745)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from papaver.web.fields import (
    MAX_SECONDS,
    FieldError,
    freshness,
    read_deprecation,
    read_extensions,
    read_http_date,
    read_retry_after,
    read_string_list,
    read_sunset,
    write_deprecation,
    write_extensions,
    write_http_date,
    write_retry_after,
    write_string_list,
    write_sunset,
)
from papaver.web.messages import Headers

NOW = 1_800_000_000  # Fri, 15 Jan 2027 08:00:00 GMT
THEN = 784_111_777  # Sun, 06 Nov 1994 08:49:37 GMT
PRINTABLE = st.text(st.characters(min_codepoint=32, max_codepoint=126), max_size=12)


@pytest.mark.parametrize(
    ("values", "pairs"),
    [
        (['"operations";v="2", "links";v="1"'], [("operations", "2"), ("links", "1")]),
        (['"a";v="1"', '"b";v="2"'], [("a", "1"), ("b", "2")]),
        ([' "a" ; v="1"'], None),
        (['"a"; v="1";x=?1 ,\t"b";y;v="2"  '], [("a", "1"), ("b", "2")]),
        (['a;v="1", 1;v="1", :YQ==:;v="1", ("c" "d");v="1", @0;v="1", %"e";v="1", "z";v="9"'], [("z", "9")]),
        (['"a", "b";v=1, "c";v=x, "d";v, "e";v="5"'], [("e", "5")]),
        (['"a";v="1", "a";v="2"'], [("a", "1")]),
        (['"a";v=1, "a";v="2"'], [("a", "2")]),
        (['"a";v="1";v="2"'], [("a", "2")]),
        (['"q\\"\\\\";v=" "'], [('q"\\', " ")]),
        ([""], []),
        (["  "], []),
        ([], []),
        (["operations;v=2,,"], None),
        (['"a";v="1",'], None),
        (['"a'], None),
        (['"a" "b"'], None),
        (['"a";V="1"'], None),
        (['"é";v="1"'], None),
        (['"a";v="1"', ""], None),
        (["a" * 8193], None),
        (["@99999999999999999"], None),
        (["("], None),
        ([":a"], None),
        (['%"%ff"'], None),
        (["\u0661"], None),
    ],
)
def test_extensions_are_a_list_of_strings_with_a_v(values: list[str], pairs: list[tuple[str, str]] | None) -> None:
    """Lines are joined, odd members left out, the first of equal names kept; otherwise the whole does not parse."""
    if pairs is None:
        with pytest.raises(FieldError) as caught:
            read_extensions(values)
        assert caught.value.code == "invalid_field"
    else:
        assert read_extensions(values) == pairs


@given(st.dictionaries(PRINTABLE, PRINTABLE, max_size=5))
def test_what_is_declared_is_read_back(pairs: dict[str, str]) -> None:
    """Every printable name and version survives; nothing declared is no field."""
    assert read_extensions([write_extensions(pairs.items())]) == list(pairs.items())
    assert read_string_list([write_string_list(pairs.items(), "x")], "x") == list(pairs.items())


def test_a_declaration_is_written_as_the_draft_shows_it() -> None:
    """3.4's example, character for character."""
    assert write_extensions([("operations", "2"), ("links", "1")]) == '"operations";v="2", "links";v="1"'
    assert write_extensions([]) == ""


def test_what_a_string_cannot_hold_is_not_written() -> None:
    """Not ASCII, control characters, a parameter that is no key."""
    for name, parameter in (("é", "v"), ("a\n", "v"), ("a", "V")):
        with pytest.raises(FieldError):
            write_string_list([(name, "1")], parameter)


@pytest.mark.parametrize(
    ("value", "now", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:49:37 GMT", NOW, THEN),
        ("Sunday, 06-Nov-94 08:49:37 GMT", NOW, THEN),
        ("Sun Nov  6 08:49:37 1994", NOW, THEN),
        ("Sun Nov 16 08:49:37 1994", NOW, THEN + 864_000),
        ("Friday, 15-Jan-27 08:00:00 GMT", NOW, NOW),
        ("Saturday, 15-Jan-77 08:00:00 GMT", NOW, 3_377_923_200),
        ("Sunday, 15-Jan-78 08:00:00 GMT", NOW, 253_699_200),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
        ("Mon, 31 Dec 2016 23:59:60 GMT", NOW, 1_483_228_800),
    ],
)
def test_the_three_forms_of_an_http_date(value: str, now: float, seconds: int) -> None:
    """RFC 9110 5.6.7, two-digit years at most fifty years ahead, and leap seconds."""
    assert read_http_date(value, now) == seconds


@pytest.mark.parametrize(
    "value",
    [
        "",
        "0",
        "sun, 06 nov 1994 08:49:37 gmt",
        "Sun, 06 Nov 1994 08:49:37",
        "Sun, 06 Nov 1994 08:49:37 UTC",
        "Sun, 06 Nov 1994 08:49:37 +0000",
        "Sun, 6 Nov 1994 08:49:37 GMT",
        "Sun, 31 Feb 1994 08:49:37 GMT",
        "Sun, 06 Nov 1994 24:00:00 GMT",
        "Sun, 06 Nov 1994 08:49:61 GMT",
        "Sun, 06 Nov 0000 08:49:37 GMT",
        "Sun, 0\u0666 Nov 1994 08:49:37 GMT",
        "Sun Nov 00 08:49:37 1994",
        "1994-11-06T08:49:37Z",
    ],
)
def test_other_dates_are_refused(value: str) -> None:
    """Nothing is guessed."""
    for read in (read_http_date, read_sunset):
        with pytest.raises(FieldError):
            read(value, NOW)


@given(st.integers(-(10**10), 10**11))
def test_dates_are_read_back(seconds: int) -> None:
    """Both date fields keep every second, past and future."""
    assert read_http_date(write_http_date(seconds), NOW) == seconds
    assert read_sunset(write_sunset(seconds), NOW) == seconds
    assert read_deprecation(write_deprecation(seconds)) == seconds


def test_dates_are_written_in_the_preferred_form() -> None:
    """Fractions are dropped, also before the epoch."""
    assert write_http_date(THEN + 0.9) == "Sun, 06 Nov 1994 08:49:37 GMT"
    assert write_http_date(-0.5) == "Wed, 31 Dec 1969 23:59:59 GMT"
    assert write_deprecation(1_688_169_599.7) == "@1688169599"
    for seconds in (10**12, 10**40, float("inf"), float("nan")):
        with pytest.raises(FieldError):
            write_http_date(seconds)


@pytest.mark.parametrize(
    "value", ["", "?1", "1688169599", "@", "@1.5", "@1, @2", "Sun, 06 Nov 1994 08:49:37 GMT", "@" + "9" * 15]
)
def test_deprecation_is_a_structured_date(value: str) -> None:
    """RFC 9745 2.1; an HTTP-date is an older draft's."""
    with pytest.raises(FieldError):
        read_deprecation(value)


def test_deprecation_may_have_parameters() -> None:
    """They are ignored."""
    assert read_deprecation("@1688169599;x=1") == 1_688_169_599
    assert read_deprecation("@-1") == -1


@pytest.mark.parametrize(
    ("value", "now", "seconds"),
    [
        ("0", NOW, 0),
        ("120", NOW, 120),
        ("007", NOW, 7),
        ("9" * 40, NOW, MAX_SECONDS),
        ("4294967296", NOW, MAX_SECONDS),
        ("Fri, 15 Jan 2027 08:00:10 GMT", NOW, 10),
        ("Fri, 15 Jan 2027 08:00:10 GMT", NOW + 0.5, 10),
        ("Sun, 06 Nov 1994 08:49:37 GMT", NOW, 0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", NOW, MAX_SECONDS),
    ],
)
def test_retry_after_is_seconds_from_now(value: str, now: float, seconds: int) -> None:
    """Both forms; never negative, never too early."""
    assert read_retry_after(value, now) == seconds


@pytest.mark.parametrize("value", ["", "-1", "1.5", "+5", "1 ", "soon", "\u0661"])
def test_other_waits_are_refused(value: str) -> None:
    """The caller decides how long to wait then."""
    with pytest.raises(FieldError):
        read_retry_after(value, NOW)


def test_retry_after_is_rounded_up() -> None:
    """Whoever obeys is never early."""
    assert [write_retry_after(seconds) for seconds in (-1, 0, 0.2, 3, 3.01)] == ["0", "0", "1", "3", "4"]


@pytest.mark.parametrize(
    ("fields", "seconds"),
    [
        ([], None),
        ([("Cache-Control", "public")], None),
        ([("Cache-Control", "")], None),
        ([("Cache-Control", "max-age=60")], 60),
        ([("Cache-Control", "public, MAX-AGE=60")], 60),
        ([("Cache-Control", 'max-age="60"')], 60),
        ([("Cache-Control", "max-age=60"), ("Cache-Control", "max-age=30")], 30),
        ([("Cache-Control", "max-age=" + "9" * 30)], MAX_SECONDS),
        ([("Cache-Control", "max-age")], 0),
        ([("Cache-Control", "max-age=")], 0),
        ([("Cache-Control", "max-age=-1")], 0),
        ([("Cache-Control", "max-age=1.5")], 0),
        ([("Cache-Control", "max-age=60, no-store")], 0),
        ([("Cache-Control", "no-cache"), ("Cache-Control", "max-age=60")], 0),
        ([("Cache-Control", 'x="no-store, \\" no-cache", max-age=60')], 60),
        ([("Cache-Control", "x-max-age=60")], None),
        ([("Cache-Control", "max-age=60"), ("Age", "20")], 40),
        ([("Cache-Control", "max-age=60"), ("Age", "200")], 0),
        ([("Cache-Control", "max-age=60"), ("Age", "x")], 60),
        ([("Cache-Control", "max-age=60"), ("Expires", "0")], 60),
        ([("Expires", "Fri, 15 Jan 2027 08:01:00 GMT")], 60),
        ([("Expires", "Fri, 15 Jan 2027 08:01:00 GMT"), ("Date", "Fri, 15 Jan 2027 08:00:50 GMT")], 10),
        ([("Expires", "Fri, 15 Jan 2027 08:01:00 GMT"), ("Date", "today")], 60),
        ([("Expires", "Sun, 06 Nov 1994 08:49:37 GMT")], 0),
        ([("Expires", "-1")], 0),
        ([("Cache-Control", "public"), ("Expires", "0")], 0),
    ],
)
def test_freshness(fields: list[tuple[str, str]], seconds: int | None) -> None:
    """RFC 9111 4.2: None when nothing is said, 0 when it is said badly."""
    assert freshness(Headers(fields), NOW) == seconds


@given(st.text(max_size=30), st.sampled_from(["cache-control", "expires", "date", "age"]))
def test_freshness_never_raises(text: str, name: str) -> None:
    """Whatever another server sends."""
    seconds = freshness(Headers([("Expires", "Fri, 15 Jan 2027 08:01:00 GMT"), (name, text)]), NOW)
    assert seconds is None or 0 <= seconds <= MAX_SECONDS
