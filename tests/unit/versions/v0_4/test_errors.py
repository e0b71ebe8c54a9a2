"""Each error of sections 7 and 8.13 on the wire: status, place, body, and how the other side reads it."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from _pytest.mark.structures import ParameterSet
from hypothesis import given
from hypothesis import strategies as st

from papaver.protocol import errors
from papaver.protocol.dialect import Challenged, Place, Received
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
    PoppyError,
    ProofNonceNeeded,
    RateLimited,
    SessionEnded,
    TemporarilyUnavailable,
    VersionUnsupported,
)
from papaver.values.errors import PapaverError
from papaver.versions.v0_4.errors import ERRORS, STATUSES
from papaver.web.challenges import read_challenges
from papaver.web.messages import Headers, Response

BOTH = list(Place)
MADE: dict[type[PapaverError], Callable[[], PapaverError]] = {
    DirectConversationOpen: lambda: DirectConversationOpen("cnv_2"),
    ExtensionRequired: lambda: ExtensionRequired("example.com/gift-wrap"),
    InsufficientScope: lambda: InsufficientScope("orders:read"),
    ProofNonceNeeded: lambda: ProofNonceNeeded("nonce-1"),
    RateLimited: lambda: RateLimited(1),
    TemporarilyUnavailable: lambda: TemporarilyUnavailable(1),
}


def _requirement(row: str, error: PoppyError, status: int) -> ParameterSet:
    return pytest.param(error, status, id=type(error).__name__, marks=pytest.mark.requirement(row))


@pytest.mark.parametrize("place", BOTH)
@pytest.mark.parametrize(
    ("error", "status"),
    [
        _requirement("8.13-01", InvalidSession(), 400),
        _requirement("8.13-01", SessionEnded(), 400),
        _requirement("8.13-01", VersionUnsupported(), 400),
        _requirement("8.13-03", ConversationNotFound(), 404),
        _requirement("8.13-04", ConversationClosed(), 409),
        _requirement("8.13-06", MessageIdConflict(), 409),
        _requirement("8.13-07", InvalidCursor(), 400),
        pytest.param(CursorExpired(), 410, id="CursorExpired"),
        _requirement("8.13-09", InvalidRequest(), 400),
        pytest.param(PayloadTooLarge(), 413, id="PayloadTooLarge"),
    ],
)
def test_errors_in_a_body(error: PoppyError, status: int, place: Place) -> None:
    """JSON with `error`, not to be stored, read back as the same code (8.13; readings 30)."""
    response = ERRORS.write(error, place)
    assert response.status == status
    assert json.loads(response.body) == {"error": error.code, "error_description": error.description}
    assert response.headers.first("Content-Type") == "application/json"
    assert response.headers.first("Cache-Control") == "no-store"
    assert response.headers.first("WWW-Authenticate") is None
    assert ERRORS.read(response) == Received(error.code, {"error_description": error.description})


@pytest.mark.requirement("8.13-02")
def test_an_open_direct_conversation_is_named() -> None:
    """409 with the Direct Conversation's id beside the code (8.10)."""
    response = ERRORS.write(DirectConversationOpen("cnv_2"), Place.ENDPOINT)
    assert (response.status, json.loads(response.body)["conversation_id"]) == (409, "cnv_2")
    received = ERRORS.read(response)
    assert received is not None
    assert (received.code, received.attributes["conversation_id"]) == ("direct_conversation_open", "cnv_2")


def test_extension_required_differs_in_place() -> None:
    """In the body at endpoints of the protocol, in WWW-Authenticate at APIs (3.3, 7)."""
    error = ExtensionRequired("example.com/gift-wrap")
    endpoint, api = ERRORS.write(error, Place.ENDPOINT), ERRORS.write(error, Place.API)
    assert (endpoint.status, api.status) == (403, 403)
    assert endpoint.headers.first("WWW-Authenticate") is None
    assert json.loads(endpoint.body)["extension"] == "example.com/gift-wrap"
    challenge = api.headers.first("WWW-Authenticate")
    assert challenge is not None
    assert challenge.startswith('Bearer error="extension_required"')
    assert 'extension="example.com/gift-wrap"' in challenge
    for response in (endpoint, api):
        received = ERRORS.read(response)
        assert received is not None
        assert (received.code, received.attributes["extension"]) == ("extension_required", "example.com/gift-wrap")


