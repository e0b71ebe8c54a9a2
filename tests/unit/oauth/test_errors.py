"""The errors of OAuth's documents carry the RFC's codes and the differing values."""

from __future__ import annotations

import pytest

from papaver.oauth.errors import InvalidClientMetadata, InvalidMetadata, InvalidRedirectUri, OAuthError


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InvalidMetadata(), "invalid_metadata"),
        (InvalidClientMetadata(), "invalid_client_metadata"),
        (InvalidRedirectUri(), "invalid_redirect_uri"),
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
