"""The JSON answers of OAuth endpoints, errors included (RFC 6749 5): written, never to be stored; read with bounds."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from papaver.oauth.errors import (
    InvalidClient,
    InvalidOAuthResponse,
    ProtocolError,
    ServerError,
    TryLater,
    UnknownCode,
    UseDpopNonce,
    error_of,
)
from papaver.values.rules import rule
from papaver.values.strict_json import JsonError, dumps, loads_object
from papaver.values.told import told
from papaver.web.messages import Headers, Response

__all__ = [
    "check_answer_size",
    "error_text",
    "read_answer",
    "read_error",
    "seconds_of",
    "text_of",
    "write_answer",
    "write_error",
]

MAX_BYTES: Final = 65_536
MAX_SECONDS: Final = 2**31 - 1
DPOP_NONCE: Final = "dpop-nonce"

_NO_STORE: Final = (("content-type", "application/json"), ("cache-control", "no-store"), ("pragma", "no-cache"))
_CODE: Final = re.compile(r"[ !#-\[\]-~]{1,100}", re.ASCII).fullmatch
_NONCE: Final = re.compile(r"[!#-\[\]-~]{1,512}", re.ASCII).fullmatch
_NOT_TEXT: Final = re.compile(r"[^ !#-\[\]-~]", re.ASCII)


def error_text(description: str) -> str:
    """A description with the characters that `error_description` may have (RFC 6749 4.1.2.1, 5.2)."""
    return _NOT_TEXT.sub("'", description)


def write_answer(document: object, status: int = 200, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """A JSON answer that no cache keeps (RFC 6749 5.1)."""
    return Response(status, Headers([*_NO_STORE, *headers]), dumps(document))


def write_error(error: ProtocolError, status: int | None = None, headers: Iterable[tuple[str, str]] = ()) -> Response:
    """The error answer (RFC 6749 5.2): 401 for `invalid_client`, else 400, unless `status` says otherwise.

    A nonce that is demanded goes into `DPoP-Nonce` (RFC 9449 8).
    """
    more = [("dpop-nonce", error.nonce)] if isinstance(error, UseDpopNonce) else []
    usual = 401 if isinstance(error, InvalidClient) else 400
    document = {"error": error.code, "error_description": error_text(error.description)}
    return write_answer(document, status or usual, [*headers, *more])


def read_error(response: Response) -> ProtocolError:
    """The error of an answer that is no success. Never raises.

    An answer without OAuth's JSON becomes `TryLater` for 429 and 503, `ServerError` for other 5xx, and else an
    `UnknownCode` that names the status. The server's own sentence is in `detail`.
    """
    try:
        document = read_answer(response)
    except InvalidOAuthResponse:
        document = {}
    code, description = document.get("error"), document.get("error_description")
    said = told(description) if isinstance(description, str) else ""
    nonce = response.headers.first(DPOP_NONCE)
    if isinstance(code, str) and _CODE(code) is not None:
        return error_of(code, said, nonce=nonce if nonce and _NONCE(nonce) else None)
    detail = f"HTTP {response.status} without an OAuth error"
    if response.status in (429, 503):
        return TryLater(detail=detail)
    if response.status >= 500:
        return ServerError(detail=detail)
    return UnknownCode(f"http_{response.status}", detail=detail)


def read_answer(response: Response) -> dict[str, object]:
    """The JSON object of an answer. Raises `InvalidOAuthResponse`."""
    check_answer_size(response)
    try:
        return loads_object(response.body, max_bytes=MAX_BYTES)
    except JsonError as error:
        raise InvalidOAuthResponse(
            "the authorization server's answer is not a JSON object",
            rule="oauth.answer-json",
            detail=f"HTTP {response.status}, {error.description}",
        ) from None


def text_of(document: dict[str, object], member: str, form: re.Pattern[str]) -> str | None:
    """A string member of this form; None where it is absent or null. Raises `InvalidOAuthResponse`."""
    value = document.get(member)
    if value is None:
        return None
    if not isinstance(value, str) or form.fullmatch(value) is None:
        raise InvalidOAuthResponse(f"`{member}` of the answer is malformed", rule="oauth.answer-member")
    return value


def seconds_of(document: dict[str, object], member: str) -> int | None:
    """A member that is a number of seconds above 0, at most 68 years; None where it is absent or null.

    Raises `InvalidOAuthResponse`.
    """
    value = document.get(member)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or value < 1:
        raise InvalidOAuthResponse(f"`{member}` of the answer is no number of seconds", rule="oauth.answer-member")
    return int(min(value, MAX_SECONDS))


@rule("oauth.answer-size")
def check_answer_size(response: Response) -> None:
    """Bounded before anything is parsed."""
    if len(response.body) > MAX_BYTES:
        raise InvalidOAuthResponse(
            "the authorization server's answer is too large",
            rule="oauth.answer-size",
            detail=f"{len(response.body)} of {MAX_BYTES} octets",
        )
