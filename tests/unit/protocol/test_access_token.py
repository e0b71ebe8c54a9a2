"""The access token of a request: read from its one field, and none can be valid where there is no issuer."""

from __future__ import annotations

import pytest

from papaver.protocol.access_token import check_no_token, read_access_token
from papaver.protocol.errors import InvalidRequest, InvalidToken
from papaver.values.secret import Secret
from papaver.web.messages import Headers


@pytest.mark.parametrize(
    ("field", "token"),
    [
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
        ("DPoP abc", "abc"),
        ("BEARER", ""),
        ("Basic YTpi", None),
        ("Bearerabc", None),
        ("", None),
    ],
)
def test_a_token_is_what_follows_a_scheme_of_oauth(field: str, token: str | None) -> None:
    """Any letter case; credentials of another scheme are none of ours (readings 66)."""
    read = read_access_token(Headers([("Authorization", field)]))
    assert (None if read is None else read.reveal()) == token


def test_without_the_field_there_is_no_token() -> None:
    """Signed out (5.4)."""
    assert read_access_token(Headers()) is None


@pytest.mark.requirement("papaver-30")
def test_b10_two_fields_are_refused() -> None:
    """Even when they are equal, and whatever the scheme."""
    with pytest.raises(InvalidRequest, check=lambda error: error.rule == "token.authorization-once"):
        read_access_token(Headers([("Authorization", "Basic x"), ("authorization", "Bearer x")]))


@pytest.mark.requirement("papaver-30")
def test_no_token_is_valid_where_nobody_issues_any() -> None:
    """And its holder is told what to do."""
    check_no_token(None)
    with pytest.raises(
        InvalidToken, match="continue signed out", check=lambda error: error.rule == "token.needs-issuer"
    ):
        check_no_token(Secret("abc"))
