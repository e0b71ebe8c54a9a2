"""Errors of draft 0.4 on the wire: each class has a status, and tells its code in the body or the header (7, 8.13)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from papaver.protocol.dialect import BEARER_ONLY, Challenged, ErrorTable, Place, Received
from papaver.protocol.errors import (
    AccountNeeded,
    ConversationClosed,
    ConversationNotFound,
    CursorExpired,
    DirectConversationOpen,
    ExtensionRequired,
    InsufficientScope,
    InvalidCursor,
    InvalidRequest,
    InvalidSession,
    InvalidToken,
    MessageIdConflict,
    PayloadTooLarge,
    ProofNonceNeeded,
    RateLimited,
    SessionEnded,
    TemporarilyUnavailable,
    VersionUnsupported,
)
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.web.challenges import Challenge, read_challenges, write_challenges
from papaver.web.messages import Headers, Response

__all__ = ["ERRORS", "Errors", "STATUSES"]

STATUSES: Final[Mapping[type[PapaverError], int]] = {
    AccountNeeded: 401,
    ConversationClosed: 409,
    ConversationNotFound: 404,
    CursorExpired: 410,
    DirectConversationOpen: 409,
    ExtensionRequired: 403,
    InsufficientScope: 403,
    InvalidCursor: 400,
    InvalidRequest: 400,
    InvalidSession: 400,
    InvalidToken: 401,
    MessageIdConflict: 409,
    PayloadTooLarge: 413,
    ProofNonceNeeded: 401,
    RateLimited: 429,
    SessionEnded: 400,
    TemporarilyUnavailable: 503,
    VersionUnsupported: 400,
}
"""Error class → HTTP status. Whatever is not here is our own fault: 500, and nothing of it is told."""

_TOKEN_CODES: Final = frozenset({InvalidToken.code, InsufficientScope.code, ProofNonceNeeded.code})
_UNSAYABLE: Final = re.compile(r"[^\x20-\x21\x23-\x5b\x5d-\x7e]")
_NO_STORE: Final = ("Cache-Control", "no-store")
_JSON: Final = ("Content-Type", "application/json")


class Errors:
    """Draft 0.4's ErrorTable."""

    def write(self, error: PapaverError, place: Place, challenged: Challenged = BEARER_ONLY) -> Response:
        """JSON that is never stored (readings 30). Only `code` and `description` leave; `detail` and `rule` stay."""
        status = next((STATUSES[kind] for kind in type(error).__mro__ if kind in STATUSES), 0)
        if not status:
            return Response(500, Headers([_JSON, _NO_STORE]), strict_json.dumps({"error": "server_error"}))
        headers: list[tuple[str, str]] = [_NO_STORE]
        in_header = isinstance(error, AccountNeeded | InvalidToken | InsufficientScope)
        if in_header or (place is Place.API and isinstance(error, ExtensionRequired)):
            headers.append(("WWW-Authenticate", write_challenges(_challenges(error, challenged))))
        if isinstance(error, ProofNonceNeeded):
            headers.append(("DPoP-Nonce", error.nonce))
        if isinstance(error, RateLimited | TemporarilyUnavailable):
            headers.append(("Retry-After", str(max(1, error.retry_after))))
        if not error.code:
            return Response(status, Headers(headers))
        return Response(status, Headers([_JSON, *headers]), strict_json.dumps(_body(error)))

    def read(self, response: Response) -> Received | None:
        """Token errors are read from WWW-Authenticate alone (7; readings 31), others from the body.

        A 429 is `rate_limited` whatever its body says (5.6). `retry_after` holds the Retry-After field as it came.
        """
        if response.status < 400:
            return None
        retry_after = response.headers.first("Retry-After")
        attributes = {} if retry_after is None else {"retry_after": retry_after}
        if response.status == 429:
            return Received(RateLimited.code, attributes)
        challenged = _read_challenged(response)
        if challenged is not None:
            return challenged
        body = _read_body(response)
        code = body.pop("error", "")
        return Received(code, body | attributes) if code and code not in _TOKEN_CODES else None


ERRORS: Final[ErrorTable] = Errors()


def _challenges(error: PapaverError, challenged: Challenged) -> list[Challenge]:
    """One for each scheme that is accepted. A challenge without a token has no error code (RFC 6750 3.1).

    What is wrong is said in each, but for a nonce, which is a matter of DPoP alone (RFC 9449 9).
    """
    said = _said(error)
    only_dpop = isinstance(error, ProofNonceNeeded)
    challenges: list[Challenge] = []
    for scheme in challenged.schemes:
        params = {} if only_dpop and scheme != "DPoP" else dict(said)
        if scheme == "DPoP":
            params["algs"] = " ".join(challenged.algs)
        if challenged.resource_metadata is not None:
            params["resource_metadata"] = challenged.resource_metadata
        challenges.append(Challenge(scheme, params))
    return challenges


def _said(error: PapaverError) -> Mapping[str, str]:
    params: dict[str, str] = {}
    if error.code:
        params["error"] = error.code
        description = _UNSAYABLE.sub(" ", error.description)
        if description:
            params["error_description"] = description
    if isinstance(error, AccountNeeded | InsufficientScope) and error.scope:
        params["scope"] = error.scope
    if isinstance(error, ExtensionRequired):
        params["extension"] = error.extension
    return params


def _body(error: PapaverError) -> dict[str, object]:
    body: dict[str, object] = {"error": error.code}
    if error.description:
        body["error_description"] = error.description
    if isinstance(error, DirectConversationOpen):
        body["conversation_id"] = error.conversation_id
    if isinstance(error, ExtensionRequired):
        body["extension"] = error.extension
    return body


def _read_challenged(response: Response) -> Received | None:
    """The first challenge of OAuth's schemes that names an error; on a 401 also one that names none."""
    found = [
        challenge
        for challenge in read_challenges(response.headers.all("WWW-Authenticate"), tolerant=True)
        if challenge.is_scheme("Bearer") or challenge.is_scheme("DPoP")
    ]
    named = next((challenge for challenge in found if challenge.params.get("error")), None)
    if named is not None:
        return _received(named)
    return _received(found[0]) if found and response.status == 401 else None


def _received(challenge: Challenge) -> Received:
    rest = dict(challenge.params)
    return Received(rest.pop("error", ""), rest)


def _read_body(response: Response) -> dict[str, str]:
    try:
        body = strict_json.loads_object(response.body)
    except strict_json.JsonError:
        return {}
    return {name: value for name, value in body.items() if isinstance(value, str)}
