"""The errors of OAuth's documents carry the RFC's codes and the differing values."""

from __future__ import annotations

import pytest

from papaver.oauth.errors import (
    InvalidAccessToken,
    InvalidClientMetadata,
    InvalidGrant,
    InvalidMetadata,
    InvalidOAuthResponse,
    InvalidRedirectUri,
    OAuthError,
    UnknownCode,
    UseDpopNonce,
    error_of,
)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidMetadata(), "invalid_metadata"),
        (InvalidClientMetadata(), "invalid_client_metadata"),
        (InvalidRedirectUri(), "invalid_redirect_uri"),
        (InvalidOAuthResponse(), "invalid_oauth_response"),
        (InvalidAccessToken(), "invalid_token"),
    ],
)
def test_each_error_has_a_code_and_a_sentence(error: OAuthError, code: str) -> None:
    """RFC 7591's codes where it has them."""
    assert error.code == code
    assert error.description


def test_metadata_that_differs_shows_both_values() -> None:
    """And keeps the private detail apart."""
    error = InvalidMetadata("not alike", rule="oauth.x", expected="a", found="b", detail="why")
    assert (error.rule, error.expected, error.found, error.detail) == ("oauth.x", "a", "b", "why")
    assert "why" not in str(error)


def test_a_received_code_is_its_error() -> None:
    """The other party's sentence goes into the private detail, whatever the code."""
    known = error_of("invalid_grant", "their words")
    assert (type(known), known.description, known.detail) == (InvalidGrant, InvalidGrant.description, "their words")
    unknown = error_of("odd", "their words")
    assert (type(unknown), unknown.code, unknown.description) == (UnknownCode, "odd", "the server refused")


def test_a_demanded_nonce_is_in_its_error() -> None:
    """Without a nonce there is nothing to obey."""
    error = error_of("use_dpop_nonce", nonce="n1")
    assert isinstance(error, UseDpopNonce)
    assert error.nonce == "n1"
    assert type(error_of("use_dpop_nonce")) is UnknownCode