@pytest.mark.parametrize("place", BOTH)
def test_b54_a_missing_token_is_a_challenge_without_code(place: Place) -> None:
    """401 with the scope alone and an empty body (7; readings 31)."""
    response = ERRORS.write(AccountNeeded("orders:read"), place)
    assert (response.status, response.body) == (401, b"")
    assert response.headers.first("WWW-Authenticate") == 'Bearer scope="orders:read"'
    assert ERRORS.read(response) == Received("", {"scope": "orders:read"})
    assert ERRORS.write(AccountNeeded(), place).headers.first("WWW-Authenticate") == "Bearer"


@pytest.mark.parametrize("place", BOTH)
def test_token_errors_are_in_the_header_and_repeated_in_the_body(place: Place) -> None:
    """`invalid_token` 401 and `insufficient_scope` 403 with the scopes (7; readings 31)."""
    token, scope = ERRORS.write(InvalidToken(), place), ERRORS.write(InsufficientScope("a b"), place)
    assert (token.status, scope.status) == (401, 403)
    assert token.headers.first("WWW-Authenticate") == (
        f'Bearer error="invalid_token", error_description="{InvalidToken.description}"'
    )
    assert 'scope="a b"' in (scope.headers.first("WWW-Authenticate") or "")
    assert json.loads(token.body)["error"] == "invalid_token"
    received = ERRORS.read(scope)
    assert received is not None
    assert (received.code, received.attributes["scope"]) == ("insufficient_scope", "a b")


EACH = Challenged(("Bearer", "DPoP"), ("ES256", "PS384"), "https://h.example/.well-known/oauth-protected-resource/mcp")


@pytest.mark.requirement("7-21")
def test_there_is_one_challenge_for_each_scheme() -> None:
    """DPoP's says its algorithms, and what is wrong is said in both (RFC 9449 7.1; RFC 6750 3)."""
    response = ERRORS.write(InsufficientScope("a b"), Place.API, EACH)
    bearer, dpop = read_challenges(response.headers.all("WWW-Authenticate"))
    assert (bearer.scheme, dpop.scheme) == ("Bearer", "DPoP")
    assert (bearer.params.get("algs"), dpop.params["algs"]) == (None, "ES256 PS384")
    for challenge in (bearer, dpop):
        assert (challenge.params["error"], challenge.params["scope"]) == ("insufficient_scope", "a b")
    received = ERRORS.read(response)
    assert received is not None
    assert received.code == "insufficient_scope"


@pytest.mark.requirement("4.5-14")
@pytest.mark.parametrize("error", [InvalidToken(), AccountNeeded("a")])
def test_a_service_with_its_own_metadata_names_it(error: PoppyError) -> None:
    """In each challenge (RFC 9728 5.1)."""
    response = ERRORS.write(error, Place.API, EACH)
    for challenge in read_challenges(response.headers.all("WWW-Authenticate")):
        assert challenge.params["resource_metadata"] == EACH.resource_metadata
    assert b"resource_metadata" not in response.body


def test_a_nonce_is_asked_for_by_dpop_alone() -> None:
    """RFC 9449 9: 401 with the nonce in its own field; Bearer's challenge says nothing of it."""
    response = ERRORS.write(ProofNonceNeeded("nonce-1"), Place.API, EACH)
    bearer, dpop = read_challenges(response.headers.all("WWW-Authenticate"))
    assert (response.status, response.headers.first("DPoP-Nonce")) == (401, "nonce-1")
    assert ("error" in bearer.params, dpop.params["error"]) == (False, "use_dpop_nonce")
    received = ERRORS.read(response)
    assert received is not None
    assert received.code == "use_dpop_nonce"


def test_a_description_that_a_challenge_cannot_say_is_blanked() -> None:
    """Quotes, backslashes and what is not ASCII never break the header (RFC 6750 3)."""
    response = ERRORS.write(InvalidToken('a "b" \\ ä\r\n'), Place.API)
    assert 'error_description="a  b       "' in (response.headers.first("WWW-Authenticate") or "")
    silent = InvalidToken()
    silent.description = ""
    response = ERRORS.write(silent, Place.API)
    assert response.headers.first("WWW-Authenticate") == 'Bearer error="invalid_token"'
    assert json.loads(response.body) == {"error": "invalid_token"}


