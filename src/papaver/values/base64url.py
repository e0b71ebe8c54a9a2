"""Base64url without padding (RFC 4648 5, RFC 7515 2), one spelling for each value."""

from __future__ import annotations

import binascii
from typing import Final

from papaver.values.errors import PapaverError

__all__ = ["Base64Error", "decode", "encode"]

# "+", "/" and "=" belong to the other alphabet and to padding: they are mapped to an octet that the decoder refuses.
_TO_STANDARD: Final = bytes.maketrans(b"-_+/=", b"+/!!!")
_TO_URL: Final = bytes.maketrans(b"+/", b"-_")
_PADDING: Final = (b"", None, b"==", b"=")
# The last character of a partial group carries four or two bits that have to be zero, else two texts mean one value.
_LAST: Final = (b"", b"", b"AQgw", b"AEIMQUYcgkosw048")


class Base64Error(PapaverError):
    """A text that is not the base64url form of anything."""

    code = "invalid_base64url"
    description = "not base64url without padding"


def encode(data: bytes) -> str:
    """The base64url text of `data`, without padding."""
    return binascii.b2a_base64(data, newline=False).rstrip(b"=").translate(_TO_URL).decode("ascii")


def decode(text: str | bytes) -> bytes:
    """The octets that `text` stands for.

    Raises `Base64Error` for padding, the other alphabet, white space, a length that no encoder makes, and set bits
    after the last octet, so `encode(decode(text)) == text` for whatever this accepts.
    """
    if isinstance(text, str):
        try:
            text = text.encode("ascii")
        except UnicodeEncodeError:
            raise Base64Error(detail="not ASCII") from None
    rest = len(text) & 3
    padding = _PADDING[rest]
    if padding is None:
        raise Base64Error(detail="one character is left over")
    if rest and text[-1] not in _LAST[rest]:
        raise Base64Error(detail="bits are set after the last octet, or the last character is none of the alphabet")
    try:
        return binascii.a2b_base64(text.translate(_TO_STANDARD) + padding, strict_mode=True)
    except binascii.Error:
        raise Base64Error(detail="a character outside the alphabet") from None
