"""Claims are typed, and no member is there twice, on the quick way as on the careful one."""

from __future__ import annotations

import msgspec
import pytest

from papaver.jose.claims import ClaimsError, ClaimsReader


class Claims(msgspec.Struct, frozen=True):
    """One text, one number, one more text that may be missing."""

    iss: str = ""
    iat: int = 0
    more: str | msgspec.UnsetType = msgspec.UNSET


def quotes(claims: Claims) -> int:
    """Two keys and one text, plus the optional pair."""
    return 6 + 4 * (claims.more is not msgspec.UNSET)


QUICK = ClaimsReader(Claims, quotes=quotes)
CAREFUL = ClaimsReader(Claims)
READERS = pytest.mark.parametrize("reader", [QUICK, CAREFUL], ids=["quick", "careful"])


@READERS
@pytest.mark.parametrize(
    ("payload", "claims"),
    [
        (b'{"iss":"a","iat":1}', Claims("a", 1)),
        (b'{"iat":1,"iss":"a","more":"b"}', Claims("a", 1, "b")),
        (b' { "iss" : "\\u0061" , "iat":1 } ', Claims("a", 1)),
        (b'{"iss":":","iat":1}', Claims(":", 1)),
        (b'{"iss":"a","iat":1,"unknown":{"iss":["x"]}}', Claims("a", 1)),
        (b'{"iat":1}', Claims("", 1)),
        (b"{}", Claims()),
    ],
)
def test_well_formed_claims_are_read(reader: ClaimsReader[Claims], payload: bytes, claims: Claims) -> None:
    """In any order, with unknown members, white space and escapes."""
    assert reader.read(payload) == claims


@READERS
@pytest.mark.parametrize(
    "payload",
    [
        b'{"iss":"a","iss":"b","iat":1}',
        b'{"iss":"a","iss" :"b","iat":1}',
        b'{"iss":"a","i\\u0073s":"b","iat":1}',
        b'{"iat":2,"iss":"a","iat":1}',
        b'{"iat":2,"iat":1}',
        b'{"iss":"a","iat":1,"z":1,"z":1}',
        b'{"iss":"a","iat":1,"z":{"y":1,"y":1}}',
        b'{"iss":"a","iat":true}',
        b'{"iss":"a","iat":"1"}',
        b'{"iss":"a","iat":1.0}',
        b'{"iss":"a","iat":1e3}',
        b'{"iss":"a","iat":NaN}',
        b'{"iss":null,"iat":1}',
        b'{"iss":["a"],"iat":1}',
        b'{"iss":"a","iat":1,"more":null}',
        b'{"iss":"a","iat":1,"z":NaN}',
        b'{"iss":"a","iat":1,"z":"\xff"}',
        b'{"iss":"\xff","iat":1}',
        b'{"iss":"\\ud800","iat":1}',
        b'{"iss":"a","iat":1,"z":' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"iss":"a","iat":' + b"9" * 5000 + b"}",
        b"[]",
        b'"iss"',
        b"null",
        b"",
        b"{",
        b'{"iss":"a","iat":1}x',
        b'\xef\xbb\xbf{"iss":"a","iat":1}',
    ],
    ids=lambda payload: repr(payload[:40]),
)
def test_malformed_claims_are_refused(reader: ClaimsReader[Claims], payload: bytes) -> None:
    """Members twice, wrong types, what is not JSON: one error, and one rule."""
    with pytest.raises(ClaimsError) as caught:
        reader.read(payload)
    assert caught.value.rule == "claims.typed"
