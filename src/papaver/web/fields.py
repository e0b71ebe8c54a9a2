"""Header fields read and written: structured fields (RFC 9651), dates, Retry-After, Deprecation, Sunset, freshness."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final, cast

import http_sf

from papaver.values.errors import PapaverError
from papaver.web.messages import Headers

__all__ = [
    "FieldError",
    "freshness",
    "read_deprecation",
    "read_extensions",
    "read_http_date",
    "read_retry_after",
    "read_string_list",
    "read_sunset",
    "write_deprecation",
    "write_extensions",
    "write_http_date",
    "write_retry_after",
    "write_string_list",
    "write_sunset",
]

MAX_BYTES: Final = 8192
MAX_SECONDS: Final = 2**31 - 1
"""What a longer time is taken for (RFC 9111 1.2.2): 68 years."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_DAY: Final = "|".join(day[:3] for day in _DAYS)
_LONG_DAY: Final = "|".join(_DAYS)
_MONTH: Final = rf"(?P<month>{'|'.join(_MONTHS)})"
_TIME: Final = r"(?P<hour>[0-9]{2}):(?P<minute>[0-9]{2}):(?P<second>[0-9]{2})"
_DATES: Final = tuple(
    re.compile(form)
    for form in (
        rf"(?:{_DAY}), (?P<day>[0-9]{{2}}) {_MONTH} (?P<year>[0-9]{{4}}) {_TIME} GMT",
        rf"(?:{_LONG_DAY}), (?P<day>[0-9]{{2}})-{_MONTH}-(?P<year>[0-9]{{2}}) {_TIME} GMT",
        rf"(?:{_DAY}) {_MONTH} (?P<day>[ 0-9][0-9]) {_TIME} (?P<year>[0-9]{{4}})",
    )
)
_DIGITS: Final = re.compile(r"[0-9]+")
_DIRECTIVE: Final = re.compile(r"""([!#$%&'*+.^_`|~0-9A-Za-z-]+)(?:=(?:"((?:[^"\\]|\\.)*+)"|([^\s,"]*)))?""")


class FieldError(PapaverError):
    """A header field that says nothing, or a value that a field cannot say."""

    code = "invalid_field"
    description = "a header field does not parse"


def read_string_list(values: Sequence[str], parameter: str) -> list[tuple[str, str]]:
    """The Strings of a List (RFC 9651 3.1), each with the String that its `parameter` holds.

    `values` are the field's lines. Members that are no String or lack a String `parameter` are left out, and of equal
    Strings the first is kept (readings 46). Raises `FieldError` when the whole does not parse.
    """
    pairs: dict[str, str] = {}
    for member in cast("list[tuple[object, dict[str, object]]]", _structured(values, "list")):
        name, value = member[0], member[1].get(parameter)
        if isinstance(name, str) and isinstance(value, str):
            pairs.setdefault(name, value)
    return list(pairs.items())


def write_string_list(pairs: Iterable[tuple[str, str]], parameter: str) -> str:
    """The List of Strings with one String parameter each; "" for an empty list: send no field then.

    Raises `FieldError` for what a String or a parameter's name cannot hold.
    """
    members: http_sf.ListType = [(name, {parameter: value}) for name, value in pairs]
    try:
        return http_sf.ser(members) if members else ""
    except ValueError as error:
        raise FieldError("a header field cannot say this", detail=str(error)) from None


def read_extensions(values: Sequence[str]) -> list[tuple[str, str]]:
    """Names and versions of `Poppy-Extensions` (3.4), whose version is the parameter `v`. Raises `FieldError`."""
    return read_string_list(values, "v")


def write_extensions(pairs: Iterable[tuple[str, str]]) -> str:
    """The value of `Poppy-Extensions` (3.4); "" when nothing is declared. Raises `FieldError`."""
    return write_string_list(pairs, "v")


def read_http_date(value: str, now: float) -> int:
    """Unix seconds of an HTTP-date in any of its three forms (RFC 9110 5.6.7). Raises `FieldError`.

    `now` tells the century of a year with two digits.
    """
    match = next(filter(None, (form.fullmatch(value) for form in _DATES)), None)
    if match is None:
        raise FieldError("not an HTTP date")
    year = int(match["year"])
    if len(match["year"]) == 2:
        this_year = datetime.fromtimestamp(now, UTC).year
        year += this_year // 100 * 100
        if year > this_year + 50:
            year -= 100
    second = int(match["second"])
    leap = second == 60
    try:
        moment = datetime(
            year,
            _MONTHS.index(match["month"]) + 1,
            int(match["day"]),
            int(match["hour"]),
            int(match["minute"]),
            second - leap,
            tzinfo=UTC,
        )
    except ValueError:
        raise FieldError("an HTTP date that never was") from None
    return (moment - _EPOCH) // timedelta(seconds=1) + leap


