"""Typed claims: a JWT payload into a struct, with members of one name refused at next to no cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from papaver.values.errors import PapaverError
from papaver.values.strict_json import JsonError, loads

__all__ = ["ClaimsError", "ClaimsReader"]

T = TypeVar("T", bound=msgspec.Struct)


class ClaimsError(PapaverError):
    """A payload that is not a JSON object, repeats a member, or has a claim of the wrong type."""

    code = "invalid_claims"
    description = "the JWT's claims are malformed"


class ClaimsReader(Generic[T]):
    """Reads payloads into one struct type; unknown claims are ignored, wrong types and repeated members refused.

    msgspec lets the last of two equal members win, and does not look into what it skips. `quotes` tells how many
    quotation marks the claims take that were read. When the payload has exactly as many and no backslash, each mark
    delimits a known name or value, so nothing was there twice and nothing was skipped; that holds where every required
    claim is there, which a check of its caller sees to. Any other payload, and each
    one when `quotes` is None, goes through the careful reader.
    """

    __slots__ = ("_decode", "_quotes", "_struct")

    def __init__(self, struct: type[T], *, quotes: Callable[[T], int] | None = None) -> None:
        self._struct = struct
        self._decode: Callable[[bytes], T] = msgspec.json.Decoder(struct).decode
        self._quotes = quotes

    def read(self, payload: bytes) -> T:
        """The claims of a decoded payload. Raises ClaimsError."""
        quotes = self._quotes
        if quotes is not None and b"\\" not in payload:
            try:
                claims = self._decode(payload)
            except (msgspec.DecodeError, RecursionError) as error:
                raise ClaimsError(rule="claims.typed", detail=str(error)) from None
            if payload.count(b'"') == quotes(claims):
                return claims
        try:
            return msgspec.convert(loads(payload), self._struct)
        except (JsonError, msgspec.ValidationError) as error:
            raise ClaimsError(rule="claims.typed", detail=f"{error}") from None
