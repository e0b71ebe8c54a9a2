"""The issuer's answers that are no pages: documents, redirects, and each error with its status (RFC 6749 5.2)."""

from __future__ import annotations

from typing import Final

from papaver.oauth.answers import write_error
from papaver.oauth.errors import InvalidClient, InvalidOAuthRequest, ProtocolError, ServerError, TryLater
from papaver.protocol.errors import PayloadTooLarge, PoppyError, RateLimited, TemporarilyUnavailable
from papaver.values import strict_json
from papaver.values.errors import PapaverError
from papaver.web.messages import Headers, Response

__all__ = ["error_response", "forbidden_method", "json_response", "not_found", "redirect", "retry_after", "status_of"]

JSON: Final = ("content-type", "application/json")
NO_STORE: Final = (("cache-control", "no-store"), ("pragma", "no-cache"))
QUIET: Final = ("referrer-policy", "no-referrer")


def json_response(status: int, body: object, *more: tuple[str, str]) -> Response:
    """JSON that nobody stores."""
    return Response(status, Headers([JSON, *NO_STORE, *more]), strict_json.dumps(body))


def redirect(location: str, *more: tuple[str, str]) -> Response:
    """303 to a URL that may carry a code or a ticket: not stored, and not told on as a referrer."""
    return Response(303, Headers([("location", location), *NO_STORE, QUIET, *more]))


def not_found() -> Response:
    return json_response(404, {"error": "not_found"})


def forbidden_method(allow: tuple[str, ...]) -> Response:
    return json_response(405, {"error": "method_not_allowed"}, ("allow", ", ".join(allow)))


def status_of(error: PapaverError) -> int:
    """Of an error at an endpoint of the issuer."""
    kinds: tuple[tuple[type[PapaverError], int], ...] = (
        (InvalidClient, 401),
        (ServerError, 500),
        (TryLater, 503),
        (ProtocolError, 400),
        (RateLimited, 429),
        (TemporarilyUnavailable, 503),
        (PayloadTooLarge, 413),
        (PoppyError, 400),
    )
    return next((status for kind, status in kinds if isinstance(error, kind)), 500)


def retry_after(error: PapaverError) -> tuple[tuple[str, str], ...]:
    """`Retry-After`, for an error that time heals."""
    if isinstance(error, (RateLimited, TemporarilyUnavailable)):
        return (("retry-after", str(error.retry_after)),)
    return (("retry-after", "30"),) if isinstance(error, TryLater) else ()


def error_response(error: PapaverError) -> Response:
    """An error as OAuth writes it. What is none of OAuth's or the protocol's becomes a 500 that tells nothing."""
    return write_error(_told(error), status_of(error), retry_after(error))


def _told(error: PapaverError) -> ProtocolError:
    if isinstance(error, ProtocolError):
        return error
    if isinstance(error, (RateLimited, TemporarilyUnavailable)):
        return TryLater(error.description)
    return InvalidOAuthRequest(error.description) if isinstance(error, PoppyError) else ServerError()