def write_http_date(seconds: float) -> str:
    """The preferred form of an HTTP-date (RFC 9110 5.6.7), fractions dropped. Raises `FieldError` beyond year 9999."""
    try:
        moment = _EPOCH + timedelta(seconds=math.floor(seconds))
    except (OverflowError, ValueError):  # infinite, or not a number
        raise FieldError("a date beyond the calendar") from None
    day, month = _DAYS[moment.weekday()][:3], _MONTHS[moment.month - 1]
    return f"{day}, {moment.day:02} {month} {moment.year:04} {moment.hour:02}:{moment.minute:02}:{moment.second:02} GMT"


def read_retry_after(value: str, now: float) -> int:
    """Seconds to wait, 0 or more, from either form of Retry-After (RFC 9110 10.2.3). Raises `FieldError`."""
    if _DIGITS.fullmatch(value) is not None:
        return _seconds(value)
    return min(max(0, math.ceil(read_http_date(value, now) - now)), MAX_SECONDS)


def write_retry_after(seconds: float) -> str:
    """Retry-After as whole seconds, rounded up, so that whoever obeys is never early."""
    return str(max(0, math.ceil(seconds)))


def read_deprecation(value: str) -> int:
    """Unix seconds of a Deprecation field (RFC 9745 2.1), a structured Date. Raises `FieldError`."""
    date, _ = cast("tuple[object, object]", _structured((value,), "item"))
    if not isinstance(date, datetime):
        raise FieldError("Deprecation is not a Date")
    return (date.astimezone(UTC) - _EPOCH) // timedelta(seconds=1)


def write_deprecation(seconds: float) -> str:
    """The Deprecation field (RFC 9745 2.1) for a moment in Unix seconds, past or future."""
    return f"@{math.floor(seconds)}"


def read_sunset(value: str, now: float) -> int:
    """Unix seconds of a Sunset field (RFC 8594 3), an HTTP-date. Raises `FieldError`."""
    return read_http_date(value, now)


def write_sunset(seconds: float) -> str:
    """The Sunset field (RFC 8594 3) for a moment in Unix seconds. Raises `FieldError` beyond year 9999."""
    return write_http_date(seconds)


def freshness(headers: Headers, now: float) -> int | None:
    """For how many seconds more a private cache may use a response (RFC 9111 4.2), or None when it does not say.

    0 for `no-store`, `no-cache`, contradictory or unreadable statements; `max-age` before Expires; Age is deducted.
    """
    directives = [
        (match[1].lower(), match[2] if match[2] is not None else match[3])
        for line in headers.all("cache-control")
        for match in _DIRECTIVE.finditer(line)
    ]
    ages = [value for name, value in directives if name == "max-age"]
    expires = headers.all("expires")
    if any(name in ("no-store", "no-cache") for name, _ in directives):
        return 0
    if ages:
        lifetime = min(_seconds(value) if _is_number(value) else 0 for value in ages)
    elif expires:
        lifetime = _until(expires, headers, now)
    else:
        return None
    age = headers.first("age")
    return max(0, lifetime - (_seconds(age) if _is_number(age) else 0))


def _until(expires: Sequence[str], headers: Headers, now: float) -> int:
    """Seconds from the response's own Date, else from `now`, to the first Expires; 0 when it is no date ("0", "-1")."""
    try:
        end = read_http_date(expires[0], now)
    except FieldError:
        return 0
    try:
        start = read_http_date(headers.first("date") or "", now)
    except FieldError:
        start = math.floor(now)
    return end - start


def _is_number(value: str | None) -> bool:
    return value is not None and _DIGITS.fullmatch(value) is not None


def _seconds(digits: str | None) -> int:
    return MAX_SECONDS if digits is None or len(digits) > 10 else min(int(digits), MAX_SECONDS)


def _structured(values: Sequence[str], kind: str) -> http_sf.StructuredType:
    joined = ", ".join(values)
    if len(joined) > MAX_BYTES:
        raise FieldError("a header field is too long")
    try:
        return http_sf.parse(joined.encode("ascii"), tltype=kind)
    except ValueError as error:  # not ASCII, or not the structure
        raise FieldError(detail=str(error)) from None