@pytest.mark.requirement("8.13-01", "5.6-05")
@pytest.mark.parametrize(
    ("error", "status"), [(RateLimited(7), 429), (TemporarilyUnavailable(7), 503), (RateLimited(0), 429)]
)
def test_come_again_says_when(error: RateLimited | TemporarilyUnavailable, status: int) -> None:
    """Retry-After in whole seconds, at least one (5.6; readings 15)."""
    response = ERRORS.write(error, Place.ENDPOINT)
    assert response.status == status
    assert response.headers.first("Retry-After") == str(max(1, error.retry_after))
    received = ERRORS.read(response)
    assert received is not None
    assert (received.code, received.attributes["retry_after"]) == (error.code, str(max(1, error.retry_after)))


def test_every_refusal_has_a_status() -> None:
    """No class of the protocol is missing from the table."""
    refusals = {
        kind
        for kind in vars(errors).values()
        if isinstance(kind, type) and issubclass(kind, PoppyError) and kind is not PoppyError
    }
    assert set(STATUSES) == refusals


@pytest.mark.parametrize("kind", list(STATUSES), ids=lambda kind: kind.__name__)
def test_nothing_private_leaves(kind: type[PapaverError]) -> None:
    """Detail and rule stay in our log (architecture 3.8)."""
    error = MADE[kind]() if kind in MADE else kind()
    error.detail, error.rule = "planted-detail", "planted.rule"
    for place in BOTH:
        response = ERRORS.write(error, place)
        assert "planted" not in f"{list(response.headers)} {response.body!r}"


def test_what_is_no_error_of_the_protocol_is_a_500() -> None:
    """Our own fault tells nothing but that."""
    response = ERRORS.write(PapaverError("planted"), Place.ENDPOINT)
    assert (response.status, json.loads(response.body)) == (500, {"error": "server_error"})


def _response(status: int, body: bytes = b"", *headers: tuple[str, str]) -> Response:
    return Response(status, Headers(headers), body)


@pytest.mark.parametrize(
    "response",
    [
        _response(200, b'{"error": "invalid_session"}'),
        _response(302),
        _response(404),
        _response(404, b"<html>"),
        _response(400, b"[]"),
        _response(400, b'{"error": 7}'),
        _response(400, b'{"message": "no"}'),
        _response(401),
        _response(401, b"", ("WWW-Authenticate", 'Basic realm="x"')),
        _response(403, b"", ("WWW-Authenticate", 'Bearer realm="x"')),
        pytest.param(_response(401, b'{"error": "invalid_token"}'), id="b54-a-token-error-in-the-body-alone"),
        pytest.param(_response(403, b'{"error": "insufficient_scope"}'), id="b54-scopes-in-the-body-alone"),
    ],
)
def test_other_responses_are_no_errors_of_the_protocol(response: Response) -> None:
    """None: what they are is for the caller to say."""
    assert ERRORS.read(response) is None


@pytest.mark.parametrize(
    ("response", "received"),
    [
        (_response(429), Received("rate_limited", {})),
        (
            _response(429, b'{"error": "slow_down"}', ("Retry-After", "5")),
            Received("rate_limited", {"retry_after": "5"}),
        ),
        (
            _response(401, b"", ("WWW-Authenticate", 'Basic realm="x", DPoP error="invalid_token", Bearer')),
            Received("invalid_token", {}),
        ),
        (
            _response(401, b"", ("WWW-Authenticate", "Bearer"), ("WWW-Authenticate", 'DPoP scope="a"')),
            Received("", {}),
        ),
        (
            _response(401, b'{"error": "x"}', ("WWW-Authenticate", 'bearer error="invalid_token", scope="a')),
            Received("invalid_token", {}),
        ),
        (
            _response(503, b'{"error": "temporarily_unavailable"}', ("Retry-After", "9")),
            Received("temporarily_unavailable", {"retry_after": "9"}),
        ),
    ],
)
def test_errors_are_read_as_others_write_them(response: Response, received: Received) -> None:
    """Several challenges, other schemes, broken quoting, and a bare 429."""
    assert ERRORS.read(response) == received


@given(
    status=st.sampled_from([400, 401, 403, 404, 429, 500, 503]),
    challenge=st.text(st.characters(max_codepoint=255), max_size=60),
    body=st.binary(max_size=60),
)
def test_no_response_breaks_the_reader(status: int, challenge: str, body: bytes) -> None:
    """Hostile headers and bodies read as something or nothing; nothing is raised."""
    received = ERRORS.read(_response(status, body, ("WWW-Authenticate", challenge), ("Retry-After", challenge)))
    assert received is None or isinstance(received.code, str)
